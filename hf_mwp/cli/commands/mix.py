"""`hf-mwp mix`: average a distilled solver's encoder with the pretrained one that it began as."""

from __future__ import annotations

from functools import partial

from ...building.model_sources import check_folder
from ...building.solver import load_solver
from ...runs.run_folder import RunFolder, check_output_folder
from ...runs.stage_arguments import types_of
from ...usage_error import UsageError
from ..options.parsing import parse
from ..terminal.console import make_console


argument_types = partial(types_of, "mix")


def run(argv: list[str]) -> int:
    """Mixes and saves; see `hf-mwp mix --help`. The decoder, which was not pretrained, stays as distilled."""
    (args,), _ = parse(
        "mix",
        "Mix parameters: theta times the pretrained encoder plus 1 - theta times the distilled solver's encoder.",
        argument_types,
        argv,
    )
    check_output_folder(args.output_dir)
    from transformers import AutoModel

    from ...data.training_lineage import ancestry_of
    from ...distillation import mix_parameters

    check_folder(args.pretrained)
    with RunFolder(args.output_dir) as folder:
        folder.check_unused(args.overwrite)
        solver, processor = load_solver(args.distilled)
        try:
            pretrained = AutoModel.from_pretrained(args.pretrained, dtype=solver.dtype, use_safetensors=True)
        except OSError as error:
            raise UsageError(f"{args.pretrained} cannot be loaded: {error}") from error
        # Rows of tokens that came with the solver begin in the same way each time.
        processor.resize_embeddings(pretrained)
        mix_parameters(pretrained, solver, args.theta, inplace=True)
        solver.training_texts = ancestry_of(solver)
        solver.save_pretrained(args.output_dir)
        processor.save_pretrained(args.output_dir)
    make_console().print(f"{folder.path} has the mixed solver, {args.theta:g} of it pretrained.")
    return 0
