"""Entry point of `hf-mwp` and `python -m hf_mwp`."""

from __future__ import annotations

import difflib
import os
import sys
from collections.abc import Callable
from functools import partial
from importlib import import_module
from pathlib import Path

from ..options.parsing import parse
from ..options.stages import STAGES, commands_with, trains, types_of
from ..problems.control_characters import show_controls
from ..store.runs.main_process import end_process_group


COMMANDS = {
    "run": "run the incomplete stages of a recipe",
    "pretrain": "train an encoder on masked words and parts of speech of problem texts",
    "train": "fine-tune a solver (teacher or student) on a data set",
    "distill": "train a student solver after a teacher solver, or run a recipe with all stages around it",
    "heads": "score a model's attention heads, and draw the scores",
    "prune": "prune a solver's attention heads in generations, each distilled from the last one",
    "stark": "find the sparse teacher that teaches a student best, by trial, scores and rewinding",
    "shapes": "measure time and size of the students that can be made of a teacher, and choose one for a target",
    "mix": "average a distilled solver's encoder with the pretrained one that it began as",
    "rerank": "fit a re-ranker to a solver, which puts plausible answers before absurd ones",
    "evaluate": "measure a solver on a data set, and write each prediction with the reason of its failure",
    "solve": "solve problems given as arguments, in a file, or on standard input",
    "pseudo-label": "give equations to problems that have an answer and no equation, by searching with a solver",
    "export": "write a solver for the runtime, which needs no PyTorch, in half precision, int8 or as an ONNX graph",
    "app": "serve a page on this machine where problems are typed and solved",
    "card": "write the folder that the Hub gets: weights, processor, and a card made of the runs' records",
    "publish": "upload that folder to the Hugging Face Hub",
}
ALIASES = {"distil": "distill"}
# The last two do so if their configuration file has stages.
RUN_RECIPES = ("run", "distill", "stark")
LISTING = "\n".join(f"  {name:12} {text}" for name, text in COMMANDS.items())
HELP = f"""usage: hf-mwp <command> [options]

Compact solvers of math word problems: train, distil, evaluate, solve.

commands:
{LISTING}

`hf-mwp <command> --help` names every option of a command."""


def main(argv: list[str] | None = None) -> int:
    """
    Run a subcommand with these arguments, or those of the process, and return the exit status: 0, 1 (a named error),
    2 (wrong arguments) or 130 (interrupted). With `HF_MWP_TRACEBACK=1` in the environment, errors have tracebacks.
    """
    argv = list(sys.argv[1:] if argv is None else argv)
    if not argv or argv[0] in ("-h", "--help", "help"):
        print(HELP)
        return 0 if argv else 2
    if argv[0] == "--version":
        from .. import __version__

        print(f"hf-mwp {__version__}")
        return 0
    name = ALIASES.get(argv[0], argv[0])
    if name not in COMMANDS:
        close = difflib.get_close_matches(name, COMMANDS, n=1)
        hint = f" Did you mean `hf-mwp {close[0]}`?" if close else " `hf-mwp --help` lists the commands."
        return _fail(f"There is no command {name!r}.{hint}", 2)
    try:
        if name in RUN_RECIPES:
            from .commands.recipes import run

            if name == "run" or run.is_recipe(argv[1:]):
                return run.run(argv[1:], name, stage_commands())
        status = run_command(name, argv[1:])
        if "WORLD_SIZE" in os.environ:
            end_process_group()
        return status
    except KeyboardInterrupt:
        return _fail("Interrupted.", 130)
    except BrokenPipeError:
        # The reader of a pipe (`| head`) went away; standard output is closed so that Python does not complain again.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except ModuleNotFoundError as error:
        package = (error.name or "hf_mwp").partition(".")[0]
        if package == "hf_mwp" or os.environ.get("HF_MWP_TRACEBACK"):
            raise
        return _fail(f"`hf-mwp {name}` needs the package {package}. `pip install hf-mwp` installs all packages.", 1)
    except Exception as error:
        from huggingface_hub.errors import StrictDataclassError

        # Fields of a model's config that are wrong or contradict each other.
        cause = (error.__cause__ or error) if isinstance(error, StrictDataclassError) else error
        known = isinstance(error, (OSError, ValueError, StrictDataclassError))
        if os.environ.get("HF_MWP_TRACEBACK") or not known:
            raise
        return _fail(str(cause) or type(cause).__name__, 1)


def run_command(name: str, argv: list[str]) -> int:
    """Parse the arguments of a subcommand, run it, and print its results; `--help` prints the options and exits."""
    folder = Path(__file__).parent
    (path,) = (folder / "commands").rglob(f"{name.replace('-', '_')}.py")
    module = import_module(".".join((__package__, *path.relative_to(folder).with_suffix("").parts)))
    needs_torch = getattr(module, "NEEDS_TORCH", True)
    common = types_of(name, trainer=False) if trains(name) else None
    types = getattr(module, "TYPES", partial(types_of, name))
    options = parse(name, module.__doc__, types, argv, common, commands_with)
    from .terminal.console import make_console, quiet_libraries

    if needs_torch:
        # Registers models and pipeline with Transformers, which imports PyTorch.
        import_module("hf_mwp.pipelines")
        quiet_libraries()
    module.run(make_console(stderr=getattr(options[0], "json", False)), *options)
    return 0


def stage_commands() -> dict[str, Callable[[list[str]], int]]:
    """Return the functions of the commands that may be stages of a recipe."""
    return {name: partial(run_command, name) for name in STAGES}


def _fail(message: str, status: int) -> int:
    print(f"hf-mwp: {show_controls(message)}", file=sys.stderr)
    return status


if __name__ == "__main__":
    sys.exit(main())
