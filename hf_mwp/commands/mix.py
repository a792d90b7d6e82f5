"""Interpolate between two encoders: pretrained_weight times the pretrained encoder plus 1 - pretrained_weight times
the distilled solver's encoder. With --solvers, average the weights of whole solvers instead."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from hf_mwp.runtime.numbers.masked_text import NUMBER_READINGS
from hf_mwp.utils.checks import check_options, check_weight
from hf_mwp.utils.files import writing_weights
from hf_mwp.utils.option import option
from hf_mwp.utils.run_folder import OLD_MODEL, RunFolder
from hf_mwp.utils.usage_error import UsageError

from .building.model_sources import check_folder, load_pretrained, locate_encoder, locate_solver, resolve_encoder
from .building.solver import load_solver
from .terminal.console import CommandConsole


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
    number_reading: str | None = option(
        None,
        "Forms of numbers that the averaged solver reads: original, plain, or people. Without it, `solvers` must have "
        "the same reading.",
        choices=NUMBER_READINGS,
    )
    output_dir: str | None = option(None, "Folder for the mixed solver.", required=True, affects_result=False)
    overwrite: bool = option(False, "Replace an existing model in the folder.", affects_result=False)

    def __post_init__(self):
        check_options(self)
        if self.solvers is None:
            if self.number_reading is not None:
                raise ValueError("`number_reading` has no effect without `solvers`. Omit it.")
            if None in (self.pretrained, self.distilled):
                raise ValueError("`pretrained` and `distilled`, or `solvers`, must be given.")
        elif self.pretrained is not None or self.distilled is not None or len(self.solvers) < 2:
            raise ValueError("`solvers` needs two or more solvers to average, without `pretrained` and `distilled`.")
        elif self.pretrained_weight != type(self).pretrained_weight:
            raise ValueError("`pretrained_weight` has no effect with `solvers`, whose weights are equal. Omit it.")
        check_weight(self, "pretrained_weight")
        self.pretrained = resolve_encoder(self.pretrained)


OPTIONS = (MixArguments,)
EXAMPLES = (
    "hf-mwp mix --pretrained runs/pretrained --distilled runs/student --output_dir runs/mixed",
    "hf-mwp mix --solvers runs/seed_1 runs/seed_2 --output_dir runs/average",
)


def run(console: CommandConsole, args: MixArguments) -> None:
    with RunFolder(args.output_dir, for_model=True) as folder:
        folder.check_unused(args.overwrite)
        solver, processor = mix_solvers(args)
        with folder.replacing_model(OLD_MODEL) as unfinished, writing_weights(unfinished):
            solver.save_pretrained(unfinished)
            processor.save_pretrained(unfinished)
    share = f"{args.pretrained_weight:g} of it pretrained"
    if args.solvers is not None:
        share = f"the mean of {len(args.solvers)}"
    console.print(f"{folder.path} contains the mixed solver, {share}.")


def mix_solvers(options: MixArguments) -> tuple[Solver, MwpProcessor]:
    """Interpolate only the encoder of a distilled solver with the pretrained encoder it started from, or average whole
    solvers. Return the processor too. Raises `UsageError` if the solvers differ in tokens, symbols or settings."""
    from transformers import AutoModel

    from hf_mwp.compress.distillation import average_parameters, mix_parameters
    from hf_mwp.utils.provenance import ancestry_of

    if options.solvers is not None:
        solvers, processors = zip(*map(load_solver, options.solvers), strict=True)
        if options.number_reading is not None:
            for processor in processors:
                processor.number_reading = options.number_reading
        processor = processors[0]
        first_rules = _rules_of(solvers[0], processor)
        for name, solver, solver_processor in zip(options.solvers, solvers, processors, strict=True):
            rules = _rules_of(solver, solver_processor)
            try:
                processor.check_model(solver)
                differing = [rule for rule, value in first_rules.items() if value != rules.get(rule)]
                if differing:
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


def _rules_of(solver: Solver, processor: MwpProcessor) -> Mapping[str, Any]:
    """Return what must be equal in solvers whose weights are averaged."""
    return {"tokens": processor.tokenizer.get_vocab(), **processor.settings, **solver.prediction_rules}
