"""Logarithmic-time classifiers for very many labels."""

from xmtree import _starting  # noqa: F401  (before all that takes long)

# isort: split
from xmtree import datasets, metrics
from xmtree._active import ActiveGamble, ActiveLearner
from xmtree._core import ModelFileError, __version__
from xmtree._gamble import GambleClassifier, SAMMEClassifier
from xmtree._label_trees import FilterTreeClassifier, RandomTreeClassifier
from xmtree._ldsm import LdSMClassifier
from xmtree._lomtree import LOMTreeClassifier
from xmtree._oaa import OAAClassifier
from xmtree._persistence import load
from xmtree._pipelines import pipeline_topk, save
from xmtree._predictor import Predictor
from xmtree._recall_tree import RecallTreeClassifier
from xmtree._text import TextClassifier

__all__ = [
    "ActiveGamble",
    "ActiveLearner",
    "FilterTreeClassifier",
    "GambleClassifier",
    "LOMTreeClassifier",
    "LdSMClassifier",
    "ModelFileError",
    "OAAClassifier",
    "Predictor",
    "RandomTreeClassifier",
    "RecallTreeClassifier",
    "SAMMEClassifier",
    "TextClassifier",
    "__version__",
    "datasets",
    "load",
    "metrics",
    "pipeline_topk",
    "save",
]
