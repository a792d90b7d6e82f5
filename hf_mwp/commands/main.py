"""Entry point of the commands `hf-mwp` and `python -m hf_mwp`."""

import difflib
import os
import sys
from collections.abc import Callable
from contextlib import suppress
from functools import partial

from hf_mwp.utils.control_characters import show_controls
from hf_mwp.utils.main_process import end_process_group
from hf_mwp.utils.version import __version__

from .options.parsing import parse
from .options.stages import STAGES, command_module, trains, types_of


COMMANDS = {
    "run": "run the incomplete stages of a recipe",
    "pretrain": "pretrain an encoder on problem texts: masked language modelling and part-of-speech tagging",
    "train": "fine-tune a solver (teacher or student) on a dataset",
    "distill": "distil a teacher solver into a student solver",
    "heads": "score a model's attention heads and draw the scores",
    "prune": "prune a solver's attention heads in rounds of distillation",
    "stark": "find the sparsity of the teacher at which its student is best",
    "mix": "interpolate a distilled solver's encoder with its pretrained encoder, or average solvers",
    "rerank": "fit a re-ranker of a solver's answers by plausibility",
    "evaluate": "evaluate a solver on a dataset, and write each prediction with the reason for its failure",
    "solve": "solve problems given as arguments, in a file, or on standard input",
    "pseudo-label": "label problems that have an answer and no equation, by searching with a solver",
    "export": "export a solver for the runtime without PyTorch, in half precision, int8 or as an ONNX graph",
    "app": "start a local web page for solving problems",
    "card": "write a model folder for the Hub: weights, processor, and a model card made from run records",
    "publish": "upload the model folder to the Hugging Face Hub",
    "completion": "print a script that completes commands and options in bash, zsh or fish",
}
LISTING = "\n".join(f"  {name:12} {text}" for name, text in COMMANDS.items())
HELP = f"""usage: hf-mwp <command> [options]

Train, distil, evaluate and use compact solvers of math word problems.

commands:
{LISTING}

`hf-mwp <command> --help` lists the options of a command."""


def main(argv: list[str] | None = None) -> int:
    """Run a subcommand and return the exit status: 0, 1 (error), 2 (no or unknown command) or 130 (interrupted).
    `argv` defaults to the arguments of the process. `HF_MWP_TRACEBACK=1` in the environment shows tracebacks. If the
    reader of a pipe ends (`| head`), the command ends quietly."""
    if argv is None:
        argv = sys.argv[1:]
    status = 0
    try:
        try:
            status = _main(list(argv))
        finally:
            # Python would print a broken pipe that it finds at the exit.
            _flush()
    except BrokenPipeError:
        _discard_output()
    return status


def _main(argv: list[str]) -> int:
    if hasattr(sys.stdout, "reconfigure"):
        sys.stdout.reconfigure(errors="backslashreplace")  # such as Chinese in a pipe on Windows
    if not argv or argv[0] in ("-h", "--help", "help"):
        print(HELP)
        if argv:
            return 0
        return 2
    if argv[0] == "--version":
        print(f"hf-mwp {__version__}")
        return 0
    name = argv[0]
    if name not in COMMANDS:
        hint = "See `hf-mwp --help` for all commands."
        close = difflib.get_close_matches(name, COMMANDS, n=1)
        if close:
            hint = f"Did you mean `hf-mwp {close[0]}`?"
        return _fail(f"Unknown command {name!r}. {hint}", 2)
    try:
        if name == "run":
            from . import run

            return run.run(argv[1:], stage_commands())
        status = run_command(name, argv[1:])
        if "WORLD_SIZE" in os.environ:
            end_process_group()
        return status
    except KeyboardInterrupt:
        return _fail("Interrupted.", 130)
    except BrokenPipeError:
        raise
    except ImportError as error:
        package = (error.name or "").partition(".")[0]
        if package == "hf_mwp" or os.environ.get("HF_MWP_TRACEBACK"):
            raise
        if type(error) is ModuleNotFoundError:
            return _fail(f"`hf-mwp {name}` needs the package {package}. `pip install 'hf-mwp[cli]'` installs it.", 1)
        return _fail(str(error), 1)
    except Exception as error:
        from huggingface_hub.errors import StrictDataclassError

        # Transformers raises `RuntimeError` if the package of a `report_to` is missing.
        lacks_package = isinstance(error, RuntimeError) and "to be installed" in str(error)
        is_expected = lacks_package or isinstance(error, (OSError, ValueError, StrictDataclassError))
        if os.environ.get("HF_MWP_TRACEBACK") or not is_expected:
            raise
        cause: BaseException = error
        if isinstance(error, StrictDataclassError) and error.__cause__ is not None:
            # A model's config has wrong or contradictory fields.
            cause = error.__cause__
        return _fail(str(cause) or type(cause).__name__, 1)


def run_command(name: str, argv: list[str]) -> int:
    """Parse the arguments of a subcommand, run it and print its results. `--help` prints the options and exits."""
    module = command_module(name)
    common = module.OPTIONS if trains(name) else None
    options = parse(name, module.__doc__, partial(types_of, name), argv, common, module.EXAMPLES)
    from .terminal.console import make_console, quiet_libraries

    if getattr(module, "NEEDS_TORCH", True):
        quiet_libraries()
    module.run(make_console(stderr=getattr(options[0], "json", False)), *options)
    return 0


def stage_commands() -> dict[str, Callable[[list[str]], int]]:
    """Return the functions of the commands that can be stages of a recipe."""
    return {name: partial(run_command, name) for name in STAGES}


def _flush() -> None:
    for stream in (sys.stdout, sys.stderr):
        if stream is not None:  # `None` if the process has no such stream (`>&-`)
            stream.flush()


def _discard_output() -> None:
    devnull = os.open(os.devnull, os.O_WRONLY)
    for stream in (sys.stdout, sys.stderr):
        if stream is not None:
            with suppress(BrokenPipeError):
                stream.flush()
            os.dup2(devnull, stream.fileno())


def _fail(message: str, status: int) -> int:
    print(f"hf-mwp: {show_controls(message)}", file=sys.stderr)
    return status
