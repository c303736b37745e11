"""Slow reference of the filter tree and the random tree, and of the latter for label sets.

Source: Beygelzimer, Langford, Ravikumar, "Error-Correcting Tournaments", ALT 2009
(the filter tree; the random tree also trains every node on the path, but without
matches). The code is simple on purpose: a tree of tuples, labels looked up in sets,
and paths that start from the root. There is one predictor of :mod:`vw_linear` per
internal node, so that with the optimizer "nag" all scores are equal bit for bit.

The package's choices are used where the paper leaves something open:

* a node over n labels in order has the first ceil(n/2) of them on its left;
* the left side is learned as -1; a score below 0 goes left, 0 and above right;
* a label wins a match by the score after the update;
* the step of a predictor shrinks with its updates only if ``decay`` is above 0, which
  is not compared for "nag";
* losses without probabilities give logits by a factor that depends on the share of won matches.
"""

import math

import numpy as np
from scipy.special import expit, wrightomega

from .vw_linear import Logistic, VWLinear


class FixedTree:
    """A tree over ``order``, the labels from left to right; ``policy`` is "filter" or "random"."""

    def __init__(self, order, n_features, policy, loss="quantile", eta=0.5):
        self.policy, self.loss = policy, loss
        self.nodes = []  # labels of each internal node: (left, right)
        self.root = self.build(list(order))
        self.paths = {label: self.path(label) for label in order}
        n_nodes = max(len(self.nodes), 1)
        self.base = VWLinear(n_nodes, n_features, loss, eta)
        self.trained, self.won = np.zeros(n_nodes), np.zeros(n_nodes)

    def build(self, labels):
        """Return a subtree: a label for a leaf, or (number, labels, left, right)."""
        if len(labels) == 1:
            return labels[0]
        number = len(self.nodes)
        middle = math.ceil(len(labels) / 2)
        self.nodes.append((labels[:middle], labels[middle:]))
        return number, labels, self.build(labels[:middle]), self.build(labels[middle:])

    def score(self, number, idx, x):
        return self.base.clamp(self.base.score([number], idx, x)[0])

    def predict(self, idx, x):
        node = self.root
        while isinstance(node, tuple):
            number, _, left, right = node
            node = left if self.score(number, idx, x) < 0 else right
        return node

    def path(self, label):
        """Return the numbers of the internal nodes above a label's leaf, from the leaf up."""
        above = [n for n, (left, right) in enumerate(self.nodes) if label in {*left, *right}]
        return sorted(above, key=lambda n: len(self.nodes[n][0]) + len(self.nodes[n][1]))

    def learn(self, idx, x, label, h=1.0):
        """Learn an example by the matches of its label; return the prediction before."""
        answer = self.predict(idx, x)
        for number in self.paths[label]:
            is_left = label in self.nodes[number][0]
            self.base.learn(number, idx, x, -1.0 if is_left else 1.0, h)
            self.trained[number] += h
            won = (self.score(number, idx, x) < 0) == is_left
            if won:
                self.won[number] += h
            elif self.policy == "filter":
                break
        return answer

    def sharpness(self):
        """Return the factor of scores: half the log-odds of winning, of all fewer than 64 nodes."""
        if self.loss == "logistic":
            return 1.0
        won, lost = self.won.sum(), (self.trained - self.won).sum()
        if won == 0 or lost == 0:
            return 4.0 if won else 0.25
        return min(max(0.5 * math.log(won / lost), 0.25), 4.0)

    def log_probabilities(self, idx, x):
        """Return each label's sum of the logistic models' log-probabilities on its path."""
        all_nodes = range(len(self.trained))
        scores = self.base.clamp(self.base.score(all_nodes, idx, x)).astype(float)
        scores *= self.sharpness()
        result = {}
        for label, path in self.paths.items():
            total = 0.0
            for number in path:
                score = scores[number]
                total -= np.logaddexp(0.0, score if label in self.nodes[number][0] else -score)
            result[label] = total
        return result


class ExactLogistic(Logistic):
    """Logistic loss in double precision, which is not 0 for large margins, and exact steps."""

    def loss(self, p, y):
        return np.logaddexp(0, np.float64(-y * p))

    def step(self, p, y, a, ppu):
        p, y, a, ppu = (np.asarray(value, np.float64) for value in (p, y, a, ppu))
        z = a * ppu + y * p + np.exp(y * p)
        exact = -(y * (wrightomega(z) - z) + p) / ppu
        return np.where(a * ppu < 1e-6, y * a / (1 + np.exp(y * p)), exact)


class LabelSetTree:
    """Probabilistic label tree: Jasinska et al., ICML 2016, Section 4, over ``order``.

    Each node has the set of its labels and a logistic model of "the row has one of them, given
    that it has one of the parent's".
    """

    def __init__(self, order, n_features, eta=0.5):
        self.nodes, self.children = [], {}
        self.build(list(order))
        self.parents = {child: n for n, pair in self.children.items() for child in pair}
        self.base = VWLinear(len(self.nodes), n_features, "logistic", eta)
        self.base.loss = ExactLogistic()
        self.trained, self.won = np.zeros(len(self.nodes)), np.zeros(len(self.nodes))

    def build(self, labels):
        number = len(self.nodes)
        self.nodes.append(frozenset(labels))
        middle = math.ceil(len(labels) / 2)
        halves = [labels[:middle], labels[middle:]] if len(labels) > 1 else []
        self.children[number] = [self.build(half) for half in halves]
        return number

    def score(self, number, idx, x):
        return float(self.base.clamp(self.base.score([number], idx, x)[0]))

    def greedy(self, idx, x):
        """Return the label to which the more probable children lead; of equals the right one."""
        number = 0
        while self.children[number]:
            left, right = self.children[number]
            number = right if self.score(right, idx, x) >= self.score(left, idx, x) else left
        (label,) = self.nodes[number]
        return label

    def learn(self, idx, x, labels, h=1.0):
        """Learn an example; return whether the greedy label was one of its labels before."""
        was_right = self.greedy(idx, x) in labels
        for number, below in enumerate(self.nodes):
            if number and not self.nodes[self.parents[number]] & labels:
                continue
            y = 1.0 if below & labels else -1.0
            self.base.learn(number, idx, x, y, h)
            self.trained[number] += h
            if (self.score(number, idx, x) >= 0) == (y > 0):
                self.won[number] += h
        return was_right

    def marginals(self, idx, x):
        """Return the probability of each label, the product over all nodes with it below."""
        all_nodes = range(len(self.nodes))
        p = expit(self.base.clamp(self.base.score(all_nodes, idx, x)).astype(float))
        return {
            label: math.prod(p[n] for n, below in enumerate(self.nodes) if label in below)
            for label in self.nodes[0]
        }
