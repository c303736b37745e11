"""The demonstration behind ``xmtree demo``: measure, compare, report."""

from xmtree.demo.contenders import CONTENDERS, DATA_SETS, DataSet
from xmtree.demo.measure import Result, Scaling, measure, scaling
from xmtree.demo.report import write_report
from xmtree.demo.table import findings, header, line, scaling_findings

__all__ = [
    "CONTENDERS",
    "DATA_SETS",
    "DataSet",
    "Result",
    "Scaling",
    "findings",
    "header",
    "line",
    "measure",
    "scaling",
    "scaling_findings",
    "write_report",
]
