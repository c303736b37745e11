"""Columns of categories in tables: numbers in place of names, as for data frames."""

from collections.abc import Collection
from typing import Any

import numpy as np
from numpy.typing import NDArray

from xmtree import _categories


class LateCategories(Exception):
    """A column of numbers, the argument, holds a name after the first batch."""


class Categories:
    """The category names of columns.

    For training, ``may_learn`` are the columns that may hold names. With ``declared`` the learner
    treats even their numbers as categories.
    """

    def __init__(
        self, names: dict[str, list[Any]], may_learn: Collection[str] = (), declared: bool = False
    ) -> None:
        #: The number of each name, by column.
        self.numbers = {
            column: {name: number for number, name in enumerate(known)}
            for column, known in names.items()
        }
        self.may_learn, self._declared = may_learn, declared

    @property
    def is_exact(self) -> bool:
        """Return whether a matrix must be in double precision."""
        return self._declared or bool(self.numbers)

    def encoded(self, column: str, values: list[Any]) -> NDArray[np.float64]:
        """Return numbers of names, that after the last for unknown ones, NaN for missing ones."""
        known, is_new = self.numbers.setdefault(column, {}), column in self.may_learn
        numbers = np.full(len(values), np.nan)
        for at, value in enumerate(values):
            if value not in (None, "") and value == value:
                number = known.get(value, len(known))
                if is_new:
                    known[value] = number
                numbers[at] = number
        return numbers

    def wrong(self, column: str, values: list[Any]) -> tuple[int, str] | None:
        """Return the first value that cannot be a category of the column, and why not."""
        if {*map(type, values)} <= {str, type(None)}:
            return None
        allowed: Any = (str, int, float, type(None))
        why = "which is neither text nor a number"
        if column not in self.may_learn and all(isinstance(n, str) for n in self.numbers[column]):
            allowed = (str, type(None))
            why = "which is not text, as all that the model knows in this column"
        wrong = (
            (at, why)
            for at, value in enumerate(values)
            if not isinstance(value, allowed) and value == value
        )
        return next(wrong, None)

    def sort(self, X: NDArray[Any], columns: list[str]) -> dict[int, list[Any]]:
        """Number names in their order, not in that of the rows, and return them by column of X."""
        found = {}
        for column, numbers in self.numbers.items():
            at, names = columns.index(column), _categories.in_order(numbers)
            places = np.argsort([numbers[name] for name in names])
            rows = np.flatnonzero(~np.isnan(X[:, at]))
            X[rows, at] = places[X[rows, at].astype(np.intp)]
            found[at] = names
        return found
