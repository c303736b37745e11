"""Tuning of a learner's parameters: successive halving within a time budget."""

from __future__ import annotations

import contextlib
import math
import re
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from numbers import Real
from typing import Any

from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.experimental import enable_halving_search_cv  # noqa: F401  (allows the import below)
from sklearn.model_selection import HalvingRandomSearchCV, ParameterSampler, ShuffleSplit
from sklearn.utils import check_consistent_length, resample
from sklearn.utils.validation import _num_samples

from xmtree import metrics
from xmtree._labels import encode_among
from xmtree._labels.forms import as_label_lists
from xmtree._typing import Classes, LabelsLike, MatrixLike, TextsLike, Weights
from xmtree._validation import is_integer

#: Values to try of each parameter. Numbers of trees are left out, as more are always better.
# fmt: off
SPACES: dict[str, dict[str, Sequence[Any]]] = {
    "OAAClassifier": {
        "loss": ("squared_hinge", "hinge", "logistic"),
        "learning_rate": (None, 0.2, 1.0, 5.0), "n_passes": (5, 10, 20)},
    "LOMTreeClassifier": {
        "learning_rate": (0.3, 1.0, 3.0), "decay": (0.3, 1.0, 3.0), "n_passes": (5, 10, 20),
        "split_threshold": (2.0, 5.0, 15.0)},
    "RecallTreeClassifier": {
        "learning_rate": (None, 3.0, 27.0), "margin": (2.0, 4.0, 8.0), "n_passes": (5, 10),
        "beam_size": (4, 16), "path_weight": (0.25, 0.5, 1.0)},
    "FilterTreeClassifier": {
        "learning_rate": (0.3, 1.0, 3.0), "decay": (0.1, 0.3, 1.0), "n_passes": (5, 10, 20)},
    "LdSMClassifier": {
        "cost": (None, 0.25, 4.0), "tail_weight": (0.0, 0.5, 1.0), "lambda1": (1.0, 2.0, 4.0),
        "scaling": ("log", "auto"), "arity": (2, 4)},
    "GambleClassifier": {
        "learning_rate": (0.1, 0.3, 1.0), "max_leaves": (31, 127, 511),
        "min_samples_leaf": (1, 5, 20), "max_features": (0.3, 0.6, 1.0), "subsample": (0.7, 1.0)},
    "SAMMEClassifier": {
        "learning_rate": (0.3, 1.0), "max_leaves": (7, 15, 63), "min_samples_leaf": (1, 5, 20)},
    "TextClassifier": {
        "word_ngrams": (1, 2, 3), "char_ngrams": (None, (3, 5)), "min_df": (1, 2),
        "idf": (None, True, False)},
}
# fmt: on
SPACES["RandomTreeClassifier"] = SPACES["FilterTreeClassifier"]

_FEWEST_ROWS = 100  # of a comparison
#: A third of the settings remain in each round, on three times as many rows.
_FACTOR = 3  # scikit-learn's default
_METRIC = re.compile(r"(p|ndcg|psp)@[1-9][0-9]{0,5}|(f1|precision|recall)_(micro|macro|row)")


class Search(HalvingRandomSearchCV):
    """scikit-learn's search, which tries one setting at a time and may end early."""

    tried_: list[dict[str, Any]]
    _report: Callable[[dict[str, Any]], None] | None = None
    #: When the search and the training on all rows have to end, by ``time.monotonic``.
    _deadline = math.inf

    def _generate_candidate_params(self) -> list[dict[str, Any]]:
        """Return the settings of the given model, then random others."""
        names = self.param_distributions
        given = {name: self.estimator.get_params()[name] for name in names}
        size = min(self.n_candidates, math.prod(map(len, names.values())))
        others = ParameterSampler(names, size, random_state=self.random_state)
        return [given, *(each for each in others if each != given)][: self.n_candidates]

    def _run_search(self, evaluate_candidates: Any, callback_ctx: Any = None) -> None:
        """Run the rounds; scikit-learn passes ``callback_ctx`` from version 1.9 on."""
        self.tried_ = []
        context = {} if callback_ctx is None else {"callback_ctx": callback_ctx}

        def one_by_one(candidates: Any, cv: Any, more_results: Any, **_: Any) -> Any:
            n_rows, found = more_results["n_resources"][0], None
            # Later rounds begin with the best, so that the last one may be left out.
            for each in candidates if more_results["iter"][0] == 0 else candidates[::-1]:
                if self.tried_ and time.monotonic() + self._expected(n_rows) > self._deadline:
                    raise TimeoutError
                more = {name: values[:1] for name, values in more_results.items()}
                with warnings.catch_warnings():
                    # A setting that does not suit the data has a low score.
                    warnings.simplefilter("ignore", ConvergenceWarning)
                    found = evaluate_candidates([each], cv, more_results=more)
                seconds = found["mean_fit_time"][-1] + found["mean_score_time"][-1]
                row = {"rows": n_rows, "score": float(found["mean_test_score"][-1])}
                self.tried_.append({**row, "seconds": float(seconds), **each})
                if self._report is not None:
                    self._report(self.tried_[-1])
            return found

        with contextlib.suppress(TimeoutError):
            super()._run_search(one_by_one, **context)

    def _expected(self, n_rows: int) -> float:
        """Return the seconds of one more fit and of that on all rows, if time is linear in rows."""
        largest = self.tried_[-1]["rows"]
        times = [each["seconds"] for each in self.tried_ if each["rows"] == largest]
        return float(sum(times) / len(times) / largest * (n_rows + self.max_resources_))


def tune(
    model: Any,
    X: MatrixLike | TextsLike,
    y: LabelsLike,
    *,
    sample_weight: Weights = None,
    classes: Classes = None,
    minutes: float | None = None,
    n_candidates: int | None = None,
    metric: str = "P@1",
    space: Mapping[str, Sequence[Any]] | None = None,
    random_state: int = 0,
    refit: bool = True,
    report: Callable[[dict[str, Any]], None] | None = None,
) -> Search:
    """Search for better parameters by successive halving, and train with them on all rows.

    scikit-learn's ``HalvingRandomSearchCV`` compares the model's own and random other parameters
    on few rows, the best third of them on three times as many, and so on, up to all rows in at most
    four rounds. A fifth of these rows is held out. The model itself is never changed.

    Parameters
    ----------
    model : learner of xmtree, or another classifier with ``space``
        Parameters that differ from their defaults stay as they are, unless they are in ``space``.
    X, y, sample_weight, classes : as for ``fit`` of the model
        At least 100 rows. Weights are for training; the metric counts each row once.
    minutes : float, optional
        Time for search and training, kept approximately. A fit on few rows is timed, and as many
        settings are drawn as fit into the time if it is linear in rows. The search ends before a
        fit that, by the mean time per row of its latest round, could not end in time together with
        the training on all rows. Two fits on few rows and one on all are always made.
    n_candidates : int, optional
        Number of settings in place of ``minutes``, at least 2; a space may have fewer. The same
        number and ``random_state`` give the same model.
    metric : str, default="P@1"
        "P@k", "nDCG@k" or "PSP@k" (with propensities of ``y``), or "f1", "precision" or "recall"
        with "_micro", "_macro" or "_row", in any case.
    space : dict of str to sequence, optional
        Values to try of each parameter. docs/tuning.md lists those of each learner.
    random_state : int, default=0
        Seed of held-out rows, settings, and of the model unless it has its own.
    refit, report : bool, default=True; callable, optional
        Whether to train on all rows; a function called with each dict of ``tried_``.

    Returns
    -------
    fitted search
        That of scikit-learn, with ``best_estimator_``, ``best_params_``, ``best_score_``, and
        ``tried_``: a dict for each fit, of "rows", "score", "seconds" and the parameters.

    Examples
    --------
    >>> import xmtree
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> search = xmtree.tune(xmtree.OAAClassifier(), X, y, n_candidates=3)
    >>> len(search.tried_), sorted(search.best_params_)
    (3, ['learning_rate', 'loss', 'n_passes'])
    """
    began = time.monotonic()
    check_budget(minutes, n_candidates)
    check_metric(metric)
    values = dict(space) if space is not None else space_of(model)
    size = math.prod(map(len, values.values()))
    if not values or size == 0:
        raise ValueError("no values to try: all parameters are set; pass space={name: values}")
    rows: Any = X if hasattr(X, "shape") else list(X)  # type: ignore[arg-type]
    check_consistent_length(rows, y)
    n_rows = _num_samples(rows)
    if n_rows < _FEWEST_ROWS:
        raise ValueError(f"tuning needs at least {_FEWEST_ROWS} rows, got {n_rows}")
    target = encode_among(y, classes)
    if target.labels.form == "lists":
        y = as_label_lists(list(y))  # type: ignore[arg-type]  # a part could look like an indicator
    base = clone(model)
    known = base.get_params()
    if unknown := sorted(values.keys() - known):
        raise ValueError(f"{type(model).__name__} has no parameter {unknown[0]!r} of space")
    if known.get("random_state", 0) is None:
        base.set_params(random_state=random_state)
    if "verbose" in known:
        base.set_params(verbose=type(known["verbose"])(0))
    given = {"sample_weight": sample_weight, "classes": classes}
    given = {name: value for name, value in given.items() if value is not None}
    scorer = _scorer(metric, y, target.classes)
    most = size + any(known[name] not in options for name, options in values.items())
    if minutes is not None:
        n_candidates = _affordable(base, rows, y, scorer, 60 * minutes, most)
    n_candidates = min(n_candidates or most, most)
    search = Search(
        base,
        values,
        n_candidates=n_candidates,
        min_resources=n_rows // _FACTOR ** (_rounds(n_candidates, n_rows) - 1),
        cv=ShuffleSplit(1, test_size=0.2, random_state=random_state),
        scoring=scorer,
        refit=refit,
        error_score="raise",
        return_train_score=False,
        random_state=random_state,
    )
    search._report = report
    if minutes is not None:
        search._deadline = began + 60 * minutes
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "(?s).*does not support sample_weight", UserWarning)
        search.fit(rows, y, **given)
    return search


def check_budget(minutes: float | None = None, n_candidates: int | None = None) -> None:
    """Refuse a budget that is not a time above 0 or a number of settings of at least 2."""
    if (minutes is None) == (n_candidates is None):
        raise ValueError("give either minutes or n_candidates")
    if n_candidates is not None and not is_integer(n_candidates, 2):
        raise ValueError(f"n_candidates must be an integer of at least 2, got {n_candidates!r}")
    if minutes is not None and not (isinstance(minutes, Real) and 0 < minutes < math.inf):
        raise ValueError(f"minutes must be a finite number above 0, got {minutes!r}")


def check_metric(metric: str) -> None:
    """Refuse a name that is no metric."""
    if not (isinstance(metric, str) and _METRIC.fullmatch(metric.lower())):
        known = "P@k, nDCG@k, PSP@k, and f1, precision and recall with _micro, _macro or _row"
        raise ValueError(f"unknown metric {metric!r}; known are {known}")


def space_of(model: Any) -> dict[str, Sequence[Any]]:
    """Return the values to try of a learner's parameters that still have their defaults."""
    cls = next((cls for cls in type(model).__mro__ if cls.__name__ in SPACES), None)
    if cls is None:
        name = type(model).__name__
        raise ValueError(f"{name} has no space of its own; pass space={{name: values}}")
    space, defaults = SPACES[cls.__name__], cls().get_params(deep=False)
    fixed = {name for name in space if getattr(model, name, None) != defaults[name]}
    if getattr(model, "scorers", "") == "none":
        fixed |= {"cost", "tail_weight"}
    if getattr(model, "n_bits", None) is not None:
        fixed |= {"min_df"}  # hashed features have no vocabulary
    free = {name: values for name, values in space.items() if name not in fixed}
    if not isinstance(getattr(model, "learner", ""), str):  # a TextClassifier around it
        inner = space_of(model.learner)
        free |= {f"learner__{name}": values for name, values in inner.items()}
    return free


def _scorer(metric: str, y: Any, classes: Any) -> Any:
    """Return the scorer of this name."""
    name, _, cut = metric.lower().partition("@")
    more: dict[str, Any] = {}
    if name == "psp":
        more = {"propensities": metrics.propensities(y, classes=classes), "classes": classes}
    scorers = metrics.make_scorers(int(cut or 1), average=("micro", "macro", "row"), **more)
    return {name.lower(): scorer for name, scorer in scorers.items()}[metric.lower()]


def _rounds(n_candidates: int, n_rows: int) -> int:
    """Return the number of rounds, so that the last one has few settings and all rows."""
    most = min(n_candidates, n_rows // _FEWEST_ROWS)
    return sum(_FACTOR**power <= most for power in range(4))


def _affordable(model: Any, X: Any, y: Any, scorer: Any, seconds: float, most: int) -> int:
    """Return how many settings fit into this time, from that of one fit on few rows."""
    n_rows, began = _num_samples(X), time.monotonic()
    few = n_rows // _FACTOR ** (_rounds(most, n_rows) - 1)
    X, y = resample(X, y, replace=False, n_samples=few, random_state=0)
    scorer(clone(model).fit(X, y), X, y)
    took = time.monotonic() - began

    def cost(n: int) -> float:
        rounds = _rounds(n, n_rows)
        return took + float(took * n_rows / few * (1 + rounds * n / _FACTOR ** (rounds - 1)))

    return max((n for n in range(3, most + 1) if cost(n) <= seconds), default=3)
