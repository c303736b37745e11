"""Input with false sizes, malicious files and failing machines cause errors, not crashes."""

import errno
import gzip
import json
import os
import signal
import subprocess
import sys
import time

import estimators
import numpy as np
import pytest
import xmtree
from cli_files import piped
from model_bytes import pack, rewritten, unpack
from sklearn.datasets import load_iris
from xmtree import _core
from xmtree._printable import printable
from xmtree.cli import main
from xmtree.datasets import load_xmc

X, Y = estimators.sparse()


def in_process(code, *arguments, **environment):
    """Run ``code`` in a Python process."""
    command = [sys.executable, "-c", code, *map(str, arguments)]
    environment = {**os.environ, "RUST_BACKTRACE": "0", **environment}
    return subprocess.run(command, capture_output=True, text=True, env=environment, timeout=600)


# Files with false metadata.


@pytest.mark.parametrize(
    "changes",
    [
        {"classes_dtype": "<U200000000"},
        {"classes_dtype": "V8"},
        {"classes_dtype": "i4,f8"},
        {"y_form": "heaps"},
        {"n_features_in": 10**9},
        {"n_features_in": 1e308},
        {"index_base": 7},
    ],
    ids=str,
)
def test_metadata_is_checked(changes, tmp_path):
    labels = np.array(["a", "b"])[Y % 2]
    xmtree.LOMTreeClassifier(random_state=0).fit(X, labels).save(tmp_path / "model")
    rewritten(tmp_path / "model", **changes)
    with pytest.raises(xmtree.ModelFileError, match="damaged"):
        xmtree.load(tmp_path / "model")


@pytest.mark.parametrize("name", ["decay", "loss"])
def test_parameters_of_the_start_must_be_complete(name, tmp_path):
    path = tmp_path / "model"
    xmtree.LOMTreeClassifier(random_state=0).fit(X, Y).save(path)
    more = json.loads(_core.EstimatorFile(path, False).meta)["more"]
    del more["started_with"][name]
    rewritten(path, more=more)
    with pytest.raises(xmtree.ModelFileError, match=name):
        xmtree.load(path)


def test_older_files_lack_the_form_of_the_recall_bound(tmp_path):
    path = tmp_path / "model"
    model = xmtree.RecallTreeClassifier(random_state=0).fit(X, Y)
    model.save(path)
    meta = json.loads(_core.EstimatorFile(path, False).meta)
    del meta["params"]["recall_bound"], meta["more"]["started_with"]["recall_bound"]
    rewritten(path, params=meta["params"], more=meta["more"])
    again = xmtree.load(path)
    assert again.recall_bound == "vw"
    estimators.same_predictions(again.partial_fit(X, Y), model.partial_fit(X, Y), X)


@pytest.mark.parametrize(
    "calibration", [{"slope": -1.0}, {"n_examples": -1}, {"threshold": 7}, {"heap": 1}]
)
def test_calibration_is_checked(calibration, tmp_path):
    path = tmp_path / "model"
    xmtree.OAAClassifier(random_state=0).fit(X, Y).save(path)
    more = json.loads(_core.EstimatorFile(path, False).meta)["more"]
    rewritten(path, more={**more, "calibration": {**more["calibration"], **calibration}})
    with pytest.raises(xmtree.ModelFileError, match="damaged"):
        xmtree.load(path)


def test_equal_labels_are_refused(tmp_path):
    path = tmp_path / "model"
    xmtree.OAAClassifier(random_state=0).fit(X, Y).save(path)
    file = _core.EstimatorFile(path, False)
    arrays = file.arrays()
    arrays["classes"][1] = arrays["classes"][0]
    _core.save_estimator(path, file.meta, arrays, file.take_model("oaa"), False)
    with pytest.raises(xmtree.ModelFileError, match="equal"):
        xmtree.load(path)


def gamble_file(change):
    """Write a boosted model with the core changed by ``change(head, arrays)``."""
    rows = np.random.default_rng(0).normal(size=(200, 4)).round(1)
    rows[:, 0] = np.arange(200) % 3
    model = xmtree.GambleClassifier(n_estimators=3, categorical_features=[0], random_state=0)
    model.fit(rows, (rows[:, 0] + (rows[:, 1] > 0)).astype(int))
    head, arrays = unpack(model._model.to_bytes())
    change(head, arrays)
    return model, _core.Classifier.from_bytes(pack(head, arrays), "gamble")


def test_a_leaf_with_a_set_of_categories_is_refused():
    def change(head, arrays):
        leaf = int(np.flatnonzero(arrays["trees.nodes.left"] == 0)[0])
        arrays["trees.nodes.set"][leaf] = 1_000_000

    with pytest.raises(xmtree.ModelFileError):
        gamble_file(change)


def test_a_huge_number_of_features_takes_no_memory(tmp_path):
    def change(head, arrays):
        head["meta"]["n_features"] = 10**9

    model, lying = gamble_file(change)
    assert len(lying.importances()["gain"]) <= 4
    model._model = lying.with_labels(model._labels)
    model.save(tmp_path / "model")
    with pytest.raises(xmtree.ModelFileError, match="features"):
        xmtree.load(tmp_path / "model")


def test_n_jobs_is_not_stored(tmp_path):
    model = xmtree.LdSMClassifier(n_estimators=2, max_nodes=20, n_jobs=10**9, random_state=0)
    model.fit(X, Y)
    model.save(tmp_path / "model")
    again = xmtree.load(tmp_path / "model")
    assert again.n_jobs is None
    estimators.same_predictions(again, model, X)
    # Older files contain n_jobs.
    for n_jobs in (2**31, 1e308, "many"):
        meta = json.loads(_core.EstimatorFile(tmp_path / "model", False).meta)
        rewritten(tmp_path / "model", params={**meta["params"], "n_jobs": n_jobs})
        assert xmtree.load(tmp_path / "model").n_jobs is None


# Headers.


@pytest.mark.parametrize("more", [[], ["--passes", 1], ["--passes", 1, "--labels", "sets"]])
def test_labels_that_only_a_header_announces_take_no_memory(more, tmp_path, capsys):
    data = tmp_path / "data.txt"
    data.write_text("3 10 2000000000\n0 0:1\n7 1:1\n1999999999 2:1\n")
    options = ["fit", data, "--learner", "oaa", *more, "-o", tmp_path / "model"]
    assert main([str(option) for option in options]) == 0
    assert xmtree.load(tmp_path / "model").classes_.tolist() == [0, 7, 1999999999]
    capsys.readouterr()


def test_a_huge_header_on_stdin_is_refused(tmp_path):
    options = ["fit", "-", "--format", "xmc", "--learner", "oaa", "-o", tmp_path / "model"]
    done = piped(*options, stdin="2 10 200000000\n0 0:1\n1 1:1\n")
    assert done.returncode == 1
    assert "200000000" in done.stderr


def test_an_impossible_number_of_rows_in_a_header_is_refused(tmp_path):
    path = tmp_path / "rows.gz"
    with gzip.open(path, "wb") as file:
        file.write(b"1000000000000000000 10 10\n" + b"\n" * (1 << 20))
    with pytest.raises(MemoryError, match="iter_xmc"):
        load_xmc(path)


# Failing machines.


THREADLESS = """
import sys, numpy as np, xmtree
from xmtree.datasets import load_svmlight, iter_svmlight
model = xmtree.OAAClassifier(random_state=0)
calls = {
    "save": lambda: model.save(sys.argv[1] + "/model"),
    "load": lambda: xmtree.load(sys.argv[1] + "/sound"),
    "fit": lambda: model.fit(np.zeros((2, 3)), [0, 1]),
    "read": lambda: load_svmlight(sys.argv[1] + "/rows"),
    "stream": lambda: list(iter_svmlight(sys.argv[1] + "/rows", n_features=3, zero_based=True)),
}
for name, call in calls.items():
    try:
        call()
        print(name, "done")
    except Exception as error:
        print(name, type(error).__name__)
"""


def test_a_machine_without_free_threads(tmp_path):
    xmtree.OAAClassifier(random_state=0).fit(X, Y).save(tmp_path / "sound")
    (tmp_path / "rows").write_text("1 0:1\n2 1:1\n")
    # A stack of this size cannot be allocated.
    done = in_process(THREADLESS, tmp_path, RUST_MIN_STACK=str(1 << 46))
    assert done.returncode == 0, done.stderr
    found = dict(line.split() for line in done.stdout.splitlines())
    assert found["load"] == found["read"] == found["stream"] == "RuntimeError"
    assert set(found.values()) <= {"done", "RuntimeError", "NotFittedError"}
    assert "panicked" not in done.stdout


SHORT_OF_MEMORY = """
import resource, sys
import numpy as np, scipy.sparse as sp
from xmtree._active import selection
from xmtree.datasets import load_svmlight

def limit_memory(megabytes):
    pages = int(open("/proc/self/statm").read().split()[0])
    limit = pages * resource.getpagesize() + (megabytes << 20)
    resource.setrlimit(resource.RLIMIT_AS, (limit, resource.RLIM_INFINITY))

limit_memory(2500)
rows = (np.ones(60, np.float32), (np.arange(60), np.arange(60)))
print(selection.checked(sp.csr_matrix(rows, (60, 300_000_000)), False).shape)
limit_memory(300)
try:
    load_svmlight(sys.argv[1])
except MemoryError as error:
    print(error)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="address space is limited on Linux alone")
def test_little_memory(tmp_path):
    path = tmp_path / "rows.gz"
    with gzip.open(path, "wb", compresslevel=1) as file:
        for _ in range(16):
            file.write(b"1\n" * (1 << 20))
    done = in_process(SHORT_OF_MEMORY, path)
    assert done.returncode == 0, done.stderr
    pool, reader = done.stdout.splitlines()
    # Two dense rows of a wide pool and their copies would take 6 GB.
    assert pool == "(60, 300000000)"
    assert "no memory" in reader


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork there")
@pytest.mark.filterwarnings("ignore:This process.*fork:DeprecationWarning")
def test_a_killed_process_leaves_no_files(tmp_path):
    model = xmtree.OAAClassifier(random_state=0).fit(np.eye(300), np.arange(300))
    model.save(tmp_path / "model")
    for wait in (0.0, 0.01, 0.03):
        child = os.fork()
        if not child:
            try:
                while True:
                    model.save(tmp_path / "model")
            finally:
                os._exit(1)
        time.sleep(wait)
        os.kill(child, signal.SIGKILL)
        assert os.waitpid(child, 0)[1] == signal.SIGKILL
    estimators.same_predictions(xmtree.load(tmp_path / "model"), model, np.eye(300))
    left = [name for name in os.listdir(tmp_path) if name != "model"]
    # A process killed between linking and renaming leaves one file.
    assert len(left) <= 3


def test_errors_of_the_system_have_number_and_name(tmp_path):
    model = xmtree.OAAClassifier(random_state=0).fit(X, Y)
    with pytest.raises(FileNotFoundError) as caught:
        model.save(tmp_path / "no" / "such")
    assert caught.value.errno == errno.ENOENT
    assert str(caught.value.filename).endswith("such")
    with pytest.raises(IsADirectoryError) as caught:
        model.save(tmp_path)
    assert caught.value.errno == errno.EISDIR


# Output.


def test_control_characters_are_shown_as_text(tmp_path, capsys):
    assert printable("a\x1b[31mb\u202ec") == "a\\x1b[31mb\\u202ec"
    assert printable("é 漢") == "é 漢"
    labels = np.array(["\x1b]0;title\x07", "plain"])[Y % 2]
    xmtree.LOMTreeClassifier(random_state=0).fit(X, labels).save(tmp_path / "model")
    assert main(["inspect", str(tmp_path / "model"), "--tree", "0"]) == 0
    shown = capsys.readouterr().out
    assert "\x1b" not in shown
    assert "\\x1b]0;title\\x07" in shown


# Rows of extreme numbers.


def extreme_rows():
    sizes = [3.4e38, 1e30, 1e18, 1e-30, 1e-45]
    signs = np.array([[1, 1, 1, 1], [-1, 1, -1, 1], [0, 0, 1, 0], [-1, -1, -1, -1]])
    return np.concatenate([signs * size for size in sizes]).astype("f4")


@pytest.mark.parametrize("scale", [1, 1e-12, 1e30], ids=str)
@pytest.mark.parametrize("name", estimators.ALL)
def test_scores_of_extreme_rows_are_finite(name, scale):
    iris = load_iris(return_X_y=True)
    X, y = (iris[0] * scale).astype("f4"), iris[1]
    model = estimators.ALL[name](scaling="none") if scale == 1e30 else estimators.ALL[name]()
    model.fit(X, y)
    rows = extreme_rows()
    if name in estimators.ONLINE:
        learning = estimators.ALL[name]().partial_fit(X, y, classes=np.unique(y))
        learning.partial_fit(rows, np.arange(len(rows)) % 3)
        assert np.isfinite(learning.predict_topk(X, 3)[1]).any()
        assert_finite(learning, X)
        assert_finite(learning, rows)
    assert_finite(model, rows)


def assert_finite(model, rows):
    labels, scores = model.predict_topk(rows, 3)
    assert not np.isnan(scores).any()
    assert (scores < np.inf).all()
    assert (model.predict(rows) == labels[:, 0]).all()
    probabilities = model.predict_proba(rows)
    assert ((probabilities >= 0) & (probabilities <= 1 + 1e-6)).all()


def test_probabilities_of_label_sets_of_extreme_rows():
    X, Y = load_iris().data, np.eye(3, dtype=int)[load_iris().target]
    for name in estimators.MULTILABEL:
        model = estimators.ALL[name]().fit(X, Y)
        probabilities = model.predict_proba(extreme_rows())
        assert ((probabilities >= 0) & (probabilities <= 1)).all()
