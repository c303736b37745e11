"""Base of online learners, which learn one example after the other."""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from dataclasses import replace
from functools import partial
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import NDArray

from xmtree import _calibration, _class_weight, _core, _one_row, _validation
from xmtree._base import Learner
from xmtree._calibration import Calibration, HeldOut
from xmtree._labels import Target, check_column_order, check_known, encode
from xmtree._labels.forms import entry_rows
from xmtree._persistence import plain, restored
from xmtree._sharing import Change, copied, learning
from xmtree._sklearn import validate_params
from xmtree._thresholds import RankedRows
from xmtree._typing import Classes, LabelsLike, MatrixLike, Weights

#: Examples between two marks, and the number of marks kept: enough for the largest window and
#: half-life.
_MARK_EVERY, _MOST_MARKS, _MOST_RECENT, _MOST_HALF_LIFE = 100, 1001, 100_000, 10_000
#: Counts before training.
_NONE_YET = 0, 0.0, 0.0


class OnlineLearner(Learner):
    """Base of learners with ``partial_fit``. After Ctrl-C they keep what they have learned."""

    #: Parameters that only ``fit`` uses, and that may therefore change between calls.
    _fit_only: ClassVar[frozenset[str]] = frozenset({"n_passes", "early_stopping"})
    _python_constraints: ClassVar[dict[str, Any]] = {
        **Learner._python_constraints,
        "class_weight": _class_weight.CONSTRAINT,
        "calibrate": ["boolean"],
    }
    #: True if ``classes="grow"`` is allowed.
    _takes_new_labels: ClassVar[bool] = True
    #: Parameters at the beginning of training.
    _started_with: dict[str, Any]
    #: Counts before some of the calls of ``partial_fit``; empty in a loaded model.
    _marks: tuple[tuple[float, float, float], ...] = ()
    #: Parameters that the last ``partial_fit`` compared with ``_started_with``.
    _compared: dict[str, Any] | None = None
    calibrate: bool
    early_stopping: bool

    def partial_fit(
        self,
        X: MatrixLike,
        y: LabelsLike,
        classes: Classes | Literal["grow"] = None,
        sample_weight: Weights = None,
    ) -> Self:
        """Train on further examples, in one pass and in the given order.

        The order matters: recent examples have the largest influence, so a model
        trained on examples sorted by label predicts the last labels. Shuffle the
        examples if possible, as ``fit`` does.

        Parameters
        ----------
        X : array or sparse matrix of shape (n, n_features), or a data frame
        y : array of shape (n,), or label sets
        classes : array of shape (n_classes,) or "grow", optional
            All labels that may occur in any call. Required in the first call, except if ``y`` is
            an indicator, which has a column for each; optional in later calls. With an
            indicator without column names, ``classes`` must be sorted, as ``classes_`` is.
            "grow": new labels of ``y`` are appended to ``classes_`` (those of one call in sorted
            order, or in the order of a data frame's columns). An indicator can add labels only as
            a data frame, which need not have columns of known labels. "grow" is not allowed for
            :class:`FilterTreeClassifier` and :class:`RandomTreeClassifier`, whose tree is over a
            fixed set of labels.
        sample_weight : array of shape (n,), optional
            Importance weights, not negative; 1 by default.

        Returns
        -------
        self

        Raises
        ------
        ValueError, TypeError
            If an argument is invalid, ``y`` contains a label that is not in ``classes_``
            (without "grow"), or a parameter was changed after the first call. The estimator is
            then unchanged.
        """
        with learning(self):
            codes = None
            if classes is None and sample_weight is None:
                codes = _one_row.learnable_codes(self, X, y)
            if codes is None:
                self._partial_fit(X, y, classes, sample_weight)
            else:
                self._mark()
                threads = _one_row.n_threads(self.n_jobs, codes.shape[0])
                _validation.canonical(
                    X, lambda X: self._model.partial_fit(X, codes, None, threads, None)
                )
        return self

    def _partial_fit(self, X: Any, y: Any, classes: Any, sample_weight: Any) -> None:
        """Run :meth:`partial_fit` with full validation."""
        validate_params(self)
        if self.class_weight == "balanced":
            raise ValueError(
                'class_weight="balanced" is not allowed for partial_fit, which does not see all '
                "labels at once; set class_weight to a dict or None, or pass sample_weight"
            )
        started = self.__sklearn_is_fitted__()
        change = Change(self)
        draft = change.draft
        target = draft._stream_target(y, classes, started)
        X = draft._validated(X, reset=not started)
        if started:
            draft._check_same(target)
            model = draft._model
            draft._mark()
            draft._calibrate_on_stream(X, target, sample_weight)
        else:
            if classes is None and target.form in ("labels", "lists"):
                # The first batch need not contain all labels.
                raise ValueError("classes must be passed on the first call to partial_fit.")
            model = draft._new_model(target)
        learn = partial(model.partial_fit, n_classes=len(target.classes), labels=target.labels)
        draft._learn(learn, model, X, target, sample_weight, change)
        draft._compared = draft.get_params(deep=False)

    @property
    def progressive_loss_(self) -> float:
        """Return the share of examples predicted wrongly just before they were learned.

        This is the progressive validation error, in ``fit`` that of the first pass. NaN before
        training.
        """
        return float(self._fitted().summary()["progressive_loss"])

    def recent_loss(self, last: int = 10_000, *, half_life: float | None = None) -> float:
        """Return the progressive error of recent examples, to follow a stream that changes.

        Parameters
        ----------
        last : int, default=10_000
            Number of recent examples, up to 100,000. Those of a call of ``partial_fit`` count
            together, and small calls by 100 examples or a little more, so it may be exceeded by
            as many. After :func:`xmtree.load` all earlier examples count as one call.
        half_life : float, optional
            Instead, count each example by 0.5 ** (age / half_life), where age is the number of
            later examples, for a call the mean; from 1 to 10,000.

        Returns
        -------
        float
            Share of mistakes; ``progressive_loss_`` is that of all examples.
        """
        last = _validation.whole("last", last, 1, _MOST_RECENT)
        if half_life is not None:
            half_life = _validation.real("half_life", half_life, 1, _MOST_HALF_LIFE)
        self._fitted()
        own = copied(self)
        counts = np.array([*(own._marks or (_NONE_YET,)), own._counts()])
        ages = counts[-1, 0] - counts[:, 0]
        share = (ages[1:] < last).astype(float)
        if half_life is not None:
            middle = (ages[:-1] + ages[1:]) / 2
            # Relative to the last call: the shares of a long call would all be 0.
            share = 0.5 ** ((middle - middle[-1]) / half_life)
        weight, wrong = share @ np.diff(counts[:, 1:], axis=0)
        # Rounding may leave a little below 0.
        return min(max(float(wrong / weight), 0.0), 1.0) if weight > 0 else np.nan

    def _counts(self) -> tuple[float, float, float]:
        """Return the examples seen, and the weight and the mistakes of progressive validation."""
        found = self._model.summary()
        weight, loss = float(found["progressive_weight"]), float(found["progressive_loss"])
        return self._model.n_examples_seen, weight, weight * loss if weight else 0.0

    def _mark(self) -> None:
        """Keep the counts before rows are learned, for :meth:`recent_loss`."""
        marks = self._marks
        if not marks or self._model.n_examples_seen >= marks[-1][0] + _MARK_EVERY:
            self._marks = (*marks[1 - _MOST_MARKS :], self._counts())

    @property
    def n_examples_seen_(self) -> int:
        """Return the number of examples learned so far, each pass counted."""
        return int(self._fitted().n_examples_seen)

    def _new_model(self, target: Target) -> _core.Classifier:
        model = super()._new_model(target)
        self._started_with, self._compared = self._learning_params(), None
        self._marks = (_NONE_YET,)
        self._calibration = self._uncalibrated(target)
        return model

    def _uncalibrated(self, target: Target) -> Calibration:
        """Return the calibration of a model that has no rows to calibrate on."""
        return Calibration()

    def _fit(self, X: Any, target: Target, sample_weight: Any, change: Change[Any]) -> None:
        model = self._new_model(target)
        learn: Callable[..., object] = model.fit
        if self.calibrate and self._makes_further_passes():
            learn = partial(self._fit_and_calibrate, model, target)
        elif self.calibrate:
            weights = row_weights(sample_weight, X)
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
        """Train on most rows, calibrate on the others, then learn all rows in the last passes.

        This calibrates the model itself, so no second model is trained. If the others are a small
        share, if there is one pass, or if there are many rows and early stopping decides on the
        number of passes, a last pass learns only the others.
        """
        weights = np.ones(X.shape[0]) if weights is None else weights
        present, params = np.flatnonzero(weights), model.params
        n_held_out, n_first, n_last = _calibration.schedule(len(present), params["n_passes"])
        if n_held_out == 0 or len(target.classes) < 2:
            model.fit(X, codes, weights, n_threads, report)
            return
        rows = np.random.default_rng(params["seed"]).permutation(present)[:n_held_out]
        learned = weights.copy()
        learned[rows] = 0
        if self.early_stopping:
            n_first = params["n_passes"]
        model.fit(X, codes, learned, n_threads, report, n_passes=n_first)
        if self.early_stopping:
            n_made = model.n_examples_seen / (len(present) - n_held_out)
            n_last = _calibration.passes_after_stopping(len(present), n_made)
        self._model = model
        self._calibrate_on(X, target, weights, learned, rows)
        rest = weights if n_last else weights - learned
        model.fit(X, codes, rest, n_threads, report, warm_start=True, n_passes=max(1, n_last))

    def _makes_further_passes(self) -> bool:
        """Return whether a trained model can learn on."""
        return True

    def _calibrate_left_out(
        self,
        params: dict[str, Any],
        X: Any,
        target: Target,
        weights: NDArray[np.float64],
        change: Change[Any],
    ) -> None:
        """Calibrate a second model, which learns a part of the rows, on other rows."""
        split = self._held_out_split(params, weights, target)
        if split is None:
            return
        params, learned, rows = split
        model = self._empty(params, target)
        try:
            self._train(model.fit, X, target, learned)
        except (ValueError, MemoryError):
            # Training on all rows will fail too, and its message names the row.
            return
        except KeyboardInterrupt:
            # The second model has learned something, the model itself nothing.
            if model.n_examples_seen > 0:
                self._adopt(model, change)
            raise
        self._model = model
        self._calibrate_on(X, target, self._weighted(weights, target), learned, rows)
        # Free its memory before all rows are learned.
        del self._model

    def _held_out_split(
        self, params: dict[str, Any], weights: NDArray[np.float64], target: Target
    ) -> tuple[dict[str, Any], NDArray[np.float64], NDArray[np.intp]] | None:
        """Return the second model's parameters and row weights, and the rows to calibrate on.

        None if there are too few rows.
        """
        present = np.flatnonzero(weights)
        n_held_out = min(_calibration.MOST_ROWS, len(present) // _calibration.ROWS_PER_HELD_OUT)
        if n_held_out < _calibration.LEAST_ROWS or len(target.classes) < 2:
            return None
        # The second model may learn only a part of what the model itself will. Its passes are
        # reduced less than its rows, as scores change more with passes than with rows.
        n_passes, n_others = params["n_passes"], len(present) - n_held_out
        most = _calibration.MOST_LEARNED
        at_least = max(1, round(_calibration.PASSES_SHARE * n_passes))
        n_passes = min(n_passes, max(at_least, most // n_others))
        n_learned = min(n_others, most // n_passes)
        params = params | {"n_passes": n_passes, "early_stopping": False}
        order = np.random.default_rng(params["seed"]).permutation(present)
        rows, others = order[:n_held_out], order[n_held_out:][:n_learned]
        learned = np.zeros(len(weights))
        learned[others] = weights[others]
        return params, learned, rows

    def _calibrate_on(
        self,
        X: Any,
        target: Target,
        weights: NDArray[np.float64],
        learned: NDArray[np.float64],
        rows: NDArray[np.intp],
    ) -> None:
        """Calibrate on ``rows`` a model that has learned the rows with weights ``learned``.

        ``weights`` are those of all rows, times the weights of their classes.
        """
        n_classes = len(target.classes)
        self._calibrate_with(HeldOut.of(X, target.codes, n_classes, weights, learned, rows))

    def _calibrate_with(self, held_out: HeldOut) -> None:
        """Calibrate on rows that the model has not learned."""
        X, codes, weights = held_out.usable()
        if len(weights):
            self._calibration = self._calibrated(X, codes, weights)

    def _calibrate_on_stream(self, X: Any, target: Target, sample_weight: Any) -> None:
        """Calibrate on rows that are about to be learned, once the model has learned a fifth more.

        Predicting after learning costs O(model size), so not every batch calibrates.
        """
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
        """Return the rows whose labels the model all knows."""
        n_known = len(self.classes_)
        if not target.multilabel:
            return np.flatnonzero(target.codes < n_known)
        sets = target.codes.tocsr()
        return np.setdiff1d(np.arange(sets.shape[0]), entry_rows(sets)[sets.indices >= n_known])

    def _weighted(self, weights: NDArray[np.float64], target: Target) -> NDArray[np.float64]:
        """Return the weights of rows times those of their classes."""
        weighted = _class_weight.times(self.class_weight, weights, target)
        return weights if weighted is None else weighted

    def _calibrated(self, X: Any, codes: Any, weights: NDArray[np.float64]) -> Calibration:
        """Return a calibration fitted on rows that the model has not learned."""
        if self._y_form == "labels":
            n_classes = len(self.classes_)
            best, scores = self._topk(X, min(n_classes, _calibration.N_RANKED))
            hits = best == codes[:, np.newaxis]
            return _calibration.fit_labels(scores, self._scale, hits, weights, n_classes)
        return _calibration.fit_label_sets(RankedRows.of(self, X, codes, weights))

    def _learning_params(self) -> dict[str, Any]:
        """Return the parameters that training depends on."""
        # The dictionary is copied, as the user may change it.
        own = {"class_weight": copy(self.class_weight), "calibrate": self.calibrate}
        return {**self._core_params(), **own}

    def _more_state(self) -> dict[str, Any]:
        started = {name: plain(value) for name, value in self._started_with.items()}
        return {"started_with": started, "calibration": self._calibration.to_json()}

    def _set_more_state(self, state: dict[str, Any]) -> None:
        started = {name: restored(value) for name, value in state["started_with"].items()}
        # Older files lack these parameters.
        self._started_with = {"class_weight": None, "calibrate": True, **started}
        if missing := self._learning_params().keys() - self._started_with.keys():
            raise KeyError(min(missing))
        self._calibration = Calibration.from_json(state.get("calibration", {}))

    def _stream_target(self, y: Any, classes: Any, started: bool) -> Target:
        """Return the target of a ``partial_fit`` with the user's argument ``classes``."""
        grow = isinstance(classes, str) and classes == "grow"
        if grow and not self._takes_new_labels:
            raise ValueError(
                f'classes="grow" is not allowed for {type(self).__name__}, whose tree is over a '
                "fixed set of labels; pass all labels as classes to the first partial_fit, or use "
                "OAAClassifier, LOMTreeClassifier or RecallTreeClassifier"
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
        """Refuse label forms and parameters that differ from those at the beginning."""
        if target.multilabel != (self._y_form != "labels"):
            forms = "one label per row", "label sets"
            had, got = forms if self._y_form == "labels" else reversed(forms)
            raise ValueError(f"y must hold {had} as in the first call, got {got}")
        free = self._fit_only | self._prediction_params
        if self._started_with["class_weight"] == "balanced":
            # Only fit computes these weights, so partial_fit goes on with others.
            free |= {"class_weight"}
        for name, value in self._learning_params().items():
            if name not in free and value != self._started_with[name]:
                raise ValueError(
                    f"{name} must not change during training: it was {self._started_with[name]!r} "
                    f"and is now {value!r}; set it back, call fit, or train a clone"
                )


def row_weights(sample_weight: Any, X: Any) -> NDArray[np.float64]:
    """Return the weight of each row, 1 by default."""
    weights = _validation.weights(sample_weight, X)
    return np.ones(X.shape[0]) if weights is None else weights
