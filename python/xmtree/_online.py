"""The base of online learners, which learn one example after the other."""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from dataclasses import asdict, replace
from functools import partial
from operator import is_
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import NDArray

from xmtree import _calibration, _class_weight, _core, _one_row, _validation
from xmtree._base import Learner
from xmtree._calibration import Calibration
from xmtree._labels import Target, check_column_order, check_known, encode
from xmtree._labels.forms import entry_rows
from xmtree._persistence import plain, restored
from xmtree._sharing import Change, learning
from xmtree._sklearn import validate_params
from xmtree._typing import Classes, LabelsLike, MatrixLike, Weights


class OnlineLearner(Learner):
    """A learner with ``partial_fit``; Ctrl-C stops it and keeps what it has learned."""

    #: Arguments that only ``fit`` uses; they may change between calls.
    _fit_only: ClassVar[frozenset[str]] = frozenset({"n_passes", "early_stopping"})
    _python_constraints: ClassVar[dict[str, Any]] = {
        **Learner._python_constraints,
        "class_weight": _class_weight.CONSTRAINT,
        "calibrate": ["boolean"],
    }
    #: Whether ``classes="grow"`` is possible.
    _takes_new_labels: ClassVar[bool] = True
    _started_with: dict[str, Any]
    #: Parameters that the last ``partial_fit`` has compared with ``_started_with``.
    _compared: dict[str, Any] | None = None
    calibrate: bool

    def partial_fit(
        self,
        X: MatrixLike,
        y: LabelsLike,
        classes: Classes | Literal["grow"] = None,
        sample_weight: Weights = None,
    ) -> Self:
        """Train on some more examples, one pass, in the given order.

        The order matters: recent examples have the largest influence, so a model
        trained on examples sorted by label predicts the last labels. Shuffle them
        where that is possible, as ``fit`` does.

        Parameters
        ----------
        X : array or sparse matrix of shape (n, n_features), or a data frame
        y : array of shape (n,), or label sets
        classes : array of shape (n_classes,) or "grow", optional
            Every label that may occur in any call; required in the first call (except
            when ``y`` is an indicator, which has a column for each), optional
            afterwards. With an indicator without column names ``classes`` must be sorted, as
            ``classes_`` is.
            "grow": labels of ``y`` that the model does not know are added behind the others in
            ``classes_`` (those of one call sorted, or in the order of a data frame's columns).
            An indicator can add labels only as a data frame; of its columns those of known labels
            may be missing. Not for :class:`FilterTreeClassifier` and
            :class:`RandomTreeClassifier`, whose tree is over a fixed set of labels.
        sample_weight : array of shape (n,), optional
            Importances, not negative; 1 by default.

        Returns
        -------
        self

        Raises
        ------
        ValueError, TypeError
            If an argument cannot be used, ``y`` holds a label that is not in
            ``classes_`` (without "grow"), or a parameter was changed after the first call.
            The estimator is then as it was before.
        """
        with learning(self):
            codes = None
            if classes is None and sample_weight is None:
                codes = self._plain_codes(X, y)
            if codes is None:
                self._learn_on(X, y, classes, sample_weight)
            else:
                threads = _one_row.n_threads(self.n_jobs, codes.shape[0])
                _validation.canonical(
                    X, lambda X: self._model.partial_fit(X, codes, None, threads, None)
                )
        return self

    def _learn_on(self, X: Any, y: Any, classes: Any, sample_weight: Any) -> None:
        """As :meth:`partial_fit`, with all checks."""
        validate_params(self)
        if self.class_weight == "balanced":
            raise ValueError(
                'class_weight="balanced" needs all labels at once and so fit; for partial_fit set '
                "class_weight to a dict or None, or pass sample_weight"
            )
        started = self.__sklearn_is_fitted__()
        change = Change(self)
        draft = change.draft
        target = draft._stream_target(y, classes, started)
        X = draft._validated(X, reset=not started)
        if started:
            draft._check_same(target)
            model = draft._model
            draft._calibrate_on_stream(X, target, sample_weight)
        else:
            if classes is None and target.form in ("labels", "lists"):
                # One batch does not show all labels.
                raise ValueError("classes must be passed on the first call to partial_fit.")
            model = draft._new_model(target)
        learn = partial(model.partial_fit, n_classes=len(target.classes), labels=target.labels)
        draft._learn(learn, model, X, target, sample_weight, change)
        draft._compared = draft.get_params(deep=False)

    def _plain_codes(self, X: Any, y: Any) -> Any:
        """The labels of rows that the model can learn right away, as with all checks; None where
        that is not plain.

        No check is left out: the parameters are the very objects that were compared before, and
        the core looks at all values.
        """
        own, params = vars(self), self._compared
        if params is None or not all(map(is_, map(own.get, params), params.values())):
            return None
        # What is mutable, is shown, or calibrates is checked.
        if self.class_weight is not None or self.verbose:
            return None
        if not _one_row.is_valid(self, X, self._takes_any_width()):
            return None
        if X.shape[0] >= _calibration.LEAST_ROWS:
            return None
        codes = _one_row.codes(y, self.classes_, self._y_form)
        return codes if codes is not None and codes.shape[0] == X.shape[0] else None

    @property
    def progressive_loss_(self) -> float:
        """Progressive validation error: share of the examples that were predicted wrongly just
        before they were learned, in ``fit`` in the first pass. NaN while nothing was learned."""
        return float(self._fitted().summary()["progressive_loss"])

    @property
    def n_examples_seen_(self) -> int:
        """Examples learned so far, each pass counted."""
        return int(self._fitted().n_examples_seen)

    def _new_model(self, target: Target) -> _core.Classifier:
        model = super()._new_model(target)
        self._started_with, self._compared = self._learning_params(), None
        return model

    def _fit(self, X: Any, target: Target, sample_weight: Any, change: Change[Any]) -> None:
        model = self._new_model(target)
        self._calibration = Calibration()
        learn: Callable[..., object] = model.fit
        weights = row_weights(sample_weight, X)
        if self.calibrate and np.count_nonzero(weights) >= _calibration.MANY_ROWS:
            learn = partial(self._fit_and_calibrate, model, target)
        elif self.calibrate:
            self._calibrate_left_out(model.params, X, target, weights, change)
        self._learn(learn, model, X, target, sample_weight, change)

    def _fit_and_calibrate(
        self,
        model: _core.Classifier,
        target: Target,
        X: Any,
        codes: Any,
        weights: NDArray[np.float64] | None,
        n_threads: int,
        report: Any,
    ) -> None:
        """Train on all rows but a few, calibrate on these, then learn them in a pass of their own.

        The model that calibrates is the one that predicts, so no second one is trained.
        """
        weights = np.ones(X.shape[0]) if weights is None else weights
        order = np.random.default_rng(model.params["seed"]).permutation(np.flatnonzero(weights))
        rows = order[: _calibration.FEW_ROWS]
        learned = weights.copy()
        learned[rows] = 0
        model.fit(X, codes, learned, n_threads, report)
        self._model = model
        self._calibrate_on(X, target, weights, learned, rows)
        model.partial_fit(X[rows], codes[rows], weights[rows], n_threads)

    def _calibrate_left_out(
        self,
        params: dict[str, Any],
        X: Any,
        target: Target,
        weights: NDArray[np.float64],
        change: Change[Any],
    ) -> None:
        """Calibrates on a part of the rows, by a model that learns the others."""
        parts = self._left_out(params, weights, target)
        if parts is None:
            return
        params, learned, rows = parts
        model = self._empty(params, target)
        try:
            self._train(model.fit, X, target, learned)
        except (ValueError, MemoryError):
            # The training of all rows will fail as well, and say which row is to blame.
            return
        except KeyboardInterrupt:
            # It is what was learned so far.
            if model.n_examples_seen > 0:
                self._adopt(model, change)
            raise
        self._model = model
        self._calibrate_on(X, target, self._weighted(weights, target), learned, rows)
        # It would stay in memory while all rows are learned.
        del self._model

    def _left_out(
        self, params: dict[str, Any], weights: NDArray[np.float64], target: Target
    ) -> tuple[dict[str, Any], NDArray[np.float64], NDArray[np.intp]] | None:
        """The parameters and the rows' weights of a model that calibrates on the rows, the last of
        the three, that it does not learn; None where there are too few for that."""
        present = np.flatnonzero(weights)
        n_left_out = min(_calibration.MOST_ROWS, len(present) // _calibration.MOST_SHARE)
        if n_left_out < _calibration.LEAST_ROWS or len(target.classes) < 2:
            return None
        # What it may learn: a part of what the model itself will. Scores change more with further
        # passes than with further rows.
        n_passes, n_others = params["n_passes"], len(present) - n_left_out
        most = int(_calibration.LEARNED_SHARE * len(present) * n_passes)
        most = max(_calibration.LEAST_LEARNED, most)
        at_least = max(1, round(self._passes_that_calibrate(params) * n_passes))
        n_passes = min(n_passes, max(at_least, most // n_others))
        n_learned = min(n_others, most // n_passes)
        params = params | {"n_passes": n_passes, "early_stopping": False}
        order = np.random.default_rng(params["seed"]).permutation(present)
        rows, others = order[:n_left_out], order[n_left_out:][:n_learned]
        learned = np.zeros(len(weights))
        learned[others] = weights[others]
        return params, learned, rows

    def _passes_that_calibrate(self, params: dict[str, Any]) -> float:
        """Share of the passes that the model that calibrates makes, at least."""
        return _calibration.PASSES_SHARE

    def _calibrate_on(
        self,
        X: Any,
        target: Target,
        weights: NDArray[np.float64],
        learned: NDArray[np.float64],
        rows: NDArray[np.intp],
    ) -> None:
        """Calibrates on ``rows`` by a model of the rows of the weights ``learned``; ``weights`` are
        those of all rows, times their classes'."""
        if not target.multilabel:
            # A class of left out rows alone has no score.
            is_learned = np.bincount(target.codes, learned, len(target.classes)) > 0
            rows = rows[is_learned[target.codes[rows]]]
        if len(rows):
            left_out = _calibration.as_new(X, weights, learned, rows)
            self._calibration = self._calibrated(left_out, target.codes[rows], weights[rows])

    def _calibrate_on_stream(self, X: Any, target: Target, sample_weight: Any) -> None:
        """Calibrates on rows that are about to be learned, each time that the model has learned a
        fifth more: predictions of many rows after learning cost as much as the model is large."""
        n_seen = self.n_examples_seen_
        if not self.calibrate or n_seen < 1.2 * self._calibration.n_examples:
            return
        rows = self._rows_of_known(target)[: _calibration.MOST_ROWS]
        if len(rows) < _calibration.LEAST_ROWS or n_seen == 0 or len(self.classes_) < 2:
            return
        weights = self._weighted(row_weights(sample_weight, X), target)
        found = self._calibrated(X[rows], target.codes[rows], weights[rows])
        self._calibration = replace(found, n_examples=n_seen)

    def _rows_of_known(self, target: Target) -> NDArray[np.intp]:
        """The rows all of whose labels the model has."""
        n_known = len(self.classes_)
        if not target.multilabel:
            return np.flatnonzero(target.codes < n_known)
        sets = target.codes.tocsr()
        return np.setdiff1d(np.arange(sets.shape[0]), entry_rows(sets)[sets.indices >= n_known])

    def _weighted(self, weights: NDArray[np.float64], target: Target) -> NDArray[np.float64]:
        """The weights of rows times those of their classes."""
        weighted = _class_weight.times(self.class_weight, weights, target)
        return weights if weighted is None else weighted

    def _calibrated(self, X: Any, codes: Any, weights: NDArray[np.float64]) -> Calibration:
        """By predictions of rows that the model has not learned, with their true labels."""
        if self._y_form == "labels":
            n_classes = len(self.classes_)
            best, scores = self._topk(X, min(n_classes, _core.N_SHARING))
            is_right = best[:, 0] == codes
            return _calibration.of_labels(scores, self._scale, is_right, weights, n_classes)
        k = min(len(self.classes_), _calibration.N_BEST)
        best, scores = self._topk(X, k)
        true = codes.tocsr()
        known = entry_rows(true) * len(self.classes_) + true.indices
        asked = np.arange(len(weights))[:, np.newaxis] * len(self.classes_) + best
        hits = np.isin(asked, known) & (best >= 0)
        return _calibration.of_label_sets(scores, hits, np.diff(true.indptr), weights)

    def _learning_params(self) -> dict[str, Any]:
        """The parameters that training depends on."""
        # A copy, as the user's dictionary may change.
        own = {"class_weight": copy(self.class_weight), "calibrate": self.calibrate}
        return {**self._core_params(), **own}

    def _more_state(self) -> dict[str, Any]:
        started = {name: plain(value) for name, value in self._started_with.items()}
        return {"started_with": started, "calibration": asdict(self._calibration)}

    def _set_more_state(self, state: dict[str, Any]) -> None:
        started = {name: restored(value) for name, value in state["started_with"].items()}
        # Files from before these parameters do not have them.
        self._started_with = {"class_weight": None, "calibrate": True, **started}
        if missing := self._learning_params().keys() - self._started_with.keys():
            raise KeyError(min(missing))
        self._calibration = Calibration.from_json(state.get("calibration", {}))

    def _stream_target(self, y: Any, classes: Any, started: bool) -> Target:
        """The labels of ``y`` by number; ``classes`` is the argument of ``partial_fit``."""
        grow = isinstance(classes, str) and classes == "grow"
        if grow and not self._takes_new_labels:
            raise ValueError(
                f'classes="grow" is not for {type(self).__name__}, whose tree is over a fixed '
                "set of labels: name every label in the classes of the first partial_fit, or "
                "use OAAClassifier, LOMTreeClassifier or RecallTreeClassifier"
            )
        if not (started or grow):
            return self._target(y, classes)
        is_named = started and classes is not None and not grow
        if is_named:
            check_known(classes, self.classes_)
        target = self._checked(encode(y, self._labels if started else None, grow=grow))
        if is_named:
            check_column_order(target, classes, y)
        return target

    def __getstate__(self) -> dict[str, Any]:
        state = super().__getstate__()
        state.pop("_compared", None)
        return state

    def _check_same(self, target: Target) -> None:
        """Refuses label forms and parameters other than those learning began with."""
        if target.multilabel != (self._y_form != "labels"):
            had, got = ("label sets", "labels") if self._y_form != "labels" else ("labels", "sets")
            raise ValueError(f"the model was started on {had}, y now holds {got}")
        free = self._fit_only | self._of_prediction
        if self._started_with["class_weight"] == "balanced":
            # Of fit alone: there are none to go on with.
            free |= {"class_weight"}
        for name, value in self._learning_params().items():
            if name not in free and value != self._started_with[name]:
                raise ValueError(
                    f"{name} was {self._started_with[name]!r} when learning began and is now "
                    f"{value!r}; start anew with fit, or on a clone"
                )


def row_weights(sample_weight: Any, X: Any) -> NDArray[np.float64]:
    """The weight of each row, 1 by default."""
    weights = _validation.weights(sample_weight, X)
    return np.ones(X.shape[0]) if weights is None else weights
