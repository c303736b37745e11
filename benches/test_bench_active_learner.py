"""ActiveLearner: errors at a number of labels, labels to the error of all, and where it stops.

    pytest benches/test_bench_active_learner.py

Every way to choose rows goes on to the end, in a session that begins with random rows, as one
without any labels does. Where it would have stopped by the error of its queries is looked up after
each round. The target is 1.1 times the test error of training on all rows, plus 0.1 %.
"""

from dataclasses import dataclass
from functools import partial
from statistics import mean, stdev

import numpy as np
import pytest
from gamble_tables import error, forms
from xmtree import ActiveLearner, GambleClassifier, OAAClassifier, RecallTreeClassifier

SEEDS = range(3)
#: GAMBLE with fewer trees than its default has, for the time of a training per way and round.
FEWER_TREES = {"n_estimators": 50}
#: Per set: what learns, rows to begin with, rows a round, rounds.
SETS = {
    "satimage": (partial(GambleClassifier, **FEWER_TREES), 20, 40, 26),
    "pendigits": (partial(GambleClassifier, **FEWER_TREES), 20, 20, 36),
    "splice": (OAAClassifier, 20, 20, 35),
    "vehicle": (RecallTreeClassifier, 20, 10, 40),
    "banking77": (OAAClassifier, 150, 300, 16),
    "news20-bydate": (OAAClassifier, 150, 300, 16),
}
WAYS = (
    ("random", 1),
    ("margin", 1),
    ("margin", 3),
)
DEFAULT = ("margin", 3)


@dataclass(frozen=True)
class Curve:
    """Errors in % at numbers of labels, and the number at which the queries said to stop."""

    sizes: np.ndarray
    errors: np.ndarray
    stop: int

    def error_at(self, size):
        return float(self.errors[np.searchsorted(self.sizes, size, side="right") - 1])

    def reached(self, target):
        """The first size at the target; infinite if there is none."""
        at = np.flatnonzero(self.errors <= target)
        return float(self.sizes[at[0]]) if len(at) else np.inf


def session(name, way, seed, X, y, X_test, y_test):
    make, n_initial, n_per_round, n_rounds = SETS[name]
    selection, diversity = way
    active = ActiveLearner(
        make(),
        n_initial=n_initial,
        n_per_round=n_per_round,
        n_rounds=n_rounds,
        selection=selection,
        diversity=diversity,
        random_state=seed,
    )
    ratio = active.stopping_ratio
    active.set_params(stopping_ratio=None).start(X, X_val=X_test, y_val=y_test)
    stop = None
    while active.stop_reason_ is None:
        rows = active.query()
        active.teach(rows, y[rows])
        if active.set_params(stopping_ratio=ratio).stop_reason_ == "query_error":
            stop = stop or len(active.selected_)
        active.set_params(stopping_ratio=None)
    found = active.learning_curve_
    sizes, errors = found.n_samples, 100 * found.validation_error
    return Curve(sizes, errors, stop or int(sizes[-1]))


def shown(values):
    spread = f" ±{stdev(values) / len(values) ** 0.5:.2f}" if len(values) > 1 else ""
    return f"{mean(values):.2f}{spread}"


@pytest.mark.parametrize("name", SETS)
def test_labels_that_are_enough(benchmark, real, say, name):
    X, y, X_test, y_test = forms(real, name)
    make, n_initial, n_per_round, n_rounds = SETS[name]
    most = n_initial + (n_rounds - 1) * n_per_round
    sizes = [n_initial + round(part * (n_rounds - 1)) * n_per_round for part in (0.25, 0.5, 1)]

    def run():
        fits = [make(random_state=seed).fit(X, y) for seed in SEEDS]
        of_all = mean(error(model, X_test, y_test) for model in fits)
        target = 1.1 * of_all + 0.1
        say(
            f"{name}, {make()}: test error {of_all:.2f} % of all {len(y)} rows; "
            f"{n_initial} random rows, then {n_per_round} a round; {len(SEEDS)} seeds"
        )
        at = "".join(f"{f'% of {size}':>15}" for size in sizes)
        say(f"{'':18}{at}{f'labels to {target:.2f} %':>22}{'stops at':>18}")
        ends = {}
        for way in WAYS:
            curves = [session(name, way, seed, X, y, X_test, y_test) for seed in SEEDS]
            errors = [[curve.error_at(size) for curve in curves] for size in sizes]
            ends[way] = mean(errors[-1])
            labels = sorted(curve.reached(target) for curve in curves)
            needed = " ".join("-" if np.isinf(n) else f"{n:g}" for n in labels)
            stops = f"{mean(curve.stop for curve in curves):.0f}: " + shown(
                [curve.error_at(curve.stop) for curve in curves]
            )
            columns = "".join(f"{shown(part):>15}" for part in errors)
            say(f"{f'{way[0]}, {way[1]}':18}{columns}{needed:>22}{stops:>18}")
        say(f"{'':18}to the end: {most} labels, which stand where a way did not stop before")
        return ends

    ends = benchmark.pedantic(run, rounds=1)
    assert ends[DEFAULT] < ends["random", 1]
