"""The measures, against numpy's searchsorted on the same arrays in one run.

    pytest benches/test_bench_metrics.py

prints the ratio of medians: 100,000 rows, 100,000 labels, five to a row, k = 5.
"""

import numpy as np
import pytest
import scipy.sparse as sp
from xmtree.metrics import ndcg_at_k, precision_at_k, propensities, psndcg_at_k, psp_at_k

N, N_LABELS, EACH, K = 100_000, 100_000, 5, 5
MEDIANS: dict[str, float] = {}


@pytest.fixture(scope="module")
def problem(say):
    """Five labels a row, of which about every third is found."""
    random = np.random.default_rng(0)
    steps = random.integers(1, N_LABELS // 2 // EACH, (N, EACH))
    # True labels are even; the odd one beside it is none.
    labels = (2 * np.cumsum(steps, axis=1) - 2).astype(np.int32)
    starts = np.arange(0, N * EACH + 1, EACH, dtype=np.int32)
    true = sp.csr_array((np.ones(N * EACH, np.uint8), labels.ravel(), starts), (N, N_LABELS))
    best = random.permuted(labels, axis=1) + (random.random((N, K)) > 0.3).astype(np.int32)
    yield true, best, propensities(true)
    for name in ("P@5", "nDCG@5", "PSP@5", "PSnDCG@5"):
        if {f"numpy {name}", name} <= MEDIANS.keys():
            ratio = MEDIANS[f"numpy {name}"] / MEDIANS[name]
            say(f"{name:9} {MEDIANS[name] / N * 1e9:6.0f} ns a row {ratio:6.1f} x numpy")


def hits(true, best):
    """Pairs (row, label) as single numbers, so that one search finds all hits."""
    n = len(best)
    rows = np.repeat(np.arange(n), np.diff(true.indptr))
    pairs = np.sort(rows * np.int64(true.shape[1]) + true.indices)
    asked = np.arange(n)[:, None] * np.int64(true.shape[1]) + best
    return (best >= 0) & (np.append(pairs, -1)[np.searchsorted(pairs, asked)] == asked)


def numpy_precision(true, best, p):
    return hits(true, best).sum() / (K * len(best))


def numpy_ndcg(true, best, p):
    discounts = 1 / np.log2(np.arange(2, K + 2))
    ideal = np.append(0, np.cumsum(discounts))[np.minimum(np.diff(true.indptr), K)]
    return np.mean(hits(true, best) @ discounts / ideal)


def numpy_weighted(true, best, p, discounts):
    """One sort of all rows together finds the best rankings."""
    weights = 1 / p
    counts = np.diff(true.indptr)
    of_labels = weights[true.indices]
    order = np.lexsort((-of_labels, np.repeat(np.arange(len(best)), counts)))
    rank = np.arange(len(order)) - np.repeat(true.indptr[:-1], counts)
    ideal = of_labels[order] * np.append(discounts, 0)[np.minimum(rank, K)]
    return (hits(true, best) * weights[best] @ discounts).sum() / ideal.sum()


def numpy_psp(true, best, p):
    return numpy_weighted(true, best, p, np.ones(K))


def numpy_psndcg(true, best, p):
    return numpy_weighted(true, best, p, 1 / np.log2(np.arange(2, K + 2)))


MEASURES = {
    "P@5": (lambda true, best, p: precision_at_k(true, best, K), numpy_precision),
    "nDCG@5": (lambda true, best, p: ndcg_at_k(true, best, K), numpy_ndcg),
    "PSP@5": (lambda true, best, p: psp_at_k(true, best, p, K), numpy_psp),
    "PSnDCG@5": (lambda true, best, p: psndcg_at_k(true, best, p, K), numpy_psndcg),
}


@pytest.mark.parametrize("peer", [True, False], ids=["numpy", "xmtree"])
@pytest.mark.parametrize("name", MEASURES)
def test_measure(benchmark, problem, name, peer):
    measure, slow = MEASURES[name]
    assert measure(*problem) == pytest.approx(slow(*problem))
    function = slow if peer else measure
    benchmark.pedantic(lambda: function(*problem), rounds=15 if peer else 101, warmup_rounds=2)
    # None under --benchmark-disable.
    if benchmark.stats is not None:
        MEDIANS[f"numpy {name}" if peer else name] = benchmark.stats.stats.median
