"""Logarithmic-time classifiers for very many labels.

Learners, all of them scikit-learn estimators:

- OAAClassifier: one-against-all, for one label per row or label sets
- LOMTreeClassifier, RecallTreeClassifier: online trees
- FilterTreeClassifier, RandomTreeClassifier: fixed trees over the labels
- LdSMClassifier: ensembles of trees for label sets, with a scorer for each label
- GambleClassifier, SAMMEClassifier: boosting, for tables
- TextClassifier: for texts; chooses one of the learners
- ActiveLearner, ActiveGamble: ask for the labels that help most

Tuning: tune. Models in files and for serving: load, save, pipeline_topk, Predictor,
ModelFileError.

Modules: metrics (P@k, nDCG@k, PSP@k), datasets (readers, a writer, demo data), plotting (needs
matplotlib), dask (needs dask and distributed).
"""

from typing import TYPE_CHECKING

# `load` knows the classes of imported modules, so _ldsm_parts is imported, too.
from xmtree import _ldsm_parts, datasets, metrics  # noqa: F401
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

if TYPE_CHECKING:
    from xmtree._tune import tune
else:

    def __getattr__(name):
        """Import ``tune`` when it is needed: the searches of scikit-learn take time to import."""
        if name != "tune":
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        from xmtree._tune import tune

        return tune


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
    "tune",
]
