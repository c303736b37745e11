"""Trees over a fixed order of labels: filter tree and random tree."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.utils._param_validation import Interval, StrOptions

from xmtree import _core, _validation
from xmtree._base import Learner
from xmtree._online import OnlineLearner
from xmtree._trees import TreeMixin


class _LabelTree(TreeMixin, OnlineLearner):
    """What both have in common: all but which examples a router learns from."""

    _Model = _core.LabelTree
    #: The core's name for that.
    _policy: ClassVar[str]
    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **Learner._parameter_constraints,
        "loss": [StrOptions({"hinge", "squared_hinge", "logistic", "squared", "quantile"})],
        "optimizer": [StrOptions({"pn", "nag", "adagrad", "sgd"})],
        "scaling": [StrOptions({"auto", "none", "row", "standard"})],
        "n_bits": [None, Interval(Integral, 1, 31, closed="both")],
        "learning_rate": [Interval(Real, 0, _validation.MAX_REAL, closed="right")],
        "decay": [Interval(Real, 0, _validation.MAX_REAL, closed="both")],
        "label_order": [StrOptions({"random", "given", "frequency"})],
        "n_passes": [Interval(Integral, 1, _validation.MAX_COUNT, closed="both")],
        "early_stopping": ["boolean"],
        "validation_fraction": [Interval(Real, 0, 1, closed="neither")],
        "patience": [Interval(Integral, 1, _validation.MAX_COUNT, closed="both")],
    }

    def __init__(
        self,
        *,
        loss: str = "hinge",
        optimizer: str = "pn",
        scaling: str = "auto",
        n_bits: int | None = None,
        learning_rate: float = 1.0,
        decay: float = 0.3,
        label_order: str = "random",
        n_passes: int = 5,
        early_stopping: bool = False,
        validation_fraction: float = 0.1,
        patience: int = 2,
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.loss = loss
        self.optimizer = optimizer
        self.scaling = scaling
        self.n_bits = n_bits
        self.learning_rate = learning_rate
        self.decay = decay
        self.label_order = label_order
        self.n_passes = n_passes
        self.early_stopping = early_stopping
        self.validation_fraction = validation_fraction
        self.patience = patience
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    def _best(self, X: Any) -> NDArray[np.int32]:
        return self._call(self._model.predict, X)

    def _core_params(self) -> dict[str, Any]:
        return {**super()._core_params(), "policy": self._policy}


class FilterTreeClassifier(_LabelTree):
    """Filter tree."""

    _short_name = "filter-tree"
    _policy = "filter"


class RandomTreeClassifier(_LabelTree):
    """Random tree."""

    _short_name = "random-tree"
    _policy = "random"
