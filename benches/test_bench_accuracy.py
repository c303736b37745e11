"""Test error on real data with default options, against what is required.

    pytest benches/test_bench_accuracy.py

Each figure is the mean over seeds 0, 1 and 2, each fit in the passes that are the
default. Where a tree chooses candidates, their recall on the test part stands beside it:
no scorer can do better. Beside them stands a batch linear SVM, scikit-learn's with its default
options, on the data scaled as xmtree scales them. A figure that is missed is marked
and fails its test; the table is printed anyway.
"""

import os
import statistics
import time
import warnings
from dataclasses import dataclass, field

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning
from sklearn.preprocessing import StandardScaler, normalize
from sklearn.svm import LinearSVC
from xmtree import (
    FilterTreeClassifier,
    LOMTreeClassifier,
    OAAClassifier,
    RandomTreeClassifier,
    RecallTreeClassifier,
)

SEEDS = (0, 1, 2)
#: Error in % of a batch linear SVM; one-against-all must come within a point of it.
BATCH_SVM = {
    "letter": 30.3,
    "pendigits": 10.1,
    "satimage": 18.2,
    "news20-bydate": 18.0,
    "banking77": 9.8,
    "naics2017-index": 31.4,
}
#: Where the SVM would take minutes.
NO_SVM = {"omniglot"}
SETS = (*BATCH_SVM, "omniglot")


@dataclass(frozen=True)
class Contender:
    """A learner, and the error in % that it may have at most on a data set."""

    make: object
    at_most: dict = field(default_factory=dict)
    #: Names of further lines, and what is set after the fit for each.
    variants: dict = field(default_factory=dict)


CONTENDERS = {
    "OAA": Contender(
        lambda seed: OAAClassifier(n_passes=5, random_state=seed),
        {name: round(error + 1, 1) for name, error in BATCH_SVM.items()} | {"omniglot": 82.5},
    ),
    "OAA softmax": Contender(
        lambda seed: OAAClassifier(loss="softmax", n_passes=5, random_state=seed),
        {"letter": 25.0},
    ),
    "LOMtree": Contender(
        lambda seed: LOMTreeClassifier(n_passes=10, random_state=seed),
        {
            "letter": 20.0,
            "pendigits": 7.5,
            "satimage": 16.0,
            "news20-bydate": 25.5,
            "banking77": 20.5,
            "naics2017-index": 40.0,
        },
    ),
    "10 LOMtrees": Contender(
        lambda seed: LOMTreeClassifier(n_estimators=10, n_passes=10, n_jobs=-1, random_state=seed),
        {
            "letter": 9.0,
            "pendigits": 4.5,
            "news20-bydate": 18.5,
            "banking77": 13.0,
            "naics2017-index": 34.5,
            "omniglot": 84.0,
        },
    ),
    "Recall Tree": Contender(
        lambda seed: RecallTreeClassifier(n_passes=5, random_state=seed),
        {"letter": 23.0, "naics2017-index": 34.5, "omniglot": 84.0},
        {"Recall Tree, greedy": {"beam_size": 1}},
    ),
    "Filter tree": Contender(
        lambda seed: FilterTreeClassifier(label_order="given", n_passes=5, random_state=seed),
        # What Vowpal Wabbit's --ect has.
        {"naics2017-index": 34.6},
    ),
    "Filter tree, random": Contender(
        lambda seed: FilterTreeClassifier(label_order="random", n_passes=5, random_state=seed),
    ),
    "Random tree": Contender(
        lambda seed: RandomTreeClassifier(n_passes=5, random_state=seed),
    ),
}
#: On this set the first must have the lower error.
AHEAD = (
    ("omniglot", "LOMtree", "Filter tree, random"),
    ("omniglot", "LOMtree", "Random tree"),
    ("omniglot", "Recall Tree", "Filter tree, random"),
    ("omniglot", "Recall Tree", "Random tree"),
    ("naics2017-index", "Recall Tree", "Filter tree"),
)
#: On these sets Recall Tree is aimed not to be above one-against-all.
AIMED = ("letter", "naics2017-index", "omniglot")


@dataclass(frozen=True)
class Measured:
    """Error in %, seconds per fit, and, if any, the error in % that is allowed and the
    recall of the candidates in %."""

    error: float
    seconds: float
    at_most: float | None = None
    recall: float | None = None

    @property
    def missed(self):
        return self.at_most is not None and not self.error <= self.at_most

    def cells(self):
        limit, recall = (
            "" if figure is None else f"{figure:.1f}" for figure in (self.at_most, self.recall)
        )
        missed = "MISSED" if self.missed else ""
        return [f"{self.error:.1f}", missed, limit, recall, f"{self.seconds:.2f}"]


#: data set -> learner -> what came out
TABLE: dict[str, dict[str, Measured]] = {}


def fit(model, data):
    """Fits the model and returns the seconds that it took."""
    start = time.perf_counter()
    model.fit(*data[:2])
    return time.perf_counter() - start


def error(model, data):
    """In %, on the test part."""
    X, y = data[2:]
    return 100 * np.mean(model.predict(X) != y)


def recall(model, data):
    """Of the candidates, in %, on the test part."""
    return 100 * model.candidate_recall(*data[2:])


def scaled(X, X_test):
    """As xmtree's scaling="auto" does it."""
    if X.nnz > 0.5 * X.shape[0] * X.shape[1]:
        scaler = StandardScaler().fit(X.toarray())
        return scaler.transform(X.toarray()), scaler.transform(X_test.toarray())
    return normalize(X), normalize(X_test)


@pytest.mark.parametrize("name", SETS)
def test_batch_svm(benchmark, real, name):
    if name in NO_SVM:
        pytest.skip("a batch SVM takes minutes here")
    X, y, X_test, y_test = real(name)
    X, X_test = scaled(X, X_test)

    def run():
        model = LinearSVC(random_state=0)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            seconds = fit(model, (X, y))
        return Measured(error(model, (X, y, X_test, y_test)), seconds)

    TABLE.setdefault(name, {})["batch SVM"] = benchmark.pedantic(run, rounds=1)


@pytest.mark.parametrize("learner", CONTENDERS)
@pytest.mark.parametrize("name", SETS)
def test_error(benchmark, real, name, learner):
    data = real(name)
    contender = CONTENDERS[learner]
    models = [contender.make(seed) for seed in SEEDS]
    seconds = statistics.median(
        benchmark.pedantic(lambda: [fit(model, data) for model in models], rounds=1)
    )
    limit = contender.at_most.get(name)
    for line, changed in {learner: {}, **contender.variants}.items():
        for model in models:
            model.set_params(**changed)
        TABLE.setdefault(name, {})[line] = Measured(
            statistics.mean(error(model, data) for model in models),
            seconds,
            None if changed else limit,
            statistics.mean(recall(model, data) for model in models)
            if hasattr(contender.make(0), "candidate_recall")
            else None,
        )
    measured = TABLE[name][learner]
    assert not measured.missed, (
        f"{learner} on {name}: {measured.error:.2f} % test error, at most {limit} % are required"
    )


def test_table(benchmark, say):
    benchmark.pedantic(lambda: None, rounds=1)
    if not TABLE:
        pytest.skip("nothing was measured")
    for line in table():
        say(line)
    missed = sum(found.missed for row in TABLE.values() for found in row.values())
    limited = sum(found.at_most is not None for row in TABLE.values() for found in row.values())
    say(f"{limited - missed} of the {limited} required figures are met, {missed} missed")
    for name in AIMED:
        found = TABLE.get(name, {})
        if {"Recall Tree", "OAA"} <= found.keys():
            say(
                f"{name}: Recall Tree {found['Recall Tree'].error:.1f} %, OAA "
                f"{found['OAA'].error:.1f} % (aim: not above)"
            )


@pytest.mark.parametrize(("name", "first", "second"), AHEAD)
def test_ahead(benchmark, name, first, second, say):
    found = TABLE.get(name, {})
    if not {first, second} <= found.keys():
        pytest.skip("nothing was measured")
    benchmark.pedantic(lambda: None, rounds=1)
    ahead = found[first].error < found[second].error
    say(
        f"{name}: {first} {found[first].error:.1f} %, {second} {found[second].error:.1f} % "
        f"(the first must be lower){'' if ahead else ' MISSED'}"
    )
    assert ahead


def table():
    """One line per data set; per learner its error, a mark, the limit, seconds."""
    learners = ["batch SVM"]
    for learner, contender in CONTENDERS.items():
        learners += [learner, *contender.variants]
    names = ["%", "", "at most", "recall", "s"]
    rows = {"": names * len(learners)}
    for name, found in TABLE.items():
        cells = [found[one].cells() if one in found else [""] * len(names) for one in learners]
        rows[name] = [cell for group in cells for cell in group]
    # A column in which nothing is said (no limit, no mark) is left out.
    columns = list(zip(*rows.values(), strict=True))
    used = [any(column[1:]) for column in columns]
    widths = [max(map(len, column)) for column in columns]
    first = max(map(len, rows))

    yield (
        f"test error in %, mean over seeds {', '.join(map(str, SEEDS))}, "
        f"and seconds per fit (median; 10 LOMtrees on {os.cpu_count()} cores, the others on one)"
    )
    heads = []
    groups = {}
    for at, learner in enumerate(learners):
        span = [i for i in range(at * len(names), (at + 1) * len(names)) if used[i]]
        if span:
            # Wide enough for the learner's name.
            short = len(learner) - (sum(widths[i] for i in span) + len(span) - 1)
            widths[span[0]] += max(0, short)
            width = sum(widths[i] for i in span) + len(span) - 1
            heads.append(learner.center(width))
            groups[learner] = span
    yield " | ".join([" " * first, *heads]).rstrip()
    for name, cells in rows.items():
        texts = [" ".join(cells[i].rjust(widths[i]) for i in span) for span in groups.values()]
        yield " | ".join([name.ljust(first), *texts]).rstrip()
