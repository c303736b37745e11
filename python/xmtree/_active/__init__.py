"""Active learning: classifiers that choose the rows they learn from."""

from xmtree._active.learners import ActiveGamble, ActiveLearner

__all__ = ["ActiveGamble", "ActiveLearner"]
