"""LdSM: ensembles of trees over label sets."""

from __future__ import annotations

import json
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from numbers import Integral, Real
from typing import Any, ClassVar, Literal, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning

from xmtree import _class_weight, _core, _validation
from xmtree._base import Learner
from xmtree._calibration import LEAST_ROWS, Calibration, HeldOut, Scale
from xmtree._explanation import LinearMixin
from xmtree._labels import Target, encode
from xmtree._labels.forms import entry_rows
from xmtree._online import row_weights
from xmtree._set_prediction import CONSTRAINT, ThresholdMixin, checked
from xmtree._sharing import Change, learning
from xmtree._sklearn import Interval, validate_params
from xmtree._thresholds import Average, RankedRows, Thresholds, fit, unfitted
from xmtree._trees import TreeMixin
from xmtree._typing import Classes, LabelsLike, MatrixLike, Seed, SupportsArray, Weights

#: Number of the rows of ``fit`` on which thresholds are fitted: a fifth of few, a tenth of many.
_FEW_HELD_OUT = 2_000
_MOST_HELD_OUT = 20_000


def n_for_thresholds(n_rows: int) -> int:
    """Return on how many of ``n_rows`` rows thresholds are fitted, 0 if they are too few."""
    n = min(max(n_rows // 10, min(n_rows // 5, _FEW_HELD_OUT)), _MOST_HELD_OUT)
    return n if n >= LEAST_ROWS else 0


@dataclass(eq=False, kw_only=True, repr=False)
class LdSMClassifier(ThresholdMixin, LinearMixin, TreeMixin, Learner):
    """LdSM: an ensemble of M-ary trees for label sets, with linear scorers.

    Each node of a tree has a linear regressor per child. It sends an example to every child whose
    regressor's margin is at least 1/2, or to the child of the largest margin if there is none.
    The regressors minimize an objective (J, Eq. 2 of [1]_) that favors children of equal size,
    each label at one child, and each example at one child. Leaves store histograms of labels; a
    label's score is its average share over the leaves that a row reaches (Algorithm 2) and over
    the trees. The time of a tree is proportional to its depth, about the logarithm of the number
    of labels. The time of the scorers is bounded whatever the number of labels.

    By default, one-against-some scorers, a linear model for each label, re-rank the labels
    that the trees find, and find further ones. They are not part of the paper [1]_. With them, the
    same settings suit text and dense data. ``scorers="none"`` disables them.

    Parameters are grouped. The first ones are those to know; those from ``max_nodes`` on are for
    tuning; those from ``arity`` on are for comparisons with the paper.

    Parameters
    ----------
    n_estimators : int, default=10
        Number of trees. Each further tree lowers the error by less. The paper has about 50.
    scorers : {"one_against_some", "none"}, default="one_against_some"
        Models that score labels beside the trees. "one_against_some": a linear scorer for
        each label, trained on the rows with the label and on rows that could be mistaken for
        them. Time and memory are proportional to rows times negatives, whatever the number of
        labels. Scorers also find labels that the trees miss. "none": labels are ranked by the
        trees' score alone, as in the paper.
    threshold : float, array of shape (n_classes,), {"row", "micro", "macro"} or None
        For label sets, :meth:`predict` returns the labels with a score above it; an array has a
        threshold for each of ``classes_``. With scorers, scores are probabilities. A word names an
        average of F1, as for :class:`OAAClassifier`. ``fit`` then trains a second model, which
        takes about as long again, and finds the thresholds on rows that this model has not
        learned: a tenth of the rows, at most 20,000, or a fifth of fewer than 10,000. With
        ``warm_start``, the thresholds of the first :meth:`fit` are kept.
    n_labels : int, optional
        If given, and ``threshold`` is not, :meth:`predict` returns this number of best labels.
        If neither is given, it returns the labels with a probability above 1/2: the score with
        scorers, the share of the leaves' examples without. The best label is always returned, as
        rows without labels do not take part in training.
    class_weight : dict or "balanced", optional, as for :class:`OAAClassifier`
    warm_start : bool, default=False
        If True, :meth:`fit` keeps the existing trees and adds trees up to ``n_estimators``.
        Scorers and centroids are not trained again, and ``classes`` remain those of the first
        :meth:`fit`.
    random_state : int, RandomState or None, default=None
        Seed of initial weights, orders and ties. The same int gives the same model.
    n_jobs : int, optional
        Number of threads; None is 1, -1 is all cores. Trees, and nodes of one tree, are trained in
        parallel, and rows are predicted in parallel. The model does not depend on it.
    verbose : int, default=0
        With 1, a progress bar of nodes on stderr, if that is a terminal.
    max_nodes : int, default=16000
        Largest number of nodes of a tree, including leaves. Trees stay smaller if labels have few
        examples each.
    min_priority : float, default=60.0
        A leaf is split only if its label occurrences, not counting those of its most frequent
        label, weigh more than this, or more than a hundredth of the root's: a split could
        separate only these. 0 splits down to leaves of one label, as in the paper; scorers do not
        need leaves as pure.
    n_epochs : int, default=10
        Largest number of epochs of a node over its examples. The paper has 20.
    learning_rate : float, default=0.1
        Step size of the regressors. They learn by normalized adaptive gradients; if more than half
        of the values are not zero, by plain gradient steps on features that are standardized by
        the node's own examples.
    scaling : {"log", "none", "row", "standard", "auto"}, default="log"
        Scaling of features before learning, as for :class:`OAAClassifier`. "log" suits counts and
        changes 0 and 1 only by a constant factor. "auto" is "standard" if more than half of the
        values are not zero and rows differ in length, else "row".
    n_bits : int, optional
        Hash columns into ``2**n_bits``. Rows may then have any number of columns.
    n_negatives : int, optional
        Number of labels of each kind for which a row is a negative example of the scorers. The
        first kind are the labels that are most likely by the trees not trained on the row (about
        one tree in seven leaves it out). The second kind are drawn by their frequency. Twice as
        many have the largest margins of the scorers trained so far. None: 30, or 100 if at least
        16 columns are filled in more than half of the rows, as those of embeddings are.
    tail_weight : float, default=0.5
        Rows with a label have the weight (inverse propensity of the label) ** ``tail_weight`` in
        its scorer's training, divided by the mean over all labels of all rows. The propensities
        are those of :func:`xmtree.metrics.propensities`. Larger values raise the scores of rare
        labels and lower those of frequent ones.
    cost : float, optional
        C of the scorers' problems: weight of the losses relative to half the squared length of
        the weights. Lower values give smaller weights and suit few features and noisy labels.
        None: 1, or 1/4 or 4 if it ranks the labels of held-out rows clearly better.
    weight_threshold : float, default=0.1
        Weights of the scorers below it are dropped. 0 keeps all weights that are not 0 in 16
        bits.
    slim_trees : bool, default=True
        If True, trees drop their least important numbers and store the others in 8 bits. A node
        drops the weights that together make up 15 % of its squared margins, about two of three. A
        leaf drops labels of less than 0.3 times the weight of the most frequent one. Routing uses
        the kept weights. If False, weights below 1 / n_features are dropped, as in the authors'
        program.
    keep_statistics : bool, default=False
        If True, ``trees_`` has statistics of each node from training. They take most of a file.
    arity : int, default=2
        M of [1]_: children of a node, 2 to 8. Wider trees are flatter, but take more time per
        node.
    max_updates : int or None, default=20000
        Bound of a node's steps, one per example. After the first epoch, a node runs further
        epochs, up to ``n_epochs``, only within this bound. Upper nodes have many examples and need
        few epochs. None is no bound, as in the paper.
    lambda1 : float, default=2.0
        Weight of class integrity in the objective: each label at one child. If it is too large,
        all examples follow their labels to one child. Such a collapsed tree raises a warning.
    lambda2 : float, default=1.0
        Weight of the multi-way penalty: each example at one child.
    loss : {"centred", "logistic"}, default="centred"
        Loss of a regressor with margin m, which routes at m >= 1/2. "logistic": the logistic loss
        of m, with the same order of examples in all epochs of a tree, as in the authors' program.
        "centred": the logistic loss of 4 m - 2, which is 0 where routing changes, with a new
        order in each epoch; better for many and rare labels.
    beta : float, default=1.0
        Weight of the trees' score in the re-ranking for tail labels (Section 5 of [1]_):
        ``beta * score + (1 - beta) / (1 + exp(gamma / 2 * d))``. Here gamma is 1e-4, and d is the
        squared distance from the mean of the label's training examples. 1 disables re-ranking. The
        paper re-ranks only Amazon-670k and does not state its value.

    Attributes
    ----------
    classes_, n_features_in_, feature_names_in_, threshold_ : as for :class:`OAAClassifier`
    coef_ : CSR matrix of shape (n_classes, ``n_features_in_``)
        Weights of the scorers, for rows that are scaled and then divided by their length; none with
        ``n_bits`` or without scorers. A scorer's margin is the product and its ``intercept_``.
    intercept_ : float64 array of shape (n_classes,)
        -inf for labels without examples.
    trees_ : list of Bunch
        Read-only arrays of each tree, one entry per node, parents before children:

        - ``parent``: -1 at the root.
        - ``children`` of shape (n_nodes, arity): -1 for none.
        - ``depth``.
        - ``n_weights``: number of weights that are not 0.

        With ``keep_statistics`` also:

        - ``n_examples`` by importance weight, and ``label_entropy`` in nats.
        - ``j``: the objective, with its terms ``balance``, ``class_integrity`` and
          ``multiway_penalty``; NaN at leaves, like the next ones.
        - ``balancedness`` (beta of the paper) and ``purity`` (alpha, Eq. 3), which the terms
          approximate: measured after training, 0 at best.
        - ``j_by_epoch`` of shape (n_nodes, n_epochs): the running objective.

        The histogram of node i is ``labels[label_starts[i]:label_starts[i + 1]]`` (positions in
        ``classes_``) with ``label_counts``.

    Notes
    -----
    For label sets, scores with the scorers are the probabilities that the row has the label; see
    :meth:`predict_scores`. With one label per row, scores only rank labels; ``predict_proba`` and
    ``scores="probability"`` divide a probability of 1 among the labels by a map that is fitted on
    held-out rows.

    Rows without labels do not take part in training, as in the authors' program.

    ``LdSMClassifier(**LdSMClassifier.PAPER)`` has the settings of the paper: fifty trees without
    scorers, M = 4, 2,000 nodes and 20 epochs. ``LdSMClassifier.AUTHORS`` has those of the sample
    call of the authors' program: M = 2, 1,000 nodes. The paper tuned steps, lambdas, nodes and M
    for each data set. The defaults here are the same for all data; see docs/experiments/ldsm.md.

    Warns
    -----
    ConvergenceWarning
        If a tree collapses: it has less than a hundredth of ``max_nodes``, and its leaves are
        nearly as mixed as its root.

    See Also
    --------
    OAAClassifier : Scores every label, in time proportional to their number.

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
        "class_weight": _class_weight.CONSTRAINT,
        "threshold": [*CONSTRAINT, Interval(Real, None, None, closed="neither")],
        "n_labels": [None, Interval(Integral, 1, _validation.MAX_COUNT, closed="both")],
        "warm_start": ["boolean"],
    }

    #: Settings of the authors' program in its sample call for Delicious, a binary tree.
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

    #: Settings of the paper for most of its seven data sets. Section 10 has about 50 trees and up
    #: to 2,000 nodes (64,000 on Mediamill and Bibtex, 32,000 on Delicious); Table 6 has M = 4 (2 on
    #: AmazonCat-13k, Delicious-200k and Amazon-670k). Epochs, optimizer, and everything that the
    #: paper leaves open are those of the sample call: it tuned steps and lambdas, and does not
    #: state loss, initial weights, ties and dropped weights.
    PAPER: ClassVar[dict[str, Any]] = {
        **AUTHORS,
        "n_estimators": 50,
        "arity": 4,
        "max_nodes": 2000,
        "keep_statistics": False,
    }

    n_estimators: int = 10
    scorers: str = "one_against_some"
    threshold: float | SupportsArray | Sequence[float] | Average | None = None
    n_labels: int | None = None
    class_weight: dict[Any, float] | Literal["balanced"] | None = None
    warm_start: bool = False
    random_state: Seed = None
    n_jobs: int | None = None
    verbose: int = 0
    max_nodes: int = 16_000
    min_priority: float = 60.0
    n_epochs: int = 10
    learning_rate: float = 0.1
    scaling: str = "log"
    n_bits: int | None = None
    n_negatives: int | None = None
    tail_weight: float = 0.5
    cost: float | None = None
    weight_threshold: float = 0.1
    slim_trees: bool = True
    keep_statistics: bool = False
    arity: int = 2
    max_updates: int | None = 20_000
    lambda1: float = 2.0
    lambda2: float = 1.0
    loss: str = "centred"
    beta: float = 1.0

    def fit(
        self, X: MatrixLike, y: LabelsLike, sample_weight: Weights = None, classes: Classes = None
    ) -> Self:
        with learning(self):
            first = 0
            if self.warm_start and self.__sklearn_is_fitted__():
                if classes is not None:
                    raise ValueError("classes cannot be changed with warm_start=True; omit classes")
                first = self._n_trees()
                self._add_trees(X, y, sample_weight)
            else:
                super().fit(X, y, sample_weight, classes)
            self._warn_collapsed(first, stacklevel=3)
        return self

    def _fit(self, X: Any, target: Target, sample_weight: Any, change: Change[Any]) -> None:
        model = self._new_model(target)
        self._set_thresholds(model.params, X, target, sample_weight)
        self._learn(model.fit, model, X, target, sample_weight, change)

    def _set_thresholds(
        self, params: dict[str, Any], X: Any, target: Target, sample_weight: Any
    ) -> None:
        """Fit or check the thresholds of label sets."""
        self._thresholds = None
        if target.multilabel and isinstance(self.threshold, str):
            self._fit_thresholds(params, X, target, row_weights(sample_weight, X))
        elif target.multilabel and self.threshold is not None:
            checked(self.threshold, len(target.classes))

    def _fit_thresholds(
        self, params: dict[str, Any], X: Any, target: Target, weights: NDArray[np.float64]
    ) -> None:
        """Fit thresholds on rows that a second model has not learned."""
        average: Any = self.threshold
        self._thresholds = unfitted(average, len(target.classes))
        # Rows without labels do not take part in training.
        present = np.flatnonzero((weights > 0) & (np.diff(target.codes.tocsr().indptr) > 0))
        n_held_out = n_for_thresholds(len(present))
        if not n_held_out:
            return
        rows = np.random.default_rng(params["seed"]).permutation(present)[:n_held_out]
        learned = weights.copy()
        learned[rows] = 0
        self._model = self._empty(params, target)
        self._train(self._model.fit, X, target, learned)
        held_out = HeldOut.of(X, target.codes.tocsr(), 0, weights, learned, rows)
        weighted = _class_weight.times(self.class_weight, weights, target)
        weights = (weights if weighted is None else weighted)[rows]
        self._thresholds = self._best_thresholds(replace(held_out, weights=weights))
        # Free its memory before all rows are learned.
        del self._model

    def _best_thresholds(self, held_out: HeldOut) -> Thresholds:
        """Return the thresholds that suit rows which the model has not learned."""
        X, codes, weights = held_out.usable()
        ranked = RankedRows.of(self, X, codes, weights)
        average: Any = self.threshold
        return fit(average, ranked, self._to_probabilities(ranked.scores))

    def _more_state(self) -> dict[str, Any]:
        found = self._thresholds
        return {} if found is None else {"thresholds": found.to_json()}

    def _set_more_state(self, state: dict[str, Any]) -> None:
        if "thresholds" in state:
            self._thresholds = Thresholds.from_json(state["thresholds"])
            self._check_thresholds()

    def _warn_collapsed(self, first: int, stacklevel: int) -> None:
        """Warn if trees from ``first`` on have collapsed."""
        collapsed = int(self._model.summary()["collapsed"][first:].sum())
        if collapsed:
            warnings.warn(
                f"{collapsed} of {self._n_trees() - first} trees collapsed: they have less than "
                f"max_nodes / 100 = {self.max_nodes / 100:g} nodes, and leaves nearly as mixed as "
                f"the root. Lower lambda1 (now {self.lambda1}) or raise lambda2 "
                f"(now {self.lambda2}).",
                ConvergenceWarning,
                stacklevel=stacklevel,
            )

    def _add_trees(self, X: Any, y: Any, sample_weight: Any) -> None:
        """Train the trees that are missing."""
        validate_params(self)
        if self.n_estimators < self._n_trees():
            raise ValueError(
                f"n_estimators must be at least {self._n_trees()} with warm_start=True, the number "
                f"of existing trees, got {self.n_estimators}"
            )
        change = Change(self)
        draft = change.draft
        X = draft._validated(X, reset=False)
        target = encode(y, self._labels)
        if (target.form == "labels") != (self._y_form == "labels"):
            forms = "one label per row", "label sets"
            had, got = forms if self._y_form == "labels" else reversed(forms)
            raise ValueError(f"y must hold {had} as in the first fit, got {got}")
        seed = self._fitted_params()["seed"]
        if self.random_state is not None:
            seed = _validation.seed(self.random_state)
        model = self._model.snapshot()
        model.set_params(json.dumps({**draft._core_params(), "seed": seed}))
        draft._learn(partial(model.fit, warm_start=True), model, X, target, sample_weight, change)

    def predict_scores(self, X: MatrixLike, threshold: float = 0.0) -> sp.csr_matrix:
        """Return the scores of all labels that have one.

        Parameters
        ----------
        X : array or sparse matrix of shape (n, n_features), or a data frame
        threshold : float, default=0.0
            Only scores above it are returned.

        Returns
        -------
        float32 CSR matrix of shape (n, n_classes)
            With "one_against_some", the score joins the trees' score t with the margin z of the
            label's scorer: ``(t + e) * exp(-b * max(0, 1 - z)**2)``, calibrated. All its numbers
            are fitted on rows that trees and scorers were not trained on. For label sets this is
            the probability that the row has the label. With one label per row it only ranks
            labels, and :meth:`predict_proba` returns the probabilities. Without scorers, the score
            is the average, over leaves and trees, of a label's share of the leaf's labels; for
            re-ranking see ``beta``.
        """
        now, rows = self._now(X)
        return now._sparse(rows, float(threshold))

    @property
    def _calibration(self) -> Calibration:  # type: ignore[override]
        """Return the map that divides a probability of 1 among the labels of a row."""
        found = self._model.summary()
        if "shares_slope" not in found:
            return Calibration()
        return Calibration(
            slope=found["shares_slope"],
            intercept=found["shares_intercept"],
            rest=found["shares_rest"],
            top_slope=found["shares_top_slope"],
            bends=(found["shares_bend_above"], found["shares_bend_below"]),
            later=tuple(found[f"shares_later_{name}"] for name in ("slope", "rest", "labels")),
        )

    def _to_probabilities(self, scores: NDArray[Any]) -> NDArray[np.float32]:
        if self._y_form != "labels":
            return np.asarray(np.maximum(scores, 0))
        # The property is read once, as the core summarizes all trees for it.
        shares = self._calibration.shares
        scale: Scale = "share" if shares is None else "probability"
        return _core.share_probabilities(scores, scale, len(self.classes_), shares)

    def _n_trees(self) -> int:
        return int(self._model.summary()["n_trees"])

    def _label_sets(self, X: Any) -> Any:
        if self.threshold is not None and not isinstance(self.threshold, Real):
            return self._likely_sets(X, *self._bounds())
        if self.threshold is not None or self.n_labels is not None:
            validate_params(self, "threshold", "n_labels")
        threshold = None if self.threshold is None else float(self.threshold)
        sets = self._sparse(X, threshold, self.n_labels)
        sets.data = np.ones(len(sets.data), np.int64)
        return sets

    def _likely_sets(self, X: Any, bounds: Any, n_least: int) -> sp.csr_matrix:
        """Return the labels with scores above ``bounds``, and with ``n_least`` the best label."""
        found = self._sparse(X, float(np.min(bounds)), n_least=n_least)
        is_likely = found.data > (bounds[found.indices] if np.ndim(bounds) else bounds)
        row = entry_rows(found)
        if n_least:
            best_first = np.lexsort((-found.data, row))
            is_likely[best_first[np.unique(row, return_index=True)[1]]] = True
        entries = row[is_likely], found.indices[is_likely]
        return sp.csr_matrix((np.ones(len(entries[0]), np.int64), entries), found.shape)

    def _sparse(
        self, X: Any, threshold: float | None, n_labels: int | None = None, n_least: int = 0
    ) -> sp.csr_matrix:
        # By default a row gets at least one label, as no training row is without labels.
        select, n_least = self._model.select_labels, 1 if threshold is None else n_least
        starts, labels, scores = self._call(select, X, threshold, n_labels, n_least)
        shape = (X.shape[0], len(self.classes_))
        return sp.csr_matrix((scores, labels, starts), shape=shape)
