from transformers import AutoConfig, AutoModel

from .configuration_mwp_solver import MwpSolverConfig, save_solver_code
from .modeling_mwp_solver import MwpSolver, MwpSolverOutput, SolverFolderError


AutoConfig.register(MwpSolverConfig.model_type, MwpSolverConfig)
AutoModel.register(MwpSolverConfig, MwpSolver)

__all__ = ["MwpSolver", "MwpSolverConfig", "MwpSolverOutput", "SolverFolderError", "save_solver_code"]
