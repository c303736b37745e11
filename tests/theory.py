"""What the tests of the papers' statements (``test_theory_*.py``) share."""

import numpy as np

#: Slack for the rounding of sums, never for chance.
ROUNDING = 1e-9


def entropy(counts):
    """Shannon entropy, in nats, of a histogram; 0 of an empty one."""
    counts = np.asarray(counts, float)
    share = counts[counts > 0] / max(counts.sum(), np.finfo(float).tiny)
    return float(-(share * np.log(share)).sum())


def multilabel_entropy(histogram, n_examples):
    """Sum of rho ln(1 / rho), rho the share of the examples that have each label."""
    rho = np.asarray(histogram, float) / n_examples
    rho = rho[rho > 0]
    return float((rho * np.log(1 / rho)).sum())


def histograms(starts, labels, counts, n_labels):
    """The label histograms of a tree's nodes, one a row, from the CSR arrays of its report."""
    table = np.zeros((len(starts) - 1, n_labels))
    nodes = np.repeat(np.arange(len(starts) - 1), np.diff(starts))
    table[nodes, labels] = counts
    return table


def heaviest_first(children, weight, is_mixed=None):
    """The splits of a finished tree in the order that the papers analyse.

    Begins with the root as the only leaf and splits the heaviest leaf each time, with
    ``is_mixed`` the heaviest of those. Ends where the tree itself did not split that leaf.
    Yields the leaves before each split and the one to be split, and at last the leaves and None.
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
