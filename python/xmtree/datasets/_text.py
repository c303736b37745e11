"""Reading svmlight and XMC text and tables, and writing XMC text."""

from __future__ import annotations

import argparse
import os
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.feature_extraction import FeatureHasher
from sklearn.utils import check_array

from xmtree import _core
from xmtree._labels.forms import Indicator, label_array, read, row_sets
from xmtree._typing import LabelsLike, MatrixLike
from xmtree._validation import check_structure, csr, flag, whole

_MAX_INDEX = 2**31 - 1
_STDIN = "-"


def load_xmc(
    path: str | os.PathLike[str], *, multilabel: bool | str = "auto"
) -> tuple[sp.csr_matrix, Any]:
    """Read a file in the format of the Extreme Classification Repository.

    Parameters
    ----------
    path : str or path-like
        The file, plain or compressed (gzip, xz, zstd); ``"-"`` is stdin.
    multilabel : bool or "auto", default="auto"
        Form of `y`. True: label sets. False: one label per row; a row with none
        or several is an error. "auto": one label per row if every row of the
        file has exactly one, else label sets.

    Returns
    -------
    X : csr_matrix of shape (n_samples, n_features), dtype float32
        Rows with sorted indices; the width is the header's ``D``.
    y : csr_matrix of shape (n_samples, n_labels), dtype int64, or ndarray of \
shape (n_samples,), dtype int64
        The 0/1 indicator of label sets, as wide as the header's ``K``; or one
        label per row, below ``K``.

    Raises
    ------
    ValueError
        If a line cannot be read (the message begins with ``file:line:``, lines from 1), the
        number of rows differs from the header's, or a compressed file is damaged.
    OSError
        If the file cannot be opened or read.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from xmtree.datasets import load_xmc
    >>> path = pathlib.Path(tempfile.mkdtemp(), "tiny.txt")
    >>> _ = path.write_text("2 4 3\\n0,2 1:0.5 3:2\\n 0:1\\n")
    >>> X, y = load_xmc(path)
    >>> X.toarray()
    array([[0. , 0.5, 0. , 2. ],
           [1. , 0. , 0. , 0. ]], dtype=float32)
    >>> y.toarray()
    array([[1, 0, 1],
           [0, 0, 0]])
    """
    return _xmc(_core.load_xmc(path, flag("multilabel", multilabel)))


def load_svmlight(
    path: str | os.PathLike[str],
    *,
    n_features: int | None = None,
    zero_based: bool | str = "auto",
    multilabel: bool | str = "auto",
) -> tuple[sp.csr_matrix, Any]:
    """Read a file in svmlight (LIBSVM) format.

    Parameters
    ----------
    path : str or path-like
        As for :func:`load_xmc`. ``qid:`` and comments are skipped.
    n_features : int, default=None
        Number of columns of `X`; None is as many as the highest index requires.
        Pass it to read a test file with the width of its training file.
    zero_based : bool or "auto", default="auto"
        Whether column indices in the file begin at 0. With "auto" they do if
        index 0 occurs anywhere in it, else they begin at 1.
    multilabel : bool or "auto", default="auto"
        Form of `y`, as for :func:`load_xmc`, with lists of labels as label sets.

    Returns
    -------
    X : csr_matrix of shape (n_samples, n_features), dtype float32
        Rows with sorted indices; explicit zeros in the file are kept.
    y : ndarray of shape (n_samples,), dtype float64, or list of n_samples lists of int
        One label per row, which may be any finite number; or each row's integer
        labels in increasing order.

    Raises
    ------
    ValueError, OSError
        As for :func:`load_xmc`; also if the file has no examples, or float64 would round
        an integer label beyond 2**53.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from xmtree.datasets import load_svmlight
    >>> path = pathlib.Path(tempfile.mkdtemp(), "tiny.svm")
    >>> _ = path.write_text("+1 1:0.5 3:2  # a comment\\n-1 2:1\\n")
    >>> X, y = load_svmlight(path)
    >>> X.toarray()
    array([[0.5, 0. , 2. ],
           [0. , 1. , 0. ]], dtype=float32)
    >>> y
    array([ 1., -1.])
    """
    options = _svmlight_options(zero_based, n_features, multilabel)
    return _svmlight(_core.load_svmlight(path, options))


def iter_xmc(
    path: str | os.PathLike[str], batch_size: int = 4096, *, multilabel: bool | str = "auto"
) -> Iterator[tuple[sp.csr_matrix, Any]]:
    """Read a file in XMC format in batches, in constant memory.

    Background threads decompress and parse ahead of the loop body.

    Parameters
    ----------
    path : as for :func:`load_xmc`
    batch_size : int, default=4096
        Rows per batch; the last batch may have fewer.
    multilabel : bool or "auto", default="auto"
        As for :func:`load_xmc`, so that the batches are slices of its result.
        "auto" reads the file twice, the first time up to the first row that does
        not have exactly one label. It is an error for ``"-"``, as stdin can be
        read only once.

    Yields
    ------
    X : csr_matrix of shape (n_rows, n_features), dtype float32
        The next rows.
    y : csr_matrix of shape (n_rows, n_labels) or ndarray of shape (n_rows,), dtype int64
        Their labels.

    Raises
    ------
    ValueError, OSError
        As for :func:`load_xmc`. Wrong options and missing files raise at the call, a bad line
        after the batches before it, or at the call if the file is read twice.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from xmtree.datasets import iter_xmc
    >>> path = pathlib.Path(tempfile.mkdtemp(), "tiny.txt")
    >>> _ = path.write_text("3 4 3\\n0 1:0.5\\n2 0:1\\n1 3:1\\n")
    >>> for X, y in iter_xmc(path, batch_size=2):
    ...     print(X.shape, y)
    (2, 4) [0 2]
    (1, 4) [1]
    """
    batch_size = whole("batch_size", batch_size, 1)
    sets = flag("multilabel", multilabel)
    if sets is None:
        _refuse_stdin(path, "multilabel")
        # Reads up to the first row that does not have exactly one label.
        batches = _core.iter_xmc(path, batch_size, True)
        sets = any((np.diff(batch[3]) != 1).any() for batch in batches)
    return map(_xmc, _core.iter_xmc(path, batch_size, sets))


def iter_svmlight(
    path: str | os.PathLike[str],
    batch_size: int = 4096,
    *,
    n_features: int | None = None,
    zero_based: bool | str = "auto",
    multilabel: bool | str = "auto",
) -> Iterator[tuple[sp.csr_matrix, Any]]:
    """Read a file in svmlight format in batches, in constant memory.

    Parameters
    ----------
    batch_size : int, default=4096, as for :func:`iter_xmc`
    path, n_features, zero_based, multilabel : as for :func:`load_svmlight`

    Yields
    ------
    X : csr_matrix of shape (n_rows, n_features), dtype float32
        The next rows.
    y : ndarray of shape (n_rows,), dtype float64, or list of lists of int
        Their labels.

    Raises
    ------
    ValueError, OSError
        As for :func:`iter_xmc`.

    Notes
    -----
    The batches are slices of what :func:`load_svmlight` returns for the same
    arguments. The width, the first index and the number of labels per row are
    known only at the file's end. Unless `n_features`, `zero_based` and
    `multilabel` are all given, the file is therefore read twice. For ``"-"``,
    which can be read only once, all three must be given.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from xmtree.datasets import iter_svmlight
    >>> path = pathlib.Path(tempfile.mkdtemp(), "tiny.svm")
    >>> _ = path.write_text("1 1:0.5\\n2 3:1\\n1 2:4\\n")
    >>> for X, y in iter_svmlight(path, batch_size=2):
    ...     print(X.shape, y)
    (2, 3) [1. 2.]
    (1, 3) [1.]
    """
    batch_size = whole("batch_size", batch_size, 1)
    base, width, sets = _svmlight_options(zero_based, n_features, multilabel)
    if base is None or width is None or sets is None:
        _refuse_stdin(path, "zero_based, n_features and multilabel")
        base, width, sets = _core.scan_svmlight(path, (base, width, sets))
    return map(_svmlight, _core.iter_svmlight(path, batch_size, (base, width, sets)))


def iter_table(
    path: str | os.PathLike[str],
    batch_size: int = 4096,
    *,
    format: str = "auto",
    columns: Sequence[str] | None = None,
    n_bits: int | None = None,
    text_column: str | None = None,
    label_column: str | None = None,
    integer_labels: bool = False,
    multilabel: bool = False,
    delimiter: str | None = None,
    no_header: bool = False,
) -> Iterator[tuple[Any, Any]]:
    """Read a table in batches, in constant memory.

    Parameters
    ----------
    path, batch_size : as for :func:`iter_xmc`
    format : {"auto", "csv", "tsv", "jsonl", "parquet"}, default="auto"
        "auto" goes by the file's name, else by its first line.
    columns : sequence of str, optional
        The features, in this order. By default all columns but the labels, in the order of the
        header, or of the keys in the first batch of JSON lines.
    n_bits : int, optional
        Hash rows into ``2**n_bits`` columns by scikit-learn's ``FeatureHasher``, from 1 to 30.
        Rows may have different keys; text is a category. By default columns must hold numbers.
    text_column : str, optional
        The only feature, for :class:`xmtree.TextClassifier`; by default ``text``, if the table
        has it, without ``columns`` and ``n_bits``.
    label_column : str, optional
        By default ``label`` or ``labels``, if there is one.
    integer_labels : bool, default=False
        Read labels of CSV and TSV as integers, not as strings. Other formats have types.
    multilabel : bool, default=False
        Rows have label sets: lists, or text with commas. Otherwise one label each.
    delimiter, no_header : str or None and bool, default=None and False
        CSV and TSV: another delimiter; columns are named "0", "1", ..., as the first row is data.

    Yields
    ------
    X : ndarray or csr_matrix (with `n_bits`), dtype float32, or list of str
        The next rows; NaN is a missing number.
    y : ndarray of shape (n_rows,), list of lists, or None
        Their labels; None without a column of labels.

    Raises
    ------
    ValueError, TypeError, OSError
        As for :func:`iter_xmc`, if a value is not as described. Parquet has no lines, so its
        messages name the row.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from xmtree.datasets import iter_table
    >>> path = pathlib.Path(tempfile.mkdtemp(), "tiny.csv")
    >>> _ = path.write_text("height,weight,label\\n1.5,2,oak\\n3,1,elm\\n2,2,elm\\n")
    >>> for X, y in iter_table(path, batch_size=2):
    ...     print(X.tolist(), y)
    [[1.5, 2.0], [3.0, 1.0]] ['oak' 'elm']
    [[2.0, 2.0]] ['elm']
    """
    # Imported here, as the command line imports this package.
    from xmtree.cli import formats, labels
    from xmtree.cli.formats.tables import TableReader

    options = argparse.Namespace(
        **dict.fromkeys(("weight_column", "id_column", "ignore_column", "label_separator")),
        **{"format": format, "index_base": None, "labels": "sets" if multilabel else "one"},
        **{"text_column": text_column, "label_column": label_column, "delimiter": delimiter},
        **{"batch_size": whole("batch_size", batch_size, 1), "no_header": no_header},
    )
    bits = None if n_bits is None else whole("n_bits", n_bits, 1, 30)
    hasher = None if bits is None else FeatureHasher(2**bits, dtype=np.float32)
    if format not in ("auto", "csv", "tsv", "jsonl", "parquet"):
        raise ValueError(f"format must be auto, csv, tsv, jsonl or parquet, got {format!r}")
    if columns is not None and not len(columns):
        raise ValueError("columns must name at least one column")
    if text_column is not None and not (columns is None and hasher is None):
        raise ValueError("text_column cannot be given with columns or n_bits")

    with _names_of_arguments():
        reader = formats.open_reader(os.fspath(path), options)
        if not isinstance(reader, TableReader):
            raise ValueError(f"{reader.shown_name} is read as {reader.name}, which is no table")
        reader.as_dicts = hasher is not None
        reader.select(None if columns is None else list(columns))
    integers = integer_labels and reader.untyped_labels
    vocabulary = labels.Vocabulary(np.empty(0), multilabel, integers, grows=True)

    def batches() -> Iterator[tuple[Any, Any]]:
        with _names_of_arguments():
            for first_row, batch in reader.numbered(multilabel):
                y = None
                if batch.labels is not None:
                    y = vocabulary.target(reader, batch, first_row)
                    y = y.tolist() if multilabel else label_array(y, reader.shown_name)
                yield batch.rows if hasher is None else hasher.transform(batch.rows), y

    return batches()


@contextmanager
def _names_of_arguments() -> Iterator[None]:
    """Replace options of the command line in messages of errors by arguments."""
    try:
        yield
    except ValueError as error:
        message = str(error).replace("--ignore-column", "columns without")
        message = message.replace("--labels sets", "multilabel=True")
        message = re.sub(r"--(\w+(-\w+)?)", lambda found: found[1].replace("-", "_"), message)
        raise ValueError(message) from error


def save_xmc(
    path: str | os.PathLike[str], X: MatrixLike, y: LabelsLike, *, n_labels: int | None = None
) -> None:
    """Write a data set in the format of the Extreme Classification Repository.

    After an error no file is written; an existing file is replaced only at the end.

    Parameters
    ----------
    path : str or path-like
        The file to write; the suffixes ``.gz``, ``.xz`` and ``.zst`` compress it.
    X : array-like or sparse matrix of shape (n_samples, n_features)
        Finite numbers. They are rounded to float32 and then read back exactly.
        Zeros are not written.
    y : array-like of shape (n_samples,), indicator of shape (n_samples, n_labels), \
or list of label lists
        One integer per row, a sparse or dense 0/1 indicator, or each row's
        integers, interpreted as by ``fit``.
    n_labels : int, default=None
        The header's ``K``; None is the indicator's width, or one more than the
        highest label.

    Raises
    ------
    ValueError, TypeError
        If `X` and `y` are not as described or differ in length, or a value is
        not finite as a float32.
    OSError
        If the file cannot be written.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from xmtree.datasets import save_xmc
    >>> path = pathlib.Path(tempfile.mkdtemp(), "tiny.txt")
    >>> save_xmc(path, [[0, 0.5], [3, 0]], [[0, 2], []])
    >>> print(path.read_text())
    2 2 3
    0,2 1:0.5
     0:3
    <BLANKLINE>
    """
    if os.fspath(path) == _STDIN:
        raise ValueError('path must be a file, got "-"; save_xmc does not write to stdout')
    check_structure(X, "X")
    # The core checks that all values are finite, and names row and column.
    rows = check_array(
        X if hasattr(X, "dtype") or hasattr(X, "columns") else np.asarray(X),
        accept_sparse="csr",
        dtype=[np.float64, np.float32],
        order="C",
        ensure_all_finite=False,
        ensure_min_samples=0,
    )
    if not getattr(rows, "has_canonical_format", True):
        rows = rows.copy()
        rows.sum_duplicates()
    sets = _indicator(y)
    width = sets.shape[1] if n_labels is None else whole("n_labels", n_labels, 0, _MAX_INDEX)
    if sets.indices.size and sets.indices.max() >= width:
        raise ValueError(
            f"n_labels must exceed the largest label of y, {sets.indices.max()}, got {width}"
        )
    _core.save_xmc(path, rows, sets, width)


def _refuse_stdin(path: str | os.PathLike[str], names: str) -> None:
    if os.fspath(path) == _STDIN:
        raise ValueError(f"stdin can be read only once; give {names}")


def _svmlight_options(
    zero_based: bool | str, n_features: int | None, multilabel: bool | str
) -> tuple[bool | None, int | None, bool | None]:
    if n_features is not None:
        n_features = whole("n_features", n_features, 1, _MAX_INDEX)
    return flag("zero_based", zero_based), n_features, flag("multilabel", multilabel)


def _xmc(arrays: tuple[Any, ...]) -> tuple[sp.csr_matrix, Any]:
    starts, columns, values, label_starts, labels, n_features, n_labels, multilabel = arrays
    n_rows = len(starts) - 1
    X = csr((values, columns, starts), (n_rows, n_features))
    if not multilabel:
        return X, labels.astype(np.int64)
    ones = np.ones(len(labels), dtype=np.int64)
    return X, csr((ones, labels, label_starts), (n_rows, n_labels))


def _svmlight(arrays: tuple[Any, ...]) -> tuple[sp.csr_matrix, Any]:
    starts, columns, values, label_starts, labels, n_features, _, multilabel = arrays
    X = csr((values, columns, starts), (len(starts) - 1, n_features))
    if not multilabel:
        return X, labels
    flat, ends = labels.astype(np.int64).tolist(), label_starts.tolist()
    return X, [flat[start:end] for start, end in pairwise(ends)]


def _indicator(y: Any) -> Any:
    """Return y of any form as a CSR indicator; repeated labels of a row count once."""
    if not sp.issparse(y) and getattr(y, "shape", ())[1:] == (1,):
        y = np.ravel(y)
    found = read(y, "y")
    if isinstance(found, Indicator):
        return found.sets
    labels = found.labels
    if len(labels) == 0:
        return sp.csr_array((len(found.lengths), 0), dtype=np.uint8)
    if labels.dtype.kind not in "biuf":
        raise TypeError(f"y: labels must be integers, got {labels.dtype}")
    bad = ~((labels >= 0) & (labels < _MAX_INDEX) & (labels == np.floor(labels)))
    if bad.any():
        first = int(np.argmax(bad))
        raise ValueError(
            f"y, row {found.row_of(first)}: labels must be integers of at least 0, "
            f"got {labels[first].item()}"
        )
    sets = row_sets(labels, found.lengths, int(labels.max()) + 1)
    sets.sum_duplicates()
    return sets
