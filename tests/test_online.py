"""Online learning: partial_fit, progressive error, progress and interruption."""

import os
import pickle
import signal
import subprocess
import sys
import threading
import time
import warnings
from pathlib import Path

import estimators
import numpy as np
import pytest
import xmtree
from sklearn.exceptions import NotFittedError
from xmtree import _online

TESTS = Path(__file__).parent
X, Y = estimators.sparse()


@pytest.mark.parametrize("name", estimators.ONLINE)
def test_partial_fit_learns_batch_by_batch(name):
    model = estimators.ALL[name]()
    for start in range(0, 300, 100):
        part = slice(start, start + 100)
        model.partial_fit(X[part], Y[part], classes=np.arange(12) if start == 0 else None)
    assert model.n_examples_seen_ == 300
    assert 0 < model.progressive_loss_ <= 1
    if "-3" not in name:  # each of several trees shuffles the batch
        whole = estimators.ALL[name]().partial_fit(X, Y, classes=np.arange(12))
        estimators.same_predictions(model, whole, X)


@pytest.mark.parametrize("name", ["oaa", "lomtree", "recall-tree", "filter-tree"])
def test_the_progressive_error_covers_the_first_pass(name):
    # Unrelated rows: later passes have memorized their labels.
    rows, labels = np.eye(200), np.random.default_rng(0).integers(0, 5, 200)
    settings = {"scaling": "none", "calibrate": False}
    one, four = (estimators.ALL[name](n_passes=n, **settings).fit(rows, labels) for n in (1, 4))
    assert four.progressive_loss_ > 0.65
    assert four.progressive_loss_ == pytest.approx(one.progressive_loss_, abs=0.1)
    assert four.n_examples_seen_ == 4 * one.n_examples_seen_
    if name == "recall-tree":
        assert four.progressive_recall_ == pytest.approx(one.progressive_recall_, abs=0.1)


def test_a_stream_after_fit_counts_in_the_progressive_error():
    rows, labels = np.eye(200), np.random.default_rng(0).integers(0, 5, 200)
    model = xmtree.OAAClassifier(n_passes=4, scaling="none", random_state=0).fit(rows, labels)
    before = model.progressive_loss_
    # The first pass leaves out 40 rows, which calibrate.
    part = pytest.approx(before * 160 / 360)
    assert model.partial_fit(rows, labels).progressive_loss_ == part


@pytest.mark.parametrize("name", estimators.ONLINE)
def test_the_recent_error_is_that_of_the_last_batches(name):
    model, sizes, counts = estimators.ALL[name](), [120, 150, 30, 40, 110, 150], [(0.0, 0.0)]
    for size, end in zip(sizes, np.cumsum(sizes), strict=True):
        rows = np.arange(end - size, end) % 300
        model.partial_fit(X[rows], Y[rows], range(12), rows % 3 + 1)
        weight = model._model.summary()["progressive_weight"]
        counts.append((weight, weight * model.progressive_loss_))
        assert model.recent_loss() == pytest.approx(model.progressive_loss_)
    # Batches of 30 and 40 examples count with the next one.
    starts, counts = np.array([0, 120, 270, 450, 600]), np.array(counts)[[0, 1, 2, 5, 6]]
    for last, first in [(1, 3), (150, 3), (151, 2), (330, 2), (331, 1), (480, 1), (481, 0)]:
        weight, wrong = counts[-1] - counts[first]
        assert model.recent_loss(last) == pytest.approx(wrong / weight), last
    decay = 0.5 ** ((600 - (starts[:-1] + starts[1:]) / 2) / 90)
    weight, wrong = decay @ np.diff(counts, axis=0)
    assert model.recent_loss(half_life=90) == pytest.approx(wrong / weight)


def test_the_recent_error_of_single_rows():
    model, wrong = xmtree.FilterTreeClassifier(random_state=0), []
    for row, label in zip(X.toarray(), Y, strict=True):
        wrong.append(not wrong or model.predict(row[None])[0] != label)
        model.partial_fit(row[None], [label], classes=range(12) if len(wrong) == 1 else None)
    wrong[0] = model.progressive_loss_ * 300 - sum(wrong[1:])
    assert model.recent_loss(100) == pytest.approx(np.mean(wrong[200:]))
    assert model.recent_loss(101) == pytest.approx(np.mean(wrong[100:]))


def test_the_half_life_may_be_short_after_a_long_call():
    model = xmtree.OAAClassifier(n_passes=50, random_state=0).fit(X, Y)
    assert model.n_examples_seen_ > 2000
    assert model.recent_loss(half_life=1) == pytest.approx(model.progressive_loss_)


def test_the_recent_error_begins_with_the_model(tmp_path, monkeypatch):
    model = xmtree.OAAClassifier(calibrate=False, random_state=0)
    with pytest.raises(NotFittedError):
        model.recent_loss()
    model.fit(X, Y)
    first = model.progressive_loss_
    assert model.recent_loss(1) == model.recent_loss(half_life=1) == first
    model.save(tmp_path / "m")
    for loaded, begins_with_fit in [(model, True), (xmtree.load(tmp_path / "m"), False)]:
        assert loaded.recent_loss() == pytest.approx(first)
        loaded.partial_fit(X[:100], Y[:100])
        whole = loaded.progressive_loss_
        expected = whole if begins_with_fit else 4 * whole - 3 * first
        assert loaded.recent_loss() == pytest.approx(expected)
    monkeypatch.setattr(_online, "_MOST_MARKS", 3)
    for _ in range(5):
        model.partial_fit(X[:100], Y[:100])
    assert len(model._marks) == 3
    assert pickle.loads(pickle.dumps(model)).recent_loss(150) == model.recent_loss(150)


@pytest.mark.parametrize(
    ("argument", "what"),
    [
        ({"last": 0}, "last must be between 1 and 100000, got 0"),
        ({"last": 100_001}, "last must be between 1 and 100000"),
        ({"last": 5.0}, "last must be an integer, got 5.0"),
        ({"half_life": 0.5}, "half_life must be between 1 and 10000, got 0.5"),
        ({"half_life": "9"}, "half_life must be a number, got '9'"),
        ({"half_life": np.nan}, "half_life must be between"),
    ],
)
def test_bad_windows_are_refused(argument, what):
    with pytest.raises((ValueError, TypeError), match=what):
        xmtree.OAAClassifier().fit(X, Y).recent_loss(**argument)


@pytest.mark.parametrize("name", estimators.ONLINE)
def test_partial_fit_continues_after_fit(name):
    # Which rows calibrate changes the accuracy of a Recall Tree with three candidates by chance.
    model = estimators.ALL[name](calibrate=False).fit(X, Y)
    seen = model.n_examples_seen_
    assert model.partial_fit(X[:7], Y[:7]).n_examples_seen_ == seen + 7
    assert model.score(X, Y) > (0.2 if "swapping" in name else 0.8)
    again = model.fit(X, Y)
    estimators.same_predictions(again, estimators.ALL[name](calibrate=False).fit(X, Y), X)


def test_classes_are_needed_first_and_fixed_then():
    model = xmtree.OAAClassifier(random_state=0)
    with pytest.raises(ValueError, match="classes must be passed on the first call"):
        model.partial_fit(X, Y)
    assert not hasattr(model, "classes_")
    with pytest.raises(ValueError, match=r"not in classes: 5, 6, 7, 8, 9 and 2 more"):
        model.partial_fit(X, Y, classes=range(5))
    assert not hasattr(model, "classes_")
    model.partial_fit(X, Y, classes=[*range(12), 40])
    assert len(model.classes_) == 13
    with pytest.raises(ValueError, match="classes"):
        model.partial_fit(X, Y, classes=range(12))
    with pytest.raises(ValueError, match=r"not in classes: 'a'"):
        model.partial_fit(X[:1], ["a"])
    with pytest.raises(ValueError, match="classes"):
        xmtree.OAAClassifier().partial_fit(X, Y, classes=[])


def test_label_sets_batch_by_batch():
    rows, sets = estimators.label_sets()
    lists = [row.indices.tolist() for row in sets]
    by_indicator = xmtree.OAAClassifier(random_state=0)
    by_lists = xmtree.OAAClassifier(random_state=0)
    for start in range(0, 300, 150):
        part = slice(start, start + 150)
        by_indicator.partial_fit(rows[part], sets[part])
        by_lists.partial_fit(rows[part], lists[part], classes=range(8))
    estimators.same_predictions(by_indicator, by_lists, rows)
    with pytest.raises(ValueError, match="label sets"):
        by_indicator.partial_fit(rows, np.arange(300) % 8)
    with pytest.raises(ValueError, match="columns"):
        by_indicator.partial_fit(rows, sets[:, :5])


def test_parameters_cannot_change_under_a_model():
    model = xmtree.LOMTreeClassifier(random_state=0).fit(X, Y)
    model.set_params(n_passes=7, n_jobs=2, verbose=0).partial_fit(X, Y)
    model.set_params(swap_resistance=8.0)
    with pytest.raises(ValueError, match=r"swap_resistance .* was 4.0 and is now 8.0"):
        model.partial_fit(X, Y)
    model.fit(X, Y).partial_fit(X, Y)


@pytest.mark.parametrize("name", ["oaa", "lomtree", "recall-tree", "filter-tree"])
def test_early_stopping_saves_passes(name):
    settings = {"early_stopping": True, "n_passes": 50}
    model = estimators.ALL[name](**settings).fit(X, Y)
    assert model.n_examples_seen_ < 50 * 270
    assert model.score(X, Y) > 0.8


@pytest.mark.parametrize("name", ["oaa", "lomtree", "recall-tree", "filter-tree"])
def test_early_stopping_restores_the_best_pass(name):
    random = np.random.default_rng(0)
    noisy = np.where(random.random(len(Y)) < 0.3, random.integers(0, 12, len(Y)), Y)
    model = estimators.ALL[name](n_passes=40, early_stopping=True).fit(X, noisy)
    best = model.n_examples_seen_ // 270
    assert best < 38
    there = estimators.ALL[name](n_passes=best, early_stopping=True).fit(X, noisy)
    estimators.same_predictions(model, there, X)


@pytest.mark.parametrize("name", ["oaa", "lomtree", "lomtree-3", "recall-tree", "random-tree"])
def test_progress_is_silent_without_a_terminal(name, capfd):
    estimators.ALL[name](verbose=1).fit(X, Y)
    assert capfd.readouterr() == ("", "")


BARS = """
import sys
import threading
import time
import estimators
X, y = estimators.sparse()
for name in sys.argv[1:]:
    estimators.ALL[name](verbose=1, n_passes=300).fit(X, y)
    print("end of", name, file=sys.stderr)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="no pseudo-terminals there")
def test_progress_on_a_terminal():
    import fcntl
    import os
    import pty
    import struct
    import termios

    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 100, 0, 0))
    names = ["oaa", "lomtree-3", "recall-tree"]
    command = [sys.executable, "-c", BARS, *names]
    with subprocess.Popen(command, stderr=theirs, cwd=TESTS) as process:
        os.close(theirs)
        shown = b""
        try:
            while part := os.read(ours, 4096):
                shown += part
        except OSError:  # error of Linux if the other end was closed
            pass
        assert process.wait(60) == 0
    os.close(ours)
    rest = shown.decode()
    for name in names:
        text, found, rest = rest.partition(f"end of {name}")
        assert found
        assert "100%" in text
        assert "ex/s" in text
        assert "error 0." in text
        assert (", recall " in text) == (name == "recall-tree")


@pytest.fixture
def interrupting(monkeypatch):
    """Return a progress callback that raises KeyboardInterrupt once something was learned."""
    from contextlib import contextmanager

    from xmtree import _base

    @contextmanager
    def progress(verbose, what):
        def report(done, total, loss, recall):
            if done > 0:
                raise KeyboardInterrupt

        yield report

    monkeypatch.setattr(_base, "progress", progress)


@pytest.mark.parametrize("name", ["oaa", "lomtree", "lomtree-3", "recall-tree", "random-tree"])
def test_an_interrupted_fit_leaves_a_model(name, interrupting, monkeypatch):
    model = estimators.ALL[name](n_passes=1_000_000)
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, Y)
    assert 0 < model.n_examples_seen_ < 300 * 1_000_000
    assert model.score(X, Y) > 0.8
    monkeypatch.undo()
    model.partial_fit(X, Y)


@pytest.mark.parametrize("has_learned", [False, True])
def test_a_second_model_that_has_learned_something_is_kept(has_learned, monkeypatch):
    """The model of calibration learns first: after Ctrl-C there is no other."""
    train = xmtree.OAAClassifier._train

    def interrupted(*arguments):
        if has_learned:
            train(*arguments)
        raise KeyboardInterrupt

    model = xmtree.OAAClassifier(random_state=0)
    monkeypatch.setattr(xmtree.OAAClassifier, "_train", interrupted)
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, Y)
    assert hasattr(model, "classes_") == has_learned
    assert not has_learned or model.score(X, Y) > 0.8


@pytest.mark.skipif(sys.platform == "win32", reason="no SIGINT for one process there")
@pytest.mark.parametrize("name", ["oaa", "recall-tree"])
def test_ctrl_c_stops_within_a_second(name):
    model, pressed = estimators.ALL[name](n_passes=1_000_000_000), []

    def press():
        # Processor time, so that a busy machine does not interrupt before training begins.
        started = time.process_time()
        while time.process_time() < started + 0.4:
            time.sleep(0.01)
        pressed.append(time.process_time())
        os.kill(os.getpid(), signal.SIGINT)

    # Background jobs of a shell ignore SIGINT. The alarm ends a training that does not stop.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.alarm(600)
    presser = threading.Thread(target=press)
    presser.start()
    try:
        with pytest.raises(KeyboardInterrupt):
            model.fit(X, Y)
        assert time.process_time() - pressed[0] < 1
    finally:
        presser.join()
        signal.alarm(0)
        signal.signal(signal.SIGINT, before)
    assert model.n_examples_seen_ > 0
    assert model.score(X, Y) > 0.8


FORKED = """
import contextlib, copy, os, pickle, signal, threading
import numpy as np
import xmtree, xmtree._base

X = np.random.default_rng(0).random((1000, 100), dtype=np.float32)
y = np.arange(1000) % 200
model = xmtree.OAAClassifier(random_state=0, calibrate=False)
model.partial_fit(X[:50], y[:50], classes=y)
learning, forked = threading.Event(), threading.Event()

@contextlib.contextmanager
def progress(*_):
    yield lambda *_: (learning.set(), forked.wait(200))

xmtree._base.progress = progress
thread = threading.Thread(target=model.partial_fit, args=(X, y))
thread.start()
assert learning.wait(200)
child = os.fork()
if child:
    forked.set()
    _, status = os.waitpid(child, 0)
    thread.join()
    assert status == 0, status
    model.predict(X)
else:
    signal.alarm(200)
    forked.set()
    try:
        asked = [
            lambda: model.predict(X[:1]), lambda: model.partial_fit(X, y), model.predictor,
            lambda: pickle.dumps(model), lambda: copy.deepcopy(model),
            lambda: model.n_examples_seen_,
        ]
        for ask in asked:
            try:
                ask()
            except RuntimeError as error:
                assert "another thread was training it" in str(error), error
            else:
                raise AssertionError("no error")
        model.fit(X[:50], y[:50]).predict(X[:1])
    except BaseException as error:
        print(repr(error), flush=True)
        os._exit(1)
    os._exit(0)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork there")
def test_a_process_forked_while_a_thread_learns_does_not_hang():
    command = [sys.executable, "-W", "ignore", "-c", FORKED]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_as_many_classes_as_rows_raise_no_warning():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        xmtree.LOMTreeClassifier(random_state=0).fit(X, np.arange(300))
