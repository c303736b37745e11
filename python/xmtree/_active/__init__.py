"""Active learning: classifiers that choose the rows they are trained on."""

from xmtree._active.learners import ActiveGamble, ActiveLearner

__all__ = ["ActiveGamble", "ActiveLearner"]
