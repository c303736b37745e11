"""Memory of Recall Tree beside that of one-against-all: at most twice as much.

    pytest benches/test_bench_memory.py

Each is fit in a process of its own. Counted are the file that ``save`` writes, and by
how much the process grew at most while fitting, the data being there already.
"""

import multiprocessing
from concurrent.futures import ProcessPoolExecutor

import pytest
from memory import RESET, reset_peak, resident
from xmtree import OAAClassifier, RecallTreeClassifier

LEARNERS = {"OAA": OAAClassifier, "Recall Tree": RecallTreeClassifier}
AT_MOST = 2.0


def measure(learner, data, path):
    """Megabytes of the model's file, and by which fitting made the process grow."""
    X, y, *_ = data
    model = LEARNERS[learner](n_passes=2, random_state=0)
    # Whatever is only made once.
    LEARNERS[learner](n_passes=1).fit(X[:2], [0, 1])
    reset_peak()
    before = resident("VmRSS")
    model.fit(X, y)
    grown = resident("VmHWM") - before
    model.save(path)
    return path.stat().st_size / 2**20, grown


@pytest.mark.parametrize("name", ["naics2017-index", "omniglot"])
def test_memory(benchmark, real, tmp_path, say, name):
    if not RESET.exists():
        pytest.skip("needs Linux, which tells how much memory was used at most")
    data = real(name)

    def run():
        found = {}
        for learner in LEARNERS:
            with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as process:
                arguments = learner, data, tmp_path / "model"
                found[learner] = process.submit(measure, *arguments).result()
        return found

    found = benchmark.pedantic(run, rounds=1)
    (oaa_file, oaa_grown), (file, grown) = found["OAA"], found["Recall Tree"]
    ratios = file / oaa_file, grown / oaa_grown
    missed = max(ratios) > AT_MOST
    say(
        f"{name}, memory of Recall Tree and OAA: file {file:.1f} and {oaa_file:.1f} MB "
        f"({ratios[0]:.2f} times), while fitting {grown:.1f} and {oaa_grown:.1f} MB "
        f"({ratios[1]:.2f} times; at most {AT_MOST:g}){' MISSED' * missed}"
    )
    assert not missed, f"Recall Tree takes {max(ratios):.2f} times the memory of OAA"
