"""The compiled half of xmtree; private, wrapped by the Python package."""

import os
from collections.abc import Callable, Iterator, Sequence
from os import PathLike
from typing import Any, Literal, Self, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

__version__: str

class ModelFileError(ValueError): ...
class UnsortedIndicesError(ValueError): ...

_Path: TypeAlias = str | PathLike[str]
# What scores are; slope and rest of the logits, slope and intercept of the best label's.
_Scale: TypeAlias = Literal["logit", "share", "probability"]
_Shares: TypeAlias = Sequence[float]
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
def save_xmc(path: _Path, x: Any, y: Any, n_labels: int) -> None: ...

@final
class Stream:
    def __iter__(self) -> Self: ...
    def __next__(self) -> Any: ...

def iter_lines(path: _Path) -> Iterator[bytes]: ...
def iter_svmlight(
    path: _Path, batch_size: int, layout: tuple[bool, int, bool]
) -> Iterator[_Table]: ...
def iter_xmc(path: _Path, batch_size: int, multilabel: bool) -> Iterator[_Table]: ...

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
        validation: tuple[Any, NDArray[np.uint32], NDArray[np.float64] | None] | None = None,
        n_passes: int | None = None,
    ) -> None: ...
    def partial_fit(
        self,
        X: Any,
        y: Any,
        sample_weight: NDArray[np.float64] | None = None,
        n_threads: int = 1,
        progress: _Progress | None = None,
        n_classes: int | None = None,
        labels: Any = None,
    ) -> None: ...
    def predict(self, X: Any, n_threads: int = 1) -> NDArray[np.int32]: ...
    def predict_topk(self, X: Any, k: int, options: str = "{}", n_threads: int = 1) -> _TopK: ...
    def predict_scores(self, X: Any, options: str = "{}", n_threads: int = 1) -> NDArray[Any]: ...
    def select_labels(
        self,
        X: Any,
        threshold: float | None = None,
        n_labels: int | None = None,
        at_least: int = 0,
        n_threads: int = 1,
    ) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.float32]]: ...
    def leaves(
        self, X: Any, n_threads: int = 1
    ) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.int32]]: ...
    def contributions(
        self, X: Any, classes: NDArray[np.uint32], n_threads: int = 1
    ) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.float64]]: ...
    def coefficients(self) -> dict[str, Any]: ...
    def staged_predict(self, X: Any, n_threads: int = 1) -> NDArray[np.int32]: ...
    def learn_part(
        self,
        X: Any,
        y: Any,
        sample_weight: NDArray[np.float64] | None = None,
        learn: tuple[int, int, bool] | None = None,
        n_threads: int = 1,
    ) -> None: ...
    @staticmethod
    def join(
        learner: str,
        params_json: str,
        n_classes: int,
        label_sets: bool,
        parts: Sequence[Classifier],
    ) -> Classifier: ...
    def __sizeof__(self) -> int: ...
    def snapshot(self, brief: bool = False) -> Classifier: ...
    def with_labels(self, labels: Any) -> Classifier: ...
    @property
    def labels(self) -> Any: ...
    def set_params(self, params_json: str) -> None: ...
    def summary(self) -> dict[str, Any]: ...
    def evaluations(self) -> dict[str, Any]: ...
    def importances(self) -> dict[str, Any]: ...
    def trees(self) -> list[dict[str, Any]]: ...
    @property
    def n_classes(self) -> int: ...
    @property
    def n_features(self) -> int: ...
    @property
    def n_examples_seen(self) -> int: ...
    @property
    def params(self) -> dict[str, Any]: ...
    def to_bytes(self, slim: bool = False) -> bytes: ...
    @staticmethod
    def from_bytes(bytes: bytes, learner: str | None = None) -> Classifier: ...

@final
class LdsmTraining:
    def __new__(
        cls,
        params_json: str,
        n_classes: int,
        X: Any,
        y: Any,
        sample_weight: NDArray[np.float64],
    ) -> Self: ...
    def first_row(self) -> LdsmTraining: ...
    def with_rows(self, X: Any, y: Any, sample_weight: NDArray[np.float64]) -> LdsmTraining: ...
    def trees(self, numbers: list[int], learn_all: bool, n_threads: int) -> Classifier: ...
    def model(self, trees: list[Classifier], n_threads: int) -> Classifier: ...
    def groups(
        self,
        groups: NDArray[np.uint32],
        n_groups: int,
        counts: NDArray[np.uint32],
        n_rows: int,
        mean_weight: float,
    ) -> bytes: ...
    @staticmethod
    def from_bytes(bytes: bytes) -> LdsmTraining: ...

_Mined: TypeAlias = tuple[bytes, list[list[float]]]
_Settings: TypeAlias = tuple[float, float]
_Layout: TypeAlias = tuple[float | None, int]
_TwoParts: TypeAlias = tuple[bytes, bytes]

def ldsm_left_out(n_rows: int) -> tuple[float, float]: ...
def ldsm_divide(
    trees: list[Classifier],
    groups: bytes,
    number: int,
    X: Any,
    y: Any,
    sample_weight: NDArray[np.float64],
    learned: NDArray[np.bool_] | None = None,
) -> list[bytes]: ...
def ldsm_mine(groups: bytes, group: int, pieces: list[bytes]) -> _Mined: ...
def ldsm_choose(groups: bytes, gains: list[list[list[float]]]) -> _Settings: ...
def ldsm_scorers(
    groups: bytes, group: int, mined: _Mined, settings: _Settings, fit: bytes
) -> _TwoParts: ...
def ldsm_layout(groups: bytes, fit: bytes, counts: list[bytes]) -> _Layout: ...
def ldsm_margins(
    groups: bytes,
    fit: bytes,
    layout: _Layout,
    model: str,
    group: int,
    file: str | None,
    trained: _TwoParts,
) -> _TwoParts: ...
def ldsm_join(groups: bytes, fit: bytes, settings: _Settings, margins: list[bytes]) -> bytes: ...
def ldsm_model(trees: list[Classifier], join: bytes, parts: list[bytes]) -> Classifier: ...
def ldsm_topk(
    trees: Classifier, model: str, files: list[str], X: Any, k: int, n_threads: int
) -> tuple[NDArray[np.int32], NDArray[np.float32]]: ...
def ldsm_whole(trees: Classifier, model: str, files: list[str]) -> Classifier: ...

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
class NgramCounter:
    def __new__(
        cls,
        words: int,
        characters: tuple[int, int] | None,
        vocabularies: Sequence[Sequence[str]],
        n_bits: int | None = None,
    ) -> Self: ...
    @staticmethod
    def learn(
        words: int, characters: tuple[int, int] | None, texts: Sequence[str], min_df: int
    ) -> NgramCounter: ...
    def count(
        self, texts: Sequence[str], n_threads: int = 1
    ) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.float32]]: ...
    def vocabularies(self) -> list[list[str]]: ...
    @property
    def n_columns(self) -> int: ...

def weigh_counts(
    starts: NDArray[np.int64],
    columns: NDArray[np.int32],
    values: NDArray[np.float32],
    idf: NDArray[np.float64] | None = None,
) -> None: ...
def fit_line(
    scores: NDArray[np.float32], is_there: NDArray[np.bool_], weights: NDArray[np.float64]
) -> tuple[float, float]: ...
def fit_shares(
    scores: NDArray[np.float32],
    scale: _Scale,
    hits: NDArray[np.bool_],
    weights: NDArray[np.float64],
    n_classes: int,
) -> _Shares | None: ...
def label_probabilities(
    scores: NDArray[np.float32], slope: float, intercept: float
) -> NDArray[np.float32]: ...
def propensities(
    counts: NDArray[np.int64], n_rows: int, a: float, b: float
) -> NDArray[np.float64]: ...
def share_probabilities(
    scores: NDArray[np.float32],
    scale: _Scale,
    n_classes: int,
    shares: _Shares | None = None,
) -> NDArray[np.float32]: ...
def spread_over_labels(
    codes: NDArray[np.int32], probabilities: NDArray[np.float32], n_classes: int, has_one: bool
) -> NDArray[np.float32]: ...
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
