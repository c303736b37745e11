"""Classification of texts: :class:`xmtree.TextClassifier`."""

from xmtree._text.classifier import TextClassifier
from xmtree._text.explanation import Explanation

__all__ = ["Explanation", "TextClassifier"]
