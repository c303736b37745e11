"""What public methods take and give, as types for checkers."""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray


class SupportsArray(Protocol):
    """What numpy makes an array of: an array, a data frame, or one column of it."""

    def __array__(self) -> NDArray[Any]: ...


class Frame(Protocol):
    """A data frame, of pandas or of polars."""

    @property
    def columns(self) -> Any: ...

    @property
    def shape(self) -> tuple[int, int]: ...


Sparse: TypeAlias = sp.spmatrix | sp.sparray
#: Rows of features.
MatrixLike: TypeAlias = (
    SupportsArray | Frame | Sparse | Sequence[Sequence[float]] | Sequence[NDArray[Any]]
)
#: One label per row, or label sets.
LabelsLike: TypeAlias = SupportsArray | Frame | Sparse | Sequence[Any]
#: Every label that there may be; None: those of the rows.
Classes: TypeAlias = SupportsArray | Sequence[Any] | None
#: Columns, by number, name or mask.
Columns: TypeAlias = SupportsArray | Sequence[int] | Sequence[str] | None
#: A number for each row.
Weights: TypeAlias = SupportsArray | Sequence[float] | None
TextsLike: TypeAlias = SupportsArray | Iterable[str]
#: ``random_state``.
Seed: TypeAlias = int | np.random.RandomState | None


class OneLabelMixin:
    """For learners of one label per row: their ``predict`` returns an array, not label sets."""

    if TYPE_CHECKING:

        def predict(self, X: MatrixLike) -> NDArray[Any]: ...
