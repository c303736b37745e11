"""Recall Tree."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import Bunch
from sklearn.utils._param_validation import Interval, StrOptions

from xmtree import _core, _validation
from xmtree._base import Learner, TopK
from xmtree._labels import place
from xmtree._online import OnlineLearner
from xmtree._trees import TreeMixin

#: Losses of a single regressor.
_SINGLE = {"squared", "logistic", "quantile", "hinge", "squared_hinge"}

#: Bytes of candidates held at a time while their recall is counted.
_CHUNK_BYTES = 64 << 20


class RecallTreeClassifier(TreeMixin, OnlineLearner):
    """Recall Tree: a tree finds a few candidates, scorers choose among them.

    Routers send an example where its label raises the entropy of the labels
    least. Every node knows its most frequent labels, the candidates. The way down
    ends where a lower bound on the candidates' recall would no longer rise, and
    one-against-some scorers, one per class and shared by the whole tree, choose
    among those found there. Training and prediction take time proportional to
    the depth and to the number of candidates, both about the logarithm of the
    number of classes.

    It is slower than :class:`LOMTreeClassifier` and usually more accurate: the
    tree only has to come near, the answer is a linear scorer's, as in
    :class:`OAAClassifier`. What it can reach is the share of examples whose label
    is among the candidates; :meth:`candidate_recall` measures it, and more
    candidates or a wider beam raise it.

    Parameters
    ----------
    max_candidates : int, optional
        F of [1]_: candidates of a node, at most; overrules ``candidates_per_level``.
        All classes: the tree hides nothing from the scorers.
    candidates_per_level : float, default=4.0
        F as a multiple of ceil(log2(n_classes)), as in Vowpal Wabbit, but see
        ``class_count``. Time is nearly proportional to it; 8 gains accuracy
        where there is no beam.
    max_depth : int, optional
        D of [1]_, the depth of the tree at most; overrules ``depth_share``.
    depth_share : float, default=0.75
        D as a share of the log(n_classes) / log(arity) levels that would part all
        classes, rounded up. The last levels cost time and gain nothing. Vowpal
        Wabbit takes 1.
    class_count : {"effective", "all"}, default="effective"
        For how many classes :meth:`fit` chooses F and D. "effective": 2**H, H the
        entropy of ``y`` in bits. Where classes are equally frequent that is their
        number; the 26,000 words of some English novels count as 600, and the tree
        is twice as fast for it at the same error. "all" is what Vowpal Wabbit does,
        and :meth:`partial_fit`, which cannot know.
    bern_hyper : float, default=4.0
        Multiplier of the recall bound (Eq. 1 of [1]_): the larger, the more
        examples a node must have seen before it is trusted more than the one
        above. 0: no bound, every way goes to the full depth. Vowpal Wabbit takes 1;
        4 costs no accuracy here and saves time.
    arity : int, default=2
        Children of a node, 2 to 16; the routers of a node are then a small
        balanced tree themselves. The paper has binary trees and names wider ones
        as future work.
    loss : {"softmax", "margin", "squared", "logistic", "quantile", "hinge", \
"squared_hinge"}, default="softmax"
        Loss of the scorers. "softmax": cross-entropy over the candidates; "margin":
        the label and its best rival move apart; with the others every candidate
        learns by itself whether it is the one, as in the paper.
    margin : float, default=4.0
        By how much the label's score must be ahead: taken off it in the softmax,
        the gap that "margin" wants. Without effect on the other losses.
    router_loss : {"squared", "logistic", "quantile", "hinge", "squared_hinge"}, optional
        Loss of the routers. By default ``loss`` if it is one of these, else "hinge".
    optimizer : {"pn", "nag", "adagrad", "sgd"}, default="pn"
        Direction of the steps; see :class:`OAAClassifier`. "nag" and "adagrad" go
        with the losses of a single regressor only, and not with batches.
    scaling : {"auto", "none", "row", "standard"}, default="auto"
        What is done to the features first; see :class:`OAAClassifier`.
    n_bits : int, optional
        Hash features into 2^n_bits columns. From 1 to 31; by default features
        keep their own. Not with the scaling "standard".
    learning_rate : float, optional
        Step size of the scorers. By default 0.5 with "nag" and "adagrad", 9 with
        "softmax" and "logistic", which are never satisfied, else 1.
    router_rate : float, optional
        Step size of the routers. By default 0.5 with "nag" and "adagrad", else 1.
    decay : float, default=1.0
        How fast steps shrink, as in :class:`LOMTreeClassifier`; 0: they do not.
        Without effect on "nag" and "adagrad", whose steps shrink by themselves.
    router_importance : {"entropy", "none"}, default="entropy"
        How much an example counts for a router: by how much the sides' entropies
        differ, as the paper says, or as much as any other, as Vowpal Wabbit has it.
    randomized_routing : bool, default=False
        Whether training examples that come near a router's border go to a side
        at random.
    honest : bool, default=True
        Whether a node counts the examples that the routers sent there before they
        learned from them, as they will those to be predicted, and is compared with
        its parent on the examples that came to both. False: afterwards, and by
        their bounds alone, as in the paper.
    back_off : bool, default=True
        Whether a node that has seen fewer labels than it may have candidates
        takes further ones from the nodes above. Not in the paper.
    path_features : {"none", "all", "node_only"}, default="none"
        What the scorers see of the path beside the example: nothing, an indicator
        for every node on it but the root ("all", as in the paper), or for its last
        node.
    beam_size : int, default=4
        Ways followed in a prediction, at most; the candidates found at their ends
        compete. Ways less than a tenth as probable as the best are left out.
        1: the greedy way alone, as in the paper. May be changed after ``fit``.
    path_weight : float, default=0.5
        What the logarithm of a way's probability counts in the scores found at its
        end, with a beam. At 0 a wide beam does harm. May be changed after ``fit``.
    batch_size : int, default=1
        Examples that the scorers learn from at once, as they stood before the
        first of them; the routers learn one after the other all the same. With
        ``n_jobs`` of 2 or more a batch's examples are scored at the same time: 16
        to 64 make use of several cores. At 1 further cores only route ahead. The
        model depends on the batch size, never on ``n_jobs``. Not in the paper.
    n_passes : int, default=5
        Passes of ``fit`` over the examples, at most, each in a new order.
    early_stopping : bool, default=False
        Hold examples out in ``fit``, stop when their error no longer falls and
        go back to the best pass.
    validation_fraction : float, default=0.1
        Share of the examples held out for that.
    patience : int, default=2
        Passes without a new lowest error after which to stop.
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
        Labels, sorted.
    n_features_in_ : int
    feature_names_in_ : array of shape (n_features_in_,)
        Column names, where X was a data frame.
    max_candidates_ : int
        F, as it came out.
    max_depth_ : int
        D, as it came out.
    tree_ : Bunch of read-only arrays
        One entry per node that has seen an example, the root first, parents before
        children.

        - ``parent``: the node above, -1 at the root.
        - ``children``, of shape (n_nodes, arity): -1 where no example has come.
        - ``depth``: steps from the root.
        - ``n_examples``: arrivals, by importance; ``held`` ones too.
        - ``n_labels``: different labels that arrived.
        - ``label``: the most frequent of them, as a place in ``classes_``.
        - ``label_entropy``: of the labels that arrived, in nats.
        - ``recall``: share of the arrivals whose label is a candidate.
        - ``recall_bound``: the lower bound on it that the stop rule goes by.
        - ``held``: whether the stop rule lets no way get here: those that would
          end at the parent. The examples are counted here all the same, so that
          the node can earn its statistics.
        - ``n_trained``: how often the node's routers learned, by importance.
        - ``candidates``: of all nodes one after the other, each node's most frequent
          label first, as places in ``classes_``.
        - ``candidate_counts``: how often each of them arrived, by importance.
        - ``candidate_starts``, of length n_nodes + 1: node i has those from
          ``candidate_starts[i]`` to ``candidate_starts[i + 1]``. (Those it
          takes over from the nodes above are not repeated.)
    trees_ : list of Bunch
        ``tree_`` in a list.
    progressive_loss_ : float
        Share of the examples predicted wrongly just before they were learned, by
        importance, over all passes. Without a beam.
    progressive_recall_ : float
        Share of the examples whose label was among the candidates just before they
        were learned, likewise.
    n_examples_seen_ : int
        Examples learned, each pass counted.

    Notes
    -----
    A score is a scorer's, with a beam plus the weighted log-probability of the way;
    only the candidates have one. With "softmax" scores are logits among the
    candidates. So there is neither ``decision_function`` nor ``predict_proba``:
    ``predict_topk`` gives the candidates and their scores, best first.

    After several passes an example sits in the histograms of its own nodes, and the
    recall that ``tree_`` tells is near 1. What new examples can expect is
    :meth:`candidate_recall` of examples that were held out, or the
    ``progressive_recall_`` of a first pass.

    The first prediction after learning lays the tree out anew, which takes time
    proportional to its size: in a stream, learn and predict in batches.

    ``RecallTreeClassifier(**RecallTreeClassifier.PAPER)`` predicts what the authors'
    program, Vowpal Wabbit's ``--recall_tree``, predicts on the same stream
    (``partial_fit`` keeps the order of the rows). It differs from the paper in that
    routers are not weighted by the difference of the entropies. The defaults
    here differ from both where the parameters above say so: one for all data, they
    were chosen by experiment.

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
    _Model = _core.RecallTree
    #: The beam is the prediction's own affair.
    _fit_only = OnlineLearner._fit_only | {"beam_size", "path_weight"}
    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **Learner._parameter_constraints,
        "max_candidates": [None, Interval(Integral, 1, _validation.MAX_COUNT, closed="both")],
        "candidates_per_level": [Interval(Real, 0, _validation.MAX_REAL, closed="right")],
        "max_depth": [None, Interval(Integral, 0, 60, closed="both")],
        "depth_share": [Interval(Real, 0, _validation.MAX_REAL, closed="right")],
        "class_count": [StrOptions({"effective", "all"})],
        "bern_hyper": [Interval(Real, 0, _validation.MAX_REAL, closed="both")],
        "arity": [Interval(Integral, 2, 16, closed="both")],
        "loss": [StrOptions({"softmax", "margin"} | _SINGLE)],
        "margin": [Interval(Real, 0, _validation.MAX_REAL, closed="both")],
        "router_loss": [None, StrOptions(_SINGLE)],
        "optimizer": [StrOptions({"nag", "pn", "adagrad", "sgd"})],
        "scaling": [StrOptions({"auto", "none", "row", "standard"})],
        "n_bits": [None, Interval(Integral, 1, 31, closed="both")],
        "learning_rate": [None, Interval(Real, 0, _validation.MAX_REAL, closed="right")],
        "router_rate": [None, Interval(Real, 0, _validation.MAX_REAL, closed="right")],
        "decay": [Interval(Real, 0, _validation.MAX_REAL, closed="both")],
        "router_importance": [StrOptions({"entropy", "none"})],
        "randomized_routing": ["boolean"],
        "honest": ["boolean"],
        "back_off": ["boolean"],
        "path_features": [StrOptions({"none", "all", "node_only"})],
        "beam_size": [Interval(Integral, 1, 1024, closed="both")],
        "path_weight": [Interval(Real, 0, _validation.MAX_REAL, closed="both")],
        "batch_size": [Interval(Integral, 1, 4096, closed="both")],
        "n_passes": [Interval(Integral, 1, _validation.MAX_COUNT, closed="both")],
        "early_stopping": ["boolean"],
        "validation_fraction": [Interval(Real, 0, 1, closed="neither")],
        "patience": [Interval(Integral, 1, _validation.MAX_COUNT, closed="both")],
    }

    #: Settings that follow the authors' program, Vowpal Wabbit, to the letter.
    PAPER: ClassVar[dict[str, Any]] = {
        "candidates_per_level": 4.0,
        "depth_share": 1.0,
        "class_count": "all",
        "bern_hyper": 1.0,
        "loss": "squared",
        "optimizer": "nag",
        "scaling": "none",
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
        n_bits: int | None = None,
        learning_rate: float | None = None,
        router_rate: float | None = None,
        decay: float = 1.0,
        router_importance: str = "entropy",
        randomized_routing: bool = False,
        honest: bool = True,
        back_off: bool = True,
        path_features: str = "none",
        beam_size: int = 4,
        path_weight: float = 0.5,
        batch_size: int = 1,
        n_passes: int = 5,
        early_stopping: bool = False,
        validation_fraction: float = 0.1,
        patience: int = 2,
        random_state: Any = None,
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
        self.n_bits = n_bits
        self.learning_rate = learning_rate
        self.router_rate = router_rate
        self.decay = decay
        self.router_importance = router_importance
        self.randomized_routing = randomized_routing
        self.honest = honest
        self.back_off = back_off
        self.path_features = path_features
        self.beam_size = beam_size
        self.path_weight = path_weight
        self.batch_size = batch_size
        self.n_passes = n_passes
        self.early_stopping = early_stopping
        self.validation_fraction = validation_fraction
        self.patience = patience
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    def candidate_recall(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Share of the rows whose label is among the candidates: the most that
        :meth:`score` could be.

        Parameters
        ----------
        X : array or sparse matrix of shape (n, n_features), or a data frame
        y : array of shape (n,)
            True labels. Those the estimator has never heard of are missed.
        sample_weight : array of shape (n,), optional
            Importances, not negative; 1 by default.

        Returns
        -------
        float
        """
        X = self._rows(X)
        codes = place(y, self.classes_)
        if len(codes) != X.shape[0]:
            raise ValueError(f"X has {X.shape[0]} rows, y has {len(codes)}")
        weights = _validation.weights(sample_weight, X)
        k = min(len(self.classes_), self.max_candidates_ * int(self.beam_size))
        step = max(1, _CHUNK_BYTES // (8 * k))
        found = np.zeros(len(codes), bool)
        for start in range(0, len(codes), step):
            part = slice(start, start + step)
            candidates, _ = self._topk(X[part], k)
            wanted = codes[part, np.newaxis]
            found[part] = np.any((candidates == wanted) & (wanted >= 0), axis=1)
        return float(np.average(found, weights=weights))

    @property
    def progressive_recall_(self) -> float:
        """Progressive recall of the candidates so far."""
        recall = self._fitted().progressive_recall
        return float("nan") if recall is None else float(recall)

    @property
    def max_candidates_(self) -> int:
        """F: candidates of a node, at most."""
        return int(self._fitted().max_candidates)

    @property
    def max_depth_(self) -> int:
        """D: depth of the tree, at most."""
        return int(self._fitted().max_depth)

    def _topk(self, X: Any, k: int) -> TopK:
        self._validate_params()
        beam_size, path_weight = int(self.beam_size), float(self.path_weight)
        found: TopK = self._call(self._model.predict_topk, X, k, beam_size, path_weight)
        return found

    def _ended(self, tree: Bunch) -> NDArray[np.float64]:
        # What comes to a node that is held is counted there, but ends above.
        reached = ~tree.held
        for level in range(1, int(tree.depth.max()) + 1):
            nodes = np.flatnonzero(tree.depth == level)
            reached[nodes] &= reached[tree.parent[nodes]]
        gone_on = np.zeros(len(reached))
        nodes = np.flatnonzero(reached)[1:]
        np.add.at(gone_on, tree.parent[nodes], tree.n_examples[nodes])
        ended: NDArray[np.float64] = np.where(reached, tree.n_examples - gone_on, 0.0)
        return ended
