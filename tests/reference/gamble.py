"""Slow reference of GAMBLE (Algorithm 1 with its two regressions, Algorithm 2) and of SAMME.R.

Trees are grown on encoded labels by the squared error itself, recomputed for every
threshold, without any of the core's optimizations.
"""

from itertools import pairwise

import numpy as np


def encode(y, n_classes):
    """Return rows with 1 at the class and -1 / (K - 1) elsewhere."""
    codes = np.full((len(y), n_classes), -1 / (n_classes - 1))
    codes[np.arange(len(y)), y] = 1
    return codes


def squared_error(target, w):
    mean = w @ target / np.sum(w)
    return np.sum(w @ (target - mean) ** 2)


def best_cut(X, target, w, rows):
    """Return gain, feature and threshold of the split that lowers the squared error most."""
    best = (0.0, -1, 0.0)
    error = squared_error(target[rows], w[rows])
    # The core's tolerance, which is for the weighted Gini impurity.
    tolerance = 1e-10 * np.ptp(target) ** 2 * np.sum(w[rows])
    for feature in range(X.shape[1]):
        values = np.unique(X[rows, feature])
        for low, high in pairwise(values):
            threshold = np.float32((np.float64(low) + np.float64(high)) / 2)
            left = X[rows, feature] <= threshold
            parts = (rows[left], rows[~left])
            gain = error - sum(squared_error(target[part], w[part]) for part in parts)
            if gain > best[0] + tolerance:
                best = (gain, feature, threshold)
    return best


def grow(X, target, w, max_leaves):
    """Grow a regression tree best first; return the splits in order and the leaves' rows."""
    leaves = {0: np.arange(len(X))}
    cuts = {0: best_cut(X, target, w, leaves[0])}
    splits, n_nodes = [], 1
    while len(leaves) < max_leaves:
        node = max(cuts, key=lambda node: (cuts[node][0], -node))
        gain, feature, threshold = cuts.pop(node)
        if gain <= 0:
            break
        rows = leaves.pop(node)
        splits.append((node, feature, threshold))
        for part in (rows[X[rows, feature] <= threshold], rows[X[rows, feature] > threshold]):
            leaves[n_nodes] = part
            cuts[n_nodes] = best_cut(X, target, w, part)
            n_nodes += 1
    return splits, list(leaves.values())


def fitted(leaves, target, w):
    """Return the tree's output for each training row: the weighted mean of its leaf."""
    values = np.empty_like(target)
    for rows in leaves:
        values[rows] = np.average(target[rows], axis=0, weights=w[rows])
    return values


def boost(X, y, n_classes, n_rounds, max_leaves, *, general, clip=False, rate=1.0):
    """Return the committee's scores of the training rows, and each round's splits.

    With ``general`` this is Algorithm 1, which fits a second tree to z = y^2, else Algorithm 2.
    """
    codes, k = encode(y, n_classes), n_classes
    w = np.ones(len(y)) / len(y)
    committee, rounds = np.zeros((len(y), k)), []
    for _ in range(n_rounds):
        splits, leaves = grow(X, codes, w, max_leaves)
        g = fitted(leaves, codes, w)
        if general and k == 2:
            # z is 1 everywhere, so any tree fits it without a split.
            r = k * g
        elif general:
            own, leaves = grow(X, codes**2, w, max_leaves)
            # Theorem 3.2.
            assert [split[1:] for split in own] == [split[1:] for split in splits]
            h = fitted(leaves, codes**2, w)
            # Corollary 3.1.
            np.testing.assert_allclose(h, ((k - 2) * g + 1) / (k - 1), atol=1e-10)
            r = k * g / h
        else:
            r = k * (k - 1) * g / ((k - 2) * g + 1)
        if clip:
            r = np.maximum(r, -k)
        f = rate * (r - r.mean(axis=1, keepdims=True))
        committee += f
        w = w * np.exp(-np.sum(codes * f, axis=1) / k)
        w /= w.sum()
        rounds.append(splits)
    return committee, rounds


def samme_r(X, y, n_classes, n_rounds, max_leaves, rate=1.0):
    """Return the scores of the training rows: Zhu et al., "Multi-class AdaBoost", Algorithm 4.

    Shares are at least the rounding error of double precision, as in scikit-learn before 1.6. The
    training ends after a tree whose leaves have one class each.
    """
    codes, k = encode(y, n_classes), n_classes
    w = np.ones(len(y)) / len(y)
    scores = np.zeros((len(y), k))
    for _ in range(n_rounds):
        _, leaves = grow(X, codes, w, max_leaves)
        p = np.maximum(fitted(leaves, (codes == 1).astype(float), w), np.finfo(float).eps)
        log_p = np.log(p)
        scores += rate * (k - 1) * (log_p - log_p.mean(axis=1, keepdims=True))
        w = w * np.exp(-rate * (k - 1) / k * np.sum(codes * log_p, axis=1))
        w /= w.sum()
        if all(len(set(y[rows])) == 1 for rows in leaves):
            break
    return scores
