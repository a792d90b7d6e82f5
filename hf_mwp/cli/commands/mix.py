"""`hf-mwp mix`: a distilled solver's encoder averaged with the pretrained one that it began as, or whole solvers."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from ...building.model_sources import check_folder, loading
from ...building.solver import load_solver
from ...runs.run_folder import RunFolder, check_output_folder
from ...runs.stage_arguments import MixArguments, types_of
from ...usage_error import UsageError
from ..options.parsing import parse
from ..terminal.console import make_console


if TYPE_CHECKING:
    from ...data.batches.mwp_processor import MwpProcessor
    from ...models import Solver


argument_types = partial(types_of, "mix")


def run(argv: list[str]) -> int:
    """
    Mixes or averages, and saves; see `hf-mwp mix --help`. A decoder that is mixed with a pretrained encoder, which has
    none, stays as distilled.
    """
    (args,), _ = parse(
        "mix",
        "Mix parameters: theta times the pretrained encoder plus 1 - theta times the distilled solver's encoder; or "
        "average whole solvers.",
        argument_types,
        argv,
    )
    check_output_folder(args.output_dir, for_model=True)
    from ...data.training_lineage import ancestry_of

    if args.solvers is None:
        check_folder(args.pretrained)
    with RunFolder(args.output_dir, for_model=True) as folder:
        folder.check_unused(args.overwrite)
        solver, processor = _mixed(args) if args.solvers is None else _averaged(args.solvers)
        solver.training_texts = ancestry_of(solver)
        solver.save_pretrained(args.output_dir)
        processor.save_pretrained(args.output_dir)
    share = f"{args.theta:g} of it pretrained" if args.solvers is None else f"the mean of {len(args.solvers)}"
    make_console().print(f"{folder.path} has the mixed solver, {share}.")
    return 0


def _mixed(args: MixArguments) -> tuple[Solver, MwpProcessor]:
    from transformers import AutoModel

    from ...distillation import mix_parameters

    solver, processor = load_solver(args.distilled)
    options = {"dtype": solver.dtype, "use_safetensors": True}
    with loading(args.pretrained):
        pretrained = AutoModel.from_pretrained(args.pretrained, trust_remote_code=False, **options)
    # Rows of tokens that came with the solver begin in the same way each time.
    processor.resize_embeddings(pretrained)
    return mix_parameters(pretrained, solver, args.theta, inplace=True), processor


def _averaged(names: Sequence[str]) -> tuple[Solver, MwpProcessor]:
    from ...distillation import average_parameters

    solvers, processors = zip(*map(load_solver, names), strict=True)
    for name, solver in zip(names, solvers, strict=True):
        try:
            processors[0].check_model(solver)
        except ValueError as error:
            raise UsageError(f"mix: {name} cannot be averaged with {names[0]}: {error}") from error
    return average_parameters(solvers), processors[0]
