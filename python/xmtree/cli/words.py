"""The words that speak most for each label of a text classifier."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from xmtree._text.features import TextFeatures

#: Words whose predictions are held at a time.
_STEP = 1 << 14


def strongest_words(
    learner: Any, features: TextFeatures, n_words: int
) -> Iterator[tuple[Any, list[str]]]:
    """Each label with words that, as a text of their own, are given this label, by score.

    So it can be told for every learner; no word may be left for a label.
    """
    words = np.array(features.words(), object)
    if not len(words):
        return
    best, scores = [], []
    for start in range(0, len(words), _STEP):
        codes, found = learner._topk(
            learner._rows(features.transform(words[start : start + _STEP].tolist())), 1
        )
        best.append(codes[:, 0])
        scores.append(found[:, 0])
    order = np.argsort(-np.concatenate(scores), kind="stable")
    label_of = np.concatenate(best)[order]
    words = words[order]
    for code, label in enumerate(learner.classes_.tolist()):
        found_words = words[label_of == code][:n_words].tolist()
        if found_words:
            yield label, found_words
