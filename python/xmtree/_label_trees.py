"""Filter tree and random tree: balanced trees over a fixed order of labels."""

from dataclasses import dataclass
from inspect import cleandoc
from typing import Any, Literal

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from xmtree._online import OnlineLearner
from xmtree._trees import TreeMixin
from xmtree._typing import OneLabelMixin, Seed


@dataclass(eq=False, kw_only=True, repr=False)
class _LabelTree(TreeMixin, OnlineLearner):
    """Base of filter tree and random tree, which differ in the examples a router learns from.

    Both docstrings include the sections below.

    Parameters are grouped. The first ones are those to know; those from ``loss`` on are for
    tuning; ``optimizer`` is for comparisons with the papers.

    Parameters
    ----------
    label_order : {"given", "random", "frequency"}, optional
        Order of the labels from left to right. Routers deep in the tree separate neighbors,
        so similar labels should be close to each other. "given": sorted, as in ``classes_``;
        good for hierarchical codes, years and the like. "random": a permutation determined by
        ``random_state``, the papers' baseline. "frequency": the most frequent first, by importance
        weight in the rows of the first pass or ``partial_fit``; ties keep the order of
        ``classes_``. The tree is balanced for any order, so rare labels are not deeper. By default
        "given" for the filter tree and "random" for the random tree.
    n_passes : int, default=5
        Largest number of passes of ``fit`` over the examples, each in a new order.
    early_stopping : bool, default=False, as for :class:`OAAClassifier`
    calibrate : bool, default=True, as for :class:`OAAClassifier`
    class_weight : dict or "balanced", optional, as for :class:`OAAClassifier`
    random_state : int, RandomState or None, default=None
        Seed of the order of the examples, and of the labels if ``label_order`` is "random".
        Read when training begins. The same int gives the same model.
    n_jobs : int, optional
        Number of threads; None is 1, -1 is all cores. Training uses one thread; prediction
        divides the rows among threads. The model does not depend on it.
    verbose : int, default=0, as for :class:`OAAClassifier`
    loss : {"hinge", "squared_hinge", "squared", "quantile", "logistic"}, optional
        Loss of the routers. By default "hinge", which was chosen on held-out data, and "logistic"
        for label sets, for which no other is allowed.
    learning_rate : float, default=1.0
        Initial step size of a router.
    decay : float, default=0.3
        Speed at which a router's steps shrink, as for :class:`LOMTreeClassifier`. The default is
        lower than there, as the labels below a node do not change here.
    scaling : {"auto", "none", "row", "standard", "log"}, default="auto"
        Scaling of features before learning; see :class:`OAAClassifier`.
    scale_weights : bool, default=True, as for :class:`OAAClassifier`
    n_bits : int, optional, as for :class:`OAAClassifier`
    prediction : {"path", "most_probable"}, optional
        The label that is predicted. "path": the one to which the routers lead. "most_probable":
        the one with the largest product of probabilities on its path, found by best-first search,
        which is more accurate and takes several times as long. By default "path"; label sets are
        predicted by probability in any case. ``progressive_loss_`` always follows the path.
    optimizer : {"pn", "nag"}, default="pn"
        Direction of a router's steps. "nag" is that of Vowpal Wabbit and needs more passes over
        text.

    Attributes
    ----------
    classes_, n_features_in_, feature_names_in_ : as for :class:`OAAClassifier`
    tree_ : Bunch of read-only arrays
        The nodes, breadth first; the root is node 0.

        - ``parent``, ``children``, ``depth``.
        - ``n_examples``: examples with a label below, by importance weight, each pass counted.
        - ``n_labels``: labels below.
        - ``label``: label of a leaf, as an index into ``classes_``; -1 at internal nodes.
        - ``label_entropy``: in nats.
        - ``n_trained``: examples that the router learned from, by importance weight; 0 at leaves.
        - ``n_won``: those of them that the router then sent towards their label; 0 at leaves.

        For label sets every node has a regressor, and ``n_won`` counts the examples for which it
        was then right.
    trees_ : list of Bunch, ``tree_`` in a list
    progressive_loss_ : float, as for :class:`OAAClassifier`
    n_examples_seen_ : int, as for :class:`OAAClassifier`

    Notes
    -----
    ``predict_topk`` treats the routers as logistic models: a label's score is the
    logarithm of the product of the probabilities on its path, at most 0. Scores of a router that
    does not learn with the logistic loss are multiplied by half the log-odds that the upper 64
    routers send an example to its label's side, at least 0.25 and at most 4. The first
    label is always that of ``predict``; if another label's product is larger, the score of the
    first is the next larger number. The others are found by best-first search at a cost of
    O(k log n_classes). If scores are so flat that this bound is reached, the labels found are
    probable, but maybe not the most probable.

    Calibrated probabilities follow from these scores as those of :class:`OAAClassifier`. Without
    calibration they are the products, divided by their sum over the 1,000 best labels. There is
    no ``decision_function``, as the scores of all classes cost O(n_classes) per row;
    ``predict_topk(X, k)`` returns them for ``k`` up to ``n_classes``.

    For label sets a score is the logit of the label's probability, the product along its path.
    Calibration finds a slope and an intercept; without it, the products are the probabilities.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from xmtree import FilterTreeClassifier
    >>> X, y = load_digits(return_X_y=True)
    >>> clf = FilterTreeClassifier(random_state=0).fit(X, y)
    >>> clf.score(X, y) > 0.8
    True
    >>> int(clf.tree_.depth.max())
    4
    """

    _takes_new_labels = False
    #: Each label costs a search of the tree.
    _most_scored = 1000

    label_order: str | None = None
    n_passes: int = 5
    early_stopping: bool = False
    calibrate: bool = True
    class_weight: dict[Any, float] | Literal["balanced"] | None = None
    random_state: Seed = None
    n_jobs: int | None = None
    verbose: int = 0
    loss: str | None = None
    learning_rate: float = 1.0
    decay: float = 0.3
    scaling: str = "auto"
    scale_weights: bool = True
    n_bits: int | None = None
    prediction: str | None = None
    optimizer: str = "pn"

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        # Show the sections of this class around those from "See Also" on. With -OO there are no
        # docstrings.
        if cls.__doc__ and _LabelTree.__doc__:
            own, shared = cleandoc(cls.__doc__), cleandoc(_LabelTree.__doc__)
            summary, heading, rest = own.partition("See Also\n")
            sections, title, example = shared.partition("Examples\n")
            sections = sections[sections.index("Parameters are") :]
            example = example.replace("FilterTreeClassifier", cls.__name__)
            cls.__doc__ = f"{summary}{sections}{heading}{rest}\n\n{title}{example}"

    def _best(self, X: Any) -> NDArray[np.int32]:
        return self._call(self._model.predict, X)


class FilterTreeClassifier(OneLabelMixin, _LabelTree):
    """Filter tree: a tournament of labels on a fixed balanced tree.

    Each label has a leaf, and each internal node a linear router that sends an example to one of
    its sides. An example is learned upwards from the leaf of its label: each node on the path is
    trained to send it towards the label, but only if the label has won all matches below. So a
    node learns to choose between the labels that win its two sides, not between all labels below
    it. Training and prediction use at most ceil(log2(n_classes)) routers per example.

    The filter tree is faster and less accurate than :class:`OAAClassifier`. On dense data and
    images it is less accurate than :class:`LOMTreeClassifier`, which learns its tree. It works
    best if the order of the labels is meaningful.

    Whether a label has won a match depends on the router's score after it has learned the example.
    In [1]_ the routers of a level are trained on all examples before those of the next, so the
    question does not arise.

    See Also
    --------
    RandomTreeClassifier : The same tree without the filter.
    LOMTreeClassifier : Learns which labels belong together; smaller errors.
    OAAClassifier : Linear in the number of classes; even smaller errors.

    References
    ----------
    .. [1] A. Beygelzimer, J. Langford, P. Ravikumar, "Error-Correcting
       Tournaments", ALT 2009: the filter tree. Its multiclass regret is at
       most log2(n_classes) times the mean regret of its routers.
    .. [2] A. Choromanska, J. Langford, "Logarithmic Time Online Multiclass
       Prediction", NIPS 2015: figures of both trees beside LOMtree's.
    """

    _short_name = "filter-tree"


class RandomTreeClassifier(_LabelTree):
    """Random tree: a fixed balanced tree whose routers learn from all examples.

    Each label has a leaf, and each internal node a linear router that learns from all examples of
    the labels below it on which side the label lies. Training and prediction use at most
    ceil(log2(n_classes)) routers per example.

    This is the simplest tree and the baseline of the others: :class:`FilterTreeClassifier`
    differs in the examples a router learns from, and :class:`LOMTreeClassifier` learns its tree.
    Labels that a random order puts together have little in common, so errors are high.

    With ``loss="logistic", prediction="most_probable", learning_rate=3.0`` it is the conditional
    probability tree of [2]_: a router estimates the probability that the label is on its right
    side, and a label has the product along its path.

    With label sets it is the probabilistic label tree of [3]_: each node learns whether a row has
    a label below, from the rows that have one below its parent. ``predict`` returns the labels
    with a probability above ``threshold_``, as :class:`OAAClassifier` does by default, and
    ``progressive_loss_`` is the share of rows without the label to which the more probable children
    led. ``decision_path`` needs one label per row.

    See Also
    --------
    FilterTreeClassifier : The same tree as a tournament.
    LOMTreeClassifier : Learns which labels belong together; smaller errors.
    OAAClassifier : Linear in the number of classes; even smaller errors.

    References
    ----------
    .. [1] A. Choromanska, J. Langford, "Logarithmic Time Online Multiclass
       Prediction", NIPS 2015: the random tree as a baseline.
    .. [2] A. Beygelzimer, J. Langford, Y. Lifshits, G. Sorkin, A. Strehl, "Conditional Probability
       Tree Estimation Analysis and Algorithms", UAI 2009.
    .. [3] K. Jasinska, K. Dembczynski, R. Busa-Fekete, K. Pfannschmidt, T. Klerx, E. Hullermeier,
       "Extreme F-measure Maximization using Sparse Probability Estimates", ICML 2016.
    """

    _short_name = "random-tree"
    _multilabel = True

    @property
    def threshold_(self) -> float:
        """Return the probability above which :meth:`predict` returns a label of a label set."""
        self._fitted()
        return self._calibration.threshold

    def _label_sets(self, X: Any) -> Any:
        # As few labels as possible, because each costs a search.
        k, n_classes = min(10, len(self.classes_)), len(self.classes_)
        while True:
            codes, probabilities = self._topk_probabilities(X, k)
            is_likely = probabilities > self._calibration.threshold
            if k == n_classes or not is_likely[:, -1].any():
                break
            k = min(4 * k, n_classes)
        if self._calibration.n_least:
            is_likely[:, 0] = True
        row, place = np.nonzero(is_likely)
        entries = np.ones(len(row), np.int64), (row, codes[row, place])
        return sp.csr_matrix(entries, shape=(X.shape[0], n_classes))
