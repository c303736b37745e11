"""The long runs, in small."""

import long_runs
import pytest

RUNS = dict(long_runs.runs(0.002))


@pytest.mark.parametrize("name", RUNS)
def test_a_long_run_in_small(name):
    assert RUNS[name]()
