"""Recall Tree."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import Bunch

from xmtree import _validation
from xmtree._labels import place
from xmtree._online import OnlineLearner
from xmtree._prediction import TopK, in_parts
from xmtree._sklearn import validate_params
from xmtree._trees import TreeMixin
from xmtree._typing import LabelsLike, MatrixLike, OneLabelMixin, Seed, Weights


@dataclass(eq=False, kw_only=True, repr=False)
class RecallTreeClassifier(OneLabelMixin, TreeMixin, OnlineLearner):
    """Recall Tree: a tree selects a few candidates, scorers choose among them.

    Routers send an example where its label raises the entropy of the labels
    least (Section 2 of [1]_). Every node stores its most frequent labels, the candidates. Routing
    ends where a lower bound on the candidates' recall (Eq. 1) would no longer rise, and
    one-against-some scorers, one per class and shared by the whole tree, choose
    among the candidates of that node. Training and prediction take time proportional to
    the depth and to the number of candidates, both about the logarithm of the
    number of classes.

    It is slower than :class:`LOMTreeClassifier` and usually more accurate: the
    tree only has to find the candidates, the prediction is a linear scorer's, as in
    :class:`OAAClassifier`. Its accuracy is at most the share of examples whose label
    is among the candidates; :meth:`candidate_recall` measures it, and more
    candidates or a wider beam raise it.

    Parameters
    ----------
    beam_size : int, default=4
        Paths followed in a prediction, at most; the candidates of all their last
        nodes are scored. Paths less than a tenth as probable as the best are left out.
        1: the greedy path alone, as in the paper. May be changed after ``fit``.
    max_candidates : int, optional
        F of [1]_: candidates of a node, at most. By default 4 ceil(log2(n_classes)), where
        :meth:`fit` counts classes as 2**H, H the entropy of ``y`` in bits: where classes are
        equally frequent that is their number, where few of them are frequent much less.
        Time is nearly proportional to F; twice as many are more accurate without a beam. If it is
        the number of classes, the scorers see all of them.
    n_passes : int, default=5
        Passes of ``fit`` over the examples, at most, each in a new order.
    scaling : {"auto", "none", "row", "standard", "log"}, default="auto"
        How features are scaled before learning; see :class:`OAAClassifier`.
    class_weight : dict or "balanced", optional, as of :class:`OAAClassifier`
    calibrate : bool, default=True
        Whether to calibrate probabilities on rows that were not learned; see
        :class:`OAAClassifier`.
    random_state : int, RandomState or None, default=None
        Fixes the order of the examples; as of :class:`OAAClassifier`.
    n_jobs : int, optional
        Threads; None is 1, -1 all cores. The model does not depend on it. Training gains from two
        with "softmax" and "margin".
    verbose : int, default=0
        1: a progress bar on stderr, if that is a terminal, with the rate, the
        progressive error and the progressive recall of the candidates.
    max_depth : int, optional
        To tune: D of [1]_, the depth of the tree at most. By default three quarters of the
        levels that would separate all classes, counted as for ``max_candidates``, rounded up. The
        last levels cost time and gain no accuracy.
    bern_hyper : float, default=4.0
        To tune: multiplier of the recall bound (Eq. 1 of [1]_): the larger, the more
        examples a node must have seen before routing continues past its parent.
        A tiny one, such as 1e-12, compares the empirical recall itself (Section 4.5 of [1]_).
        0: the rule is switched off, as in Vowpal Wabbit, and every path has the full depth.
        The paper and Vowpal Wabbit take 1; 4 saves time at the same accuracy.
    margin : float, default=4.0
        To tune: by how much the label's score must exceed the others: subtracted from it in
        the softmax, the gap required by "margin". Without effect on the other losses.
    learning_rate : float, optional
        To tune: step size of the scorers. By default 9 with "softmax", whose gradient never
        vanishes, 1 with "margin" and 0.5 with the other losses, where it is the routers', too.
    path_weight : float, default=0.5
        To tune: weight of the logarithm of a path's probability in the scores of the candidates
        at its end, with a beam. At 0 a wide beam lowers accuracy. May be changed after
        ``fit``.
    early_stopping : bool, default=False
        To tune: hold out a tenth of the examples in ``fit``, stop when their error has not
        fallen for two passes and restore the best pass.
    n_bits : int, optional
        To tune: hash features into 2^n_bits columns; see :class:`OAAClassifier`.
    loss : {"softmax", "margin", "squared", "logistic", "quantile", "hinge"}, default="softmax"
        Of the paper: loss of the scorers. "softmax": cross-entropy over the candidates; "margin":
        the scores of the label and of its best rival are separated. With the others
        every candidate is trained by itself, as in the paper, and routers have the same loss;
        all steps are Vowpal Wabbit's ("nag", see :class:`OAAClassifier`).
    paper_tree : bool, default=False
        Of the paper: whether the tree is built as in [1]_. By default an example is counted at
        the nodes to which the routers sent it before they learned from it, as in prediction;
        a node is compared with its parent on the examples that reached both; a node of few labels
        takes further candidates from the nodes above; and in a stream, counts of fewer labels
        fade: all are halved whenever the number of labels seen has grown by a fourth. True:
        examples are counted after the routers learned from them, bounds are compared as they are,
        a node has its own candidates alone, and counts stay. F and D are then chosen for
        all classes, D as ceil(log2(n_classes)).
    router_importance : {"entropy", "none"}, default="entropy"
        Of the paper: weight of an example for a router: the difference between the entropies of
        the sides, as in the paper, or 1, as in Vowpal Wabbit.
    path_features : {"none", "all", "node_only"}, default="none"
        Of the paper: what the scorers see of the path beside the example: nothing, an indicator
        for every node on it but the root ("all", as in the paper), or for its last
        node. Not with "softmax" and "margin", whose errors they raise.
    scale_weights : bool, default=True
        Of the paper: whether ``sample_weight`` counts relative to its mean; see
        :class:`OAAClassifier`. The paper's settings take weights as they are.

    Attributes
    ----------
    classes_, n_features_in_, feature_names_in_ : as of :class:`OAAClassifier`
    max_candidates_ : int
        F.
    max_depth_ : int
        D.
    tree_ : Bunch of read-only arrays
        One entry per node that has seen an example, the root first, parents before
        children.

        - ``parent``: -1 at the root.
        - ``children``, of shape (n_nodes, 2): -1 where there is none.
        - ``depth``: distance from the root.
        - ``n_examples``: examples seen, by importance; those of ``held`` nodes too.
        - ``n_labels``: distinct labels seen.
        - ``label``: the most frequent of them, as an index into ``classes_``.
        - ``label_entropy``: of the labels seen, in nats.
        - ``recall``: share of the examples seen whose label is a candidate.
        - ``recall_bound``: its lower bound, which the stop rule uses.
        - ``held``: whether the stop rule ends all paths at the parent. Examples
          are counted here all the same, so that the node collects its statistics.
        - ``n_trained``: updates of the node's routers, by importance.
        - ``candidates``: of all nodes one after the other, each node's most frequent
          label first, as indices into ``classes_``.
        - ``candidate_counts``: how often each of them was seen, by importance.
        - ``candidate_starts``, of length n_nodes + 1: node i has those from
          ``candidate_starts[i]`` to ``candidate_starts[i + 1]``. (Candidates
          of its ancestors are not repeated.)
    trees_ : list of Bunch
        ``tree_`` in a list.
    progressive_loss_ : float, as of :class:`OAAClassifier`
        Without a beam.
    progressive_recall_ : float
        Share of the examples whose label was among the candidates just before they
        were learned, by importance, in the first pass.
    n_examples_seen_ : int
        Examples learned, each pass counted.

    Notes
    -----
    A score is a scorer's, with a beam plus the weighted log-probability of the path;
    only the candidates have one, so there is no ``decision_function``. With "softmax" scores are
    logits among the candidates. Probabilities are the softmax over the candidates of the scores
    times a slope, see ``calibrate``; other labels have probability 0.

    After several passes the recall in ``tree_`` is near 1. To estimate the recall on new examples
    use :meth:`candidate_recall` of held-out examples, or ``progressive_recall_`` of a first pass.

    ``RecallTreeClassifier(**RecallTreeClassifier.PAPER)`` has the paper's settings (its
    Table 3): logistic loss, steps of size 1, routers weighted by the difference of the
    entropies, ceil(log2 K) levels, 4 ceil(log2 K) candidates, an indicator for each node of the
    path, the multiplier 1. ``RecallTreeClassifier(**RecallTreeClassifier.VW)`` predicts what
    the authors' program, Vowpal Wabbit's ``--recall_tree``, predicts on the same stream
    (``partial_fit`` keeps the order of the rows): squared loss, steps of 0.5, unweighted
    routers. The defaults here differ from both where the parameters above say so; they
    are the same for all data, see docs/experiments/recall-tree.md.

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
    >>> labels, scores = clf.set_params(beam_size=4).predict_topk(X, k=3)
    >>> labels.shape
    (1797, 3)
    """

    _short_name = "recall-tree"
    _of_prediction = frozenset({"beam_size", "path_weight"})

    #: Settings that follow the authors' program, Vowpal Wabbit, to the letter.
    VW: ClassVar[dict[str, Any]] = {
        "paper_tree": True,
        "bern_hyper": 1.0,
        "loss": "squared",
        "learning_rate": 0.5,
        "router_importance": "none",
        "path_features": "all",
        "scaling": "none",
        "scale_weights": False,
        "beam_size": 1,
        "n_passes": 1,
    }

    #: The paper's own defaults (its Table 3). The steps are Vowpal Wabbit's, in which the paper's
    #: experiments were made.
    PAPER: ClassVar[dict[str, Any]] = {
        **VW,
        "loss": "logistic",
        "learning_rate": 1.0,
        "router_importance": "entropy",
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
    router_importance: str = "entropy"
    path_features: str = "none"
    scale_weights: bool = True

    def candidate_recall(
        self, X: MatrixLike, y: LabelsLike, sample_weight: Weights = None
    ) -> float:
        """Share of the rows whose label is among the candidates: the most that
        :meth:`score` could be.

        Parameters
        ----------
        X : array or sparse matrix of shape (n, n_features), or a data frame
        y : array of shape (n,)
            True labels. Those that are not in ``classes_`` count as missed.
        sample_weight : array of shape (n,), optional
            Importances, not negative; 1 by default.

        Returns
        -------
        float
        """
        now, rows = self._now(X)
        codes = place(y, now.classes_)
        if len(codes) != rows.shape[0]:
            raise ValueError(f"X has {rows.shape[0]} rows, y has {len(codes)}")
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
        """Progressive recall of the candidates so far."""
        return float(self._fitted().summary()["progressive_recall"])

    @property
    def max_candidates_(self) -> int:
        """F: candidates of a node, at most."""
        return int(self._fitted().summary()["max_candidates"])

    @property
    def max_depth_(self) -> int:
        """D: depth of the tree, at most."""
        return int(self._fitted().summary()["max_depth"])

    def _topk(self, X: Any, k: int) -> TopK:
        return self._call(self._model.predict_topk, X, k, self._prediction_options())

    def _prediction_options(self) -> str:
        """What predictions read anew each time, as JSON."""
        of_model = self._fitted_params()
        if (type(self.beam_size), type(self.path_weight)) == (int, float) and (
            (self.beam_size, self.path_weight) == (of_model["beam_size"], of_model["path_weight"])
        ):
            # The model has checked them; to check them again takes as long as a prediction.
            return "{}"
        validate_params(self, *self._of_prediction)
        options = {"beam_size": int(self.beam_size), "path_weight": float(self.path_weight)}
        return json.dumps(options)

    def _n_scored(self) -> int:
        return min(len(self.classes_), self.max_candidates_ * int(self.beam_size))

    def _ended(self, tree: Bunch) -> NDArray[np.float64]:
        # Examples that reach a held node are counted there, but their paths end at its parent.
        reached = ~tree.held
        for level in range(1, int(tree.depth.max()) + 1):
            nodes = np.flatnonzero(tree.depth == level)
            reached[nodes] &= reached[tree.parent[nodes]]
        gone_on = np.zeros(len(reached))
        nodes = np.flatnonzero(reached)[1:]
        np.add.at(gone_on, tree.parent[nodes], tree.n_examples[nodes])
        return np.where(reached, tree.n_examples - gone_on, 0.0)
