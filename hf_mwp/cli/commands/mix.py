"""`hf-mwp mix`: average a distilled solver's encoder with the pretrained one it started from, or whole solvers."""

from __future__ import annotations

from ...building.mixing import mix_solvers
from ...store.runs.run_folder import RunFolder
from ...tasks.commands import parse_command
from ..terminal.console import make_console


def run(argv: list[str]) -> int:
    """Mix or average solvers, and save the result; see `hf-mwp mix --help`."""
    (args,), _ = parse_command(
        "mix",
        "Mix parameters: pretrained_weight times the pretrained encoder plus 1 - pretrained_weight times the "
        "distilled solver's encoder; or "
        "average whole solvers.",
        argv,
    )
    with RunFolder(args.output_dir, for_model=True) as folder:
        folder.check_unused(args.overwrite)
        for part in mix_solvers(args):
            part.save_pretrained(args.output_dir)
    share = (
        f"{args.pretrained_weight:g} of it pretrained" if args.solvers is None else f"the mean of {len(args.solvers)}"
    )
    make_console().print(f"{folder.path} has the mixed solver, {share}.")
    return 0
