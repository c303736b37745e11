"""Active learning: classifiers that choose the rows they learn from."""

from xmtree._active.gamble import ActiveGamble

__all__ = ["ActiveGamble"]
