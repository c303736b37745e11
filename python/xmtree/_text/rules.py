"""Rules for ``learner="auto"`` and ``idf=None``."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from sklearn.base import clone

from xmtree._base import Learner
from xmtree._labels import Target
from xmtree._ldsm import LdSMClassifier
from xmtree._oaa import OAAClassifier
from xmtree._text.features import Settings

#: Largest number of labels for one-against-all, whose time grows with it; above, LdSM is faster.
MOST_LABELS_OF_OAA = 2000
#: Fewest labels for LdSM on label sets: with fewer, its trees have hardly anything to split.
FEWEST_LABELS_OF_LDSM = 100
#: Fewest rows for LdSM: its trees need rows to split, and calibration holds some out.
FEWEST_ROWS_OF_LDSM = 1000
#: Threshold of dropped weights: as accurate, and files are a hundredth; docs/experiments/oaa.md.
PRUNE = 0.03

#: Mean number of words per text from which idf helps: not yet with 12, but with 20; see
#: docs/experiments/text.md.
FEWEST_WORDS_OF_IDF = 16


def choose(target: Target | None) -> Learner:
    """Return the learner for these labels, or with None an online learner for a stream."""
    if target is None:
        return OAAClassifier()
    fewest = FEWEST_LABELS_OF_LDSM if target.multilabel else MOST_LABELS_OF_OAA + 1
    if len(target.classes) >= fewest and target.codes.shape[0] >= FEWEST_ROWS_OF_LDSM:
        return LdSMClassifier()
    return OAAClassifier(prune=PRUNE)


def new_learner(estimator: Any, target: Target | None) -> Any:
    """Return the learner to train: :func:`choose`'s, or a clone of the given one."""
    given = estimator.learner
    learner: Any = choose(target) if isinstance(given, str) else clone(given)
    for name in ("random_state", "n_jobs", "class_weight"):
        if getattr(learner, name) is None:
            learner.set_params(**{name: getattr(estimator, name)})
    if estimator.verbose:
        learner.set_params(verbose=estimator.verbose)
    return learner


def learner_and_settings(
    estimator: Any, settings: Settings, target: Target, count_words: Callable[[], int]
) -> tuple[Any, Settings]:
    """Return the learner to train on texts with these labels, and the settings of its features.

    ``count_words`` returns the number of words of all texts.
    """
    is_stream, n_texts = estimator.n_bits is not None and not estimator.idf, target.codes.shape[0]
    learner = new_learner(estimator, None if is_stream else target)
    # LdSM has such weights already.
    is_open = estimator.idf is None and estimator.n_bits is None
    if is_open and not isinstance(learner, LdSMClassifier):
        settings = replace(settings, idf=count_words() >= FEWEST_WORDS_OF_IDF * n_texts)
    return learner, settings


def check_partial_fit(given: Any, learner: Learner) -> None:
    """Refuse ``partial_fit`` if ``learner="auto"`` has chosen a learner without it."""
    prune = learner._fitted_params().get("prune")
    is_online = hasattr(learner, "partial_fit") and prune is None
    if isinstance(given, str) and not is_online:
        chosen = type(learner).__name__ + ("" if prune is None else f"(prune={prune})")
        raise ValueError(
            f'this model has no partial_fit: learner="auto" has chosen {chosen}. Set '
            "learner=OAAClassifier() and fit again; or, for a stream from the first text on, set "
            "n_bits=20 and begin with partial_fit"
        )
