"""Options of the commands that search with a solver."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..option_checks import check_at_least_one
from ..option_roles import Role, option
from ..usage_error import UsageError


if TYPE_CHECKING:
    from ..data.batches.mwp_processor import MwpProcessor
    from .plausibility import PlausibilityReranker


@dataclass
class SearchOptions:
    """Which solver solves how many problems at once, and where."""

    model: str | None = option(
        "hf_mwp_quickstart/student", "Folder or Hub id of the solver.", Role.SOLVER | Role.COMMON
    )
    num_beams: int | None = option(
        None, "Beams of the search, 1 if not given, or those of the re-ranker; the papers report 5."
    )
    batch_size: int = option(64, "Problems solved at once.", Role.DEVICE)
    device: str | None = option(None, "Device, such as cpu or cuda:0; chosen if not given.", Role.DEVICE)

    def __post_init__(self):
        check_at_least_one(self, "num_beams", "batch_size")


@dataclass
class RankedSearchOptions(SearchOptions):
    """[`SearchOptions`], and which answer of the beams is chosen."""

    rerank: bool = option(
        False,
        "Choose among the answers of the beams by how plausible they are, with the plausibility.json "
        "beside the model.",
    )
    reranker: str | None = option(
        None,
        "Folder or Hub id of a re-ranker to use in its place (`hf-mwp rerank` makes one), or the package's own, en or "
        "zh.",
    )

    def load_reranker(self, processor: MwpProcessor) -> tuple[PlausibilityReranker | None, int]:
        """
        The re-ranker that is asked for, and the beams of the search; to name a re-ranker asks for it.

        Raises:
            UsageError: there is none, or it does not suit the solver of this processor or the beams.
        """
        from .plausibility import PlausibilityError, PlausibilityReranker

        if not self.rerank and self.reranker is None:
            return None, self.num_beams or 1
        try:
            found = PlausibilityReranker.from_pretrained(self.reranker or self.model)
            return found, found.check(processor.language, self.num_beams)
        except PlausibilityError as error:
            raise UsageError(f"--rerank: {error}.") from error


def find_device(name: str | None) -> str:
    """The device of this name or, if none is named, the first GPU or else the CPU; `UsageError` if it is not there."""
    import torch

    found = ["cpu"]
    if torch.accelerator.is_available():
        kind = torch.accelerator.current_accelerator().type
        found += [f"{kind}:{number}" for number in range(torch.accelerator.device_count())]
    kinds = {each.partition(":")[0] for each in found}
    # `cpu:0` is the CPU.
    if name and name not in found and name.removesuffix(":0") not in kinds:
        raise UsageError(f"--device: this machine has no {name!r}; it has {', '.join(found)}.")
    return name or ("cuda" if torch.cuda.is_available() else "cpu")
