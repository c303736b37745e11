"""GAMBLE with misclassification costs: the mean cost on eight small tables.

    pytest benches/test_bench_gamble_costs.py

Costs as a share of those where they are ignored. "Weights": examples are weighted by the mean cost
of their class. "Probabilities": the class of lowest expected cost, by probabilities that are
calibrated on rows that rounds left out.
"""

import numpy as np
from gamble_tables import RESPLIT, SETS, splits
from xmtree import GambleClassifier

N_SPLITS = 10
SEEDS = range(3)
WAYS = ("weights", "probabilities")


def matrices(counts, random):
    """Cost matrices by name; ``counts`` are the rows of each class."""
    k = len(counts)
    off = 1.0 - np.eye(k)
    rank = np.arange(k)
    rarity = np.minimum(counts[None, :] / counts[:, None], 50)
    return {
        "random, 1 to 10": random.integers(1, 11, (k, k)) * off,
        "rare classes": random.random((k, k)) * rarity * off,
        "some classes x 10": np.where(random.random(k) < 0.4, 10, 1)[:, None] * off,
        "squared distance": np.subtract.outer(rank, rank) ** 2.0,
    }


def mean_costs(part, seed):
    """Per kind of matrix the mean costs where they are ignored, and of each of ``WAYS``."""
    X, y, X_test, y_test = part
    classes, y = np.unique(y, return_inverse=True)
    y_test = np.searchsorted(classes, y_test)
    plain = GambleClassifier(random_state=seed).fit(X, y)
    chances = plain.predict_proba(X_test).astype(float)
    found = {}
    for kind, costs in matrices(np.bincount(y), np.random.default_rng(seed)).items():
        weights = costs.mean(axis=1)[y]
        weighted = GambleClassifier(random_state=seed).fit(X, y, sample_weight=weights)
        predictions = (plain.predict(X_test), weighted.predict(X_test))
        predictions += ((chances @ costs).argmin(axis=1),)
        found[kind] = [costs[y_test, predicted].mean() for predicted in predictions]
    return found


def test_mean_costs(benchmark, real, say):
    say(f"GAMBLE, mean cost on test rows in % of that without costs; {', '.join(RESPLIT)}: mean of")
    say(f"{N_SPLITS} splits; of the others {len(SEEDS)} seeds; {' / '.join(WAYS)}")
    shares = []

    def run():
        for name in SETS:
            parts = splits(real, name, N_SPLITS)
            # As many matrices as splits or seeds.
            seeds = SEEDS if len(parts) == 1 else range(N_SPLITS)
            runs = [mean_costs(parts[seed % len(parts)], seed) for seed in seeds]
            line = f"{name:14}"
            for kind in runs[0]:
                costs = np.mean([found[kind] for found in runs], axis=0)
                shares.append(100 * costs[1:] / costs[0])
                line += f"  {kind}: " + " / ".join(f"{share:.0f}" for share in shares[-1])
            say(line)

    benchmark.pedantic(run, rounds=1)
    means = dict(zip(WAYS, np.mean(shares, axis=0), strict=True))
    say("mean of all: " + ", ".join(f"{way} {share:.0f} %" for way, share in means.items()))
    assert means["probabilities"] < min(means["weights"], 90)
