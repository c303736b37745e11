"""Which learner ``learner="auto"`` stands for."""

from __future__ import annotations

from xmtree._base import Learner
from xmtree._labels import Target
from xmtree._ldsm import LdSMClassifier
from xmtree._oaa import OAAClassifier

#: One-against-all takes time proportional to the number of labels; from here it takes longer.
MOST_LABELS_OF_OAA = 2000
#: Below, label sets are for one-against-all: trees over a few labels have hardly anything to split,
FEWEST_LABELS_OF_LDSM = 100
#: and so have trees over few rows, of which LdSM also holds some out for its calibration.
FEWEST_ROWS_OF_LDSM = 1000
#: Smaller weights are dropped: as accurate, and files are a hundredth; see docs/experiments/oaa.md.
PRUNE = 0.03


def choose(target: Target | None) -> Learner:
    """The learner for such labels; None: they come in a stream, for one that can learn on."""
    if target is None:
        return OAAClassifier()
    fewest = FEWEST_LABELS_OF_LDSM if target.multilabel else MOST_LABELS_OF_OAA + 1
    if len(target.classes) >= fewest and target.codes.shape[0] >= FEWEST_ROWS_OF_LDSM:
        return LdSMClassifier()
    return OAAClassifier(prune=PRUNE)
