"""How useful a row's label is, by how unsure a classifier or a committee is of the row."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

#: Classes of which the entropy is taken, so that its cost does not grow with their number.
N_OF_ENTROPY = 10

Utilities = NDArray[np.float64]


def best_labels(classifier: Any, X: Any) -> NDArray[Any]:
    """The best label of each of the validated rows ``X``."""
    # -1 stands where no label has a score.
    labels: NDArray[Any] = classifier.classes_[np.maximum(classifier._best(X), 0)]
    return labels


def margins(classifier: Any, X: Any) -> Utilities:
    """1 / (best score - second best) of the validated rows ``X``."""
    _, best = classifier._topk(X, 2)
    # A classifier that knows a single class has no doubt of it: the other scores -inf.
    with np.errstate(divide="ignore", invalid="ignore"):
        utilities: Utilities = 1 / (best[:, 0].astype(np.float64) - best[:, 1])
    # Where no class has a score any may be right.
    utilities[np.isnan(utilities)] = np.inf
    return utilities


def entropies(classifier: Any, X: Any) -> Utilities:
    """Entropy, in nats, of the probabilities of the best ``N_OF_ENTROPY`` classes alone."""
    k = min(N_OF_ENTROPY, len(classifier.classes_))
    chances = np.maximum(classifier._probabilities(X, k)[1], 0).astype(np.float64)
    logarithms = np.log(chances, out=np.zeros_like(chances), where=chances > 0)
    found: Utilities = -(chances * logarithms).sum(axis=1)
    return found


def disagreements(members: Sequence[Any], X: Any) -> Utilities:
    """Vote entropy, in nats: the entropy of the shares of the members' votes for each class."""
    votes = [best_labels(member, X) for member in members]
    # Every vote stands for its class: the mean over members of -log(share) is the entropy.
    shares = (sum(one == other for other in votes) / len(votes) for one in votes)
    found: Utilities = np.mean([-np.log(share) for share in shares], axis=0)
    return found
