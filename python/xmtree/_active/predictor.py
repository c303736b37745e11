"""The classifier of an active learner: its training parameters and its predictions."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from xmtree import _categories, _validation
from xmtree._base import Learner
from xmtree._delegation import DelegatedPredictions
from xmtree._sklearn import MetaEstimatorMixin, validate_params
from xmtree._typing import MatrixLike, Seed


@dataclass(eq=False, kw_only=True, repr=False)
class SessionPredictor(MetaEstimatorMixin, DelegatedPredictions[MatrixLike]):
    """Parameters of active learners, and predictions of the classifier trained in a session."""

    estimator: Any = None
    n_initial: int = 20
    n_per_round: int = 10
    n_rounds: int = 50
    selection: str = "margin"
    pool_share: float = 1.0
    early_stopping: bool = False
    validation_fraction: float = 0.1
    patience: int = 10
    random_state: Seed = None
    n_jobs: int | None = None
    verbose: int = 0
    estimator_: Learner = field(init=False)
    n_features_in_: int = field(init=False)
    _seed: int = field(init=False)

    def save(self, path: str | Path) -> None:
        """Write ``estimator_`` to a file that :func:`xmtree.load` reads.

        The file does not contain the session, which pickle stores.

        Parameters
        ----------
        path : str or Path
        """
        self._trained().save(path)

    def _trained(self) -> Learner:
        check_is_fitted(self)
        return self.estimator_

    def _known_learner(self) -> Learner:
        return self.estimator_ if self.__sklearn_is_fitted__() else self._template()

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "estimator_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = self._takes_nan()
        return tags

    def _template(self) -> Learner:
        """Return the classifier that is cloned and trained in every round."""
        raise NotImplementedError

    def _takes_nan(self) -> bool:
        """Return whether values may be missing."""
        return bool(self._template().__sklearn_tags__().input_tags.allow_nan)

    def _validated(self, X: Any, *, reset: bool) -> Any:
        given = getattr(self._template(), "categorical_features", None)
        if reset and isinstance(given, str):
            for column in _categories.columns_by_dtype(X):
                raise ValueError(
                    f"column {X.columns[column]!r} of X holds categories, which active learning "
                    "does not recognize by their type: convert them to numbers and pass the "
                    "column's name as categorical_features of the estimator"
                )
        double = given is not None and not isinstance(given, str)
        return _validation.rows(self, X, reset=reset, double=double)

    def _new_classifier(self) -> Any:
        """Return a clone of the template with seed, threads and categories."""
        classifier: Any = clone(self._template())
        validate_params(classifier)
        if classifier.random_state is None:
            classifier.set_params(random_state=self._seed)
        if classifier.n_jobs is None:
            classifier.set_params(n_jobs=self.n_jobs)
        # The pool was validated and has lost its column names.
        if hasattr(self, "feature_names_in_"):
            classifier.feature_names_in_ = self.feature_names_in_
        classifier.n_features_in_ = self.n_features_in_
        given = getattr(classifier, "categorical_features", None)
        if given is not None:
            columns = None if isinstance(given, str) else classifier._categorical()
            classifier.set_params(categorical_features=columns)
        return classifier
