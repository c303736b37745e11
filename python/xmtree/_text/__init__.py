"""From texts to labels: :class:`xmtree.TextClassifier`."""

from xmtree._text.classifier import TextClassifier
from xmtree._text.explanation import Explanation

__all__ = ["Explanation", "TextClassifier"]
