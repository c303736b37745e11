"""Slow reference of Recall Tree as Vowpal Wabbit's ``--recall_tree K`` runs it.

Source: Daume, Karampatziakis, Langford and Mineiro, "Logarithmic Time
One-Against-Some", ICML 2017 (arXiv 1606.04988), with the behavior of VW 9.11.9:

* The tree is complete to depth D from the start; a node's two children are numbered
  together, then the left one's descendants, then the right one's; routers in
  preorder.  F = min(K, 4 L) and D = L by default, L = ceil(ln K / ln 2) in float64
  (one too many at K = 2^29).  K = 1 has F = 0: it never predicts a label.
* Predictors: a router per internal node and a scorer per label, each with its own
  w, G, s, t and N; one clamp [lo, hi] for all of them together, so the first -1
  learned by any of them counts for all.
* Learning walks down from the root.  At an internal node: (1) target -1 if delta
  left < delta right, else +1 (ties and NaN too); (2) the router learns it; (3) its
  score is computed again and clamped: < 0 is left; (4) the stopping rule compares
  this node's bound with the child's, both without this example; (5) the example is
  inserted here, and if the walk stops in the child as well.  At a leaf: inserted.
* If the label is then among the first F of the node where the walk ended (the
  parent, not the child, if it stopped), the scorers learn: +1 for the label first,
  then -1 for each other one of the F.  Nothing is learned otherwise.
* Prediction walks by the unclamped scores with the same rule, and returns the
  candidate with the best unclamped score, ties to the one that comes first.  A node
  without labels (before training; unseen leaves if h = 0) predicts none.
* The weight of an example affects t, N and the steps of its routers and scorers, as
  for any linear learner, and n and the counts.  The difference of the deltas is not a
  weight: routers are *not* importance weighted.
* Labels are in decreasing order of counts; equal counts keep the order in which they
  were reached.  New labels come last, and those of weight 0 stay there.
* n, counts, entropy and deltas are float64, the bound float32.
* Weight 0 changes no regressor, but it widens the clamp and lists its label with
  count 0.  At a node of n = 0 it makes the entropy NaN forever; the router above
  then sends everything right, so such early rows can make VW's tree useless.

With ``paper`` two formulas are the paper's instead.  A router learns with the importance
|H|left - H|right| (Section 2, Figure 2b): H|left is the average of the children's entropies,
weighted by their examples, after the example has been routed left.  The last term of the
bound is h / n (Eq. 1), not 15 h / (sqrt(18) n).

Columns of the predictors: x, an indicator per node, the constant.
"""

import math
from dataclasses import dataclass, field

import numpy as np

from .vw_linear import F, VWLinear


class WholeRows(VWLinear):
    """A :class:`VWLinear` for rows that already contain the constant (index -1)."""

    @staticmethod
    def with_constant(idx, x):
        return idx, x


@dataclass
class Node:
    """State of one node; n, counts and entropy are float64, the bound float32."""

    parent: int
    depth: int
    left: int | None = None
    right: int | None = None
    router: int | None = None  # its row in ``RecallTree.base``
    n: float = 0.0  # weight inserted here
    entropy: float = 0.0  # entropy of the labels inserted here, in nats
    bound: np.float32 = F(0)  # noqa: RUF009  (immutable)
    counts: list = field(default_factory=list)  # [label, weight], most frequent first

    @property
    def is_leaf(self):
        return self.left is None

    def count(self, label):
        """Return the weight of ``label`` at this node."""
        return next((c for y, c in self.counts if y == label), 0.0)


class RecallTree:
    """``vw --recall_tree n_classes``; labels from 0, and -1 (0 in VW) is no label."""

    def __init__(
        self,
        n_classes,
        n_features,
        max_candidates=None,
        max_depth=None,
        bern_hyper=1.0,
        node_only=False,
        loss="squared",
        learning_rate=0.5,
        tau=0.5,
        paper=False,
    ):
        self.paper = paper
        log2 = math.ceil(math.log(n_classes) / math.log(2.0))
        self.F = min(n_classes, 4 * log2) if max_candidates is None else max_candidates
        self.D = log2 if max_depth is None else max_depth
        self.h, self.node_only, self.n_features = F(bern_hyper), node_only, n_features
        self.nodes, self.n_routers = [Node(0, 0)], 0
        self.grow(0)
        n_columns = n_features + len(self.nodes)
        self.base = WholeRows(self.n_routers + n_classes, n_columns, loss, learning_rate, tau)
        self.last_node = 0  # where the last prediction was made
        self.last_score = F(0)  # of the last evaluated predictor, the only one that VW shows

    def grow(self, j):
        """Add children down to depth D: both get their number, then the left one grows."""
        v = self.nodes[j]
        if v.depth >= self.D:
            return
        v.left, v.right = len(self.nodes), len(self.nodes) + 1
        v.router = self.n_routers
        self.n_routers += 1
        self.nodes += [Node(j, v.depth + 1), Node(j, v.depth + 1)]
        self.grow(v.left)
        self.grow(v.right)

    # -- features -----------------------------------------------------------------

    @staticmethod
    def router_row(idx, x):
        """Return the row for routers: x, with the constant as the last feature."""
        return np.append(idx, -1), np.append(x, 1).astype(F)

    def scorer_row(self, j, idx, x):
        """Return the row for scorers at node j: x, the constant, then indicators of value 1.

        These are the indicators of j, its parent and so on upwards, without the root's; with
        ``node_only`` only that of j, even for the root.
        """
        path = [j] if self.node_only else self.path(j)
        at = [self.n_features + v for v in path]
        return np.concatenate([idx, [-1], at]).astype(int), np.append(
            x, [1] * (1 + len(at))
        ).astype(F)

    def path(self, j):
        """Return j and its ancestors below the root, deepest first."""
        path = []
        while j != 0:
            path.append(j)
            j = self.nodes[j].parent
        return path

    # -- prediction ---------------------------------------------------------------

    def score(self, rows, row):
        """Return the unclamped scores of the predictors ``rows``."""
        scores = self.base.score(rows, *row)
        self.last_score = scores[-1]
        return scores

    def child(self, j, score):
        """Return the child for a score: left if negative, else right."""
        return self.nodes[j].left if score < 0 else self.nodes[j].right

    def stops(self, j, child):
        """Return whether j's bound is at least that of ``child``, which is then not entered."""
        return self.h > 0 and self.nodes[j].bound >= self.nodes[child].bound

    def final(self, idx, x):
        """Return the node where a prediction is made, routed by *unclamped* scores."""
        j, row = 0, self.router_row(idx, x)
        while not self.nodes[j].is_leaf:
            child = self.child(j, self.score([self.nodes[j].router], row)[0])
            if self.stops(j, child):
                break
            j = child
        return j

    def candidates(self, j):
        """Return the labels scored at node j, in the order of its counts."""
        return [y for y, _ in self.nodes[j].counts[: self.F]]

    def predict(self, idx, x):
        """Return the candidate with the best *unclamped* score, the first of ties."""
        j = self.last_node = self.final(idx, x)
        labels = self.candidates(j)
        if not labels:
            return -1
        rows = self.n_routers + np.array(labels)
        return labels[int(np.argmax(self.score(rows, self.scorer_row(j, idx, x))))]

    # -- learning -----------------------------------------------------------------

    def learn(self, idx, x, label, h=1.0):
        """Learn one example of weight h; return the progressive prediction."""
        prediction = self.predict(idx, x)
        h, j = float(F(h)), 0
        while not self.nodes[j].is_leaf:
            child = self.child(j, self.train_router(j, idx, x, label, h))
            stop = self.stops(j, child)  # bounds do not include this example yet
            self.insert(j, label, h)
            if stop:
                self.insert(child, label, h)
                break
            j = child
        if self.nodes[j].is_leaf:
            self.insert(j, label, h)
        if label in self.candidates(j):  # j includes this example now
            self.train_scorers(j, idx, x, label, h)
        return prediction

    def train_router(self, j, idx, x, label, h):
        """Train the router towards the smaller entropy growth; return its new *clamped* score."""
        v = self.nodes[j]
        target = -1.0 if self.growth(v.left, label, h) < self.growth(v.right, label, h) else 1.0
        row = self.router_row(idx, x)
        importance = self.entropy_difference(v, label, h) if self.paper else h
        self.base.learn(v.router, *row, target, importance)
        return self.base.clamp(self.base.score([v.router], *row)[0])

    def entropy_difference(self, v, label, h):
        """Return the difference in average entropy between routing left and right."""
        total = self.nodes[v.left].n + self.nodes[v.right].n + h

        def average(j, other):
            this, rest = self.nodes[j], self.nodes[other]
            return ((this.n + h) * self.entropy_with(j, label, h) + rest.n * rest.entropy) / total

        return abs(average(v.left, v.right) - average(v.right, v.left))

    def train_scorers(self, j, idx, x, label, h):
        """Train +1 for the label first, then -1 for the other candidates."""
        row = self.scorer_row(j, idx, x)
        self.base.learn(self.n_routers + label, *row, 1.0, h)
        others = [self.n_routers + y for y in self.candidates(j) if y != label]
        if others:
            self.base.widen(-1)
            p = self.base.clamp(self.base.score(others, *row))
            self.base.update(others, *row, np.full(len(others), -1.0), h, p)

    def growth(self, j, label, h):
        """Return the growth of n times the entropy of node j if the label goes there."""
        v, new = self.nodes[j], self.entropy_with(j, label, h)
        return v.n * (new - v.entropy) + h * new

    def entropy_with(self, j, label, h):
        """Return the entropy of node j after adding weight h of the label, in float64.

        It is NaN, and stays so, if only weight 0 has reached the node.
        """
        v = self.nodes[j]
        n, c = v.n, v.count(label)
        if n + h == 0:
            return math.nan
        shrink = n / (h + n)
        log_shrink = 0.0 if shrink == 0 else math.log(shrink)
        H = (v.entropy + plogp(c, n)) * shrink
        return H - log_shrink * ((n - c) / (n + h)) - plogp(c + h, n + h)

    def insert(self, j, label, h):
        """Add weight h of the label to node j."""
        v = self.nodes[j]
        v.entropy = self.entropy_with(j, label, h)
        at = next((i for i, (y, _) in enumerate(v.counts) if y == label), None)
        if at is None:
            at = len(v.counts)
            v.counts.append([label, 0.0])
        v.counts[at][1] += h
        while at > 0 and v.counts[at - 1][1] < v.counts[at][1]:
            v.counts[at - 1 : at + 1] = v.counts[at], v.counts[at - 1]
            at -= 1
        v.n += h
        if v.n > 0:
            v.bound = self.recall_bound(v)

    def recall_bound(self, v):
        """Return the lower bound on the recall of v's candidates: float32 except for the sum."""
        n = F(v.n)
        f = F(sum(c for _, c in v.counts[: self.F])) / n
        # With weights, f may round to more than 1; the square root is then NaN and the bound 0.
        with np.errstate(invalid="ignore"):
            deviation = np.sqrt(f * (F(1) - f) / n)
        worst = F(1) / n if self.paper else F(15) / (np.sqrt(F(18)) * n)
        bound = f - np.sqrt(self.h) * deviation - self.h * worst
        return bound if bound > 0 else F(0)

    # -- inspection ---------------------------------------------------------------

    def table(self):
        """Return the state of each node as a dict, for comparisons."""
        fields = ("parent", "depth", "left", "right", "router", "n", "entropy", "bound")
        return [
            {f: getattr(v, f) for f in fields} | {"counts": [tuple(c) for c in v.counts]}
            for v in self.nodes
        ]

    def check(self):
        """Assert what follows from the definition, up to rounding."""
        assert len(self.nodes) == 2 ** (self.D + 1) - 1
        assert self.n_routers == 2**self.D - 1
        for v in self.nodes:
            counts = [c for _, c in v.counts]
            assert counts == sorted(counts, reverse=True)
            assert math.isclose(v.n, sum(counts))
            if v.n > 0 and not math.isnan(v.entropy):
                direct = -sum(plogp(c, v.n) for c in counts)
                assert math.isclose(v.entropy, direct, abs_tol=1e-9)


def plogp(c, n):
    """Return (c/n) ln(c/n), or 0 for c = 0."""
    return 0.0 if c == 0 else (c / n) * math.log(c / n)
