"""Slow reference of LOMtree as Vowpal Wabbit's ``--log_multi`` runs it.

Source: Choromanska and Langford, "Logarithmic Time Online Multiclass
prediction", NIPS 2015, Algorithm 1; letters (l, m, n, e, E, C, R_S, T) are theirs.
Where VW 9.11 differs from the paper or adds to it, this code follows VW:

* T (internal nodes) is k - 1 for ``--log_multi k``; nothing stops the labels from
  exceeding k, so k sets T alone.  The loss is quantile with tau = 1/2 whatever
  ``--loss_function`` says; one predictor of :mod:`vw_linear` per internal node.
* The score added to m is the *unclamped* one after the update, so it may lie far
  outside [-1, 1].  Routing uses the *clamped* one after the update: left if
  < 0, else right.  They differ only while no -1 has been learned anywhere: the
  clamp is then [0, 1] and every example goes right.
* m and sum m are float64, counts are integers, but e = float32(m) / float32(n),
  and it is these float32 values that are compared.  A label without a score here
  has e = 0, so the test reads E > 0 at its first training.
* E > e(y) is strict: ties (always when only one label was trained) give +1.
* The majority label of a node is replaced only when another label's count
  *exceeds* the record; ties stay with the label that got there first.  A new child
  starts with the parent's majority label (the current example included) and a
  record of 0, so its first arrival overrides it.  An empty tree predicts label 0.
* l, majority, m and n are still counted at a node after it has split.
* Importance weights affect only the regressor (and t, N); counts add 1 per example.
* The recycled parent's regressor passes to j with its weights, G, s, t and N.
* The smallest leaf is found walking down to the child with the smaller C, ties
  right.  Upward, C is recomputed until a parent already has its child's value.

One case differs from VW.  If the parent of the smallest leaf is the root, VW 9.11 makes
the root itself an empty leaf below j.  Only this leaf can still be reached, and it can
never satisfy (2), so VW then predicts the most frequent label since then (seen in its
model dump).  Here the sibling becomes the new root.
``root_swaps`` counts these, and the golden files hold none.  R_S = 0 is refused:
the smallest leaf might be j itself.
"""

# ruff: noqa: SIM300  (C and E are Algorithm 1's names, not constants)

from dataclasses import dataclass, field

import numpy as np

from .vw_linear import F, VWLinear


@dataclass
class Node:
    """State of one node, with the initial values of the paper's SetNode."""

    parent: int | None = None
    left: int | None = None
    right: int | None = None
    C: int = 0  # leaf: examples that stopped here; internal: min over its children
    l: dict = field(default_factory=dict)  # label -> arrivals  # noqa: E741
    n: dict = field(default_factory=dict)  # label -> trainings
    m: dict = field(default_factory=dict)  # label -> sum of scores, float64
    e: dict = field(default_factory=dict)  # label -> m/n, float32
    n_total: int = 0
    m_total: float = 0.0
    E: np.float32 = F(0)  # noqa: RUF009  (immutable)
    majority: int = 0
    majority_count: int = 0
    regressor: int | None = None
    recycled: int = 0  # number of times Swap recycled this id (Lemma 3 bounds it)
    sent: list = field(default_factory=list)  # (label, went right) of every training
    lost_child: bool = False  # True if Swap put a grandchild in the place of a child

    @property
    def is_leaf(self):
        return self.left is None

    def split(self):
        """Return J of Eq. 1, beta and alpha of the router, over the examples it has routed.

        They are NaN if Swap took a child, as the child's counts went with it.
        """
        if self.is_leaf or self.lost_child:
            return (np.nan,) * 3
        labels, right = np.array(self.sent).T
        beta = right.mean()
        shares = [(np.mean(labels == y), right[labels == y].mean()) for y in np.unique(labels)]
        j = 2 * sum(pi * abs(beta - p) for pi, p in shares)
        return j, beta, sum(pi * min(p, 1 - p) for pi, p in shares)


class LOMTree:
    """``vw --log_multi (max_internal + 1) --swap_resistance R_S``; labels from 0."""

    def __init__(self, n_features, max_internal, swap_resistance=4, eta=0.5):
        if swap_resistance < 1:
            raise ValueError(f"swap_resistance = {swap_resistance}, must be at least 1")
        self.T, self.R_S = max_internal, swap_resistance
        self.base = VWLinear(max(max_internal, 1), n_features, "quantile", eta, 0.5)
        self.nodes, self.root = [Node()], 0
        self.used = 0  # regressors given out = internal nodes
        self.swaps = self.root_swaps = 0

    # -- prediction ---------------------------------------------------------------

    def clamped(self, j, idx, x):
        """Return the score that decides the direction at internal node ``j``."""
        return self.base.clamp(self.base.score([self.nodes[j].regressor], idx, x)[0])

    def child(self, j, score):
        """Return the child for a score: left if negative, else right."""
        return self.nodes[j].left if score < 0 else self.nodes[j].right

    def leaf(self, idx, x):
        """Return the leaf of an example, and the nodes on the path."""
        path = [self.root]
        while not self.nodes[path[-1]].is_leaf:
            path.append(self.child(path[-1], self.clamped(path[-1], idx, x)))
        return path[-1], path

    def predict(self, idx, x):
        """Return the majority label of the leaf."""
        return self.nodes[self.leaf(idx, x)[0]].majority

    # -- learning -----------------------------------------------------------------

    def learn(self, idx, x, label, h=1.0):
        """Learn one example by Algorithm 1; return the progressive prediction."""
        prediction = self.predict(idx, x)
        j = self.root
        while True:
            self.count(j, label)
            if self.nodes[j].is_leaf and self.may_split(j):
                self.split(j)
            if self.nodes[j].is_leaf:
                break
            j = self.train(j, idx, x, label, h)
        self.nodes[j].C += 1
        self.update_c(j)
        return prediction

    def count(self, j, label):
        """Increment l_j(y) and update the majority label; a new label gets an empty record."""
        v = self.nodes[j]
        if label not in v.l:
            v.l[label], v.n[label], v.m[label], v.e[label] = 0, 0, 0.0, F(0)
        v.l[label] += 1
        if v.l[label] > v.majority_count:
            v.majority, v.majority_count = label, v.l[label]

    def may_split(self, j):
        """Return whether two labels were seen, and nodes are left or Eq. 2 holds."""
        v = self.nodes[j]
        smallest = self.nodes[self.root].C
        crowded = v.C - max(v.l.values()) > self.R_S * (smallest + 1)
        return len(v.l) >= 2 and (self.used < self.T or crowded)

    def split(self, j):
        """Give leaf ``j`` two children: new ones while nodes are left, else by Swap."""
        v = self.nodes[j]
        if self.used < self.T:
            left, right = len(self.nodes), len(self.nodes) + 1
            self.nodes += [Node(), Node()]
            v.regressor = self.used
            self.used += 1
        else:
            left, right, v.regressor = self.swap()
        v.left, v.right = left, right
        for c in (left, right):
            self.nodes[c].parent = j
            self.nodes[c].majority = v.majority
        self.nodes[left].C = v.C // 2
        self.nodes[right].C = v.C - v.C // 2
        self.update_c(left)

    def swap(self):
        """Remove the smallest leaf and its parent; return (left, right, regressor) for j."""
        self.swaps += 1
        s = self.root
        while not self.nodes[s].is_leaf:
            left, right = self.nodes[s].left, self.nodes[s].right
            s = left if self.nodes[left].C < self.nodes[right].C else right
        pa = self.nodes[s].parent
        sib = self.nodes[pa].right if s == self.nodes[pa].left else self.nodes[pa].left
        gpa = self.nodes[pa].parent
        self.nodes[sib].parent = gpa
        if gpa is None:  # unlike VW, the sibling becomes the root
            self.root_swaps += 1
            self.root = sib
        else:
            self.nodes[gpa].lost_child = True
            if self.nodes[gpa].left == pa:
                self.nodes[gpa].left = sib
            else:
                self.nodes[gpa].right = sib
        self.update_c(sib)
        regressor = self.nodes[pa].regressor
        for old in (s, pa):
            self.nodes[old] = Node(recycled=self.nodes[old].recycled + 1)
        return s, pa, regressor

    def update_c(self, j):
        """Run UpdateC: propagate the minimum upwards from ``j``."""
        while j != self.root:
            child, j = self.nodes[j].C, self.nodes[j].parent
            v = self.nodes[j]
            if v.C == child:
                break
            v.C = min(self.nodes[v.left].C, self.nodes[v.right].C)

    def train(self, j, idx, x, label, h):
        """Train h_j, add the new score to m, n, e and E, and return the next node."""
        v = self.nodes[j]
        target = -1.0 if v.E > v.e[label] else 1.0
        self.base.learn(v.regressor, idx, x, target, h)
        score = self.base.score([v.regressor], idx, x)[0]
        v.m_total += float(score)
        v.m[label] += float(score)
        v.n_total += 1
        v.n[label] += 1
        v.E = F(v.m_total) / F(v.n_total)
        v.e[label] = F(v.m[label]) / F(v.n[label])
        child = self.child(j, self.base.clamp(score))
        v.sent.append((label, child == v.right))
        return child

    # -- inspection ---------------------------------------------------------------

    def check(self):
        """Assert the structural invariants of Algorithm 1."""
        seen, todo = set(), [self.root]
        assert self.nodes[self.root].parent is None
        while todo:
            j = todo.pop()
            assert j not in seen, f"node {j} is reached twice"
            seen.add(j)
            v = self.nodes[j]
            if v.is_leaf:
                continue
            assert v.C == min(self.nodes[v.left].C, self.nodes[v.right].C)
            for c in (v.left, v.right):
                assert self.nodes[c].parent == j
                todo.append(c)
        assert seen == set(range(len(self.nodes)))
        internal = [v for v in self.nodes if not v.is_leaf]
        assert len(self.nodes) == 2 * len(internal) + 1
        assert len(internal) == self.used <= self.T
        assert sorted(v.regressor for v in internal) == list(range(self.used))

    def table(self, node_fields=("parent", "left", "right", "C", "n_total", "m_total", "E")):
        """Return the given fields and {label: (l, n, m, e)} of each node, for comparisons."""
        return [
            {f: getattr(v, f) for f in node_fields}
            | {"labels": {y: (v.l[y], v.n[y], v.m[y], v.e[y]) for y in sorted(v.l)}}
            for v in self.nodes
        ]
