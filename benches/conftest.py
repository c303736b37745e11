"""What the benchmarks share: real data, single thread, and the figures at the end.

    pytest benches --benchmark-only --figures benches/figures.txt

writes the figures to a file too, with the date, the machine and the versions. With
``--loaded`` they are those of a machine whose memory others use, too.
"""

import datetime
import functools
import os
import platform
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest
from data_sets import ROOT
from machine import commit, described, load

# One thread for everybody who reads these: what is compared is algorithms.
for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = "1"

LINES = pytest.StashKey[list[str]]()
LOAD = pytest.StashKey[str]()

#: Streams through memory, half a GiB of it.
NEIGHBOUR = """
import numpy
a, b = numpy.ones(1 << 25), numpy.ones(1 << 25)
while True:
    numpy.copyto(b, a)
    numpy.copyto(a, b)
"""


def pytest_addoption(parser):
    parser.addoption("--figures", metavar="PATH", help="write the figures to this file, too")
    parser.addoption(
        "--loaded",
        action="store_true",
        help="keep one core for the benchmarks, another for a process that streams through memory",
    )
    extreme = parser.getgroup("extreme", "test_bench_extreme.py")
    extreme.addoption("--seeds", type=int, default=3, metavar="N", help="seeds of each program")
    extreme.addoption(
        "--results",
        default=".benchmarks/extreme.jsonl",
        metavar="PATH",
        help="file that keeps the measures of all runs; of the same sources none is run anew",
    )
    extreme.addoption(
        "--time-limit", type=float, metavar="SECONDS", help="end a run that takes longer"
    )


def pytest_configure(config):
    config.stash[LINES] = []
    config.stash[LOAD] = load()


@pytest.fixture(scope="session", autouse=True)
def neighbour(request):
    """The process of ``--loaded``."""
    if not request.config.getoption("--loaded"):
        yield
        return
    cores = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else []
    if len(cores) < 2:
        pytest.exit("--loaded needs Linux and two cores", returncode=pytest.ExitCode.USAGE_ERROR)
    # What is started inherits the cores.
    os.sched_setaffinity(0, cores[-1:])
    process = subprocess.Popen([sys.executable, "-c", NEIGHBOUR])
    os.sched_setaffinity(0, cores[:1])
    yield
    assert process.poll() is None, "the process of --loaded has ended before the benchmarks"
    process.kill()
    process.wait()
    os.sched_setaffinity(0, cores)


@pytest.fixture(scope="session")
def say(request):
    """Adds a line to what is printed when all is done."""
    return request.config.stash[LINES].append


@pytest.fixture(scope="session")
def real():
    """Loads a real data set: ``real(name) -> X_train, y_train, X_test, y_test``."""
    from xmtree.datasets import load_xmc

    def load(name):
        folder = ROOT / name
        if not folder.is_dir():
            pytest.skip(f"{name} is not below {ROOT}; XMTREE_DATA says where the data sets are")
        return (
            *load_xmc(folder / "train.txt.xz", multilabel=False),
            *load_xmc(folder / "test.txt.xz", multilabel=False),
        )

    return load


@pytest.fixture(scope="session")
def label_sets():
    """Loads a data set with label sets: ``label_sets(name, on="test") -> Task``."""
    from ldsm_tasks import load as load_task

    @functools.cache
    def load(name, on="test"):
        if not (ROOT / name).is_dir():
            pytest.skip(f"{name} is not below {ROOT}; XMTREE_DATA says where the data sets are")
        return load_task(name, on)

    return load


@pytest.fixture(scope="session")
def next_word(tmp_path_factory):
    """Makes the next-word task: ``next_word(n, *, seed=7) -> X, y``.

    n examples from the beginning of the novels, in the order of the text if seed is None.
    The program that makes them stands beside the data; each task is made once.
    """
    from xmtree.datasets import load_xmc

    @functools.cache
    def make(n, *, seed=7):
        corpus = ROOT / "text-english-novels" / "corpus.txt.xz"
        program = ROOT.parent / "tools" / "make_nextword.py"
        for path in (corpus, program):
            if not path.is_file():
                pytest.skip(f"no {path}; XMTREE_DATA says where the data sets are")
        made = tmp_path_factory.mktemp("next-word") / "examples.txt"
        order = [] if seed is None else ["--shuffle", str(seed)]
        command = [sys.executable, program, corpus, made, "--examples", str(n), *order]
        subprocess.run(command, check=True)
        X, y = load_xmc(made, multilabel=False)
        made.unlink()
        return X, y

    return make


@pytest.fixture(scope="session")
def novels(next_word):
    """The next-word task at full size: ``novels() -> X_train, y_train, X_test, y_test``."""

    def load():
        X, y = next_word(1_100_000)
        n = 1_000_000
        return X[:n], y[:n], X[n:], y[n:]

    return load


@pytest.hookimpl(trylast=True)
def pytest_terminal_summary(terminalreporter, config):
    lines = config.stash[LINES]
    if not lines:
        return
    terminalreporter.section("figures")
    for line in lines:
        terminalreporter.write_line(line)
    path = config.getoption("--figures")
    if path:
        beside = ["loaded: another core streams through memory"]
        beside = beside if config.getoption("--loaded") else []
        busy = f"load average: {config.stash[LOAD]} before, {load()} after (1 is this run itself)"
        lines = [*circumstances(), *beside, busy, outcome(terminalreporter), "", *lines]
        Path(path).write_text("\n".join(lines) + "\n", encoding="utf-8")


def circumstances():
    """When, on what machine, and of what versions the figures are."""
    opponents = ("vowpalwabbit", "omikuji", "lightgbm")
    names = ("xmtree", "numpy", "scipy", "scikit-learn", *opponents)
    versions = [f"{name} {version(name)}" for name in names]
    yield "Written by the benchmarks (pytest benches --figures), not by hand."
    yield f"date: {datetime.datetime.now(datetime.UTC):%Y-%m-%d %H:%M} UTC"
    yield f"machine: {described()}"
    yield f"commit: {commit()}"
    yield "versions: " + ", ".join([f"Python {platform.python_version()}", *versions])


def version(name):
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return "not installed"


def outcome(terminalreporter):
    """How many benchmarks ran, and which did not reach what is required."""
    stats = terminalreporter.stats
    words = {"passed": "met", "failed": "missed", "skipped": "not run"}
    counts = [f"{len(stats.get(kind, []))} {word}" for kind, word in words.items()]
    return "targets: " + ", ".join(counts)
