"""Code file in solver folders, which imports hf_mwp for `trust_remote_code=True`. hf_mwp must be installed."""

try:
    from hf_mwp import MwpSolver, MwpSolverConfig
except ImportError as error:
    raise ImportError(
        "This folder contains a solver of math word problems, which needs the package hf_mwp, but it cannot be "
        f"imported ({error}). Run `pip install hf-mwp`, then `import hf_mwp`."
    ) from error


__all__ = ["MwpSolver", "MwpSolverConfig"]
