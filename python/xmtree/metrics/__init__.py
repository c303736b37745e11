"""Measures for rankings of very many labels, by the definitions of the
Extreme Classification Repository (http://manikvarma.org/downloads/XC/XMLRepository.html).

All functions take the same kinds of input (:func:`calibration_error` one label per row).

True labels (``y_true``) come as an indicator of shape (n, n_labels), dense or in any
sparse format; as a list of label lists; or as one label per row. Nested lists of one length, two
or more, that hold 0 and 1 alone are an indicator; sets (``[{0, 1}, {1, 2}]``) never are.

Predictions (``y_pred``) come as labels, best first, of shape (n, at least k), for
instance from ``predict_topk``; or as scores of shape (n, n_labels), floats, dense or
sparse. Of a sparse matrix only the stored entries are ranked; scores of -inf are
not. Equal scores are in the order of the columns.
An array of integers, strings or objects holds labels, one of floats scores (unless
the true labels are floats themselves and ``classes`` is not given; beside ``classes`` of floats
they must be an array of objects to be labels).
-1, None, NaN and NaT stand for no label.

Labels are compared with labels by value. Columns, of an indicator or of scores, stand for
the labels 0, 1, ..., or for those of ``classes``: pass a learner's ``classes_`` unless its
labels are 0, 1, .... Columns of data frames stand for the labels that they are named by, in any
order, where predictions or ``classes`` name labels, too. Integer arrays (int32, int64), scores
(float32, float64) and CSR are read in place; other labels are looked up one by one, which takes
longer.

Rows without true labels score 0 with ``empty="zero"``, as in the Repository's program, and
are left out with ``empty="skip"``, as in some papers.
"""

from xmtree._reliability import calibration_error
from xmtree.metrics._measures import (
    make_scorers,
    ndcg_at_k,
    precision_at_k,
    propensities,
    psndcg_at_k,
    psp_at_k,
    recall_at_k,
)

__all__ = [
    "calibration_error",
    "make_scorers",
    "ndcg_at_k",
    "precision_at_k",
    "propensities",
    "psndcg_at_k",
    "psp_at_k",
    "recall_at_k",
]
