"""Logarithmic-time classifiers for very many labels."""

from xmtree import datasets
from xmtree._core import ModelFileError, __version__
from xmtree._lomtree import LOMTreeClassifier
from xmtree._oaa import OAAClassifier
from xmtree._persistence import load

__all__ = [
    "LOMTreeClassifier",
    "ModelFileError",
    "OAAClassifier",
    "__version__",
    "datasets",
    "load",
]
