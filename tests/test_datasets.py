"""Reading and writing data sets."""

import bz2
import gzip
import json
import lzma
import os
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest
import sklearn
from cli_files import LABELS, SETS, TEXTS, standard_input, write_csv, write_parquet
from estimators import same_matrix
from scipy import sparse
from sklearn.datasets import dump_svmlight_file, load_svmlight_file
from sklearn.feature_extraction import FeatureHasher
from xmtree import TextClassifier
from xmtree.datasets import (
    iter_svmlight,
    iter_table,
    iter_xmc,
    load_demo,
    load_svmlight,
    load_xmc,
    make_xmc,
    save_xmc,
)


def problem(n=300, d=50, k=7, seed=0):
    random = np.random.default_rng(seed)
    X = sparse.random(n, d, 0.1, "csr", dtype=np.float32, random_state=seed)
    X.data *= random.choice([1e-20, -1e-3, 1, 1e6, 1e30], X.nnz).astype(np.float32)
    X.data[::5] = np.round(X.data[::5])
    X.eliminate_zeros()
    Y = sparse.csr_matrix(random.random((n, k)) < 0.2, dtype=np.int64)
    return X, Y


# Reading svmlight: scikit-learn is the reference.


@pytest.mark.parametrize("zero_based", [True, False])
@pytest.mark.parametrize("given", ["auto", True, False])
@pytest.mark.parametrize("n_features", [None, 60])
@pytest.mark.parametrize("comment", [None, "made for a test"])
@pytest.mark.parametrize("query", [False, True])
def test_svmlight_is_read_as_sklearn_reads_it(
    tmp_path, zero_based, given, n_features, comment, query
):
    X, _ = problem()
    y = np.random.default_rng(1).choice([-1.0, 1.0, 2.5, 1e-7], X.shape[0])
    path = tmp_path / "data.svm"
    query_id = np.arange(X.shape[0]) // 10 if query else None
    dump_svmlight_file(X, y, str(path), zero_based=zero_based, comment=comment, query_id=query_id)
    options = {"n_features": n_features, "zero_based": given}
    if zero_based and given is False:
        # Index 0 in a file said to begin at 1.
        with pytest.raises(ValueError, match=r"data\.svm:\d+: feature index 0 is outside 1 to "):
            load_svmlight(path, **options)
        return
    got_X, got_y = load_svmlight(path, **options)
    expected_X, expected_y = load_svmlight_file(str(path), dtype=np.float32, **options)
    same_matrix(got_X, expected_X)
    assert got_y.dtype == expected_y.dtype
    np.testing.assert_array_equal(got_y, expected_y)


@pytest.mark.parametrize(
    "text",
    [
        "1 1:2\n",
        "1 1:2",
        "# head\n\n1 1:2 # tail\n  \n2 3:4#tail\n",
        "+1 1:+2 2:-3 3:.5 4:5. 5:1e-3 6:1E+3\n",
        "1\t1:1\t2:0  3:2\r\n2\r\n",
        "1e3 2147483647:1\n-0.25 1:123456789.123456789123456789\n",
        "1 1:0.1 2:0.30000001192092896 3:16777217 4:1e-45 5:3.4028235e38\n",
    ],
)
def test_svmlight_spellings_are_read_as_sklearn_reads_them(tmp_path, text):
    path = tmp_path / "data.svm"
    path.write_text(text)
    X, y = load_svmlight(path)
    expected_X, expected_y = load_svmlight_file(str(path), dtype=np.float32)
    same_matrix(X, expected_X)
    np.testing.assert_array_equal(y, expected_y)


def test_unsorted_indices_are_sorted(tmp_path):
    (tmp_path / "a.svm").write_text("1 3:3 1:1 2:2\n")
    (tmp_path / "a.txt").write_text("1 4 3\n2,0 3:3 1:1 2:2\n")
    X, _ = load_svmlight(tmp_path / "a.svm")
    assert (X.indices.tolist(), X.data.tolist()) == ([0, 1, 2], [1, 2, 3])
    X, y = load_xmc(tmp_path / "a.txt")
    assert (X.indices.tolist(), X.data.tolist()) == ([1, 2, 3], [1, 2, 3])
    assert y.indices.tolist() == [0, 2]


def test_svmlight_label_lists(tmp_path):
    path = tmp_path / "data.svm"
    path.write_text("3,1 1:2\n2:1\n7 1:1\n 2:5\n")
    X, y = load_svmlight(path)
    expected_X, expected_y = load_svmlight_file(str(path), dtype=np.float32, multilabel=True)
    same_matrix(X, expected_X)
    assert [tuple(row) for row in y] == expected_y
    assert y == [[1, 3], [], [7], []]
    assert all(type(label) is int for row in y for label in row)


@pytest.mark.parametrize(
    ("multilabel", "expected"), [("auto", "array"), (False, "array"), (True, "lists")]
)
def test_multilabel_sets_the_form_of_y(tmp_path, multilabel, expected):
    (tmp_path / "a.svm").write_text("2 1:1\n0 2:1\n")
    (tmp_path / "a.txt").write_text("2 2 3\n2 0:1\n0 1:1\n")
    y = load_svmlight(tmp_path / "a.svm", multilabel=multilabel)[1]
    z = load_xmc(tmp_path / "a.txt", multilabel=multilabel)[1]
    if expected == "array":
        assert y.dtype == np.float64
        assert z.dtype == np.int64
        assert y.tolist() == z.tolist() == [2, 0]
    else:
        assert y == [[2], [0]]
        assert z.toarray().tolist() == [[0, 0, 1], [1, 0, 0]]


# Round trips.


@pytest.mark.parametrize("suffix", ["", ".gz", ".xz", ".zst"])
def test_xmc_round_trip_is_exact(tmp_path, suffix):
    X, Y = problem()
    path = tmp_path / f"data.txt{suffix}"
    save_xmc(path, X, Y)
    got_X, got_Y = load_xmc(path)
    same_matrix(got_X, X)
    same_matrix(got_Y, Y)
    magic = {"": b"300 ", ".gz": b"\x1f\x8b", ".xz": b"\xfd7zXZ\0", ".zst": b"\x28\xb5\x2f\xfd"}
    assert path.read_bytes().startswith(magic[suffix])
    # Compression is recognized by content, not by name.
    renamed = path.rename(tmp_path / "renamed.dat")
    same_matrix(load_xmc(renamed)[0], X)
    assert os.listdir(tmp_path) == ["renamed.dat"]


def test_every_float32_survives(tmp_path):
    bits = np.random.default_rng(0).integers(0, 2**32, 20_000, dtype=np.uint32)
    values = bits.view(np.float32)
    values = values[np.isfinite(values) & (values != 0)].reshape(1, -1)
    save_xmc(tmp_path / "data.txt", values, [0])
    X, _ = load_xmc(tmp_path / "data.txt")
    np.testing.assert_array_equal(X.toarray().view(np.uint32), values.view(np.uint32))


@pytest.mark.parametrize(
    ("y", "options", "labels", "width"),
    [
        ([2, 0, 1], {}, [[2], [0], [1]], 3),
        (np.array([2.0, 0.0, 1.0]), {"n_labels": 9}, [[2], [0], [1]], 9),
        (np.array([[2], [0], [1]]), {}, [[2], [0], [1]], 3),
        ([[2, 0], [], (1,)], {}, [[0, 2], [], [1]], 3),
        ([[], [], []], {"n_labels": 2}, [[], [], []], 2),
        (np.array([[0, 1], [0, 0], [1, 1]]), {}, [[1], [], [0, 1]], 2),
        (np.array([[True, False], [False, False], [True, True]]), {}, [[0], [], [0, 1]], 2),
        (sparse.csc_array([[0, 1.0], [0, 0], [1, 1]]), {}, [[1], [], [0, 1]], 2),
    ],
)
def test_every_form_of_y_is_written(tmp_path, y, options, labels, width):
    path = tmp_path / "data.txt"
    save_xmc(path, np.eye(3, dtype=np.float32), y, **options)
    _, Y = load_xmc(path, multilabel=True)
    assert Y.shape == (3, width)
    assert [row.indices.tolist() for row in Y] == labels


@pytest.mark.parametrize(
    "make", [sparse.csr_array, sparse.csc_matrix, sparse.coo_array, np.asarray]
)
def test_every_form_of_x_is_written(tmp_path, make):
    X = np.array([[0, 2.5, 0], [1, 0, -3]])
    save_xmc(tmp_path / "data.txt", make(X), [0, 1])
    assert load_xmc(tmp_path / "data.txt")[0].toarray().tolist() == X.tolist()


def test_unsorted_x_is_written_sorted_and_left_alone(tmp_path):
    X = sparse.csr_matrix((np.array([1.0, 2.0]), np.array([2, 0]), np.array([0, 2])), shape=(1, 3))
    save_xmc(tmp_path / "data.txt", X, [0])
    assert (tmp_path / "data.txt").read_text() == "1 3 1\n0 0:2 2:1\n"
    assert X.indices.tolist() == [2, 0]


def test_the_sparse_class_follows_sklearn(tmp_path):
    save_xmc(tmp_path / "data.txt", np.eye(2), [[0], [0, 1]])
    assert all(isinstance(part, sparse.csr_matrix) for part in load_xmc(tmp_path / "data.txt"))
    if "sparse_interface" in sklearn.get_config():
        with sklearn.config_context(sparse_interface="sparray"):
            parts = load_xmc(tmp_path / "data.txt")
        assert all(isinstance(part, sparse.csr_array) for part in parts)


# Streams.


@pytest.mark.parametrize("batch_size", [1, 7, 100, 300, 1000])
@pytest.mark.parametrize("single", [False, True])
def test_xmc_batches_are_slices(tmp_path, batch_size, single):
    X, Y = problem()
    path = tmp_path / "data.txt.gz"
    save_xmc(path, X, np.arange(300) % 5 if single else Y)
    X, y = load_xmc(path)
    at = 0
    for batch_X, batch_y in iter_xmc(path, batch_size):
        rows = slice(at, at + batch_size)
        same_matrix(batch_X, X[rows])
        if single:
            np.testing.assert_array_equal(batch_y, y[rows])
        else:
            same_matrix(batch_y, y[rows])
        at += batch_X.shape[0]
    assert at == 300


@pytest.mark.parametrize("batch_size", [1, 7, 300, 1000])
@pytest.mark.parametrize("zero_based", [True, False])
@pytest.mark.parametrize("single", [False, True])
def test_svmlight_batches_are_slices(tmp_path, batch_size, zero_based, single):
    X, Y = problem()
    path = tmp_path / "data.svm"
    y = np.arange(300) % 5 if single else Y
    dump_svmlight_file(X, y, str(path), zero_based=zero_based, multilabel=not single)
    X, y = load_svmlight(path)
    at = 0
    for batch_X, batch_y in iter_svmlight(path, batch_size):
        same_matrix(batch_X, X[at : at + batch_size])
        assert list(batch_y) == list(y[at : at + batch_size])
        at += batch_X.shape[0]
    assert at == 300


def test_a_stream_reports_a_bad_line_after_the_batches_before_it(tmp_path):
    path = tmp_path / "data.txt"
    path.write_text("5 2 2\n0,1 0:1\n0 0:1\n0 0:1\n0 0:x\n1 1:1\n")
    batches = iter_xmc(path, 2)
    assert next(batches)[0].shape == (2, 2)
    with pytest.raises(ValueError, match=r"data\.txt:5: 'x' is not a number"):
        next(batches)
    assert list(batches) == []


def test_streams_and_files_of_no_rows(tmp_path):
    (tmp_path / "data.txt").write_text("0 5 3\n")
    assert list(iter_xmc(tmp_path / "data.txt", 10)) == []
    assert load_xmc(tmp_path / "data.txt")[0].shape == (0, 5)


def test_an_abandoned_stream_ends_its_threads(tmp_path):
    path = tmp_path / "data.txt"
    save_xmc(path, *problem(5000, 50, 7))
    before = threads()
    for _ in range(5):
        next(iter_xmc(path, 1))
    deadline = time.monotonic() + 600
    while threads() > before and time.monotonic() < deadline:
        time.sleep(0.01)
    assert threads() <= before


def threads():
    if not os.path.isdir("/proc/self/task"):
        pytest.skip("counts threads through /proc")
    return len(os.listdir("/proc/self/task"))


@pytest.mark.parametrize(
    "content", [b"2 3 4\n0 0:1\n1 2:4\n", gzip.compress(b"2 3 4\n0 0:1\n1 2:4\n", mtime=0)]
)
def test_standard_input_is_loaded(content):
    with standard_input(content):
        assert load_xmc("-")[0].sum() == 5


def test_standard_input_is_streamed():
    with standard_input(b"3 3 4\n0 0:1\n1 2:4\n3 1:1\n"):
        batches = iter_xmc("-", 2, multilabel=False)
        assert [y.tolist() for _, y in batches] == [[0, 1], [3]]
    options = {"n_features": 5, "zero_based": False, "multilabel": False}
    with standard_input(b"1 1:1\n2 5:1\n1.5 1:1\n"):
        batches = iter_svmlight("-", 2, **options)
        assert [y.tolist() for _, y in batches] == [[1.0, 2.0], [1.5]]


CHILD = """
from xmtree.datasets import load_xmc
try:
    print("ready", flush=True)
    load_xmc("-")
except KeyboardInterrupt:
    print("stopped", flush=True)
"""


@pytest.mark.skipif(os.name != "posix", reason="sends a signal")
def test_ctrl_c_stops_a_load_that_waits_for_a_pipe():
    arguments = [sys.executable, "-c", CHILD]
    with subprocess.Popen(
        arguments,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        # Background jobs of a shell ignore SIGINT, as would their children.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    ) as child:
        assert child.stdout.readline() == b"ready\n"
        child.stdin.write(b"2 3 4\n")
        child.stdin.flush()
        time.sleep(0.2)
        child.send_signal(signal.SIGINT)
        # The pipe stays open, so that only the signal can end the load.
        assert child.stdout.readline() == b"stopped\n"
        assert child.wait(timeout=600) == 0


def test_loading_lets_other_threads_run(tmp_path):
    path = tmp_path / "data.txt"
    save_xmc(path, *problem(2000, 50, 7))
    results = []
    workers = [threading.Thread(target=lambda: results.append(load_xmc(path))) for _ in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    for X, _ in results:
        same_matrix(X, results[0][0])


# Errors.


@pytest.mark.parametrize(
    ("text", "line", "what"),
    [
        (b"", 1, "the file is empty"),
        (b"\n", 1, "the header must be three counts"),
        (b"1 2\n0 0:1\n", 1, "the header must be three counts"),
        (b"-1 2 3\n0 0:1\n", 1, "the header must be three counts"),
        (b"1 2 99999999999\n0 0:1\n", 1, "99999999999 labels; at most 2147483647"),
        (b"3 2 2\n0 0:1\n1 1:1\n", 3, "ends after 2 of the 3 rows"),
        (b"1 2 2\n0 0:1\n1 1:1\n", 3, "one row more than the 1"),
        (b"1 2 2\n2 0:1\n", 2, "label 2 is outside 0 to 1"),
        (b"1 2 2\n0 2:1\n", 2, "feature index 2 is outside 0 to 1"),
        (b"1 2 2\n0 -1:1\n", 2, "'-1:1' is not of the form index:value"),
        (b"1 2 2\n0 1:1:1\n", 2, "'1:1:1' is not of the form index:value"),
        (b"1 2 2\n0 1:one\n", 2, "'one' is not a number"),
        (b"1 2 2\n0 1:nan\n", 2, "'nan': all values must be finite"),
        (b"1 2 2\n0 1:-inf\n", 2, "'-inf': all values must be finite"),
        (b"1 2 2\n0 1:1e40\n", 2, "'1e40' is too large for float32"),
        (b"1 2 2\n0 1:1 1:2\n", 2, "feature index 1 occurs twice"),
        (b"1 2 2\n1,1 1:1\n", 2, "label 1 occurs twice"),
        (b"1 2 2\n1:1\n", 2, "a row without labels begins with a space"),
        (b"1 2 2\n0 0:1 \xff\xfe\x00\n", 2, r"'\xff\xfe\x00' is not of the form"),
        (b"\x89PNG\r\n\x1a\n", 1, "the header must be three counts"),
        (bz2.compress(b"1 2 2\n0 0:1\n"), 1, "the header must be three counts"),
    ],
)
def test_bad_xmc_lines_are_named(tmp_path, text, line, what):
    path = tmp_path / "bad.txt"
    path.write_bytes(text)
    for read in (load_xmc, lambda path: list(iter_xmc(path, 10))):
        with pytest.raises(ValueError, match="bad") as error:
            read(path)
        assert str(error.value).startswith(f"{path}:{line}: ")
        assert what in str(error.value)


@pytest.mark.parametrize(
    ("text", "options", "line", "what"),
    [
        (b"", {}, 1, "the file has no examples"),
        (b"# nothing\n", {}, 1, "the file has no examples"),
        (b"1 1:1\none 1:1\n", {}, 2, "'one' is not a number"),
        (b"1 1:1\n1:1\n", {"multilabel": False}, 2, "no label, but multilabel=False"),
        (b"1 1:1\n1,2 1:1\n", {"multilabel": False}, 2, "2 labels, but multilabel=False"),
        (b"1 1:1\n1.5 1:1\n", {"multilabel": True}, 2, "must be a whole number"),
        (b"1 1:1\n1.5 1:1\n1,2\n", {}, 2, "must be a whole number"),
        (b"1 1:1\n1 2:1 2:1\n", {}, 2, "feature index 2 occurs twice"),
        (b"1 1:1\n1 2:nan\n", {}, 2, "'nan': all values must be finite"),
        (b"1 1:1\n1 5:1\n1 4:1\n", {"n_features": 3}, 2, "feature index 5 is outside"),
        (
            b"1 1:1\n1 0:1\n",
            {"zero_based": False},
            2,
            "index 0 is outside 1 to 2147483647; if",
        ),
        (b"1 1:1\n1 3000000000:1\n", {}, 2, "feature index 3000000000 is outside"),
        (b"PK\x03\x04\n", {}, 1, r"'PK\x03\x04' is not a number"),
    ],
)
def test_bad_svmlight_lines_are_named(tmp_path, text, options, line, what):
    path = tmp_path / "bad.svm"
    path.write_bytes(text)
    for read in (load_svmlight, lambda path, **options: list(iter_svmlight(path, 10, **options))):
        with pytest.raises(ValueError, match="bad") as error:
            read(path, **options)
        assert str(error.value).startswith(f"{path}:{line}: ")
        assert what in str(error.value)


@pytest.mark.parametrize("suffix", [".gz", ".xz", ".zst"])
def test_truncated_files_are_refused(tmp_path, suffix):
    path = tmp_path / f"data.txt{suffix}"
    save_xmc(path, *problem())
    whole = path.read_bytes()
    for keep in (10, len(whole) // 2, len(whole) - 1):
        path.write_bytes(whole[:keep])
        with pytest.raises(ValueError, match=r"data\.txt\.\w+:\d+: the \w+ data is truncated here"):
            load_xmc(path)
    path.write_bytes(whole[: len(whole) // 2] + b"\0" * 100 + whole[len(whole) // 2 + 100 :])
    with pytest.raises(ValueError, match=r"data\.txt\.\w+:\d+: "):
        load_xmc(path)


@pytest.mark.parametrize("read", [load_xmc, load_svmlight, iter_xmc, iter_svmlight])
def test_missing_files_and_directories(tmp_path, read):
    with pytest.raises(FileNotFoundError, match="nowhere"):
        read(tmp_path / "nowhere")
    with pytest.raises(IsADirectoryError):
        read(tmp_path)


@pytest.mark.parametrize(
    ("call", "kind", "what"),
    [
        (lambda p: load_xmc(p, multilabel="maybe"), ValueError, "multilabel must be True, False"),
        (lambda p: load_svmlight(p, zero_based=1), ValueError, "zero_based must be True, False"),
        (lambda p: load_svmlight(p, n_features=0), ValueError, "n_features must be between 1"),
        (lambda p: load_svmlight(p, n_features=2.5), TypeError, "n_features must be an integer"),
        (lambda p: iter_xmc(p, 0), ValueError, "batch_size must be at least 1"),
        (lambda p: iter_svmlight(p, 2.0), TypeError, "batch_size must be an integer"),
        (lambda p: iter_xmc("-", 2), ValueError, "stdin can be read only once"),
        (lambda p: iter_svmlight("-", 2), ValueError, "stdin can be read only once"),
        (lambda p: load_demo("mnist"), ValueError, "name must be one of 'naics2017-index'"),
        (lambda p: make_xmc(0), ValueError, "n_samples must be at least 1"),
        (lambda p: make_xmc(noise=2), ValueError, "noise must be between 0 and 1"),
        (
            lambda p: make_xmc(n_labels=2),
            ValueError,
            "n_labels must be None unless multilabel=True",
        ),
        (lambda p: make_xmc(multilabel="auto"), TypeError, "multilabel must be a bool"),
    ],
)
def test_bad_options_are_named(tmp_path, call, kind, what):
    path = tmp_path / "data.txt"
    path.write_text("1 1 1\n0 0:1\n")
    with pytest.raises(kind, match=what):
        call(path)


@pytest.mark.parametrize(
    ("X", "y", "options", "kind", "what"),
    [
        ([[1.0]], [0, 1], {}, ValueError, "X has 1 rows, y has 2"),
        ([[1.0]], [-1], {}, ValueError, "y, row 0: labels must be integers of at least 0, got -1"),
        (
            [[1.0]],
            [0.5],
            {},
            ValueError,
            "y, row 0: labels must be integers of at least 0, got 0.5",
        ),
        ([[1.0], [2.0]], [[0], [-1]], {}, ValueError, "y, row 1: labels must be integers"),
        ([[1.0]], ["a"], {}, TypeError, "must be integers, got <U1"),
        (
            [[1.0]],
            np.array([[0, 2]]),
            {},
            ValueError,
            "row 0, column 1 of y is 2; an indicator",
        ),
        ([[1.0]], [3], {"n_labels": 3}, ValueError, "exceed the largest label of y, 3, got 3"),
        ([[np.nan]], [0], {}, ValueError, "row 0, column 0: the value is NaN"),
        ([[1e300]], [0], {}, ValueError, "row 0, column 0: .* too large for float32"),
    ],
)
def test_a_refused_save_changes_nothing(tmp_path, X, y, options, kind, what):
    path = tmp_path / "data.txt"
    path.write_text("before")
    with pytest.raises(kind, match=what):
        save_xmc(path, X, y, **options)
    assert path.read_text() == "before"
    assert os.listdir(tmp_path) == ["data.txt"]


def test_a_failed_save_is_an_oserror(tmp_path):
    with pytest.raises(FileNotFoundError):
        save_xmc(tmp_path / "none" / "data.txt", [[1.0]], [0])
    with pytest.raises(IsADirectoryError):
        save_xmc(tmp_path, [[1.0]], [0])
    with pytest.raises(ValueError, match='path must be a file, got "-"'):
        save_xmc("-", [[1.0]], [0])


def test_xz_from_another_tool_is_read(tmp_path):
    path = tmp_path / "data"
    path.write_bytes(lzma.compress(b"1 2 2\n0 0:1\n") + lzma.compress(b"\n\n"))
    assert load_xmc(path)[0].toarray().tolist() == [[1, 0]]


# Tables.

TABLE = {"b": [1.5, None, 3.0, 4e9], "a": [1, 2, 3, 4], "label": ["7", "8", "7", "9"]}
ROWS = [
    {"shop": "north", "paid": 12.5, "new": True, "label": 3},
    {"paid": 2, "label": 1, "note": None, "shop": ""},
    {"label": 3, "shop": "12", "other": float("nan")},
]


def write_json_lines(path, rows):
    path.write_text("".join(json.dumps(row) + "\n\n" for row in rows))
    return path


def write_table(path):
    if path.suffix == ".parquet":
        write_parquet(path, TABLE)
    elif path.suffix == ".jsonl":
        write_json_lines(
            path, [dict(zip(TABLE, row, strict=True)) for row in zip(*TABLE.values(), strict=True)]
        )
    else:
        columns = {name: ["" if v is None else v for v in c] for name, c in TABLE.items()}
        write_csv(path, columns)
    return path


@pytest.mark.parametrize("batch_size", [1, 3, 100])
@pytest.mark.parametrize("name", ["t.csv", "t.csv.gz", "t.jsonl", "t.jsonl.gz", "t.parquet"])
def test_tables_of_numbers_are_read_in_batches(name, batch_size, tmp_path):
    path = write_table(tmp_path / name.removesuffix(".gz"))
    if name.endswith(".gz"):
        path = path.rename(tmp_path / name)
        path.write_bytes(gzip.compress(path.read_bytes()))
    found = list(iter_table(path, batch_size))
    assert [len(y) for _, y in found] == {1: [1] * 4, 3: [3, 1], 100: [4]}[batch_size]
    assert all(X.dtype == np.float32 and X.flags.c_contiguous for X, _ in found)
    expected = np.array([TABLE["b"], TABLE["a"]], np.float32).T
    np.testing.assert_array_equal(np.vstack([X for X, _ in found]), expected)
    assert np.concatenate([y for _, y in found]).tolist() == TABLE["label"]
    ordered = [X for X, _ in iter_table(path, batch_size, columns=["a", "b"])]
    np.testing.assert_array_equal(np.vstack(ordered), expected[:, ::-1])
    if "csv" in name:
        labels = np.concatenate([y for _, y in iter_table(path, integer_labels=True)])
        assert labels.tolist() == [7, 8, 7, 9]


@pytest.mark.parametrize("batch_size", [1, 100])
def test_rows_with_any_keys_are_hashed(batch_size, tmp_path):
    path = write_json_lines(tmp_path / "t.jsonl", ROWS)
    rows = [{"shop": "north", "paid": 12.5, "new": 1}, {"paid": 2}, {"shop": "12"}]
    expected = FeatureHasher(2**10, dtype=np.float32).transform(rows)
    found = list(iter_table(path, batch_size, n_bits=10))
    same_matrix(sparse.vstack([X for X, _ in found], "csr"), expected)
    assert np.concatenate([y for _, y in found]).tolist() == [3, 1, 3]
    ((X, _),) = iter_table(path, n_bits=10, columns=["paid"])
    same_matrix(
        X, FeatureHasher(2**10, dtype=np.float32).transform([{"paid": 12.5}, {"paid": 2}, {}])
    )
    # A cell of CSV that is a number is one.
    path = tmp_path / "t.csv"
    path.write_text("text;paid;0\nnorth;12.5;x\n12;;y\n")
    ((X, y),) = iter_table(path, n_bits=10, delimiter=";", label_column="0")
    rows = [{"text": "north", "paid": 12.5}, {"text": 12}]
    same_matrix(X, FeatureHasher(2**10, dtype=np.float32).transform(rows))
    assert y.tolist() == ["x", "y"]


def test_columns_of_hashed_rows_are_checked(tmp_path):
    late = write_json_lines(tmp_path / "t", [{"a": 1}, {"a": 2, "label": "x"}])
    batches = iter_table(late, 1, n_bits=4)
    next(batches)
    with pytest.raises(ValueError, match=r":3: the key 'label' .* it by label_column"):
        next(batches)
    (tmp_path / "t.csv").write_text("a,b\n1,2\n")
    with pytest.raises(ValueError, match="no feature 'c'; it has 'a', 'b'"):
        next(iter_table(tmp_path / "t.csv", n_bits=4, columns=["c"]))


def test_tables_of_texts_and_of_label_sets(tmp_path):
    path = write_json_lines(
        tmp_path / "t", [{"text": t, "labels": s} for t, s in zip(TEXTS, SETS, strict=True)]
    )
    model = TextClassifier(n_bits=12, random_state=0)
    for texts, y in iter_table(path, 32, multilabel=True):
        model.partial_fit(texts, y, classes="grow")
    assert model.learner_.n_examples_seen_ == len(TEXTS)
    assert set(model.classes_) == {label for row in SETS for label in row}
    write_csv(tmp_path / "t.csv", {"body": TEXTS, "label": LABELS})
    ((texts, y),) = iter_table(tmp_path / "t.csv", text_column="body")
    assert (texts, y.tolist()) == (TEXTS, LABELS)
    ((X, y),) = iter_table(write_json_lines(path, [{"a": 1}, {"a": 2}]))
    assert (X.tolist(), y) == ([[1], [2]], None)
    (tmp_path / "t.csv").write_text('1,"a, b"\n2,\n')
    ((X, y),) = iter_table(tmp_path / "t.csv", no_header=True, label_column="1", multilabel=True)
    assert (X.tolist(), y) == ([[1], [2]], [["a", "b"], []])


def test_a_bad_row_of_a_table_is_named_after_the_batches_before_it(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("a,label\n" + "1,x\n" * 5 + "wrong,x\n")
    batches = iter_table(path, 2)
    assert len(next(batches)[1]) == len(next(batches)[1]) == 2
    with pytest.raises(
        ValueError,
        match=r"t.csv:7: column 'a' holds 'wrong'.* leave it out: columns without a",
    ):
        next(batches)


@pytest.mark.parametrize(
    ("text", "arguments", "what"),
    [
        ("a,label\n1,2\n", {"n_bits": 31}, "n_bits must be between 1 and 30"),
        ("a,label\n1,2\n", {"batch_size": 0}, "batch_size must be at least 1"),
        ("a,label\n1,2\n", {"columns": ["b"]}, "no feature 'b'; it has 'a'"),
        ("a,label\n1,2\n", {"columns": ["label"]}, "no feature 'label'"),
        ("a,label\n1,2\n", {"label_column": "b"}, "^label_column: .* has no column 'b'"),
        ("a,label\n1,2\n", {"delimiter": ";;"}, "^delimiter must be one character"),
        ("a,label\n1,2\n", {"text_column": "a", "n_bits": 9}, "text_column cannot be given"),
        ("a,label\n1,2\n", {"format": "jsonl"}, ":1: not JSON"),
        ("1 1:2\n", {}, "is read as svmlight, which is no table"),
        ("a,label\n1,2\n1,x\n", {"integer_labels": True}, "label 'x' is not an integer"),
        ("a,label\n1,\n", {}, ":2: 0 labels, expected exactly one per row .* multilabel=True"),
        ('{"a": 1}\n{"a": [1]}\n', {"n_bits": 9}, r":2: 'a' holds \[1\], expected a finite"),
        ('{"a": 1}\n{"a": Infinity}\n', {"n_bits": 9}, ":2: 'a' holds inf, expected a finite"),
        ("", {}, "holds no examples"),
        ("a,label\n1,2\n", {"format": "xml"}, "format must be auto, .* got 'xml'"),
        ("a,label\n1,2\n", {"columns": []}, "columns must name at least one column"),
    ],
)
def test_bad_tables_are_refused(text, arguments, what, tmp_path):
    (tmp_path / "t").write_text(text)
    with pytest.raises(ValueError, match=what):
        list(iter_table(tmp_path / "t", **arguments))
