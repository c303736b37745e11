"""``classes="grow"``: labels that a model does not know yet follow those that it knows."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from xmtree._labels import Target, encode, numbered
from xmtree._labels.forms import Indicator, as_classes, common_type, kind_of, positions, read

GROW = "grow"


def is_growing(classes: Any) -> bool:
    """Whether the ``classes`` argument of ``partial_fit`` asks for new labels to be taken."""
    return isinstance(classes, str) and classes == GROW


def encode_growing(
    y: Any,
    known: NDArray[Any] | None = None,
    order: NDArray[np.intp] | None = None,
    *,
    lists: bool = False,
) -> Target:
    """As :func:`encode`; labels that are not in ``known``, None for no labels at all, follow it:
    sorted among themselves, or in the order of a data frame's columns. ``order`` is what sorts
    ``known``, None where it is sorted."""
    target = encode(y) if known is None else _after(y, known, order, lists)
    return replace(target, is_open=True)


def _after(y: Any, known: NDArray[Any], order: NDArray[np.intp] | None, lists: bool) -> Target:
    found = read(y, "y", column_is_labels=True, lists=lists)
    if isinstance(found, Indicator):
        names = found.columns
        if names is not None and kind_of(names) == kind_of(known):
            return _of_named_columns(found, names, known, order)
        _check_width(found.sets.shape[1], known)
        return numbered(found, known, order)
    if len(found.labels):
        known, order = _joined(known, np.unique(found.labels), order)
    return replace(numbered(found, known, order), order=order)


def _of_named_columns(
    found: Indicator,
    names: NDArray[Any],
    known: NDArray[Any],
    order: NDArray[np.intp] | None,
) -> Target:
    """Of known labels, those without a column are in no row."""
    classes, order = _joined(known, names, order)
    columns = positions(names, classes, order)[found.sets.indices]
    shape = (found.sets.shape[0], len(classes))
    sets = sp.csr_array((found.sets.data, columns, found.sets.indptr), shape=shape)
    sets.sort_indices()
    return Target(sets, classes, found.form, order=order)


def _joined(
    known: NDArray[Any], labels: NDArray[Any], order: NDArray[np.intp] | None
) -> tuple[NDArray[Any], NDArray[np.intp] | None]:
    """``known``, then those of the distinct ``labels`` that are not in it, as the type that they
    have, or a wider one where these need it; and what sorts the whole."""
    if kind_of(labels) != kind_of(known):
        common_type(labels, known, "of the model")
    new = labels[positions(labels, known, order) < 0]
    if not len(new):
        return known, order
    dtype = common_type(new, known, "of the model")
    known, new = known.astype(dtype, copy=False), as_classes(new.astype(dtype), "y")
    # Not sorted anew: there may be very many, and one more.
    if order is None:
        order = np.arange(len(known))
    of_new = np.argsort(new)
    places = np.searchsorted(known, new[of_new], sorter=order)
    return np.concatenate([known, new]), np.insert(order, places, len(known) + of_new)


def _check_width(n_columns: int, known: NDArray[Any]) -> None:
    if n_columns != len(known):
        raise ValueError(
            f'classes="grow" must know which labels the columns of y are: y is an indicator of '
            f"{n_columns} columns, the model has {len(known)} labels; pass label lists, or a data "
            "frame whose columns are named by labels"
        )
