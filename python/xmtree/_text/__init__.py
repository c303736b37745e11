"""From texts to labels: :class:`xmtree.TextClassifier`."""

from xmtree._text.classifier import Explanation, TextClassifier

__all__ = ["Explanation", "TextClassifier"]
