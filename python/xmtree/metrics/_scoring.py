"""The measures as scorers of scikit-learn."""

from __future__ import annotations

from functools import partial

import numpy as np
from numpy.typing import ArrayLike

from xmtree._labels import matching
from xmtree._scorers import RankingScorer
from xmtree.metrics._measure import Cuts, Empty, as_cuts
from xmtree.metrics._propensity import psp_at_k
from xmtree.metrics._ranking import ndcg_at_k, precision_at_k


def make_scorers(
    k: int | Cuts = (1, 3, 5),
    *,
    propensities: ArrayLike | None = None,
    classes: ArrayLike | None = None,
    empty: Empty = "zero",
) -> dict[str, RankingScorer]:
    """Scorers for scikit-learn's ``scoring=``: "P@k", "nDCG@k" and, with propensities, "PSP@k".

    They rank labels by ``predict_topk``, of an estimator or of a pipeline's last step. All of
    them fit ``cross_validate`` and, with ``refit="P@1"``, ``GridSearchCV``; ``cross_val_score``
    takes one. For label lists pass ``cv=KFold(...)``: scikit-learn's ``cv=3`` refuses them.
    Of the functions here ``GridSearchCV`` alone takes a sparse indicator.

    Parameters
    ----------
    k : int or sequence of ints, default=(1, 3, 5)
    propensities : array of shape (n_labels,), optional
        From :func:`propensities`, of all labels that are cross-validated: the same measure for
        each part, and frequencies as of the whole training set.
    classes : array of shape (n_labels,), optional
        The labels that propensities and the columns of an indicator are of. By default those of
        the columns, or for integer labels 0, 1, ....
    empty : {"zero", "skip"}, default="zero"
        Whether rows without true labels score 0 or are left out.

    Returns
    -------
    dict of str to callable (estimator, X, y) -> float

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.model_selection import cross_validate
    >>> from xmtree import OAAClassifier
    >>> from xmtree.metrics import make_scorers
    >>> X, y = load_iris(return_X_y=True)
    >>> found = cross_validate(OAAClassifier(random_state=0), X, y, scoring=make_scorers([1, 3]))
    >>> bool(found["test_P@1"].mean() > 0.9)
    True
    """
    measures = {"P": partial(precision_at_k, empty=empty), "nDCG": partial(ndcg_at_k, empty=empty)}
    if propensities is not None:
        measures["PSP"] = partial(psp_at_k, propensities=np.asarray(propensities), empty=empty)
    labels = matching.column_labels(classes)
    return {
        f"{name}@{cut}": RankingScorer(measure, cut, labels)
        for name, measure in measures.items()
        for cut in as_cuts(k)
    }
