"""LdSM: ensembles of trees over label sets."""

from __future__ import annotations

import json
import warnings
from dataclasses import dataclass
from functools import partial
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning

from xmtree import _core, _validation
from xmtree._base import Learner
from xmtree._calibration import Calibration, Scale
from xmtree._labels import encode
from xmtree._sharing import Change, learning
from xmtree._sklearn import Interval, validate_params
from xmtree._trees import TreeMixin
from xmtree._typing import Classes, LabelsLike, MatrixLike, Seed, Weights


@dataclass(eq=False, kw_only=True, repr=False)
class LdSMClassifier(TreeMixin, Learner):
    """LdSM: an ensemble of M-ary trees for label sets, with sparse linear scorers.

    A node of a tree has one linear regressor per child and sends an example to every
    child whose regressor's margin is at least 1/2, or to the child of the largest margin
    if there is none. The regressors minimise an objective (J, Eq. 2 of [1]_) that favours
    children of equal size, each label at one child, and few examples at several children.
    Leaves store histograms of labels; a label's score is their average over the leaves that a
    row reaches (Algorithm 2) and over the trees. Trees take time proportional to their
    depth, about the logarithm of the number of labels; that of the scorers is bounded
    whatever their number.

    By default one-against-some scorers, a sparse linear one for each label, re-rank the
    labels that the trees find and find further ones. They are not in the paper [1]_; with
    them one setting suits text and dense label sets alike. ``scorers="none"`` leaves them
    out.

    Parameters
    ----------
    n_estimators : int, default=10
        Trees. Each further tree lowers the error by less. The paper has about 50.
    arity : int, default=2
        M of [1]_: children of a node, 2 to 8. Wider trees are flatter, but take
        more time per node.
    max_nodes : int, default=16000
        Nodes of a tree at most, including leaves. Where labels have few examples
        each, trees stay smaller.
    min_priority : float, default=60.0
        A leaf is split only if the weight of its label occurrences, those of its most frequent
        label left out, is above this, or above a hundredth of the root's: what a split could part.
        0: down to leaves of one label, as in the paper; scorers need no leaves as pure.
    n_epochs : int, default=10
        Passes of a node over its examples, at most. The paper has 20.
    max_updates : int or None, default=20000
        Bound of a node's passes: after the first, further ones, up to ``n_epochs``, are taken as
        long as they come to no more than so many steps, one for each example. Upper nodes have
        many examples and need few passes. None: no bound, as in the paper.
    lambda1 : float, default=2.0
        Weight of class integrity in the objective: each label at one child. If it is
        too large, all examples follow their labels to one child: the tree collapses,
        which raises a warning.
    lambda2 : float, default=1.0
        Weight of the multi-way penalty: one child for each example.
    loss : {"centred", "logistic"}, default="centred"
        Loss of a regressor of margin m, which routes at m >= 1/2. "logistic": that of
        the logistic function of m, with one order of the examples for all passes of a tree, as in
        the authors' program. "centred": that of 4 m - 2, which is 0 where examples are routed, with
        a new order in each pass; better where labels are many and rare.
    learning_rate : float, default=0.1
        Step size of the regressors. They learn by normalised adaptive gradients; where more than
        half of the values are not zero, by plain gradient steps on features that are
        standardised by the node's own examples.
    scaling : {"log", "none", "row", "standard", "auto"}, default="log"
        How features are scaled before learning.
        "log": ln(1 + x) of every value (of a negative one -ln(1 - x)), which suits
        counts and changes 0 and 1 by a constant factor only.
        "row": rows divided by their length. "standard": columns centred and divided
        by their deviation. "auto": "standard" where more than half of the values are
        not zero, else "row". "none": not at all.
    n_bits : int, optional
        Hash columns into ``2**n_bits``. Rows may then have any number of columns.
    slim_trees : bool, default=True
        Whether trees drop what matters least and hold the rest in 8 bits: of a node's weights
        those that together make up 15 % of its squared margins (two of three weights), and of
        a leaf's labels those of less than 0.3 times the weight of the most frequent one.
        Examples are sent on by what is kept. False: as in the authors' program, weights below
        1 / n_features go.
    keep_statistics : bool, default=False
        Whether ``trees_`` has what training knew of each node. Takes most of a file.
    beta : float, default=1.0
        Weight of the trees' score in the re-ranking for tail labels (Section 5 of
        [1]_): ``beta * score + (1 - beta) / (1 + exp(gamma / 2 * d))`` with d the squared
        distance from the mean of the label's training examples. 1: no re-ranking.
        gamma is 1e-4. The paper re-ranks Amazon-670k alone and names no value.
    scorers : {"one_against_some", "none"}, default="one_against_some"
        What scores labels beside the trees.
        "one_against_some": a sparse linear scorer for each label, trained on the rows that
        have the label and on rows that could be mistaken for them: time and memory are
        proportional to rows times negatives, whatever the number of labels. They also find
        labels that the trees miss. "none": labels are ranked by the trees' score alone, as
        in the paper.
    n_negatives : int, default=30
        With scorers: a row is a negative example of at most so many labels that the trees
        which did not train on it find most likely, so many drawn by their frequency, and twice
        so many to which the scorers trained so far give the largest margins. Each tree leaves
        out a fifth of the rows.
    tail_weight : float, default=0.5
        With scorers: rows that have a label weigh (inverse propensity of the
        label) ** ``tail_weight`` in its scorer's training, divided by the mean over all
        labels of all rows. The propensities are those of :func:`xmtree.metrics.propensities`.
        With more, rare labels get higher scores and frequent ones lower.
    cost : float, optional
        With scorers: C of their problems, what losses weigh against half of the squared
        length of the weights. Less gives smaller weights, and suits few features and noisy
        labels. None: 1/4 where this ranks the labels of the rows held out clearly better
        (by 4 per cent), else 1.
    weight_threshold : float, default=0.1
        Smaller weights of the scorers are dropped. 0 keeps all that 16 bits tell from 0.
    threshold : float, optional
        If given, :meth:`predict` returns the labels whose score is above it. With
        scorers scores are probabilities.
    n_labels : int, optional
        If given, and no ``threshold``, :meth:`predict` returns that many best labels.
        With neither it returns the labels of a probability above 1/2 (the score with scorers,
        without them the share of the leaves' examples), and always the best one, as rows without
        labels are left out of training.
    warm_start : bool, default=False
        Whether :meth:`fit` keeps the existing trees and adds trees up to
        ``n_estimators``. Scorers and centroids are not trained again, and ``classes`` are those of
        the first :meth:`fit`.
    random_state : int, RandomState or None, default=None
        Fixes start weights, orders and ties. The model does not depend on
        ``n_jobs``.
    n_jobs : int, optional
        Threads: trees, and nodes of one tree, are trained in parallel; rows are
        predicted in parallel. None is 1, -1 all cores.
    verbose : int, default=0
        1: a progress bar on stderr, if that is a terminal, in nodes.

    Attributes
    ----------
    classes_, n_features_in_, feature_names_in_ : as of :class:`OAAClassifier`
    trees_ : list of Bunch
        For each tree read-only arrays with one entry per node, parents before
        children: ``parent`` (-1 at the root), ``children`` of shape (n_nodes, arity), -1 at
        leaves, ``depth``, ``n_weights``, weights that are not 0; and with ``keep_statistics``
        ``n_examples`` (by importance), ``label_entropy`` (nats); of
        internal nodes, NaN at leaves, the objective ``j`` and its terms ``balance``,
        ``class_integrity`` and ``multiway_penalty``, and what they approximate,
        ``balancedness`` (beta of the paper) and ``purity`` (alpha, Eq. 3; both 0 at best),
        measured after training; ``j_by_epoch`` of shape (n_nodes,
        n_epochs), the running objective. The
        histogram of node i is ``labels[label_starts[i]:label_starts[i + 1]]`` (positions in
        ``classes_``) with ``label_counts``.

    Notes
    -----
    Of label sets, scores are the probabilities that the row has the label (with the scorers; see
    :meth:`predict_scores`). Where each row has one label they only rank labels, and
    ``predict_proba`` and ``scores="probability"`` share 1 out among the labels, by a map that is
    fitted to the rows held out.

    Rows without labels are left out of training, as in the authors' program.

    ``LdSMClassifier(**LdSMClassifier.PAPER)`` has the paper's settings: fifty trees alone of
    M = 4, 2,000 nodes and 20 passes. ``LdSMClassifier.AUTHORS`` has those of the sample call of
    its authors' program: M = 2, 1,000 nodes. The paper tuned steps, lambdas, nodes and M for
    every data set. The defaults here are the same for all data; see docs/experiments/ldsm.md.

    Warns
    -----
    ConvergenceWarning
        Where a tree collapses: it stays below a hundredth of ``max_nodes`` while its
        leaves are nearly as mixed as its root.

    See Also
    --------
    OAAClassifier : Scores every label; time proportional to their number.

    References
    ----------
    .. [1] M. Majzoubi, A. Choromanska, "LdSM: Logarithm-depth Streaming Multi-label
       Decision Trees", AISTATS 2020.

    Examples
    --------
    >>> from xmtree import LdSMClassifier
    >>> X = [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 1.0, 1.0]] * 20
    >>> y = [["a", "b"], ["c"], ["c", "d"]] * 20
    >>> clf = LdSMClassifier(n_estimators=5, random_state=0).fit(X, y)
    >>> clf.predict([[1.0, 0.0, 0.0]])
    [['a', 'b']]
    >>> labels, scores = clf.predict_topk([[0.0, 1.0, 1.0]], k=2)
    >>> sorted(labels[0])
    ['c', 'd']
    """

    _short_name = "ldsm"
    _multilabel = True
    _most_scored = 1000
    _python_constraints: ClassVar[dict[str, Any]] = {
        **Learner._python_constraints,
        "threshold": [None, Interval(Real, None, None, closed="neither")],
        "n_labels": [None, Interval(Integral, 1, _validation.MAX_COUNT, closed="both")],
        "warm_start": ["boolean"],
    }

    #: Settings that follow the authors' program: its sample call for Delicious, one binary tree.
    AUTHORS: ClassVar[dict[str, Any]] = {
        "max_nodes": 1000,
        "min_priority": 0.0,
        "n_epochs": 20,
        "max_updates": None,
        "lambda1": 2.0,
        "lambda2": 1.0,
        "loss": "logistic",
        "learning_rate": 0.1,
        "scaling": "none",
        "slim_trees": False,
        "keep_statistics": True,
        "scorers": "none",
    }

    #: The paper's settings, where it has several those of most of its seven data sets: about 50
    #: trees and up to 2,000 nodes (Section 10; up to 64,000 on Mediamill and Bibtex, 32,000 on
    #: Delicious), M = 4 (Table 6; 2 on AmazonCat-13k, Delicious-200k, Amazon-670k). Its passes and
    #: optimisers are the sample call's. So is here what it leaves open: it tuned step and lambdas,
    #: and it does not name loss, start weights, ties and which weights are dropped.
    PAPER: ClassVar[dict[str, Any]] = {
        **AUTHORS,
        "n_estimators": 50,
        "arity": 4,
        "max_nodes": 2000,
        "keep_statistics": False,
    }

    n_estimators: int = 10
    arity: int = 2
    max_nodes: int = 16_000
    min_priority: float = 60.0
    n_epochs: int = 10
    max_updates: int | None = 20_000
    lambda1: float = 2.0
    lambda2: float = 1.0
    loss: str = "centred"
    learning_rate: float = 0.1
    scaling: str = "log"
    n_bits: int | None = None
    slim_trees: bool = True
    keep_statistics: bool = False
    beta: float = 1.0
    scorers: str = "one_against_some"
    n_negatives: int = 30
    tail_weight: float = 0.5
    cost: float | None = None
    weight_threshold: float = 0.1
    threshold: float | None = None
    n_labels: int | None = None
    warm_start: bool = False
    random_state: Seed = None
    n_jobs: int | None = None
    verbose: int = 0

    def fit(
        self, X: MatrixLike, y: LabelsLike, sample_weight: Weights = None, classes: Classes = None
    ) -> Self:
        with learning(self):
            first = 0
            if self.warm_start and self.__sklearn_is_fitted__():
                if classes is not None:
                    raise ValueError("classes are those of the first fit where warm_start=True")
                first = self._n_trees()
                self._add_trees(X, y, sample_weight)
            else:
                super().fit(X, y, sample_weight, classes)
            self._warn_collapsed(first, stacklevel=3)
        return self

    def _warn_collapsed(self, first: int, stacklevel: int) -> None:
        """Warns of trees from ``first`` on that have collapsed."""
        collapsed = int(self._model.summary()["collapsed"][first:].sum())
        if collapsed:
            warnings.warn(
                f"{collapsed} of {self._n_trees() - first} trees collapsed: they stayed below "
                f"max_nodes / 100 = {self.max_nodes / 100:g} nodes with leaves nearly as mixed as "
                f"the root. Lower lambda1 (now {self.lambda1}) or raise lambda2 "
                f"(now {self.lambda2}).",
                ConvergenceWarning,
                stacklevel=stacklevel,
            )

    def _add_trees(self, X: Any, y: Any, sample_weight: Any) -> None:
        """Trains the trees that are missing."""
        validate_params(self)
        if self.n_estimators < self._n_trees():
            raise ValueError(
                f"n_estimators={self.n_estimators} must be at least the {self._n_trees()} trees "
                f"that there are where warm_start=True"
            )
        change = Change(self)
        draft = change.draft
        X = draft._validated(X, reset=False)
        target = encode(y, self._labels)
        if (target.form == "labels") != (self._y_form == "labels"):
            raise ValueError("y must be of the kind it was in the first fit: labels, or sets")
        seed = self._fitted_params()["seed"]
        if self.random_state is not None:
            seed = _validation.seed(self.random_state)
        model = self._model.snapshot()
        model.set_params(json.dumps({**draft._core_params(), "seed": seed}))
        draft._learn(partial(model.fit, warm_start=True), model, X, target, sample_weight, change)

    def predict_scores(self, X: MatrixLike, threshold: float = 0.0) -> sp.csr_matrix:
        """The scores of all labels that have one.

        Parameters
        ----------
        X : array or sparse matrix of shape (n, n_features), or a data frame
        threshold : float, default=0.0
            Scores that are not above it are left out.

        Returns
        -------
        float32 CSR matrix of shape (n, n_classes)
            With "one_against_some" the trees' score t and the margin z of the label's scorer
            joined to ``(t + e) * exp(-b * max(0, 1 - z)**2)`` and calibrated, all fitted to rows
            that trees and scorers did not train on: of label sets the probability that the row
            has the label; of one label a row it only ranks labels, and :meth:`predict_proba` has
            the probabilities. Else the average, over leaves and trees, of a label's share of the
            leaf's labels; with re-ranking see ``beta``.
        """
        now, rows = self._now(X)
        return now._sparse(rows, float(threshold), None)

    @property
    def _calibration(self) -> Calibration:  # type: ignore[override]
        """How labels of which a row has one share its probability."""
        found = self._model.summary()
        if "shares_slope" not in found:
            return Calibration()
        return Calibration(
            slope=found["shares_slope"],
            intercept=found["shares_intercept"],
            rest=found["shares_rest"],
            top_slope=found["shares_top_slope"],
        )

    def _chances(self, scores: NDArray[Any]) -> NDArray[np.float32]:
        if self._y_form != "labels":
            known: NDArray[np.float32] = np.maximum(scores, 0)
            return known
        # Read once: the property asks the core for a summary of all trees. Scores of trees alone
        # are shares.
        shares = self._calibration.shares
        scale: Scale = "share" if shares is None else "probability"
        return _core.share_probabilities(scores, scale, len(self.classes_), shares)

    def _n_trees(self) -> int:
        return int(self._model.summary()["n_trees"])

    def _label_sets(self, X: Any) -> Any:
        threshold = None
        if self.threshold is not None or self.n_labels is not None:
            validate_params(self, "threshold", "n_labels")
            threshold = None if self.threshold is None else float(self.threshold)
        sets = self._sparse(X, threshold, self.n_labels)
        sets.data = np.ones(len(sets.data), np.int64)
        return sets

    def _sparse(self, X: Any, threshold: float | None, n_labels: int | None) -> sp.csr_matrix:
        # By default a row has one label at least: no row that was learned is without.
        select = self._model.select_labels
        starts, labels, scores = self._call(select, X, threshold, n_labels, 1)
        shape = (X.shape[0], len(self.classes_))
        return sp.csr_matrix((scores, labels, starts), shape=shape)
