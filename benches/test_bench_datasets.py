"""Reading svmlight, against scikit-learn on the same file in one run.

    pytest benches/test_bench_datasets.py

prints the ratio of medians. The file has about 50 MB; XMTREE_BENCH_ROWS
changes the number of its rows.
"""

import gzip
import lzma
import os
import shutil
import subprocess

import numpy as np
import pytest
from sklearn.datasets import dump_svmlight_file, load_svmlight_file
from xmtree.datasets import iter_svmlight, load_svmlight, make_xmc

ROWS = int(os.environ.get("XMTREE_BENCH_ROWS", "150000"))
MEDIANS: dict[str, float] = {}


@pytest.fixture(scope="module")
def files(tmp_path_factory, say):
    """The same examples in scikit-learn's 16 digits, rounded to 4, and packed."""
    root = tmp_path_factory.mktemp("bench")
    X, y = make_xmc(ROWS, 200_000, 10_000, random_state=0)
    long, short = root / "long.svm", root / "short.svm"
    dump_svmlight_file(X, y, str(long), zero_based=False)
    X = X.astype(np.float64)
    X.data = np.round(X.data, 4)
    dump_svmlight_file(X, y, str(short), zero_based=False)
    paths = {"plain": long, "short": short, "gz": root / "a.gz", "xz": root / "a.xz"}
    with open(long, "rb") as text, gzip.open(paths["gz"], "wb", 6) as packed:
        shutil.copyfileobj(text, packed)
    with open(long, "rb") as text, lzma.open(paths["xz"], "wb", preset=1) as packed:
        shutil.copyfileobj(text, packed)
    if shutil.which("zstd"):
        paths["zst"] = root / "a.zst"
        subprocess.run(["zstd", "-q", "-3", long, "-o", paths["zst"]], check=True)
    yield paths
    report(paths, say)


def report(paths, say):
    """The figures against scikit-learn's, as far as both were measured."""
    for name, median in MEDIANS.items():
        text = "short" if "short" in name else "plain"
        if f"sklearn {text}" in MEDIANS:
            speed = paths[text].stat().st_size / 1e6 / median
            ratio = MEDIANS[f"sklearn {text}"] / median
            say(f"{name:15} {median:6.3f} s {speed:6.0f} MB/s of text {ratio:5.1f} x sklearn")


def run(benchmark, name, function, rounds=5):
    benchmark.pedantic(function, rounds=rounds, warmup_rounds=1)
    # None under --benchmark-disable.
    if benchmark.stats is not None:
        MEDIANS[name] = benchmark.stats.stats.median


@pytest.mark.parametrize("kind", ["plain", "short"])
def test_sklearn(benchmark, files, kind):
    path = str(files[kind])
    run(benchmark, f"sklearn {kind}", lambda: load_svmlight_file(path, dtype=np.float32), 3)


@pytest.mark.parametrize("kind", ["plain", "short", "gz", "xz", "zst"])
def test_load(benchmark, files, kind):
    if kind not in files:
        pytest.skip("needs the zstd program")
    run(benchmark, f"xmtree {kind}", lambda: load_svmlight(files[kind]), 7)
    if kind == "plain" and {"sklearn plain", "xmtree plain"} <= MEDIANS.keys():
        assert MEDIANS["sklearn plain"] / MEDIANS["xmtree plain"] > 5


def test_stream(benchmark, files):
    options = {"n_features": 200_000, "zero_based": False, "multilabel": False}
    run(
        benchmark, "xmtree stream", lambda: sum(1 for _ in iter_svmlight(files["plain"], **options))
    )
