"""Options of the commands that run a solver, and the device that it runs on."""

from __future__ import annotations

import os
from dataclasses import dataclass
from importlib.metadata import version
from importlib.util import find_spec
from typing import TYPE_CHECKING

from hf_mwp.commands.building.model_sources import locate_solver
from hf_mwp.runtime.answer import check_search
from hf_mwp.utils.checks import check_at_least_one, check_options
from hf_mwp.utils.option import option
from hf_mwp.utils.usage_error import UsageError


if TYPE_CHECKING:
    from hf_mwp.runtime.default_search import SearchSettings
    from hf_mwp.solver.batches.mwp_processor import MwpProcessor


@dataclass
class SearchOptions:
    """Options for the solver, its search, the batch size and the device."""

    model: str | None = option(None, "Solver: folder or Hub id.", required=True, common=True, locate=locate_solver)
    num_beams: int | None = option(
        None,
        "Number of beams; 1 is greedy search, the papers use 5. If neither num_beams nor re-ranking is set, "
        "generation_config.json in the model folder sets both, and score_margin.",
    )
    score_margin: float | None = option(
        None,
        "Drop incomplete equations whose log probability is more than this below that of the best one: faster. inf "
        "switches off the margin of generation_config.json.",
    )
    batch_size: int = option(32, "Number of problems per batch.", affects_result=False)
    device: str | None = option(None, "Device, such as cuda:0; default: a CUDA GPU, if any.", affects_result=False)

    def __post_init__(self):
        check_options(self)
        check_at_least_one(self, "num_beams", "batch_size")
        check_search(score_margin=self.score_margin)


@dataclass
class RankedSearchOptions(SearchOptions):
    """[`SearchOptions`] and options for re-ranking."""

    rerank: bool | None = option(
        None, "Select the most plausible answer in the beam with the model folder's re-ranker (plausibility.json)."
    )
    reranker: str | None = option(
        None, "Folder or Hub id of a different re-ranker (created by `hf-mwp rerank`), or en or zh of this package."
    )

    @property
    def rerank_with(self) -> bool | str | None:
        """Value of both options as the `rerank` of a solver."""
        return self.rerank if self.reranker is None else self.reranker

    def search_settings(self, processor: MwpProcessor) -> SearchSettings:
        """Return the settings of the search, see [`~runtime.default_search.FolderSearch.search`]."""
        from hf_mwp.runtime.default_search import FolderSearch

        folder = FolderSearch(self.model, processor.language)
        return folder.search(self.num_beams, self.rerank_with, score_margin=self.score_margin)


def find_device(name: str | None) -> str:
    """Return `name` or, if not given, a CUDA GPU or the CPU. Raises `UsageError` if the device does not exist."""
    import torch

    devices = ["cpu"]
    if torch.accelerator.is_available():
        device_type = torch.accelerator.current_accelerator().type
        devices += [f"{device_type}:{number}" for number in range(torch.accelerator.device_count())]
    device_types = {device.partition(":")[0] for device in devices}
    # `cpu:0` is the CPU.
    if name and name not in devices and name.removesuffix(":0") not in device_types:
        raise UsageError(f"--device: this machine has no device {name!r}. Choose one of: {', '.join(devices)}.")
    if name:
        return name
    accelerators = devices[1:]
    if name is None and accelerators and "LOCAL_RANK" in os.environ:
        # Assign a different device to each process of the machine.
        return accelerators[int(os.environ["LOCAL_RANK"]) % len(accelerators)]
    return "cuda" if torch.cuda.is_available() else "cpu"


def has_gpu() -> bool:
    """Return whether PyTorch is installed and can use a CUDA GPU. A build for CPUs is not imported."""
    if find_spec("torch") is None or version("torch").endswith("+cpu"):
        return False
    import torch

    return torch.cuda.is_available()
