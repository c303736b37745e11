"""Training and prediction on a Dask cluster.

Only this module needs Dask. Estimators use ``client=`` or the current client of Dask.
"""

try:
    import dask as _dask  # noqa: F401
    import distributed as _distributed  # noqa: F401
except ImportError as error:
    raise ImportError(
        "xmtree.dask needs dask and distributed, which are not installed: "
        "pip install 'dask[array]' distributed"
    ) from error

from xmtree.dask._ldsm import DaskLdSMClassifier
from xmtree.dask._relay import DaskLOMTreeClassifier, DaskOAAClassifier, DaskRecallTreeClassifier
from xmtree.dask._text import DaskTextClassifier

__all__ = [
    "DaskLOMTreeClassifier",
    "DaskLdSMClassifier",
    "DaskOAAClassifier",
    "DaskRecallTreeClassifier",
    "DaskTextClassifier",
]
