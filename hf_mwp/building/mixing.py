"""Mixing and averaging of solvers: as options, and done."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..options import option
from ..options.checks import check_given, refuse
from ..usage_error import UsageError
from .model_sources import check_folder, loading, locate_encoder, locate_solver, resolve_encoder
from .solver import load_solver


if TYPE_CHECKING:
    from ..data.batches.mwp_processor import MwpProcessor
    from ..models import Solver


@dataclass
class MixArguments:
    """Options of `hf-mwp mix`."""

    pretrained: str | None = option(
        None, "Folder or Hub id of the pretrained encoder, to be mixed with `distilled`.", locate=locate_encoder
    )
    distilled: str | None = option(None, "Folder or Hub id of the solver distilled from it.", locate=locate_solver)
    solvers: list[str] | None = option(
        None,
        "Folders or Hub ids of solvers, in place of both: trained from the same start with other seeds or options, "
        "and averaged whole.",
        locate=locate_solver,
    )
    pretrained_weight: float = option(0.2, "Share of the pretrained weights; the paper's is 0.2.")
    output_dir: str | None = option(
        None, "Folder for the mixed solver and its processor (must be given).", affects_result=False
    )
    overwrite: bool = option(False, "Replace the model that is in the folder.", affects_result=False)

    def __post_init__(self):
        if self.solvers is None:
            check_given(self, "pretrained", "distilled")
        averages, weight = self.solvers is not None, self.pretrained_weight
        mixed = (self.pretrained, self.distilled) != (None, None)
        changed = weight != type(self).pretrained_weight
        refuse(
            {
                "`solvers` takes two or more solvers to average, without `pretrained` and `distilled`.": averages
                and (mixed or len(self.solvers) < 2),
                "`pretrained_weight` does nothing with `solvers`, which count alike.": averages and changed,
                f"`pretrained_weight` must be from 0 to 1, not {weight}.": not 0 <= weight <= 1,
            }
        )
        check_given(self, "output_dir")
        self.pretrained = resolve_encoder(self.pretrained)


def mix_solvers(options: MixArguments) -> tuple[Solver, MwpProcessor]:
    """
    Mix a distilled solver's encoder with the pretrained encoder that it started from, whereby the decoder stays as
    distilled, or average whole solvers. Return the solver with the processor of the distilled, or the first, one.
    `UsageError` if a model cannot be loaded, or the solvers do not share tokens and symbols.
    """
    from transformers import AutoModel

    from ..data.training_lineage import ancestry_of, note_training_texts
    from ..distillation import average_parameters, mix_parameters

    if options.solvers is not None:
        solvers, (processor, *_) = zip(*map(load_solver, options.solvers), strict=True)
        for name, each in zip(options.solvers, solvers, strict=True):
            try:
                processor.check_model(each)
            except ValueError as error:
                raise UsageError(f"mix: {name} cannot be averaged with {options.solvers[0]}: {error}") from error
        solver = average_parameters(solvers)
    else:
        check_folder(options.pretrained)
        solver, processor = load_solver(options.distilled)
        load = {"dtype": solver.dtype, "use_safetensors": True}
        with loading(options.pretrained):
            pretrained = AutoModel.from_pretrained(options.pretrained, trust_remote_code=False, **load)
        # Rows of tokens that came with the solver begin in the same way each time.
        processor.resize_embeddings(pretrained)
        solver = mix_parameters(pretrained, solver, options.pretrained_weight, inplace=True)
    note_training_texts(solver, ancestry_of(solver))
    return solver, processor
