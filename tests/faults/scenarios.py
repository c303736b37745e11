"""Scenarios in which calls of each kind fail, one at a time, for a process with the shim.

    scenarios.py KIND...

The shim is a library loaded before the C library. For each scenario, the n-th call of the kind
fails in a forked child, which must succeed or raise an allowed error, and must leave everything
else as it was. The first calls and a sample of the later ones fail; with XMTREE_EXHAUSTIVE=1, every
call fails. All learners read and write by the same functions, so without it reads, writes and syncs
fail for two of them, and threads and memory for all.
"""

import ctypes
import errno
import gzip
import os
import shutil
import signal
import sys
import tempfile
import warnings
from pathlib import Path

import numpy as np
import scipy.sparse as sp
import xmtree
from xmtree import datasets

SHIM = ctypes.CDLL(None)
KINDS = {"memory": 1, "thread": 2, "read": 3, "write": 4, "sync": 5}
ALLOWED = (ValueError, TypeError, OSError, MemoryError, RuntimeError)
#: Number of first calls that all fail, and number of later calls in the sample.
N_FIRST, N_LATER = 2, 2
EXHAUSTIVE = os.environ.get("XMTREE_EXHAUSTIVE") == "1"
#: Learners that read and write as the first two do.
SAME_CALLS = ("recall-tree", "filter-tree", "ldsm", "gamble")
#: Outcomes of a child.
SUCCESS, ERROR, BROKEN = 0, 10, 20

RANDOM = np.random.default_rng(0)
LABELS = RANDOM.integers(0, 40, 600)
DENSE = (RANDOM.random((600, 60)) < 0.2) + np.eye(60)[LABELS]
X = sp.csr_matrix(DENSE, dtype=np.float32)


def estimators():
    """Return fitted estimators whose arrays exceed the shim's limit for small allocations."""
    return {
        "oaa": xmtree.OAAClassifier(n_bits=15, random_state=0, n_jobs=2),
        "lomtree": xmtree.LOMTreeClassifier(n_estimators=2, n_bits=15, random_state=0, n_jobs=2),
        "recall-tree": xmtree.RecallTreeClassifier(n_bits=15, random_state=0, n_jobs=2),
        "filter-tree": xmtree.FilterTreeClassifier(n_bits=15, random_state=0, n_jobs=2),
        "ldsm": xmtree.LdSMClassifier(n_estimators=2, max_nodes=60, random_state=0, n_jobs=2),
        "gamble": xmtree.GambleClassifier(n_estimators=4, random_state=0, n_jobs=2),
    }


def answers(model):
    """Return predictions, which must stay the same whatever fails."""
    labels, scores = model.predict_topk(X[:50], 3)
    return labels.tobytes() + scores.tobytes()


def scenarios(folder):
    """Yield name, action, check (given whether the action succeeded) and setup of each scenario."""
    for name, model in estimators().items():
        path = folder / name
        other = (LABELS + 1) % 40
        model.fit(X, other).save(folder / "new")
        new = (folder / "new").read_bytes()
        model.fit(X, LABELS).save(path)
        before, old = answers(model), path.read_bytes()
        fresh = xmtree.load(folder / "new").set_params(n_jobs=2)
        after = answers(fresh)

        def saved(done, path=path, fresh=fresh, old=old, new=new, after=after):
            names = {entry.name for entry in path.parent.iterdir()}
            assert not any(name.endswith(".tmp") for name in names), names
            # If the last step failed, the complete new file may exist already.
            assert path.read_bytes() in ((new,) if done else (old, new)), "the file is not whole"
            assert answers(fresh) == after, "saving has changed the estimator"

        def fitted(done, model=model, before=before):
            same = answers(model) == before
            assert same != done, "an estimator whose fit failed is another"

        def predicted(done, model=model, before=before):
            assert answers(model) == before, "predicting has changed the estimator"

        def rewrite(path=path, old=old):
            path.write_bytes(old)

        def refit(model=model):
            model.fit(X, LABELS)

        yield f"save {name}", lambda fresh=fresh, path=path: fresh.save(path), saved, rewrite
        yield f"load {name}", lambda path=path: xmtree.load(path), none, nothing
        fit = lambda model=model, other=other: model.fit(X, other)  # noqa: E731
        yield f"fit {name}", fit, fitted, refit
        yield f"predict {name}", lambda model=model: model.predict_topk(X, 3), predicted, nothing
    yield from files(folder)


def files(folder):
    """Yield scenarios with text files."""
    text = folder / "rows.txt"
    indicator = sp.csr_array(np.eye(40, dtype=int)[LABELS])
    datasets.save_xmc(text, X, indicator)
    packed = folder / "rows.txt.gz"
    packed.write_bytes(gzip.compress(text.read_bytes()))
    svmlight = folder / "rows.svm"
    svmlight.write_text("".join(text.read_text().splitlines(keepends=True)[1:]))
    old = text.read_bytes()

    def written(done):
        assert text.read_bytes() == old, "the file is not whole"

    for file in (text, packed):
        load = lambda file=file: whole(datasets.load_xmc(file))  # noqa: E731
        yield f"load_xmc {file.suffix}", load, none, nothing
        stream = lambda file=file: n_rows(datasets.iter_xmc(file, batch_size=100))  # noqa: E731
        yield f"iter_xmc {file.suffix}", stream, none, nothing
    yield "load_svmlight", lambda: whole(datasets.load_svmlight(svmlight)), none, nothing
    yield "save_xmc", lambda: datasets.save_xmc(text, X, indicator), written, nothing


def nothing():
    """Check that everything is unchanged."""


def none(done):
    """Check nothing."""


def whole(loaded):
    """Check that the complete data was read."""
    assert loaded[0].shape == X.shape
    assert loaded[0].nnz == X.nnz


def n_rows(batches):
    """Read batches, which end early only with an error."""
    assert sum(batch[0].shape[0] for batch in batches) == X.shape[0]


def outcome(kind, n, code, act, check):
    """Return the outcome of a forked child in which the n-th call fails."""
    child = os.fork()
    if child:
        _, status = os.waitpid(child, 0)
        if not os.WIFSIGNALED(status):
            return os.WEXITSTATUS(status)
        check(False)  # The state of the file after an abort.
        return -os.WTERMSIG(status)
    try:
        # Discard the line that an abort writes.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
        SHIM.fault_arm(kind, n, code)
        try:
            act()
            end = SUCCESS
        except ALLOWED:
            end = ERROR
        finally:
            SHIM.fault_disarm()
        check(end == SUCCESS)
    except BaseException as error:
        print(f"  {type(error).__name__}: {error}", flush=True)
        end = BROKEN
    os._exit(end)


def tried(n_calls):
    """Return the calls that fail: all, or the first and an even sample of the others."""
    if EXHAUSTIVE or n_calls <= N_FIRST + N_LATER:
        return range(1, n_calls + 1)
    later = np.linspace(N_FIRST + 1, n_calls, N_LATER).round().astype(int).tolist()
    return [*range(1, N_FIRST + 1), *later]


def applies(kind, title):
    """Return whether calls of a kind fail in a scenario."""
    if kind == "memory":
        # Training and prediction allocate too often to try each call.
        return not title.startswith(("fit", "predict"))
    return EXHAUSTIVE or kind == "thread" or not title.endswith(SAME_CALLS)


def main():
    """Print a line for each scenario; return 1 if a check has failed."""
    warnings.simplefilter("ignore")
    folder = Path(tempfile.mkdtemp())
    failed = False
    for scenario in scenarios(folder):
        scenario[1]()  # Import now what Python imports lazily.
        for kind in sys.argv[1:]:
            if applies(kind, scenario[0]):
                failed |= fails(kind, *scenario)
    shutil.rmtree(folder)
    sys.exit(failed)


def fails(name, title, act, check, begin):
    """Return whether a check fails if calls of a kind fail."""
    kind = KINDS[name]
    codes = {
        "read": [errno.EIO, errno.EINTR, 0],
        "write": [errno.ENOSPC, errno.EINTR, 0],
        "sync": [errno.EIO],
    }.get(name, [errno.ENOMEM])
    failed = False
    SHIM.fault_arm(kind, 0, 0)
    act()
    n_calls = SHIM.fault_disarm()
    begin()
    for code in codes if n_calls else []:
        calls = tried(n_calls)
        ends = [outcome(kind, n, code, act, check) for n in calls]
        counts = {
            "done": ends.count(SUCCESS),
            "error": ends.count(ERROR),
            "abort": ends.count(-signal.SIGABRT),
            "broken": sum(end not in (SUCCESS, ERROR, -signal.SIGABRT) for end in ends),
        }
        what = errno.errorcode.get(code, "short")
        print(f"{name}, {title}: {what} at {len(calls)} of {n_calls}: {counts}", flush=True)
        # A short or interrupted call must not be an error.
        must_succeed = name in ("read", "write") and code in (0, errno.EINTR)
        failed |= counts["broken"] > 0 or (must_succeed and counts["done"] < len(calls))
        failed |= counts["abort"] > 0 and name != "memory"
    return failed


if __name__ == "__main__":
    main()
