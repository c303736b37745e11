"""Recall Tree: a tree selects candidates, linear scorers choose among them."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import Bunch

from xmtree import _one_row, _validation
from xmtree._explanation import LinearMixin
from xmtree._labels import encode_single
from xmtree._labels.forms import positions
from xmtree._online import OnlineLearner
from xmtree._prediction import TopK, in_parts
from xmtree._sklearn import validate_params
from xmtree._trees import TreeMixin
from xmtree._typing import LabelsLike, MatrixLike, OneLabelMixin, Seed, Weights


@dataclass(eq=False, kw_only=True, repr=False)
class RecallTreeClassifier(OneLabelMixin, LinearMixin, TreeMixin, OnlineLearner):
    """Recall Tree: a tree selects a few candidates, scorers choose among them.

    Routers send an example to the side where its label raises the entropy of the labels least
    (Section 2 of [1]_). Each node stores its most frequent labels, the candidates. Routing ends
    where a lower bound on the candidates' recall (Eq. 1) would no longer rise. One-against-some
    scorers, one per class and shared by the whole tree, then choose among the candidates of that
    node. Training and prediction take time proportional to the depth and to the number of
    candidates, both about the logarithm of the number of classes.

    The Recall Tree is slower than :class:`LOMTreeClassifier` and usually more accurate: the tree
    only has to find the candidates, and a linear scorer predicts, as in :class:`OAAClassifier`.
    Its accuracy is at most the share of examples whose label is among the candidates, which
    :meth:`candidate_recall` measures. More candidates or a wider beam raise it.

    Parameters are grouped. The first ones are those to know; those from ``max_depth`` on are for
    tuning; those from ``loss`` on are for comparisons with the paper and its authors' program.

    Parameters
    ----------
    beam_size : int, default=4
        Largest number of paths that a prediction follows; the candidates of their last nodes are
        scored. Paths less than a tenth as probable as the best are dropped. 1 is the
        greedy path alone, as in the paper. May be changed after ``fit``.
    max_candidates : int, optional
        F of [1]_: largest number of candidates of a node. By default 4 ceil(log2(n_classes)),
        where :meth:`fit` counts 2**H classes, with H the entropy of ``y`` in bits: all classes if
        they are equally frequent, far fewer if only some are frequent. Time is nearly
        proportional to F; twice as many candidates are more accurate without a beam. With F equal
        to the number of classes, the scorers see all classes.
    n_passes : int, default=5
        Largest number of passes of ``fit`` over the examples, each in a new order.
    scaling : {"auto", "none", "row", "standard", "log"}, default="auto"
        Scaling of features before learning; see :class:`OAAClassifier`.
    class_weight : dict or "balanced", optional, as for :class:`OAAClassifier`
    calibrate : bool, default=True, as for :class:`OAAClassifier`
    random_state : int, RandomState or None, default=None, as for :class:`OAAClassifier`
    n_jobs : int, optional
        Number of threads; None is 1, -1 is all cores. The model does not depend on it. Two threads
        speed up training with "softmax" and "margin".
    verbose : int, default=0, as for :class:`OAAClassifier`
        Also with the progressive recall of the candidates.
    max_depth : int, optional
        D of [1]_: largest depth of the tree. By default three quarters of the levels that would
        separate all classes, counted as for ``max_candidates``, rounded up. The last levels cost
        time without raising accuracy.
    bern_hyper : float, default=4.0
        Multiplier of the recall bound (Eq. 1 of [1]_). The larger it is, the more examples a node
        must have seen before routing continues past its parent. A tiny one, such as 1e-12,
        compares the empirical recall itself (Section 4.5 of [1]_). 0 disables the rule, as in
        Vowpal Wabbit, so that every path has the full depth. The paper and Vowpal Wabbit use 1;
        4 saves time at the same accuracy.
    margin : float, default=4.0
        Margin by which the label's score must exceed the others: "softmax" subtracts it from the
        label's score, and "margin" requires this gap. Without effect on the other losses.
    learning_rate : float, optional
        Step size of the scorers. By default 9 with "softmax", whose gradient never vanishes, 1
        with "margin", and 0.5 with the other losses, where routers use it too.
    path_weight : float, default=0.5
        Weight of the logarithm of a path's probability in the scores of the candidates
        at its end, with a beam. At 0, a wide beam lowers accuracy. May be changed after ``fit``.
    early_stopping : bool, default=False, as for :class:`OAAClassifier`
    n_bits : int, optional, as for :class:`OAAClassifier`
    loss : {"softmax", "margin", "squared", "logistic", "quantile", "hinge"}, default="softmax"
        Loss of the scorers. "softmax" is the cross-entropy over the candidates; "margin" separates
        the scores of the label and of its best rival. The others train each candidate on its own,
        as in the paper; routers then have the same loss, and all steps are those of Vowpal Wabbit
        ("nag", see :class:`OAAClassifier`).
    paper_tree : bool, default=False
        If True, the tree is built as in [1]_, and F and D are chosen for all classes, D as
        ceil(log2(n_classes)). The default rules differ in four points:

        - An example is counted at the nodes to which the routers sent it before they learned
          from it, as in prediction, and not after.
        - A node is compared with its parent on the examples that reached both.
        - A node of few labels takes further candidates from the nodes above.
        - In a stream, counts fade: all are halved whenever the number of labels seen has grown by
          a fourth.
    recall_bound : {"vw", "paper"}, default="vw"
        Form of the recall bound. Its last term is ``bern_hyper`` / m for m examples with "paper"
        (Eq. 1 of [1]_), and 15 / sqrt(18) = 3.5 times that with "vw", as in Vowpal Wabbit.
    router_importance : {"entropy", "average_entropy", "none"}, default="entropy"
        Importance of an example for a router. "average_entropy": the difference that the side makes
        to the average entropy of the children, as in the paper (Section 2). It falls like 1/n after
        n examples. "entropy": n times that, the difference in the sum over the examples. "none":
        the weight of the example, as in Vowpal Wabbit.
    path_features : {"none", "all", "node_only"}, default="none"
        Features of the path that the scorers see beside the example. "none": nothing. "all": an
        indicator for each node on the path except the root, as in the paper. "node_only": one for
        the last node. Only "none" with "softmax" and "margin", whose errors the others raise.
    scale_weights : bool, default=True
        If True, ``sample_weight`` is divided by its mean; see :class:`OAAClassifier`. The
        paper's settings use weights as they are.

    Attributes
    ----------
    classes_, n_features_in_, feature_names_in_ : as for :class:`OAAClassifier`
    coef_, intercept_ : as for :class:`OAAClassifier`
        Weights of the scorers, without those of ``path_features``.
    max_candidates_ : int
        F, the largest number of candidates of a node.
    max_depth_ : int
        D, the largest depth of the tree.
    tree_ : Bunch of read-only arrays
        One entry per node that has seen an example, the root first, parents before
        children.

        - ``parent``: -1 at the root.
        - ``children``, of shape (n_nodes, 2): -1 for none.
        - ``depth``: distance from the root.
        - ``n_examples``: examples seen, by importance weight, at ``held`` nodes too.
        - ``n_labels``: distinct labels seen.
        - ``label``: the most frequent of them, as an index into ``classes_``.
        - ``label_entropy``: entropy of the labels seen, in nats.
        - ``recall``: share of the examples seen whose label is a candidate.
        - ``recall_bound``: its lower bound, which the stop rule uses.
        - ``held``: True if the stop rule ends all paths at the parent. Examples
          are still counted here, so that the node collects its statistics.
        - ``n_trained``: updates of the node's routers, by importance weight.
        - ``candidates``: the candidates of all nodes, node after node, each node's most frequent
          label first, as indices into ``classes_``.
        - ``candidate_counts``: number of times each of them was seen, by importance weight.
        - ``candidate_starts``, of length n_nodes + 1: node i has the candidates from
          ``candidate_starts[i]`` to ``candidate_starts[i + 1]``, without those of its ancestors.
    trees_ : list of Bunch, ``tree_`` in a list
    progressive_loss_ : float, as for :class:`OAAClassifier`
        Measured without a beam.
    progressive_recall_ : float
        Share of the examples whose label was among the candidates just before they
        were learned, by importance weight, in the first pass.
    n_examples_seen_ : int, as for :class:`OAAClassifier`

    Notes
    -----
    A score is that of the scorer; with a beam, the weighted log-probability of the path is added.
    Only the candidates have a score, so there is no ``decision_function``. With "softmax", scores
    are logits among the candidates. Calibrated probabilities follow from the scores as those of
    :class:`OAAClassifier`. Without calibration they are the softmax over the candidates, and other
    labels have probability 0.

    After several passes, the recall in ``tree_`` is near 1. To estimate the recall on new examples,
    use :meth:`candidate_recall` on held-out examples, or ``progressive_recall_`` of a first pass.

    ``RecallTreeClassifier(**RecallTreeClassifier.PAPER)`` has the paper's settings (its
    Table 3): logistic loss, steps of size 1, routers weighted by the difference of the average
    entropies, the recall bound of Eq. 1, and an indicator for each node of the path. The tree has
    ceil(log2 K) levels, 4 ceil(log2 K) candidates and the multiplier 1.
    ``RecallTreeClassifier(**RecallTreeClassifier.VW)`` predicts what
    the authors' program, Vowpal Wabbit's ``--recall_tree``, predicts on the same stream
    (``partial_fit`` keeps the order of the rows): squared loss, steps of 0.5, unweighted
    routers. The defaults here are the same for all data; see docs/experiments/recall-tree.md.

    References
    ----------
    .. [1] H. Daume III, N. Karampatziakis, J. Langford, P. Mineiro, "Logarithmic
       Time One-Against-Some", ICML 2017: Section 2 (the tree, its routers and the
       recall bound, Eq. 1), Figures 1 and 2 (prediction and learning), Section 4
       (path features, number of candidates).

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from xmtree import RecallTreeClassifier
    >>> X, y = load_digits(return_X_y=True)
    >>> clf = RecallTreeClassifier(max_candidates=4, random_state=0)
    >>> clf = clf.fit(X[:1500], y[:1500])
    >>> clf.score(X[1500:], y[1500:]) > 0.8
    True
    >>> bool(clf.score(X, y) <= clf.candidate_recall(X, y))
    True
    """

    _short_name = "recall-tree"
    _prediction_params = frozenset({"beam_size", "path_weight"})

    #: Settings that reproduce the authors' program, Vowpal Wabbit.
    VW: ClassVar[dict[str, Any]] = {
        "paper_tree": True,
        "bern_hyper": 1.0,
        "recall_bound": "vw",
        "loss": "squared",
        "learning_rate": 0.5,
        "router_importance": "none",
        "path_features": "all",
        "scaling": "none",
        "scale_weights": False,
        "beam_size": 1,
        "n_passes": 1,
    }

    #: Defaults of the paper (its Table 3) and the formulas of its text, with the steps of Vowpal
    #: Wabbit, which its experiments used.
    PAPER: ClassVar[dict[str, Any]] = {
        **VW,
        "loss": "logistic",
        "learning_rate": 1.0,
        "recall_bound": "paper",
        "router_importance": "average_entropy",
    }

    beam_size: int = 4
    max_candidates: int | None = None
    n_passes: int = 5
    scaling: str = "auto"
    class_weight: dict[Any, float] | Literal["balanced"] | None = None
    calibrate: bool = True
    random_state: Seed = None
    n_jobs: int | None = None
    verbose: int = 0
    max_depth: int | None = None
    bern_hyper: float = 4.0
    margin: float = 4.0
    learning_rate: float | None = None
    path_weight: float = 0.5
    early_stopping: bool = False
    n_bits: int | None = None
    loss: str = "softmax"
    paper_tree: bool = False
    recall_bound: str = "vw"
    router_importance: str = "entropy"
    path_features: str = "none"
    scale_weights: bool = True

    def candidate_recall(
        self, X: MatrixLike, y: LabelsLike, sample_weight: Weights = None
    ) -> float:
        """Return the share of rows whose label is a candidate, an upper bound of :meth:`score`.

        Parameters
        ----------
        X : array or sparse matrix of shape (n, n_features), or a data frame
        y : array of shape (n,)
            True labels. Labels that are not in ``classes_`` count as missed.
        sample_weight : array of shape (n,), optional
            Importance weights, not negative; 1 by default.

        Returns
        -------
        float
        """
        now, rows = self._now(X)
        target = encode_single(y, "y")
        codes = positions(target.classes, now.classes_)[target.codes]
        if len(codes) != rows.shape[0]:
            raise ValueError(f"X has {rows.shape[0]} rows, but y has {len(codes)} labels")
        weights = _validation.weights(sample_weight, rows)
        k = now._n_scored()
        found = np.zeros(len(codes), bool)
        for part, some in in_parts(rows, k):
            candidates, _ = now._topk(some, k)
            wanted = codes[part, np.newaxis]
            found[part] = np.any((candidates == wanted) & (wanted >= 0), axis=1)
        return float(np.average(found, weights=weights))

    @property
    def progressive_recall_(self) -> float:
        """Return the progressive recall of the candidates, over the first pass."""
        return float(self._fitted().summary()["progressive_recall"])

    @property
    def max_candidates_(self) -> int:
        """Return F, the largest number of candidates of a node."""
        return int(self._fitted().summary()["max_candidates"])

    @property
    def max_depth_(self) -> int:
        """Return D, the largest depth of the tree."""
        return int(self._fitted().summary()["max_depth"])

    def _set_more_state(self, state: dict[str, Any]) -> None:
        # Older files lack this parameter.
        started = {"recall_bound": "vw", **state["started_with"]}
        super()._set_more_state({**state, "started_with": started})

    def _topk(self, X: Any, k: int) -> TopK:
        options = "{}"
        if not _one_row.has_stored_options(self, self._fitted_params()):  # changed after fit
            validate_params(self, *self._prediction_params)
            beam_size, path_weight = int(self.beam_size), float(self.path_weight)
            options = json.dumps({"beam_size": beam_size, "path_weight": path_weight})
        return self._call(self._model.predict_topk, X, k, options)

    def _n_scored(self) -> int:
        return min(len(self.classes_), self.max_candidates_ * int(self.beam_size))

    def _ended(self, tree: Bunch) -> NDArray[np.float64]:
        # A held node counts the examples that reach it, but their paths end at its parent.
        reached = ~tree.held
        for level in range(1, int(tree.depth.max()) + 1):
            nodes = np.flatnonzero(tree.depth == level)
            reached[nodes] &= reached[tree.parent[nodes]]
        gone_on = np.zeros(len(reached))
        nodes = np.flatnonzero(reached)[1:]
        np.add.at(gone_on, tree.parent[nodes], tree.n_examples[nodes])
        return np.where(reached, tree.n_examples - gone_on, 0.0)
