"""Options and a function for interpolating (`hf-mwp mix`) and averaging the weights of solvers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from hf_mwp.utils.checks import check_options, check_weight
from hf_mwp.utils.option import option
from hf_mwp.utils.usage_error import UsageError

from .model_sources import check_folder, load_pretrained, locate_encoder, locate_solver, resolve_encoder
from .solver import load_solver


if TYPE_CHECKING:
    from hf_mwp.solver.batches.mwp_processor import MwpProcessor
    from hf_mwp.solver.models import Solver


@dataclass
class MixArguments:
    """Options of `hf-mwp mix`."""

    pretrained: str | None = option(
        None, "Folder or Hub id of the pretrained encoder to mix with `distilled`.", locate=locate_encoder
    )
    distilled: str | None = option(
        None, "Folder or Hub id of the solver distilled from `pretrained`.", locate=locate_solver
    )
    solvers: list[str] | None = option(
        None,
        "Instead of `pretrained` and `distilled`: folders or Hub ids of solvers to average, which were trained from "
        "the same weights with different seeds or options.",
        locate=locate_solver,
    )
    pretrained_weight: float = option(0.2, "Share of the pretrained weights; 0.2 in the paper.")
    output_dir: str | None = option(None, "Folder for the mixed solver.", required=True, affects_result=False)
    overwrite: bool = option(False, "Replace an existing model in the folder.", affects_result=False)

    def __post_init__(self):
        check_options(self)
        if self.solvers is None:
            if None in (self.pretrained, self.distilled):
                raise ValueError("`pretrained` and `distilled`, or `solvers`, must be given.")
        elif self.pretrained is not None or self.distilled is not None or len(self.solvers) < 2:
            raise ValueError("`solvers` needs two or more solvers to average, without `pretrained` and `distilled`.")
        elif self.pretrained_weight != type(self).pretrained_weight:
            raise ValueError("`pretrained_weight` has no effect with `solvers`, whose weights are equal. Omit it.")
        check_weight(self, "pretrained_weight")
        self.pretrained = resolve_encoder(self.pretrained)


def mix_solvers(options: MixArguments) -> tuple[Solver, MwpProcessor]:
    """Interpolate only the encoder of a distilled solver with the pretrained encoder it started from, or average whole
    solvers. Return the processor too. Raises `UsageError` if the solvers differ in tokens, symbols or settings."""
    from transformers import AutoModel

    from hf_mwp.compress.distillation import average_parameters, mix_parameters
    from hf_mwp.utils.provenance import ancestry_of

    if options.solvers is not None:
        solvers, processors = zip(*map(load_solver, options.solvers), strict=True)
        processor = processors[0]
        rules = [
            {"tokens": own.tokenizer.get_vocab(), **own.settings, **each.prediction_rules}
            for each, own in zip(solvers, processors, strict=True)
        ]
        for name, each, others in zip(options.solvers, solvers, rules, strict=True):
            try:
                processor.check_model(each)
                if differing := [rule for rule, value in rules[0].items() if value != others.get(rule)]:
                    raise ValueError(f"{', '.join(differing)} differ. Average solvers with the same initial weights.")
            except ValueError as error:
                raise UsageError(f"mix: {name} cannot be averaged with {options.solvers[0]}: {error}") from error
        solver = average_parameters(solvers)
    else:
        check_folder(options.pretrained)
        solver, processor = load_solver(options.distilled)
        pretrained = load_pretrained(AutoModel, options.pretrained).to(solver.dtype)
        # Embeddings of tokens added by the solver are initialised deterministically.
        processor.resize_embeddings(pretrained)
        solver = mix_parameters(pretrained, solver, options.pretrained_weight, inplace=True)
    solver.training_texts = ancestry_of(solver)
    return solver, processor
