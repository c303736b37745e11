"""LOMtree."""

from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from xmtree._online import OnlineLearner
from xmtree._trees import TreeMixin
from xmtree._typing import OneLabelMixin, Seed

#: Labels that a leaf predicts with, at most.
_LABELS_OF_LEAF = 64


@dataclass(eq=False, kw_only=True, repr=False)
class LOMTreeClassifier(OneLabelMixin, TreeMixin, OnlineLearner):
    """LOMtree: a binary tree of linear routers, learned online.

    Every internal node learns to send about half of its examples to each side
    while keeping those of one label together (the objective J, Eq. 1 of [1]_); a leaf
    predicts its most frequent label. Training and prediction take time proportional to
    the depth, about the logarithm of the number of classes. Nodes that few examples
    reach are recycled where labels are still mixed.

    A single tree is much faster than one-against-all from some hundred classes on;
    with fewer, :class:`OAAClassifier` is about as fast. Several trees
    (``n_estimators``) raise accuracy at proportional cost: ten are faster than
    one-against-all from some thousands of classes on.

    The parameters are listed in three groups: those to know, from ``n_estimators`` on; those to
    tune, from ``loss`` on; those of the paper and of its authors' program, from ``optimizer`` on.

    Parameters
    ----------
    n_estimators : int, default=1
        Trees, which differ by the order of their examples (in ``partial_fit``
        the first takes the rows as they come, the others shuffle the batch).
        Their leaves' label distributions are averaged.
    n_passes : int, default=10
        Passes of ``fit`` over the examples, at most, each in a new order.
    early_stopping : bool, default=False
        Hold out a tenth of the examples in ``fit``, stop when their error has not
        fallen for two passes and restore the best pass.
    calibrate : bool, default=True
        Whether to calibrate probabilities on rows that were not learned; see
        :class:`OAAClassifier`. With several trees another model makes five passes of ten.
    class_weight : dict or "balanced", optional, as of :class:`OAAClassifier`
    random_state : int, RandomState or None, default=None
        Fixes the order of the examples; as of :class:`OAAClassifier`.
    n_jobs : int, optional
        Threads; None is 1, -1 all cores. Trees are trained in parallel, each on one
        thread: a single tree trains on one. Prediction divides the rows among threads. The
        model does not depend on it.
    verbose : int, default=0, as of :class:`OAAClassifier`
    loss : {"hinge", "squared_hinge", "squared", "quantile", "logistic"}, default="hinge"
        Loss of the routers; Vowpal Wabbit always uses "quantile". The default was
        chosen on held-out data; see docs/experiments/lomtree.md.
    learning_rate : float, default=1.0
        Initial step size of a router.
    decay : float, default=1.0
        How fast a router's steps shrink: after n updates the step for an
        example of effective dimension d is
        learning_rate / sqrt(1 + decay n / (4 + 0.03 d)), where d is the number of
        features if all are equally frequent and larger if they are rare. So routers
        over few features converge while rare words are still learned at full rate.
        0: steps do not shrink.
    nodes_per_class : float, default=64.0
        Internal nodes (T of [1]_) as a multiple of (n_classes - 1), rounded, at most.
        Has the largest effect where classes are few and examples many. Where
        examples are few, the split threshold stops the growth earlier.
    split_threshold : float, default=5.0
        A leaf splits once this many of its examples do not have its most frequent
        label. 1, as in the paper, splits at the second label: faster learning on
        text, larger trees. Large values make small trees, and need several passes
        on text of many classes.
    scaling : {"auto", "none", "row", "standard", "log"}, default="auto"
        How features are scaled before learning; see :class:`OAAClassifier`.
    scale_weights : bool, default=True, as of :class:`OAAClassifier`
    n_bits : int, optional
        Hash features into 2^n_bits columns; see :class:`OAAClassifier`.
    optimizer : {"pn", "nag"}, default="pn"
        Direction of a router's steps: "pn" is preconditioned, stores one number per weight and
        is the fastest; "nag" is Vowpal Wabbit's normalized, adaptive step.
    swap_resistance : float, default=4.0
        R_S of [1]_ (Eq. 2): how much larger than the smallest leaf the mixture in a
        leaf must be before nodes move there. At 4 or more no node is recycled
        more than log2(examples) times, by weight (Lemma 3). Not below 1.
    paper_tree : bool, default=False
        Whether the tree counts, grows and predicts by the rules of the paper and its authors'
        program: every example counts as one in the tree's statistics, whatever its
        ``sample_weight``; scores enter the label means as they are; the split threshold is the
        same at every depth; a leaf predicts by its own counts.
        By default weights count; scores are clipped to [-1, 1], so that no extreme one
        dominates a mean; from depth 2 log2(n_classes) on every two further levels double the
        split threshold, so that labels that cannot be separated do not grow a chain of nodes;
        and the label distribution of a leaf's parent counts for one example in the leaf's.

    Attributes
    ----------
    classes_, n_features_in_, feature_names_in_ : as of :class:`OAAClassifier`
    tree_ : Bunch of read-only arrays
        The only tree's nodes; the root is node 0. Per node ``parent``,
        ``children``, ``depth``, ``n_examples``, ``n_labels``, ``label``,
        ``label_entropy`` (in nats), ``smallest_leaf`` (C of [1]_), ``n_recycled``,
        and of internal nodes ``objective`` (J, Eq. 1), ``balance`` (beta, Definition 2)
        and ``purity`` (alpha, Definition 1) of the router over all examples that it has
        sent on, each as it went when it was learned: NaN at leaves, and where a swap has
        taken a child of the node away with its counts; of the tree ``n_swaps``, ``n_internal``,
        ``max_internal``, ``leaf_entropy`` (G) and ``recycle_bound``, log2 of the total
        weight learned (of the number of examples, where weights do not count), which
        no ``n_recycled`` exceeds if ``swap_resistance`` is 4 or more.
    trees_ : list of Bunch
        The same for every tree.
    progressive_loss_ : float, as of :class:`OAAClassifier`
        With several trees the mean of theirs.
    n_examples_seen_ : int
        Examples learned, each pass counted, by each of the trees.

    Notes
    -----
    A score is the label's share of the examples in the leaf, averaged over the trees; at most 64
    labels of a leaf have one. Probabilities are powers of the shares, divided by their sum; the
    exponent is found by calibration, see ``calibrate``, and 1 without it.

    A ``fit`` of several trees that was stopped by Ctrl-C keeps those that had seen at least half
    as many examples as the first.

    ``LOMTreeClassifier(**LOMTreeClassifier.VW)`` predicts what Vowpal Wabbit's ``--log_multi``
    predicts on the same stream (``partial_fit`` keeps the order of the rows), except where that
    program loses its tree: where the parent of the smallest leaf is the root, its other child
    becomes the root here. ``LOMTreeClassifier.PAPER`` is the same, as the paper's experiments were
    made in that program, with the number of nodes, the swap resistance, the step size and the
    passes tuned for every data set. The defaults here are the same for all data; see
    docs/experiments/lomtree.md.

    References
    ----------
    .. [1] A. Choromanska, J. Langford, "Logarithmic Time Online Multiclass
       Prediction", NIPS 2015: Algorithm 1 (learning, Swap, UpdateC), Section 2
       (the objective J), Lemma 1 (purity and balance).

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from xmtree import LOMTreeClassifier
    >>> X, y = load_digits(return_X_y=True)
    >>> clf = LOMTreeClassifier(n_estimators=10, random_state=0).fit(X, y)
    >>> clf.score(X, y) > 0.9
    True
    >>> labels, scores = clf.predict_topk(X, k=3)
    >>> labels.shape
    (1797, 3)
    """

    _short_name = "lomtree"
    _scale = "share"

    #: Settings that follow the authors' program, Vowpal Wabbit, to the letter.
    VW: ClassVar[dict[str, Any]] = {
        "loss": "quantile",
        "optimizer": "nag",
        "scaling": "none",
        "scale_weights": False,
        "learning_rate": 0.5,
        "decay": 0.0,
        "nodes_per_class": 1.0,
        "split_threshold": 1.0,
        "paper_tree": True,
    }

    #: The paper's settings are its authors' program's: it names no loss, and its experiments were
    #: made in Vowpal Wabbit, which forces this one. T, swap resistance, step size and passes were
    #: tuned for each data set.
    PAPER = VW

    n_estimators: int = 1
    n_passes: int = 10
    early_stopping: bool = False
    calibrate: bool = True
    class_weight: dict[Any, float] | Literal["balanced"] | None = None
    random_state: Seed = None
    n_jobs: int | None = None
    verbose: int = 0
    loss: str = "hinge"
    learning_rate: float = 1.0
    decay: float = 1.0
    nodes_per_class: float = 64.0
    split_threshold: float = 5.0
    scaling: str = "auto"
    scale_weights: bool = True
    n_bits: int | None = None
    optimizer: str = "pn"
    swap_resistance: float = 4.0
    paper_tree: bool = False

    def _n_scored(self) -> int:
        return min(len(self.classes_), _LABELS_OF_LEAF * int(self._fitted_params()["n_estimators"]))

    def _passes_that_calibrate(self, params: dict[str, Any]) -> float:
        # Several trees make up for fewer rows, of which one tree's leaves need all they can get.
        return 0.5 if params["n_estimators"] > 1 else super()._passes_that_calibrate(params)
