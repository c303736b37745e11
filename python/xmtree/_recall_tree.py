"""Recall Tree."""

from __future__ import annotations

import json
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import Bunch

from xmtree import _validation
from xmtree._labels import place
from xmtree._online import OnlineLearner
from xmtree._prediction import CHUNK_BYTES, TopK
from xmtree._sklearn import validate_params
from xmtree._trees import TreeMixin
from xmtree._typing import LabelsLike, MatrixLike, OneLabelMixin, Seed, Weights

#: Losses of a single regressor.
_SINGLE = {"squared", "logistic", "quantile", "hinge", "squared_hinge"}


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
    max_candidates : int, optional
        F of [1]_: candidates of a node, at most; overrides ``candidates_per_level``.
        If it is the number of classes, the scorers see all of them.
    candidates_per_level : float, default=4.0
        F as a multiple of ceil(log2(n_classes)), as in Vowpal Wabbit, but see
        ``class_count``. Time is nearly proportional to it; 8 is more accurate
        without a beam.
    max_depth : int, optional
        D of [1]_, the depth of the tree at most; overrides ``depth_share``.
    depth_share : float, default=0.75
        D as a share of the log(n_classes) / log(arity) levels that would separate
        all classes, rounded up. The last levels cost time and gain no accuracy.
        Vowpal Wabbit takes 1.
    class_count : {"effective", "all"}, default="effective"
        For how many classes :meth:`fit` chooses F and D. "effective": 2**H, H the
        entropy of ``y`` in bits. Where classes are equally frequent that is their
        number; where few of them are frequent it is much smaller, and the tree
        faster. "all", as in Vowpal Wabbit: n_classes. :meth:`partial_fit`, which does
        not know the frequencies, always uses n_classes.
    bern_hyper : float, default=4.0
        Multiplier of the recall bound (Eq. 1 of [1]_): the larger, the more
        examples a node must have seen before routing continues past its parent.
        A tiny one, such as 1e-12, compares the empirical recall itself (Section 4.5 of [1]_).
        0: the rule is switched off, as in Vowpal Wabbit, and every path has the full depth.
        The paper and Vowpal Wabbit take 1; 4 saves time at the same accuracy.
    arity : int, default=2
        Children of a node, 2 to 16; the routers of a node are then a small
        balanced tree themselves. The paper has binary trees; wider ones are its
        future work.
    loss : {"softmax", "margin", "squared", "logistic", "quantile", "hinge", \
"squared_hinge"}, default="softmax"
        Loss of the scorers. "softmax": cross-entropy over the candidates; "margin":
        the scores of the label and of its best rival are separated; with the others
        every candidate is trained by itself, as in the paper.
    margin : float, default=4.0
        By how much the label's score must exceed the others: subtracted from it in
        the softmax, the gap required by "margin". Without effect on the other losses.
    router_loss : {"squared", "logistic", "quantile", "hinge", "squared_hinge"}, optional
        Loss of the routers. By default ``loss`` if it is one of these, else "hinge".
    optimizer : {"pn", "nag", "adagrad", "sgd"}, default="pn"
        Direction of the steps; see :class:`OAAClassifier`. "nag" and "adagrad" go
        with the losses of a single regressor only, and not with batches.
    scaling : {"auto", "none", "row", "standard", "log"}, default="auto"
        How features are scaled before learning; see :class:`OAAClassifier`.
    scale_weights : bool, default=True
        Whether ``sample_weight`` counts relative to its mean; see :class:`OAAClassifier`.
    class_weight : dict or "balanced", optional
        Weights of classes, which multiply ``sample_weight``; see :class:`OAAClassifier`.
    n_bits : int, optional
        Hash features into 2^n_bits columns. From 1 to 31; by default features
        are not hashed. Not with the scaling "standard". Rows may then have any number of
        columns, in ``partial_fit`` and prediction too.
    learning_rate : float, optional
        Step size of the scorers. By default 0.5 with "nag" and "adagrad", 9 with
        "softmax" and "logistic", whose gradient never vanishes, else 1.
    router_rate : float, optional
        Step size of the routers. By default 0.5 with "nag" and "adagrad", else 1.
    decay : float, default=1.0
        How fast steps shrink, as in :class:`LOMTreeClassifier`; 0: they do not.
        Without effect on "nag" and "adagrad", which are adaptive.
    router_importance : {"entropy", "none"}, default="entropy"
        Weight of an example for a router: the difference between the entropies of
        the sides, as in the paper, or 1, as in Vowpal Wabbit.
    randomized_routing : bool, default=False
        Whether training examples near a router's decision boundary go to a side
        at random.
    honest : bool, default=True
        Whether an example is counted at the nodes to which the routers sent it before
        they learned from it, as in prediction, and a node is compared with
        its parent on the examples that reached both. In a stream, counts of fewer labels
        fade: all are halved whenever the number of labels seen has grown by a fourth. False:
        after they learned from it, by the bounds alone, and all alike, as in the paper.
    back_off : bool, default=True
        Whether a node that has seen fewer labels than it may have candidates
        takes further ones from the nodes above. Not in the paper.
    path_features : {"none", "all", "node_only"}, default="none"
        What the scorers see of the path beside the example: nothing, an indicator
        for every node on it but the root ("all", as in the paper), or for its last
        node.
    indicator_rate : float, default=0.1
        Step of these indicators, as a share of a feature's step: indicators of upper nodes are
        there in half of the examples and would take over. Without effect on "nag" and "adagrad",
        where indicators are features like the others, as at 1.
    beam_size : int, default=4
        Paths followed in a prediction, at most; the candidates of all their last
        nodes are scored. Paths less than a tenth as probable as the best are left out.
        1: the greedy path alone, as in the paper. May be changed after ``fit``.
    path_weight : float, default=0.5
        Weight of the logarithm of a path's probability in the scores of the candidates
        at its end, with a beam. At 0 a wide beam lowers accuracy. May be changed after
        ``fit``.
    batch_size : int, default=1
        Examples per update of the scorers: all are scored with the weights before
        the first of them; the routers still learn one example after the other. With
        ``n_jobs`` of 2 or more a batch's examples are scored in parallel; at 1
        further cores route ahead, which gains as much. The model depends on the
        batch size, never on ``n_jobs``. Not in the paper.
    n_passes : int, default=5
        Passes of ``fit`` over the examples, at most, each in a new order.
    early_stopping : bool, default=False
        Hold out a tenth of the examples in ``fit``, stop when their error has not
        fallen for two passes and restore the best pass.
    calibrate : bool, default=True
        Whether to calibrate probabilities on rows that were not learned. From 40,000 rows on,
        ``fit`` leaves 1,000 rows out of its passes, calibrates on them and learns them once at the
        end, at no further cost. With fewer rows every row counts: another model learns a part of
        them with three passes of ten, and up to 2,000 others (a third, if there are fewer than
        6,000) calibrate. That takes 0.28 of the training, or 20,000 examples if that is more; the
        model itself does not depend on it. ``partial_fit`` calibrates with batches of 32 rows or
        more before it learns them, each time the model has learned a fifth more.
    random_state : int, RandomState or None, default=None
        Fixes the order of the examples. Read when learning begins. The same int
        gives the same model.
    n_jobs : int, optional
        Threads; None is 1, -1 all cores. The model does not depend on it.
    verbose : int, default=0
        1: a progress bar on stderr, if that is a terminal, with the rate, the
        progressive error and the progressive recall of the candidates.

    Attributes
    ----------
    classes_ : array of shape (n_classes,)
        Labels, sorted; with ``partial_fit(classes="grow")`` in the order in which they came.
    n_features_in_ : int
    feature_names_in_ : array of shape (``n_features_in_``,)
        Column names, where X was a data frame.
    max_candidates_ : int
        F.
    max_depth_ : int
        D.
    tree_ : Bunch of read-only arrays
        One entry per node that has seen an example, the root first, parents before
        children.

        - ``parent``: -1 at the root.
        - ``children``, of shape (n_nodes, arity): -1 where there is none.
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
    progressive_loss_ : float
        Share of the examples predicted wrongly just before they were learned, by
        importance, in the first pass. Without a beam.
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

    After several passes an example is counted in the histograms of its own nodes, and
    the recall in ``tree_`` is near 1. To estimate the recall on new examples use
    :meth:`candidate_recall` of held-out examples, or the
    ``progressive_recall_`` of a first pass.

    Predictions between updates walk the tree as it is; where they are many, the first of them
    rebuilds it for prediction, in time proportional to its size. Both predict the same.

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
        "candidates_per_level": 4.0,
        "depth_share": 1.0,
        "class_count": "all",
        "bern_hyper": 1.0,
        "loss": "squared",
        "optimizer": "nag",
        "scaling": "none",
        "scale_weights": False,
        "learning_rate": 0.5,
        "router_rate": 0.5,
        "decay": 0.0,
        "router_importance": "none",
        "honest": False,
        "back_off": False,
        "path_features": "all",
        "beam_size": 1,
        "n_passes": 1,
    }

    #: The paper's own defaults (its Table 3). The steps are Vowpal Wabbit's, in which the paper's
    #: experiments were made.
    PAPER: ClassVar[dict[str, Any]] = {
        **VW,
        "loss": "logistic",
        "learning_rate": 1.0,
        "router_rate": 1.0,
        "router_importance": "entropy",
        "indicator_rate": 1.0,
    }

    def __init__(
        self,
        *,
        max_candidates: int | None = None,
        candidates_per_level: float = 4.0,
        max_depth: int | None = None,
        depth_share: float = 0.75,
        class_count: str = "effective",
        bern_hyper: float = 4.0,
        arity: int = 2,
        loss: str = "softmax",
        margin: float = 4.0,
        router_loss: str | None = None,
        optimizer: str = "pn",
        scaling: str = "auto",
        scale_weights: bool = True,
        class_weight: dict[Any, float] | Literal["balanced"] | None = None,
        n_bits: int | None = None,
        learning_rate: float | None = None,
        router_rate: float | None = None,
        decay: float = 1.0,
        router_importance: str = "entropy",
        randomized_routing: bool = False,
        honest: bool = True,
        back_off: bool = True,
        path_features: str = "none",
        indicator_rate: float = 0.1,
        beam_size: int = 4,
        path_weight: float = 0.5,
        batch_size: int = 1,
        n_passes: int = 5,
        early_stopping: bool = False,
        calibrate: bool = True,
        random_state: Seed = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.max_candidates = max_candidates
        self.candidates_per_level = candidates_per_level
        self.max_depth = max_depth
        self.depth_share = depth_share
        self.class_count = class_count
        self.bern_hyper = bern_hyper
        self.arity = arity
        self.loss = loss
        self.margin = margin
        self.router_loss = router_loss
        self.optimizer = optimizer
        self.scaling = scaling
        self.scale_weights = scale_weights
        self.class_weight = class_weight
        self.n_bits = n_bits
        self.learning_rate = learning_rate
        self.router_rate = router_rate
        self.decay = decay
        self.router_importance = router_importance
        self.randomized_routing = randomized_routing
        self.honest = honest
        self.back_off = back_off
        self.path_features = path_features
        self.indicator_rate = indicator_rate
        self.beam_size = beam_size
        self.path_weight = path_weight
        self.batch_size = batch_size
        self.n_passes = n_passes
        self.early_stopping = early_stopping
        self.calibrate = calibrate
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

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
        step = max(1, CHUNK_BYTES // (8 * k))
        found = np.zeros(len(codes), bool)
        for start in range(0, len(codes), step):
            part = slice(start, start + step)
            candidates, _ = now._topk(rows[part], k)
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
        found: TopK = self._call(self._model.predict_topk, X, k, self._prediction_options())
        return found

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
        ended: NDArray[np.float64] = np.where(reached, tree.n_examples - gone_on, 0.0)
        return ended
