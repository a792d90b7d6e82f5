from hf_mwp.runtime.batch_solver import BatchSolver as BatchSolver
from hf_mwp.runtime.solver import RuntimeSolver as RuntimeSolver
from hf_mwp.runtime.solver import load_solver as load_solver
