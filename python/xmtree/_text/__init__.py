"""Classification of texts: :class:`xmtree.TextClassifier`."""

from xmtree._text.classifier import TextClassifier

__all__ = ["TextClassifier"]
