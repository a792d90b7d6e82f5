"""Code file in solver folders, which imports hf_mwp for `trust_remote_code=True`. hf_mwp must be installed."""

try:
    from hf_mwp.models import MwpSolver, MwpSolverConfig
except ImportError as error:
    raise ImportError(f"This solver needs the package hf_mwp ({error}). Run `pip install hf-mwp`.") from error


__all__ = ["MwpSolver", "MwpSolverConfig"]
