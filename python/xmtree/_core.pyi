"""The compiled half of xmtree; private, wrapped by the Python package."""

import os
from collections.abc import Callable, Sequence
from os import PathLike
from typing import Any, Self, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

__version__: str

class ModelFileError(ValueError): ...
class UnsortedIndicesError(ValueError): ...

_Path: TypeAlias = str | PathLike[str]
# indptr, indices, data of X; indptr and labels of y; number of columns, number
# of labels, whether y is label sets.
_Table: TypeAlias = tuple[
    NDArray[np.int64],
    NDArray[np.int32],
    NDArray[np.float32],
    NDArray[np.int64],
    NDArray[Any],
    int,
    int,
    bool,
]

# zero_based, n_features and multilabel; None for what is to be found out.
_Options: TypeAlias = tuple[bool | None, int | None, bool | None]

def load_svmlight(path: _Path, options: _Options) -> _Table: ...
def scan_svmlight(path: _Path, options: _Options) -> tuple[bool, int, bool]: ...
def load_xmc(path: _Path, multilabel: bool | None) -> _Table: ...
def xmc_is_multilabel(path: _Path) -> bool: ...
def save_xmc(path: _Path, x: Any, y: Any, n_labels: int) -> None: ...

@final
class Stream:
    def __iter__(self) -> Self: ...
    def __next__(self) -> _Table: ...

def iter_svmlight(path: _Path, batch_size: int, layout: tuple[bool, int, bool]) -> Stream: ...
def iter_xmc(path: _Path, batch_size: int, multilabel: bool) -> Stream: ...

_Progress = Callable[[int, int, float | None, float | None], object]
_TopK = tuple[NDArray[np.int32], NDArray[np.float32]]

def parameters(learner: str) -> str: ...

@final
class Classifier:
    def __new__(
        cls, learner: str, params_json: str, n_classes: int, label_sets: bool = False
    ) -> Self: ...
    def fit(
        self,
        X: Any,
        y: Any,
        sample_weight: NDArray[np.float64] | None = None,
        n_threads: int = 1,
        progress: _Progress | None = None,
        warm_start: bool = False,
    ) -> None: ...
    def partial_fit(
        self,
        X: Any,
        y: Any,
        sample_weight: NDArray[np.float64] | None = None,
        n_threads: int = 1,
        progress: _Progress | None = None,
        answers: bool = False,
        n_classes: int | None = None,
    ) -> NDArray[np.int32] | None: ...
    def predict(self, X: Any, n_threads: int = 1) -> NDArray[np.int32]: ...
    def predict_topk(self, X: Any, k: int, options: str = "{}", n_threads: int = 1) -> _TopK: ...
    def predict_scores(self, X: Any, options: str = "{}", n_threads: int = 1) -> NDArray[Any]: ...
    def select_labels(
        self,
        X: Any,
        threshold: float | None = None,
        n_labels: int | None = None,
        n_threads: int = 1,
    ) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.float32]]: ...
    def staged_predict(self, X: Any, n_threads: int = 1) -> NDArray[np.int32]: ...
    def set_params(self, params_json: str) -> None: ...
    def summary(self) -> dict[str, Any]: ...
    def trees(self) -> list[dict[str, Any]]: ...
    @property
    def n_classes(self) -> int: ...
    @property
    def n_features(self) -> int: ...
    @property
    def n_examples_seen(self) -> int: ...
    @property
    def params_json(self) -> str: ...
    @property
    def params(self) -> dict[str, Any]: ...
    def to_bytes(self) -> bytes: ...
    @staticmethod
    def from_bytes(bytes: bytes, learner: str | None = None) -> Classifier: ...

@final
class Scores:
    def __new__(
        cls,
        cuts: list[int],
        propensities: Sequence[float] | NDArray[np.float64] | None = None,
        unseen: float | None = None,
        skip_empty: bool = False,
    ) -> Self: ...
    def add(self, y_true: Any, n_labels: int, y_pred: Any, bounded: bool = False) -> None: ...
    def measures(self) -> dict[str, NDArray[np.float64]]: ...

@final
class TopLabelLoss:
    def __new__(cls) -> Self: ...
    def add(
        self, scores: NDArray[np.float32], is_right: NDArray[np.bool_], weights: NDArray[np.float64]
    ) -> None: ...
    def slope(self) -> float | None: ...

def propensities(
    counts: NDArray[np.int64], n_rows: int, a: float, b: float
) -> NDArray[np.float64]: ...
def save_estimator(
    path: str | os.PathLike[str],
    meta: str,
    arrays: dict[str, NDArray[Any]],
    model: Classifier,
    compact: bool,
) -> None: ...

@final
class EstimatorFile:
    def __new__(cls, path: str | os.PathLike[str], mmap: bool) -> Self: ...
    @property
    def meta(self) -> str: ...
    def arrays(self) -> dict[str, NDArray[Any]]: ...
    def take_model(self, learner: str) -> Classifier: ...
