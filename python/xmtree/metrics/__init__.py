"""Measures for rankings and sets of very many labels.

They follow the definitions of the Extreme Classification Repository
(http://manikvarma.org/downloads/XC/XMLRepository.html).

All functions accept the same inputs (:func:`calibration_error` only one label per row, and
:func:`f1_score`, :func:`precision_score` and :func:`recall_score` predicted label sets).

True labels (``y_true``) are an indicator of shape (n, n_labels), dense or sparse; a list of
label lists; or one label per row. Nested lists of equal length, two or more, that hold only
0 and 1 are an indicator; sets (``[{0, 1}, {1, 2}]``) never are.

Predictions (``y_pred``) are labels, best first, of shape (n, at least k), for instance from
``predict_topk``; or scores of shape (n, n_labels), floats, dense or sparse. A sparse matrix
ranks only its stored entries. Scores of -inf are not ranked, and ties keep the order of the
columns. Arrays of integers, strings or objects hold labels, arrays of floats hold scores.
If the true labels are floats, an array of floats holds labels as well, unless ``classes`` is
given; with ``classes`` of floats, pass labels as an array of objects. -1, None, NaN and NaT
stand for no label.

Labels are compared by value. Columns of an indicator or of scores stand for the labels
0, 1, ..., or for those of ``classes``: pass a learner's ``classes_`` unless its labels are
0, 1, .... Columns of data frames stand for their names, in any order, if predictions or
``classes`` hold labels. Integer arrays (int32, int64), scores (float32, float64) and CSR are
read in place; other labels are looked up one by one, which is slower.

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
from xmtree.metrics._sets import f1_score, precision_score, recall_score

__all__ = [
    "calibration_error",
    "f1_score",
    "make_scorers",
    "ndcg_at_k",
    "precision_at_k",
    "precision_score",
    "propensities",
    "psndcg_at_k",
    "psp_at_k",
    "recall_at_k",
    "recall_score",
]
