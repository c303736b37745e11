"""Functions for the tests of the papers' statements (``test_theory_*.py``)."""

import numpy as np

#: Tolerance for the rounding of sums, never for random variation.
ROUNDING = 1e-9


def entropy(counts):
    """Return the Shannon entropy of a histogram in nats; 0 if it is empty."""
    counts = np.asarray(counts, float)
    share = counts[counts > 0] / max(counts.sum(), np.finfo(float).tiny)
    return float(-(share * np.log(share)).sum())


def multilabel_entropy(histogram, n_examples):
    """Return the sum of rho ln(1 / rho), with rho the share of examples with each label."""
    rho = np.asarray(histogram, float) / n_examples
    rho = rho[rho > 0]
    return float((rho * np.log(1 / rho)).sum())


def histograms(starts, labels, counts, n_labels):
    """Return the label histograms of a tree's nodes, one per row, from its CSR arrays."""
    table = np.zeros((len(starts) - 1, n_labels))
    nodes = np.repeat(np.arange(len(starts) - 1), np.diff(starts))
    table[nodes, labels] = counts
    return table


def heaviest_first(children, weight, is_mixed=None):
    """Yield the splits of a finished tree in the order that the papers analyze.

    The root is the first leaf, and the heaviest leaf (with ``is_mixed`` the heaviest mixed one) is
    split each time, until the tree has not split that leaf. Yields the leaves before each split and
    the leaf to split; at the end the leaves and None.
    """
    leaves = [0]
    while True:
        open_leaves = [n for n in leaves if is_mixed is None or is_mixed[n]]
        heaviest = max(open_leaves, key=lambda n: weight[n], default=None)
        below = [] if heaviest is None else [n for n in children[heaviest] if n >= 0]
        if not below:
            yield leaves, None
            return
        yield leaves, heaviest
        leaves = [n for n in leaves if n != heaviest] + below
