"""Goes with each solver's folder: `trust_remote_code=True` needs hf_mwp to be installed, but no `import hf_mwp`."""

try:
    from hf_mwp.models import MwpSolver, MwpSolverConfig
except ImportError as error:
    raise ImportError(
        "This folder holds a solver of math word problems, whose code is the package hf_mwp, which cannot be imported "
        f"here ({error}): `pip install hf-mwp`, then `import hf_mwp`."
    ) from error


__all__ = ["MwpSolver", "MwpSolverConfig"]
