"""Word problems without PyTorch and Transformers: expressions, numbers, and solvers that need NumPy and tokenizers."""

from hf_mwp.utils.lazy_names import lazy_names


_NAMES = {"batch_solver": ("BatchSolver",), "solver": ("RuntimeSolver", "load_solver")}
__all__, __getattr__, __dir__ = lazy_names(__name__, _NAMES)
