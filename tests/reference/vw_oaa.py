"""Slow reference of Vowpal Wabbit's one-against-all reduction, ``--oaa k``.

Source: VW 9.11, "One-against-all" in the design notes.  k predictors of
:mod:`vw_linear`; predictor i learns label +1 where the class is i, else -1.

The order of events for one example, which matters for exactness:

1. all k scores are computed and clamped with the [lo, hi] known *so far* (so the
   first example of all is scored and updated from p = 0 for each class);
2. the prediction is the argmax of the *clamped* scores, ties to the lower class.  With
   a squared, hinge or quantile loss the clamp is [-1, 1] and several classes often
   share the top value 1, so ties are common and not an accident of rounding;
3. only then the clamp is widened and each predictor is updated *from the clamped
   score of step 1*: it is not computed again.
"""

import numpy as np

from .vw_linear import VWLinear


class VWOneAgainstAll:
    """``vw --oaa k --loss_function loss``; classes are 0..k-1 (VW's are 1..k)."""

    def __init__(self, k, n_features, loss="squared", eta=0.5, tau=0.5):
        self.k = k
        self.base = VWLinear(k, n_features, loss, eta, tau)
        self.rows = np.arange(k)

    def scores(self, idx, x):
        """Return the clamped score of each class, as printed by ``--oaa k --scores``."""
        return self.base.clamp(self.base.score(self.rows, idx, x))

    def predict(self, idx, x):
        """Return the argmax of the clamped scores, the first of ties."""
        return int(np.argmax(self.scores(idx, x)))

    def learn(self, idx, x, label, h=1.0):
        """Predict, then learn; return the progressive prediction."""
        p = self.scores(idx, x)
        y = np.where(self.rows == label, 1.0, -1.0)
        # VW widens class by class, just before each update.  The scores were
        # clamped before the first of these, so doing both at once is the same.
        self.base.widen(-1)
        self.base.widen(1)
        self.base.update(self.rows, idx, x, y, h, p)
        return int(np.argmax(p))
