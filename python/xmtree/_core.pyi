"""The compiled half of xmtree; private, wrapped by the Python package."""

from os import PathLike
from typing import Any, TypeAlias, final

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

def load_svmlight(
    path: _Path, zero_based: bool | None, n_features: int | None, multilabel: bool | None
) -> _Table: ...
def scan_svmlight(
    path: _Path, zero_based: bool | None, n_features: int | None, multilabel: bool | None
) -> tuple[bool, int, bool]: ...
def load_xmc(path: _Path, multilabel: bool | None) -> _Table: ...
def xmc_is_multilabel(path: _Path) -> bool: ...
def save_xmc(path: _Path, x: Any, y: Any, n_labels: int) -> None: ...

@final
class SvmlightStream:
    def __new__(
        cls,
        path: _Path,
        batch_size: int,
        zero_based: bool,
        n_features: int,
        multilabel: bool,
    ) -> SvmlightStream: ...
    def next(self) -> _Table | None: ...

@final
class XmcStream:
    def __new__(cls, path: _Path, batch_size: int, multilabel: bool) -> XmcStream: ...
    def next(self) -> _Table | None: ...
