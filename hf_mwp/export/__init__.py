"""Export of solvers for the runtime."""

from ..lazy_names import lazy_names


_MODULES = {"ExportArguments": "export_arguments", "ExportReport": "exporting", "export_solver": "exporting"}
__all__ = sorted(_MODULES)
__getattr__, __dir__ = lazy_names(__name__, _MODULES)
