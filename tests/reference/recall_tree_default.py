"""Slow reference of Recall Tree as this package runs it by default.

Where it leaves Daume, Karampatziakis, Langford and Mineiro (ICML 2017), or Vowpal
Wabbit (``recall_tree.py``):

* Steps go along x_f / sqrt(sum of h x_f^2 so far), scaled to have the product 1 with x
  ("pn").  One such sum per column serves all routers and all scorers.
* A router learns by the hinge loss with the importance |delta left - delta right|, its
  rate falling as 1/sqrt(1 + n / (4 + 0.03 d)): n what the node was trained on, d the
  example's effective dimension, sum_f x_f^2 / (mean of x_f^2).  A scorer's falls as
  1/sqrt(1 + n / (4 + 0.003 d)), n being how often its label was learned.
* With more than two children the routers of a node halve them, each learning on which
  side the cheapest child lies.
* Honest: an example is counted along the way that it would have gone before anything
  learned from it; the routers learn on the way that it goes as they learn.
* Like with like: a way goes on to a child whose bound exceeds the share of the child's
  own examples whose label was a candidate of the parent when they came.  An unseen
  child is never entered, whatever the multiplier.
* Back-off: while there is room, an end takes candidates from the nodes above.
* Counts age: they are halved when the labels seen, more than F, have grown by a factor
  of 2^(1/3).
* The example's label learns with the candidates answered from, if it is one of the
  end's own now; it takes the last one's place.

With ``honest=False`` counting and the stop rule are as in the paper.  Scorers learn one
by one, or the label and its best rival by a margin, or all by the softmax.  What the
core does to small gradients of the softmax at random, so that few candidates are
written to, is left out here: this is its mean.
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
    """The default of ``RecallTreeClassifier`` without scaling; one example at a time."""

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
        """The example with its constant, dense."""
        return np.append(x, 1).astype(F)

    def direction(self, x, h):
        """Step direction of product 1 with x, and the effective dimension."""
        self.seen += h
        self.squares += F(h) * x * x
        filled = x != 0
        root = np.sqrt(self.squares[filled])
        d = np.zeros_like(x)
        d[filled] = x[filled] / root / F(np.sum(x[filled] ** 2 / root))
        dimension = np.sum(x[filled] ** 2 / self.squares[filled]) * self.seen
        return d, max(float(dimension), 1.0)

    # -- the way down -------------------------------------------------------------

    def halves(self, lo, hi, router=0):
        """(router, left, right) for each router of a node; halves are (lo, hi, router)."""
        mid = (lo + hi) // 2
        return router, (lo, mid, router + 1), (mid, hi, router + mid - lo)

    def choose(self, j, x):
        """The child that the routers of node j send x to."""
        part = (0, self.arity, 0)
        while part[1] - part[0] > 1:
            router, left, right = self.halves(*part)
            part = left if self.nodes[j].routers[router] @ x < 0 else right
        return self.nodes[j].children[part[0]]

    def stops(self, child):
        """Whether a child promises nothing that its parent would not hold as well."""
        if self.h == 0:
            return False
        v = self.nodes[child]
        if not self.honest:
            return self.nodes[v.parent].bound >= v.bound
        return not (v.n > 0 and F(v.stay / v.n) < v.bound)

    def is_end(self, child):
        return self.stops(child) or not self.nodes[child].counts

    def way(self, choices):
        """The way of a prediction, and the child it was held from, if any."""
        path = [0]
        while path[-1] in choices:
            child = choices[path[-1]]
            if self.is_end(child):
                return path, child
            path.append(child)
        return path, None

    def gather(self, path):
        """The end's candidates, then those of the nodes above while there is room."""
        found = []
        for j in reversed(path if self.back_off else path[-1:]):
            found += [y for y, _ in self.nodes[j].counts[: self.F] if y not in found]
        return found[: self.F]

    # -- prediction ---------------------------------------------------------------

    def choices(self, x):
        """For every internal node, where it sends x."""
        return {j: self.choose(j, x) for j, v in enumerate(self.nodes) if v.children}

    def scores(self, x):
        """Candidates and their scores."""
        x = self.row(x)
        labels = self.gather(self.way(self.choices(x))[0])
        return labels, [self.scorers[y] @ x for y in labels]

    # -- learning -----------------------------------------------------------------

    def age(self, label):
        """Halves all counts when the labels seen have grown by a factor of 2^(1/3)."""
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
        """All nodes on the way learn; those that had no children get some."""
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
        """By how much n times the entropy of node j grows if the label goes there."""
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
        """In parts of importance 1, the label's score taken for less by the margin."""
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
        """The end of the gradient flow after a time of a; the product is 1."""
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
        """Nodes that were seen, breadth first, as ``tree_`` has them."""
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
