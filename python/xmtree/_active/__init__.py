"""Active learning: classifiers that choose the rows they learn from."""

from xmtree._active.gamble import ActiveGamble
from xmtree._active.learner import ActiveLearner

__all__ = ["ActiveGamble", "ActiveLearner"]
