"""Compare every learner with one-against-all: training, prediction of a batch and of one row.

    make bench, or pytest benches/bench_oaa.py --benchmark-only

The data are included in the package: short texts of 1,055 classes. Every learner uses one thread.
pytest-benchmark prints a table for each operation, with times relative to the fastest learner.
"""

import functools
import itertools

import pytest
import xmtree
from xmtree.datasets import load_demo

LEARNERS = {
    "one-against-all": xmtree.OAAClassifier,
    "LOMtree": xmtree.LOMTreeClassifier,
    "Recall Tree": xmtree.RecallTreeClassifier,
    "filter tree": xmtree.FilterTreeClassifier,
    "LdSM": xmtree.LdSMClassifier,
}


@functools.cache
def data():
    return load_demo("naics2017-index")


@functools.cache
def fitted(learner):
    return LEARNERS[learner](random_state=0, n_jobs=1).fit(data().X_train, data().y_train)


@pytest.mark.parametrize("learner", LEARNERS)
@pytest.mark.benchmark(group="training")
def test_fit(benchmark, learner):
    model = LEARNERS[learner](random_state=0, n_jobs=1)
    benchmark.pedantic(model.fit, (data().X_train, data().y_train), rounds=3, warmup_rounds=1)


@pytest.mark.parametrize("learner", LEARNERS)
@pytest.mark.benchmark(group="prediction of all test rows")
def test_predict(benchmark, learner):
    model = fitted(learner)
    benchmark(model.predict, data().X_test)


@pytest.mark.parametrize("learner", LEARNERS)
@pytest.mark.benchmark(group="prediction of one row")
def test_predict_one_row(benchmark, learner):
    model, X = fitted(learner), data().X_test
    rows = itertools.cycle([X[at : at + 1] for at in range(300)])
    benchmark.pedantic(model.predict, setup=lambda: ((next(rows),), {}), rounds=2000)
