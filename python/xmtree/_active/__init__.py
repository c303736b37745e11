"""Active GAMBLE: boosting that chooses the rows it learns from."""

from xmtree._active.estimator import ActiveGamble

__all__ = ["ActiveGamble"]
