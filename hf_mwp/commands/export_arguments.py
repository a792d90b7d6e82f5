"""Options of `hf-mwp export`."""

from dataclasses import dataclass

from hf_mwp.solver.data.file_format import FileArguments
from hf_mwp.utils.checks import check_at_least_one
from hf_mwp.utils.option import option

from .building.model_sources import locate_solver
from .options.locating import locate_problems


@dataclass
class ExportArguments(FileArguments):
    """Options of `hf-mwp export`."""

    model: str | None = option(None, "Folder or Hub id of a solver.", required=True, locate=locate_solver)
    output_dir: str | None = option(None, "Folder for the exported solver.", required=True, affects_result=False)
    format: str = option(
        "numpy",
        "Library that computes the encoder: NumPy (only students), or onnxruntime with an ONNX graph (all encoders).",
        choices=("numpy", "onnx"),
    )
    quantize: str | None = option(None, "Type of the weights: int8; half precision if not given.", choices=("int8",))
    dataset: str | None = option(None, "Dataset to compare the answers on, before and after.", locate=locate_problems)
    data_dir: str | None = option(None, "Folder of the datasets.")
    max_samples: int | None = option(None, "Maximum number of problems to compare.")
    overwrite: bool = option(False, "Replace the model that is in the folder.", affects_result=False)

    def __post_init__(self):
        super().__post_init__()
        check_at_least_one(self, "max_samples")
        if self.dataset is None and (self.max_samples or self.data_dir):
            raise ValueError("`max_samples` and `data_dir` apply only with a `dataset`. Name one, or omit them.")
