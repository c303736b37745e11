"""Trees over a fixed order of labels: filter tree and random tree."""

from dataclasses import dataclass
from inspect import cleandoc
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from xmtree._online import OnlineLearner
from xmtree._trees import TreeMixin
from xmtree._typing import OneLabelMixin, Seed


@dataclass(eq=False, kw_only=True, repr=False)
class _LabelTree(OneLabelMixin, TreeMixin, OnlineLearner):
    """What both trees have in common: all but which examples a router learns from.

    The sections below are part of their docstrings, too.

    The parameters are listed in three groups: those to know, from ``label_order`` on; those to
    tune, from ``loss`` on; and ``optimizer``, for comparisons with the papers.

    Parameters
    ----------
    label_order : {"given", "random", "frequency"}, optional
        Order of the labels from left to right; by default "given" for the filter
        tree and "random", the baseline of the papers, for the random tree.
        Neighbours are separated last, by routers deep in the tree, so similar
        labels should be near each other. "given": that of ``classes_``, sorted; good
        for hierarchical codes, years and the like. "random": a permutation fixed by
        ``random_state``. "frequency": the most frequent first, of equals the one
        that is first in ``classes_``; frequencies are those in the rows of ``fit``, or
        of the first ``partial_fit``, by importance. The tree is balanced with any
        order: rare labels are not deeper.
    n_passes : int, default=5
        Passes of ``fit`` over the examples, at most, each in a new order.
    early_stopping : bool, default=False
        Hold out a tenth of the examples in ``fit``, stop when their error has not
        fallen for two passes and restore the best pass.
    calibrate : bool, default=True
        Whether to calibrate probabilities on rows that were not learned; see
        :class:`OAAClassifier`.
    class_weight : dict or "balanced", optional, as of :class:`OAAClassifier`
    random_state : int, RandomState or None, default=None
        Fixes the order of the examples and that of the labels, if it is "random".
        Read when learning begins. The same int gives the same model.
    n_jobs : int, optional
        Threads; None is 1, -1 all cores. A tree learns on one thread; prediction
        divides the rows among threads. The model does not depend on it.
    verbose : int, default=0, as of :class:`OAAClassifier`
    loss : {"hinge", "squared_hinge", "squared", "quantile", "logistic"}, default="hinge"
        Loss of the routers. The default was chosen on held-out data.
    learning_rate : float, default=1.0
        Initial step size of a router.
    decay : float, default=0.3
        How fast a router's steps shrink: after n updates the step for an
        example of effective dimension d is
        learning_rate / sqrt(1 + decay n / (4 + 0.03 d)), where d is the number of
        features if all are equally frequent and larger if they are rare. 0: steps do
        not shrink. Lower than in :class:`LOMTreeClassifier`, as the labels below a
        node do not change here.
    scaling : {"auto", "none", "row", "standard", "log"}, default="auto"
        How features are scaled before learning; see :class:`OAAClassifier`.
    scale_weights : bool, default=True, as of :class:`OAAClassifier`
    n_bits : int, optional
        Hash features into 2^n_bits columns; see :class:`OAAClassifier`.
    optimizer : {"pn", "nag"}, default="pn"
        Direction of a router's steps; "nag" is Vowpal Wabbit's, and needs more passes over
        text.

    Attributes
    ----------
    classes_, n_features_in_, feature_names_in_ : as of :class:`OAAClassifier`
    tree_ : Bunch of read-only arrays
        The nodes, breadth first; the root is node 0. Per node ``parent``,
        ``children``, ``depth``, ``n_examples`` (of the labels below, by importance, each
        pass counted), ``n_labels`` (below), ``label`` (of a leaf, as an index into
        ``classes_``; -1 at internal nodes), ``label_entropy`` (in nats), and of internal nodes
        ``n_trained`` (examples learned from, by importance) and ``n_won`` (those of them that
        the node then sent towards their label), 0 at leaves.
    trees_ : list of Bunch, ``tree_`` in a list
    progressive_loss_ : float, as of :class:`OAAClassifier`
    n_examples_seen_ : int
        Examples learned, each pass counted.

    Notes
    -----
    ``predict_topk`` treats the routers as logistic models: a label's score is the
    logarithm of the product of the probabilities on its path, at most 0. The first
    label is always that of ``predict``, the one that every router sends to. Where
    another label's product is larger, the score of the first is the next larger number. The
    others are found best first, at a cost of O(k log n_classes); where scores are so
    flat that this does not suffice they are probable ones, not surely the most probable.
    Probabilities are powers of these products, divided by their sum over the 1,000 best labels;
    the exponent is found by calibration, see ``calibrate``, and 1 without it. There is no
    ``decision_function``, as all classes cost O(n_classes) per row; ``predict_topk(X, k)`` with
    any ``k`` up to ``n_classes`` has the scores.
    """

    _takes_new_labels = False
    #: A further one costs a search of the tree.
    _most_scored = 1000

    label_order: str | None = None
    n_passes: int = 5
    early_stopping: bool = False
    calibrate: bool = True
    class_weight: dict[Any, float] | Literal["balanced"] | None = None
    random_state: Seed = None
    n_jobs: int | None = None
    verbose: int = 0
    loss: str = "hinge"
    learning_rate: float = 1.0
    decay: float = 0.3
    scaling: str = "auto"
    scale_weights: bool = True
    n_bits: int | None = None
    optimizer: str = "pn"

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        # For help(): the sections of this class stand before "See Also". (-OO: no docstrings.)
        if cls.__doc__ and _LabelTree.__doc__:
            own, shared = cleandoc(cls.__doc__), cleandoc(_LabelTree.__doc__)
            summary, heading, rest = own.partition("See Also\n")
            cls.__doc__ = f"{summary}{shared[shared.index('The parameters') :]}\n\n{heading}{rest}"

    def _best(self, X: Any) -> NDArray[np.int32]:
        return self._call(self._model.predict, X)


class FilterTreeClassifier(_LabelTree):
    """Filter tree: a tournament of labels on a fixed balanced tree.

    Every label has a leaf, every internal node a linear router that sends an example
    to one of its sides. An example is learned from its label's leaf upwards: each node
    on the path is trained to send it towards the label, but only if the label has won
    all matches below. So a node learns to choose between the labels that win its two
    sides, and not between all labels below it. Training and prediction take at most
    ceil(log2(n_classes)) routers per example.

    Faster and less accurate than :class:`OAAClassifier`, and on dense data and images less
    accurate than :class:`LOMTreeClassifier`, which learns its tree. Works best where
    the order of the labels means something.

    Whether a label has won a match is decided by the router's score after it has
    learned the example. [1]_ trains the routers of a level on all examples before those
    of the next, where the question does not arise.

    See Also
    --------
    RandomTreeClassifier : The same tree without the filter.
    LOMTreeClassifier : Learns which labels belong together; smaller errors.
    OAAClassifier : Linear in the number of classes; smaller errors still.

    References
    ----------
    .. [1] A. Beygelzimer, J. Langford, P. Ravikumar, "Error-Correcting
       Tournaments", ALT 2009: the filter tree. Its multiclass regret is at
       most log2(n_classes) times the mean regret of its routers.
    .. [2] A. Choromanska, J. Langford, "Logarithmic Time Online Multiclass
       Prediction", NIPS 2015: figures of both trees beside LOMtree's.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from xmtree import FilterTreeClassifier
    >>> X, y = load_digits(return_X_y=True)
    >>> clf = FilterTreeClassifier(random_state=0).fit(X, y)
    >>> clf.score(X, y) > 0.8
    True
    >>> labels, scores = clf.predict_topk(X, k=3)
    >>> labels.shape
    (1797, 3)
    >>> int(clf.tree_.depth.max())
    4
    """

    _short_name = "filter-tree"


class RandomTreeClassifier(_LabelTree):
    """Random tree: each router of a fixed balanced tree learns its labels' side.

    Every label has a leaf, every internal node a linear router that learns from all
    examples of the labels below it on which side the label lies. Training and prediction
    take at most ceil(log2(n_classes)) routers per example.

    The simplest tree, and the baseline of the others:
    :class:`FilterTreeClassifier` differs in which examples a router learns from,
    :class:`LOMTreeClassifier` learns its tree. Labels that a random
    order puts together have little in common, so errors are high.

    See Also
    --------
    FilterTreeClassifier : The same tree as a tournament.
    LOMTreeClassifier : Learns which labels belong together; smaller errors.
    OAAClassifier : Linear in the number of classes; smaller errors still.

    References
    ----------
    .. [1] A. Choromanska, J. Langford, "Logarithmic Time Online Multiclass
       Prediction", NIPS 2015: the random tree as a baseline.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from xmtree import RandomTreeClassifier
    >>> X, y = load_digits(return_X_y=True)
    >>> clf = RandomTreeClassifier(random_state=0).fit(X, y)
    >>> clf.score(X, y) > 0.8
    True
    >>> labels, scores = clf.predict_topk(X, k=3)
    >>> labels.shape
    (1797, 3)
    >>> int(clf.tree_.depth.max())
    4
    """

    _short_name = "random-tree"
