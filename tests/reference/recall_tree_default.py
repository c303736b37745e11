"""Slow reference of the Recall Tree with this package's defaults.

Differences from Daume, Karampatziakis, Langford and Mineiro (ICML 2017), and from Vowpal
Wabbit (``recall_tree.py``):

* Steps go along x_f / sqrt(sum of h x_f^2 so far), scaled to have the product 1 with x
  ("pn").  One such sum per column serves all routers and all scorers.
* A router learns by the hinge loss with the importance |delta left - delta right|, its
  rate falling as 1/sqrt(1 + n / (4 + 0.03 d)): n what the node was trained on, d the
  example's effective dimension, sum_f x_f^2 / (mean of x_f^2).  A scorer's falls as
  1/sqrt(1 + n / (4 + 0.003 d)), n being how often its label was learned.
* With more than two children, each router of a node halves them and learns on which
  side the cheapest child is.
* Honest counting: an example is counted along its path before anything has learned from
  it; the routers learn along its path during learning.
* Fair comparison: routing continues to a child whose bound exceeds the share of the
  child's own examples whose label was a candidate of the parent when they arrived.  An
  unseen child is never entered, whatever the multiplier.
* Back-off: a last node with few labels takes further candidates from the nodes above.
* Fading counts: they are halved when the number of labels seen, if above F, has grown by a
  factor of 2^(1/3).
* The example's label learns with the candidates of the prediction, in the place of the
  last one, if it is a candidate of the last node itself now.

With ``honest=False``, counting and the stop rule are those of the paper.  Scorers learn
one by one, or the label and its best rival by a margin, or all by the softmax.  The core
samples small gradients of the softmax, so that it updates few candidates; this reference
uses their mean.
"""

import math
from dataclasses import dataclass, field

import numpy as np

from .recall_tree import plogp
from .vw_linear import F


@dataclass
class Node:
    """State of one node; counts and entropy are float64, the bound float32."""

    depth: int
    parent: int = -1
    children: list = field(default_factory=list)
    routers: list = field(default_factory=list)  # weights, in preorder of the halves
    counts: list = field(default_factory=list)  # [label, weight], most frequent first
    n: float = 0.0
    entropy: float = 0.0
    stay: float = 0.0  # weight whose label was a candidate of the parent
    bound: np.float32 = F(0)  # noqa: RUF009  (immutable)
    trained: float = 0.0

    def count(self, label):
        return next((c for y, c in self.counts if y == label), 0.0)

    def set_bound(self, n_candidates, h):
        n, m = F(self.n), F(sum(c for _, c in self.counts[:n_candidates]))
        with np.errstate(invalid="ignore", divide="ignore"):
            f, hyper = m / n, F(h)
            worst = np.sqrt(hyper) * np.sqrt(f * (F(1) - f) / n)
            bound = f - worst - hyper * (F(15) / (np.sqrt(F(18)) * n))
        self.bound = bound if bound > 0 else F(0)


class RecallTree:
    """``RecallTreeClassifier`` with its defaults but without scaling, one example at a time."""

    def __init__(
        self,
        n_classes,
        n_features,
        max_candidates,
        max_depth,
        bern_hyper=0.1,
        arity=2,
        loss="squared_hinge",
        margin=4.0,
        learning_rate=1.0,
        router_rate=1.0,
        decay=1.0,
        honest=True,
        back_off=True,
    ):
        self.F, self.D, self.h, self.arity = max_candidates, max_depth, bern_hyper, arity
        self.loss, self.margin, self.rate = loss, margin, learning_rate
        self.router_rate, self.decay = router_rate, decay
        self.honest, self.back_off = honest, back_off
        self.width = n_features + 1  # the constant comes last
        self.squares, self.seen = np.zeros(self.width, F), 0.0
        self.scorers = np.zeros((n_classes, self.width), F)
        self.learned = np.zeros(n_classes)
        self.nodes = [Node(0)]
        self.known = set()
        self.wrong = self.missed = self.total = 0.0

    # -- linear parts -------------------------------------------------------------

    def row(self, x):
        """Return the example with its constant as a dense row."""
        return np.append(x, 1).astype(F)

    def direction(self, x, h):
        """Return the step direction of product 1 with x, and the effective dimension."""
        self.seen += h
        self.squares += F(h) * x * x
        filled = x != 0
        root = np.sqrt(self.squares[filled])
        d = np.zeros_like(x)
        d[filled] = x[filled] / root / F(np.sum(x[filled] ** 2 / root))
        dimension = np.sum(x[filled] ** 2 / self.squares[filled]) * self.seen
        return d, max(float(dimension), 1.0)

    # -- routing ------------------------------------------------------------------

    def halves(self, lo, hi, router=0):
        """Yield (router, left, right) for the routers of a node; halves are (lo, hi, router)."""
        mid = (lo + hi) // 2
        return router, (lo, mid, router + 1), (mid, hi, router + mid - lo)

    def choose(self, j, x):
        """Return the child to which the routers of node j send x."""
        part = (0, self.arity, 0)
        while part[1] - part[0] > 1:
            router, left, right = self.halves(*part)
            part = left if self.nodes[j].routers[router] @ x < 0 else right
        return self.nodes[j].children[part[0]]

    def stops(self, child):
        """Return whether a child promises no more recall than its parent."""
        if self.h == 0:
            return False
        v = self.nodes[child]
        if not self.honest:
            return self.nodes[v.parent].bound >= v.bound
        return not (v.n > 0 and F(v.stay / v.n) < v.bound)

    def is_end(self, child):
        return self.stops(child) or not self.nodes[child].counts

    def way(self, choices):
        """Return the path of a prediction, and the child that the stop rule held back, if any."""
        path = [0]
        while path[-1] in choices:
            child = choices[path[-1]]
            if self.is_end(child):
                return path, child
            path.append(child)
        return path, None

    def gather(self, path):
        """Return the last node's candidates, filled up with those of the nodes above."""
        found = []
        for j in reversed(path if self.back_off else path[-1:]):
            found += [y for y, _ in self.nodes[j].counts[: self.F] if y not in found]
        return found[: self.F]

    # -- prediction ---------------------------------------------------------------

    def choices(self, x):
        """Return the child of each internal node to which it sends x."""
        return {j: self.choose(j, x) for j, v in enumerate(self.nodes) if v.children}

    def scores(self, x):
        """Return candidates and their scores."""
        x = self.row(x)
        labels = self.gather(self.way(self.choices(x))[0])
        return labels, [self.scorers[y] @ x for y in labels]

    # -- learning -----------------------------------------------------------------

    def age(self, label):
        """Halve all counts when the labels seen have grown by a factor of 2^(1/3)."""
        before = len(self.known)
        self.known.add(label)
        n = len(self.known)
        if not self.honest or n == before or n <= self.F:
            return
        if int(3 * math.log2(n)) > int(3 * math.log2(n - 1)):
            for v in self.nodes:
                v.n, v.stay = v.n / 2, v.stay / 2
                v.counts = [[y, c / 2] for y, c in v.counts]
                v.set_bound(self.F, self.h)

    def learn(self, x, label, h=1.0):
        self.age(label)
        x = self.row(x)
        d, dimension = self.direction(x, h)
        choices = self.choices(x)
        new = self.train_way(x, d, dimension, label, h, choices)
        old = self.way(choices)
        answer = self.gather(old[0])
        scores = [self.scorers[y] @ x for y in answer]
        best = answer[int(np.argmax(scores))] if answer else -1
        self.total += h
        self.wrong += h * (best != label)
        self.missed += h * (label not in answer)

        path, beyond = old if self.honest else new
        self.insert([*path, beyond] if beyond is not None else path, label, h)
        if path[-1] != old[0][-1]:
            learning = self.gather(path)
        else:
            learning = answer
            own = [y for y, _ in self.nodes[path[-1]].counts[: self.F]]
            if label not in answer and label in own:
                learning = [*answer[: self.F - 1], label]
        if label in learning:
            self.train_scorers(x, d, dimension, learning, label, h)
        return best

    def train_way(self, x, d, dimension, label, h, choices):
        """Train all nodes on the path; add children to those without."""
        j, path = 0, [0]
        for _ in range(self.D):
            v = self.nodes[j]
            if not v.children:
                first = len(self.nodes)
                v.children = list(range(first, first + self.arity))
                v.routers = [np.zeros(self.width, F) for _ in range(1, self.arity)]
                self.nodes += [Node(v.depth + 1, j) for _ in v.children]
                choices[j] = v.children[-1]  # a score of 0 goes right
            prices = [self.growth(child, label, h) for child in v.children]
            rate = self.router_rate / math.sqrt(1 + self.decay * v.trained / (4 + 0.03 * dimension))
            v.trained += h
            part = (0, self.arity, 0)
            while part[1] - part[0] > 1:
                router, left, right = self.halves(*part)
                dear = [min(prices[lo:hi]) for lo, hi, _ in (left, right)]
                y = -1.0 if dear[0] < dear[1] else 1.0
                p = v.routers[router] @ x
                step = F(y * max(0.0, min(abs(dear[0] - dear[1]) * rate, 1 - y * p)))
                v.routers[router] += step * d
                part = left if p + step < 0 else right
            child = v.children[part[0]]
            if self.stops(child):
                return path, child
            path.append(child)
            j = child
        return path, None

    def growth(self, j, label, h):
        """Return the growth of n times the entropy of node j if the label goes there."""
        v, new = self.nodes[j], self.entropy_with(j, label, h)
        return v.n * (new - v.entropy) + h * new

    def entropy_with(self, j, label, h):
        v = self.nodes[j]
        n, c, m = v.n, v.count(label), v.n + h
        kept = (v.entropy + plogp(c, n)) * (n / m) - math.log(n / m) * ((n - c) / m) if n else 0
        return kept - plogp(c + h, m)

    def insert(self, path, label, h):
        known_above = False
        for j in path:
            v = self.nodes[j]
            v.entropy = self.entropy_with(j, label, h)
            v.stay += h * known_above
            known_above = label in [y for y, _ in v.counts[: self.F]]
            at = next((i for i, (y, _) in enumerate(v.counts) if y == label), len(v.counts))
            if at == len(v.counts):
                v.counts.append([label, 0.0])
            v.counts[at][1] += h
            while at > 0 and v.counts[at - 1][1] < v.counts[at][1]:
                v.counts[at - 1 : at + 1] = v.counts[at], v.counts[at - 1]
                at -= 1
            v.n += h
            v.set_bound(self.F, self.h)

    def train_scorers(self, x, d, dimension, labels, label, h):
        p = self.scorers[labels] @ x
        slow = self.decay / (4 + 0.003 * dimension)
        a = h * self.rate / np.sqrt(1 + slow * self.learned[labels])
        which = labels.index(label)
        y = np.full(len(labels), -1.0)
        y[which] = 1
        if self.loss == "margin":
            steps = np.zeros(len(labels))
            if len(labels) > 1:
                rival = int(np.argmax(np.where(y < 0, p, -np.inf)))
                gap = self.margin - p[which] + p[rival]
                steps[which] = max(0.0, min(a[which], gap / 2))
                steps[rival] = -steps[which]
        elif self.loss == "softmax":
            steps = self.softmax_steps(p.astype(float), which, a, h)
        else:
            steps = np.array([self.step(*at) for at in zip(y, p, a, strict=True)])
        self.scorers[labels] += steps[:, None].astype(F) * d
        self.learned[label] += h

    def softmax_steps(self, p, which, a, h):
        """Take steps of importance at most 1, with the margin subtracted from the label's score."""
        parts = math.ceil(min(max(h, 1), 32))
        p[which] -= self.margin
        steps = np.zeros(len(p))
        for _ in range(parts):
            probabilities = np.exp(p - p.max())
            slopes = probabilities / probabilities.sum()
            slopes[which] -= 1
            steps -= slopes * a / parts
            p -= slopes * a / parts
        return steps

    def step(self, y, p, a):
        """Return the end of the gradient flow after the time a; the product is 1."""
        if self.loss == "squared":
            return (y - p) * -math.expm1(-2 * a)
        if self.loss == "squared_hinge":
            return y * max(0.0, 1 - y * p) * -math.expm1(-a)
        if self.loss == "hinge":
            return y * max(0.0, min(a, 1 - y * p))
        assert self.loss == "logistic"
        m, end = y * p, y * p  # m + e^m grows by a
        for _ in range(100):
            end -= (end + math.exp(end) - m - math.exp(m) - a) / (1 + math.exp(end))
        return y * (end - m)

    # -- inspection ---------------------------------------------------------------

    def table(self):
        """Return the nodes that were seen, breadth first, as in ``tree_``."""
        order = [0]
        for j in order:
            order += [c for c in self.nodes[j].children if self.has_seen(c)]
        place = {j: at for at, j in enumerate(order)} | {-1: -1}
        nodes = [self.nodes[j] for j in order]
        tops = [v.counts[: self.F] for v in nodes]
        return {
            "parent": [place[v.parent] for v in nodes],
            "children": [
                [place.get(c, -1) for c in v.children or [-1] * self.arity] for v in nodes
            ],
            "depth": [v.depth for v in nodes],
            "n_examples": [v.n for v in nodes],
            "n_labels": [len(v.counts) for v in nodes],
            "n_trained": [v.trained for v in nodes],
            "label_entropy": [v.entropy for v in nodes],
            "recall_bound": [v.bound for v in nodes],
            "candidates": [y for top in tops for y, _ in top],
            "candidate_counts": [c for top in tops for _, c in top],
            "candidate_starts": np.cumsum([0, *map(len, tops)]),
        }

    def has_seen(self, j):
        return bool(self.nodes[j].counts or self.nodes[j].children)
