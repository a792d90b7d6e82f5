"""Export of solvers for the runtime."""

from ..lazy_names import lazy_names


_NAMES = {"export_arguments": ("ExportArguments",), "exporting": ("ExportReport", "export_solver")}
__all__, __getattr__, __dir__ = lazy_names(__name__, _NAMES)
