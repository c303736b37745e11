"""Base of the boosting classifiers GAMBLE and SAMME."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from numbers import Integral
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_consistent_length

from xmtree import _categories, _class_weight, _core, _validation
from xmtree._base import Learner
from xmtree._explanation import ExplainMixin
from xmtree._labels import Target, encode_single
from xmtree._labels.forms import positions
from xmtree._prediction import DecisionMixin
from xmtree._sharing import Change, learning
from xmtree._sklearn import StrOptions, validate_params
from xmtree._trees import TreeMixin
from xmtree._typing import Classes, Columns, LabelsLike, MatrixLike, OneLabelMixin, Seed, Weights


@dataclass(eq=False, kw_only=True, repr=False)
class Boosting(OneLabelMixin, TreeMixin, ExplainMixin, DecisionMixin, Learner):
    """Base of GAMBLE and SAMME, which differ in how a tree votes."""

    _python_constraints: ClassVar[dict[str, Any]] = {
        **Learner._python_constraints,
        "categorical_features": [StrOptions({"from_dtype"}), None, "array-like"],
        "class_weight": _class_weight.CONSTRAINT,
        "warm_start": ["boolean"],
    }
    _bytes_of_score = 8

    n_estimators: int = 300
    max_leaves: int = 15
    learning_rate: float = 1.0
    categorical_features: Columns | Literal["from_dtype"] = "from_dtype"
    class_weight: dict[Any, float] | Literal["balanced"] | None = None
    early_stopping: bool = False
    eval_metric: str = "error"
    validation_fraction: float = 0.1
    patience: int = 50
    warm_start: bool = False
    random_state: Seed = None
    n_jobs: int | None = None
    verbose: int = 0
    min_samples_leaf: int = 1
    max_features: float = 1.0
    subsample: float = 1.0
    trim: float = 0.0
    splits: str = "binned"

    def fit(
        self,
        X: MatrixLike,
        y: LabelsLike,
        sample_weight: Weights = None,
        classes: Classes = None,
        *,
        X_val: MatrixLike | None = None,
        y_val: LabelsLike | None = None,
        sample_weight_val: Weights = None,
    ) -> Self:
        """Train from scratch, or with ``warm_start`` add rounds up to ``n_estimators``.

        Parameters
        ----------
        X : array or sparse matrix of shape (n, n_features), or a data frame
            Training rows. float32 and float64, C-contiguous or CSR, are read in place; other types
            are converted. Values may be missing (NaN), but not infinite.
        y : array of shape (n,)
            Labels of any sortable type, one per row.
        sample_weight : array of shape (n,), optional
            Importance weights, not negative; 1 by default.
        classes : array of shape (n_classes,), optional
            All labels that may occur; by default those of ``y``.
        X_val, y_val, sample_weight_val : as ``X``, ``y`` and ``sample_weight``, optional
            Validation set. Each round is evaluated on it (``evals_result_``), and early stopping
            uses it in place of rows held out of ``X``. All its labels must occur in ``y``.

        Returns
        -------
        self

        Raises
        ------
        ValueError, TypeError
            If a parameter or an argument is invalid, or with ``warm_start`` differs from that of
            the fitted model. The estimator is then unchanged.
        """
        validate_params(self)
        if X_val is None and y_val is None and sample_weight_val is not None:
            raise ValueError("sample_weight_val needs X_val and y_val")
        if (X_val is None) != (y_val is None):
            raise ValueError("X_val and y_val must be given together")
        with learning(self):
            adds = self.warm_start and self.__sklearn_is_fitted__()
            change = Change(self)
            draft = change.draft
            X = draft._validated(X, reset=not adds, learn=True)
            target = draft._target(y, classes)
            model = draft._model_for_more_rounds(target) if adds else draft._new_model(target)
            validation = None
            if X_val is not None:
                # The draft already has the category names of the new model.
                categorical = model.params["categorical_features"]
                validation = draft._validation(X_val, y_val, sample_weight_val, target, categorical)

            def learn(X: Any, codes: Any, weights: Any, n_threads: int, report: Any) -> None:
                call = partial(model.fit, X, codes, weights, n_threads, report, adds)
                if validation is None:
                    call()
                else:
                    rows, *rest = validation
                    _validation.canonical(rows, lambda rows: call((rows, *rest)))

            draft._learn(learn, model, X, target, sample_weight, change)
        return self

    def staged_predict(self, X: MatrixLike) -> Iterator[NDArray[Any]]:
        """Yield the best label of each row after each round.

        Parameters
        ----------
        X : array or sparse matrix of shape (n, n_features), or a data frame

        Yields
        ------
        array of shape (n,)
        """
        now, rows = self._now(X)
        _validation.check_dense_size(rows.shape[0], now.n_estimators_, 4, columns="trees")
        stages = now._call(now._model.staged_predict, rows)
        for stage in range(stages.shape[1]):
            yield now.classes_[stages[:, stage]]

    def staged_decision_function(self, X: MatrixLike) -> Iterator[NDArray[np.float32]]:
        """Yield the scores of ``decision_function`` after each round.

        Parameters
        ----------
        X : array or sparse matrix of shape (n, n_features), or a data frame

        Yields
        ------
        float32 array of shape (n, n_classes), or (n,) for two classes
        """
        now, rows = self._now(X)
        for scores in now._staged_scores(rows):
            yield now._decision(scores)

    def staged_predict_proba(self, X: MatrixLike) -> Iterator[NDArray[np.float32]]:
        """Yield the probabilities of ``predict_proba`` after each round.

        Parameters
        ----------
        X : array or sparse matrix of shape (n, n_features), or a data frame

        Yields
        ------
        float32 array of shape (n, n_classes)
        """
        now, rows = self._now(X)
        for scores in now._staged_scores(rows):
            yield now._to_probabilities(scores)

    @property
    def n_estimators_(self) -> int:
        """Return the number of trees, after early stopping that of the best round."""
        return int(self._fitted().summary()["n_trees"])

    @property
    def temperature_(self) -> float:
        """Return the divisor of F / (n_classes - 1) before the softmax."""
        return 1 / float(self._fitted().summary()["slope"])

    @property
    def feature_importances_(self) -> NDArray[np.float64]:
        """Return the share of each feature in the gain of all splits.

        The shares sum to 1, or are all 0 if there is no split. The gain of a split is the decrease
        of the squared error, relative to the weight of its tree.
        """
        gains: NDArray[np.float64] = self._by_feature("gain")
        total = gains.sum()
        return gains / total if total > 0 else gains

    @property
    def feature_splits_(self) -> NDArray[np.uint64]:
        """Return the number of splits by each feature, over all trees."""
        return self._by_feature("splits")

    def _by_feature(self, name: str) -> NDArray[Any]:
        """Return a measure of all features, 0 for those without a split."""
        importances = self._fitted().importances()
        values = np.zeros(self.n_features_in_, importances[name].dtype)
        values[importances["features"]] = importances[name]
        return values

    def _staged_scores(self, rows: Any) -> Iterator[NDArray[np.float64]]:
        self._check_dense_size(rows)
        scores = np.zeros((rows.shape[0], len(self.classes_)))
        for tree in range(self.n_estimators_):
            options = json.dumps({"first_tree": tree, "last_tree": tree + 1})
            scores = scores + self._call(self._model.predict_scores, rows, options)
            yield scores

    def _adopt(self, model: _core.Classifier, change: Change[Any]) -> None:
        found = model.evaluations().items()
        self.evals_result_: dict[str, NDArray[np.float64]] = {
            name: values for name, values in found if len(values)
        }
        super()._adopt(model, change)

    def _to_probabilities(self, scores: NDArray[Any]) -> NDArray[np.float32]:
        # With a single class the divisor would be 0.
        scale = max(len(self.classes_) - 1, 1) * self.temperature_
        powers = np.exp((scores - scores.max(axis=1, keepdims=True)) / scale)
        probabilities: NDArray[np.float64] = powers / powers.sum(axis=1, keepdims=True)
        return probabilities.astype(np.float32)

    def _core_params(self) -> dict[str, Any]:
        return super()._core_params() | {"categorical_features": self._categorical()}

    def _categorical(self) -> list[int]:
        """Return the numbers of the categorical columns."""
        if isinstance(self.categorical_features, str):
            return self._category_columns
        names = list(getattr(self, "feature_names_in_", []))
        return _categories.columns_of(self.categorical_features, self.n_features_in_, names)

    def _validated(self, X: Any, *, reset: bool, learn: bool = False) -> Any:
        """Return rows for the core; ``learn`` is a fit that adds rounds and maybe categories."""
        if reset:
            X = self._with_new_names(X)
            given = self.categorical_features
            has_categories = self._category_columns if isinstance(given, str) else given is not None
        else:
            X = self._with_known_names(X, learn=learn)
            has_categories = fitted = self._fitted_params()["categorical_features"]
            if learn:
                #: Columns that ``categorical_features="from_dtype"`` selected.
                self._category_columns: list[int] = fitted
        # Double precision reveals categories that would be equal in single precision.
        rows = _validation.rows(self, X, reset=reset, double=bool(has_categories))
        if reset or learn:
            _categories.check(rows, self._categorical() if reset else fitted)
        return rows

    def _model_for_more_rounds(self, target: Target) -> _core.Classifier:
        """Return a copy of the fitted model with rounds up to ``n_estimators`` to add."""
        fitted, wanted = self._fitted_params(), self._core_params()
        # A generator gives another seed with every use, but rounds continue from the model's seed.
        wanted["seed"] = fitted["seed"]
        if isinstance(self.random_state, Integral):
            wanted["seed"] = int(self.random_state)
        for name, value in wanted.items():
            if name != "n_estimators" and value != fitted[name]:
                shown = "random_state" if name == "seed" else name
                raise ValueError(
                    f"{shown} must not change with warm_start=True: it was {fitted[name]!r} and is "
                    f"now {value!r}; set it back, or set warm_start=False"
                )
        if self.n_estimators <= fitted["n_estimators"]:
            raise ValueError(
                f"n_estimators must exceed the {fitted['n_estimators']} of the fitted model with "
                f"warm_start=True, got {self.n_estimators}"
            )
        if not np.array_equal(target.classes, self.classes_):
            raise ValueError(
                f"y must have exactly the {len(self.classes_)} classes of the fitted model with "
                f"warm_start=True, got {len(target.classes)} classes"
            )
        model = self._model.snapshot()
        model.set_params(json.dumps({**fitted, "n_estimators": self.n_estimators}))
        return model

    def _validation(
        self, X: Any, y: Any, sample_weight: Any, target: Target, categorical: list[int]
    ) -> tuple[Any, NDArray[np.uint32], NDArray[np.float64] | None]:
        """Return the checked rows, class numbers and weights of the validation set."""
        X = self._with_known_names(X)
        X = _validation.rows(self, X, reset=False, double=bool(categorical))
        found = encode_single(y, "y_val")
        check_consistent_length(X, found.codes)
        at = positions(found.classes, target.classes)
        unknown = found.classes[at < 0]
        if len(unknown):
            raise ValueError(f"y_val contains the label {unknown.tolist()[0]!r}, which is not in y")
        codes = at[found.codes].astype(np.uint32)
        weights = _validation.weights(sample_weight, X)
        known = Target(codes, target.labels)
        return X, codes, _class_weight.times(self.class_weight, weights, known)

    def _with_new_names(self, X: Any) -> Any:
        """Return ``X`` with numbers in place of category names, after learning the names."""
        given = self.categorical_features
        #: Category names by column, for the columns that held names in ``fit``.
        self._category_names: _categories.Names = {}
        self._category_columns = []
        if isinstance(given, str):
            columns = self._category_columns = _categories.columns_by_dtype(X)
        elif given is not None and _categories.is_frame(X):
            columns = _categories.columns_of(given, X.shape[1], list(X.columns))
        else:
            return X
        return _categories.numbered(X, columns, self._category_names, learn=True)

    def _with_known_names(self, X: Any, *, learn: bool = False) -> Any:
        """Return ``X`` with numbers in place of category names."""
        names = self._category_names
        if not names:
            return X
        if learn:  # a copy, as the fitted estimator keeps its own
            names = {column: [*known] for column, known in names.items()}
            self._category_names = names
        if not _categories.is_frame(X):
            raise TypeError(
                f"column {min(names)} of X held category names in fit, so X must be a data frame, "
                f"got {type(X).__name__}"
            )
        columns = [column for column in names if column < X.shape[1]]
        return _categories.numbered(X, columns, names, learn=learn)

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        if hasattr(self, "_model"):
            # Pickles of 0.1.0 have none.
            self.__dict__.setdefault("evals_result_", {})

    def _more_state(self) -> dict[str, Any]:
        names, values = list(self._category_names.items()), self.evals_result_.items()
        evaluations = {name: found.tolist() for name, found in values}
        state = {"category_names": names, "evals_result": evaluations}
        return {name: value for name, value in state.items() if value}

    def _set_more_state(self, state: dict[str, Any]) -> None:
        evaluations = state.get("evals_result", {}).items()
        self.evals_result_ = {name: np.array(values) for name, values in evaluations}
        self._category_names = {
            int(column): names for column, names in state.get("category_names", [])
        }

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags
