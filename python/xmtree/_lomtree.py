"""LOMtree: online binary trees of linear routers."""

from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from xmtree._online import OnlineLearner
from xmtree._trees import TreeMixin
from xmtree._typing import OneLabelMixin, Seed

#: Largest number of labels that a leaf predicts.
_LABELS_OF_LEAF = 64


@dataclass(eq=False, kw_only=True, repr=False)
class LOMTreeClassifier(OneLabelMixin, TreeMixin, OnlineLearner):
    """LOMtree: a binary tree of linear routers, learned online.

    Each internal node learns to send about half of its examples to each side while keeping the
    examples of a label together (the objective J, Eq. 1 of [1]_). A leaf predicts its most
    frequent label. Training and prediction take time proportional to the depth, about the
    logarithm of the number of classes. Nodes that few examples reach are recycled where labels
    are still mixed.

    A single tree is much faster than one-against-all from several hundred classes on; with fewer,
    :class:`OAAClassifier` is about as fast. Several trees (``n_estimators``) raise accuracy at
    proportional cost: ten are faster than one-against-all from several thousand classes on.

    Parameters are grouped. The first ones are those to know; those from ``loss`` on are for
    tuning; those from ``optimizer`` on are for comparisons with the paper and its authors' program.

    Parameters
    ----------
    n_estimators : int, default=1
        Number of trees, each trained on another order of the examples. (In ``partial_fit`` the
        first tree takes the rows in their order, the others shuffle the batch.) The label
        distributions of the leaves are averaged over the trees.
    n_passes : int, default=10
        Largest number of passes of ``fit`` over the examples, each in a new order.
    early_stopping : bool, default=False, as for :class:`OAAClassifier`
    calibrate : bool, default=True, as for :class:`OAAClassifier`
    class_weight : dict or "balanced", optional, as for :class:`OAAClassifier`
    random_state : int, RandomState or None, default=None, as for :class:`OAAClassifier`
    n_jobs : int, optional
        Number of threads; None is 1, -1 is all cores. Trees are trained in parallel, each on one
        thread, so training a single tree uses one. Prediction divides the rows among threads. The
        model does not depend on it.
    verbose : int, default=0, as for :class:`OAAClassifier`
    loss : {"hinge", "squared_hinge", "squared", "quantile", "logistic"}, default="hinge"
        Loss of the routers; Vowpal Wabbit always uses "quantile". The default was
        chosen on held-out data; see docs/experiments/lomtree.md.
    learning_rate : float, default=1.0
        Initial step size of a router.
    decay : float, default=1.0
        Speed at which a router's steps shrink: after n updates, the step for an
        example of effective dimension d is
        learning_rate / sqrt(1 + decay n / (4 + 0.03 d)). d is the number of
        features if all are equally frequent and larger if they are rare. So routers
        over few features converge, while rare words are still learned at full rate.
        With 0, steps do not shrink.
    nodes_per_class : float, default=64.0
        Largest number of internal nodes (T of [1]_) as a multiple of (n_classes - 1), rounded. It
        has the largest effect with few classes and many examples. With few examples, the split
        threshold stops the growth earlier.
    split_threshold : float, default=5.0
        A leaf splits once this many of its examples do not have its most frequent
        label. 1, as in the paper, splits at the second label: learning on text is faster and
        trees are larger. Large values make small trees, which need several passes
        on text with many classes.
    scaling : {"auto", "none", "row", "standard", "log"}, default="auto"
        Scaling of features before learning; see :class:`OAAClassifier`.
    scale_weights : bool, default=True, as for :class:`OAAClassifier`
    n_bits : int, optional, as for :class:`OAAClassifier`
    optimizer : {"pn", "nag"}, default="pn"
        Direction of a router's steps. "pn" is preconditioned, stores one number per weight and
        is the fastest. "nag" is Vowpal Wabbit's normalized adaptive step.
    swap_resistance : float, default=4.0
        R_S of [1]_ (Eq. 2), at least 1: the factor by which the mixture in a leaf must exceed the
        smallest leaf before nodes move there. At 4 or more, no node is recycled
        more than log2(examples) times, by weight (Lemma 3).
    paper_tree : bool, default=False
        If True, the tree counts, grows and predicts by the rules of the paper and its authors'
        program. The default rules differ in four points:

        - Examples count by their ``sample_weight`` in the tree's statistics, not as one each.
        - Scores are clipped to [-1, 1] in the label means, so that no extreme score dominates.
        - From depth 2 log2(n_classes) on, the split threshold doubles every two levels, so that
          inseparable labels do not grow a chain of nodes.
        - The label distribution of a leaf's parent counts for one example in the leaf's.

    Attributes
    ----------
    classes_, n_features_in_, feature_names_in_ : as for :class:`OAAClassifier`
    tree_ : Bunch of read-only arrays
        The nodes of the only tree; the root is node 0. Per node: ``parent``,
        ``children``, ``depth``, ``n_examples``, ``n_labels``, ``label``,
        ``label_entropy`` (in nats), ``smallest_leaf`` (C of [1]_) and ``n_recycled``.
        Per internal node: ``objective`` (J, Eq. 1), ``balance`` (beta, Definition 2)
        and ``purity`` (alpha, Definition 1) of the router, over all examples routed so far, each
        as it went when it was learned. They are NaN at leaves, and at a node that has lost a child
        and its counts to a swap. Per tree: ``n_swaps``, ``n_internal``,
        ``max_internal``, ``leaf_entropy`` (G) and ``recycle_bound``, log2 of the total
        weight learned (or of the number of examples if weights do not count), which
        bounds ``n_recycled`` if ``swap_resistance`` is 4 or more.
    trees_ : list of Bunch
        The same for each tree.
    progressive_loss_ : float, as for :class:`OAAClassifier`
        With several trees, the mean over the trees.
    n_examples_seen_ : int
        Number of examples learned by each tree, each pass counted.

    Notes
    -----
    A score is the label's share of the examples in the leaf, averaged over the trees, for at most
    64 labels per leaf. Calibrated probabilities follow from the logarithms of the shares as those
    of :class:`OAAClassifier` from its scores. Without calibration they are the shares, divided by
    their sum.

    If Ctrl-C stops the ``fit`` of several trees, the trees that have seen at least half as many
    examples as the first are kept.

    ``LOMTreeClassifier(**LOMTreeClassifier.VW)`` predicts what Vowpal Wabbit's ``--log_multi``
    predicts on the same stream (``partial_fit`` keeps the order of the rows). There is one
    exception, where that program loses its tree: if the parent of the smallest leaf is the root,
    its other child becomes the root here. ``LOMTreeClassifier.PAPER`` is the same, as the paper's
    experiments used that program, with the number of nodes, swap resistance, step size and passes
    tuned for each data set. The defaults here are the same for all data; see
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
    """

    _short_name = "lomtree"
    _scale = "share"

    #: Settings that reproduce the authors' program, Vowpal Wabbit.
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

    #: Settings of the paper, which does not state its loss: Vowpal Wabbit has only this one.
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
