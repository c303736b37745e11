"""What the benchmarks share: real data, single thread, and a table at the end."""

import os
from pathlib import Path

import pytest

# One thread for everybody who reads these: what is compared is algorithms.
for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = "1"

ROOT = Path(os.environ.get("XMTREE_DATA", Path(__file__).parents[2] / "shared" / "data"))
LINES = pytest.StashKey[list[str]]()


def pytest_configure(config):
    config.stash[LINES] = []


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


def pytest_terminal_summary(terminalreporter, config):
    lines = config.stash[LINES]
    if lines:
        terminalreporter.section("figures")
        for line in lines:
            terminalreporter.write_line(line)
