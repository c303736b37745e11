"""Which learner ``learner="auto"`` stands for, and whether ``idf=None`` weighs features by idf."""

from typing import Any

from sklearn.base import clone

from xmtree._base import Learner
from xmtree._labels import Target
from xmtree._ldsm import LdSMClassifier
from xmtree._oaa import OAAClassifier

#: One-against-all takes time proportional to the number of labels; from here it takes longer.
MOST_LABELS_OF_OAA = 2000
#: Below, label sets are for one-against-all: trees over a few labels have hardly anything to split,
FEWEST_LABELS_OF_LDSM = 100
#: and so have trees over few rows, of which LdSM also holds some out for its calibration.
FEWEST_ROWS_OF_LDSM = 1000
#: Smaller weights are dropped: as accurate, and files are a hundredth; see docs/experiments/oaa.md.
PRUNE = 0.03

#: Words of a text, on average, from which idf helps: with 12 it does not yet, with 20 it does; see
#: docs/experiments/text.md.
FEWEST_WORDS_OF_IDF = 16


def weighs_by_idf(texts: list[str], learner: Learner) -> bool:
    """Whether inverse document frequency suits the texts; LdSM weighs features so by itself."""
    n_words = sum(len(text.split()) for text in texts)
    return not isinstance(learner, LdSMClassifier) and n_words >= FEWEST_WORDS_OF_IDF * len(texts)


def choose(target: Target | None) -> Learner:
    """The learner for such labels; None: they come in a stream, for one that can learn on."""
    if target is None:
        return OAAClassifier()
    fewest = FEWEST_LABELS_OF_LDSM if target.multilabel else MOST_LABELS_OF_OAA + 1
    if len(target.classes) >= fewest and target.codes.shape[0] >= FEWEST_ROWS_OF_LDSM:
        return LdSMClassifier()
    return OAAClassifier(prune=PRUNE)


def new_learner(estimator: Any, target: Target | None) -> Any:
    """The learner that a text classifier trains: :func:`choose`'s, or a clone of the one given."""
    given = estimator.learner
    learner: Any = choose(target) if isinstance(given, str) else clone(given)
    if learner.random_state is None:
        learner.set_params(random_state=estimator.random_state)
    if learner.n_jobs is None:
        learner.set_params(n_jobs=estimator.n_jobs)
    if estimator.verbose:
        learner.set_params(verbose=estimator.verbose)
    return learner


def check_learns_on(given: Any, learner: Learner) -> None:
    """Refuses ``partial_fit`` where ``learner="auto"`` has chosen one that cannot learn on."""
    prune = learner._fitted_params().get("prune")
    is_online = hasattr(learner, "partial_fit") and prune is None
    if isinstance(given, str) and not is_online:
        chosen = type(learner).__name__ + ("" if prune is None else f"(prune={prune})")
        raise ValueError(
            f'this model cannot learn on: learner="auto" has chosen {chosen}. Set '
            "learner=OAAClassifier() and fit again; or for a stream from the first text on set "
            "n_bits=20 and begin with partial_fit"
        )
