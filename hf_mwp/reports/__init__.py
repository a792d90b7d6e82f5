"""Tables of the papers: grids of recipes, their results, and Markdown and pictures made of them."""

from .grid.arm import Arm
from .grid.column import Column
from .grid.table import Table
from .report_error import ReportError
from .reproduction import Reproduction
from .results.joining import join_results
from .results.markdown import to_markdown
from .results.picture import draw_table
from .results.table_result import TableResult
from .running import reproduce_table, write_report


__all__ = [
    "Arm",
    "Column",
    "ReportError",
    "Reproduction",
    "Table",
    "TableResult",
    "draw_table",
    "join_results",
    "reproduce_table",
    "to_markdown",
    "write_report",
]
