"""Types of the arguments and results of public methods."""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray


class SupportsArray(Protocol):
    """An object that numpy converts to an array: an array, a data frame, or one of its columns."""

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
#: All labels that may occur; None is those of the rows.
Classes: TypeAlias = SupportsArray | Sequence[Any] | None
#: Columns by number, name or mask.
Columns: TypeAlias = SupportsArray | Sequence[int] | Sequence[str] | None
#: A number for each row.
Weights: TypeAlias = SupportsArray | Sequence[float] | None
TextsLike: TypeAlias = SupportsArray | Iterable[str]
#: The parameter ``random_state``.
Seed: TypeAlias = int | np.random.RandomState | None


class OneLabelMixin:
    """Type of ``predict`` for learners of one label per row, which never return label sets."""

    if TYPE_CHECKING:

        def predict(self, X: MatrixLike) -> NDArray[Any]: ...
