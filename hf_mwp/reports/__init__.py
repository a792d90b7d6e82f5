"""Tables of the papers: grids of recipes, their results, and Markdown and pictures made of them."""

from .arm import Arm
from .column import Column
from .markdown import to_markdown
from .picture import draw_table
from .report_error import ReportError
from .reproduction import Reproduction
from .running import reproduce_table, write_report
from .table import Table
from .table_result import TableResult


__all__ = [
    "Arm",
    "Column",
    "ReportError",
    "Reproduction",
    "Table",
    "TableResult",
    "draw_table",
    "reproduce_table",
    "to_markdown",
    "write_report",
]
