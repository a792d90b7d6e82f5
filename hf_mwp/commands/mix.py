"""Interpolate between two encoders: pretrained_weight times the pretrained encoder plus 1 - pretrained_weight times
the distilled solver's encoder. With --solvers, average the weights of whole solvers instead."""

from hf_mwp.utils.files import writing_weights
from hf_mwp.utils.run_folder import OLD_MODEL, RunFolder

from .building.mixing import MixArguments, mix_solvers
from .terminal.console import CommandConsole


def run(console: CommandConsole, args: MixArguments) -> None:
    with RunFolder(args.output_dir, for_model=True) as folder:
        folder.check_unused(args.overwrite)
        mixed = mix_solvers(args)
        with folder.replacing_model(OLD_MODEL) as unfinished, writing_weights(unfinished):
            for part in mixed:
                part.save_pretrained(unfinished)
    share = f"{args.pretrained_weight:g} of it pretrained"
    share = share if args.solvers is None else f"the mean of {len(args.solvers)}"
    console.print(f"{folder.path} contains the mixed solver, {share}.")
