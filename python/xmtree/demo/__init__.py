"""The demonstration behind ``xmtree demo``: measure, compare, report.

``xmtree.demo.page``, which is the page with plots, needs matplotlib; all else does not.
"""

from xmtree.demo.contenders import CONTENDERS, DATA_SETS, Contender, DataSet
from xmtree.demo.findings import Finding, findings, header, line
from xmtree.demo.measure import Result, Scaling, measure, scaling

__all__ = [
    "CONTENDERS",
    "DATA_SETS",
    "Contender",
    "DataSet",
    "Finding",
    "Result",
    "Scaling",
    "findings",
    "header",
    "line",
    "measure",
    "scaling",
]
