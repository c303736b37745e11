"""Small versions of the long runs."""

import long_runs
import pytest

RUNS = dict(long_runs.runs(0.002))


@pytest.mark.parametrize("name", RUNS)
def test_a_small_long_run(name):
    assert RUNS[name]()
