"""Very many labels: xmtree beside omikuji and PECOS, in one run.

    make bench-extreme SELECT='-k "bibtex or delicious" --seeds 1'

Each program, data set and seed is a test that runs in a process of its own, one after the other,
the most wanted first; without SELECT all are run. Measures are appended to the file of
``--results``, and an interrupted comparison goes on from there. Tables and plots are made from that
file, by ``python -m extreme`` without measuring, too. XMTREE_PEERS names the Python that has the
peers (.venv-pecos, which ``make bench-extreme`` makes); without it they are skipped.

Everybody trains on two threads and predicts on one, the whole test part at once, 5 labels a row.
xmtree's classifiers have their defaults. What omikuji and PECOS are given: ``peers/adapters``;
what the columns mean: ``extreme/tables.py``. Time and memory of training do not include reading
the data.
"""

import functools
import shutil

import pytest
from extreme import runs, tables, tasks


def pytest_generate_tests(metafunc):
    cases = list(runs.cases(metafunc.config.getoption("--seeds")))
    metafunc.parametrize("case", cases, ids=str)


@pytest.fixture(scope="session")
def results(request, say):
    """What was measured; its tables are said in the end."""
    found = runs.Results(request.config.getoption("--results"))
    yield found
    for line in tables.lines(found):
        say(line)


@pytest.fixture(scope="session")
def task(tmp_path_factory, next_word):
    """Makes a task's files when it is wanted first: ``task(name)``."""
    folder = tmp_path_factory.mktemp("extreme")

    @functools.cache
    def make(name):
        try:
            return tasks.write(name, folder / name, next_word)
        except FileNotFoundError as error:
            pytest.skip(str(error))

    yield make
    shutil.rmtree(folder)


def test_run(benchmark, request, results, task, case):
    if case.program.package not in {None, *runs.peers()[1]}:
        pytest.skip("peers are skipped: XMTREE_PEERS names a Python that has them (.venv-pecos)")
    limit = request.config.getoption("--time-limit")

    def run():
        if results.find(case, limit) is None:
            results.add(runs.run(case, task(case.task), limit))

    benchmark.pedantic(run, rounds=1)
