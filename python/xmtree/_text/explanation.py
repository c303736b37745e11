"""Explanations of labels: the fall of a label's score without each word."""

from typing import Any, NamedTuple

import numpy as np

from xmtree._sharing import view
from xmtree._text.features import TextFeatures

#: Largest number of labels that :func:`explain` ranks after a word was left out.
_MAX_LABELS = 1000


class Explanation(NamedTuple):
    """Explanation of a text's label, from :meth:`xmtree.TextClassifier.explain`.

    Attributes
    ----------
    label : the label
    score : its score for the text
    words : pairs of a word and the fall of the score without it, largest first
    """

    label: Any
    score: float
    words: list[tuple[str, float]]


def explain(learner: Any, features: TextFeatures, text: str, k: int) -> list[Explanation]:
    """Explain the ``k`` best labels of ``text``."""
    learner = view(learner)
    row = features.transform([text])
    labels, scores = learner.predict_topk(row, k)
    words, blocks = features.without_each_word(text)
    best = int((scores[0] > -np.inf).sum())
    falls = np.zeros((best, len(words)))
    start = 0
    for rows in blocks:
        end = start + rows.shape[0]
        all_labels = min(len(learner.classes_), _MAX_LABELS)
        named, without = learner.predict_topk(rows, max(all_labels, best))
        # A label that is no longer ranked gets the lowest score, or 0 if there is none.
        lowest = np.where(np.isfinite(without), without, 0).min(axis=1)
        for rank in range(best):
            is_label = named == labels[0, rank]
            left = np.where(is_label, without, 0).sum(axis=1)
            left = np.where(is_label.any(axis=1), left, np.minimum(lowest, 0))
            falls[rank, start:end] = scores[0, rank] - left
        start = end
    return [
        Explanation(
            labels[0, rank : rank + 1].tolist()[0],
            float(scores[0, rank]),
            [
                (words[at], float(falls[rank, at]))
                for at in np.argsort(-falls[rank], kind="stable")
                if falls[rank, at] != 0
            ],
        )
        for rank in range(best)
    ]
