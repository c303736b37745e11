"""``make frontier``: what it says of known times, its plot, and the task of rarest labels."""

from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.sparse import csr_matrix

ROOT = Path(__file__).parents[2]


@pytest.fixture
def bench(monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "benches")
    import test_bench_frontier

    # 1, 2, 4, ... us of one-against-all; the tree begins at 4 us and does not grow.
    oaa = {k: (1.0, 2.0**i, 2.0**i) for i, k in enumerate(test_bench_frontier.KS)}
    tree = dict.fromkeys(oaa, (1.0, 4.0, 1e9))
    crossover = {"OAA": oaa, "Recall Tree": tree}
    monkeypatch.setattr(test_bench_frontier, "CROSSOVER", crossover)
    return test_bench_frontier


def test_a_tree_pays_from_where_it_stays_ahead(bench):
    # Ahead means less, not as much: at the third number both take 4 us.
    assert bench.crossing("Recall Tree", 1) == bench.KS[3]
    assert bench.crossing("Recall Tree", 2) is None
    last = bench.KS[-1]
    bench.CROSSOVER["Recall Tree"][last] = (1.0, 1e9, 0.0)
    assert bench.crossing("Recall Tree", 1) is None
    assert bench.crossing("Recall Tree", 2) == last
    bench.CROSSOVER["Recall Tree"][last] = (1.1 + bench.EQUAL, 1e9, 0.0)
    assert bench.crossing("Recall Tree", 2) is None


def test_the_plot_has_all_that_was_measured(bench):
    from frontier_plot import drawn

    frontier = {name: dict.fromkeys(bench.LEARNERS, (50.0, 1.0, 2.0, 3.0)) for name in bench.SETS}
    figure = drawn(frontier, bench.CROSSOVER, list(bench.LEARNERS))
    titles = [ax.get_title() for ax in figure.axes if ax.axison]
    assert titles[: 2 * len(bench.SETS)] == bench.SETS * 2
    assert titles[-1] == "made problems: error"
    assert [text.get_text() for text in figure.legends[0].texts] == list(bench.LEARNERS)


def test_rows_get_their_rarest_label(bench):
    y = csr_matrix(np.array([[1, 1, 0], [1, 0, 0], [0, 0, 0], [1, 1, 1]]))
    X = csr_matrix(np.arange(1, 5)[:, None])
    X, labels, X_test, labels_test = bench.rarest(SimpleNamespace(X=X, y=y, X_test=X, y_test=y[:2]))
    assert X.toarray().ravel().tolist() == [1, 2, 4]
    assert labels.tolist() == [1, 0, 2]
    assert labels_test.tolist() == [1, 0]
    assert X_test.shape == (2, 1)


def test_what_would_not_fit_is_left_out_with_a_reason(bench):
    y = np.arange(20_000)
    X = csr_matrix((20_000, 20_000))
    assert bench.left_out("OAA", X, y) == "its weights would take 1.6 GB"
    assert bench.left_out("GAMBLE, 20 rounds", X, y) == "boosts trees: not meant for text"
    assert bench.left_out("LdSM", X, y) is None
