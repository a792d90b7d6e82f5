"""Print a script that completes the commands of hf-mwp, their options and the names of files in a shell. It has the
options of math word problems, and must be printed again after an update of the package."""

import argparse
from dataclasses import dataclass

from hf_mwp.utils.option import option

from . import run as run_command
from .main import COMMANDS
from .options.parsing import OptionParser
from .options.stages import command_module, types_of
from .terminal.console import CommandConsole


@dataclass
class CompletionArguments:
    """Options of `hf-mwp completion`."""

    shell: str = option("", "Shell that reads the script.", positional=True, choices=("bash", "zsh", "fish"))


OPTIONS = (CompletionArguments,)
EXAMPLES = (
    "hf-mwp completion bash > ~/.local/share/bash-completion/completions/hf-mwp",
    "hf-mwp completion zsh > ~/.zsh/completions/_hf-mwp",
    "hf-mwp completion fish > ~/.config/fish/completions/hf-mwp.fish",
)
NEEDS_TORCH = False


def run(console: CommandConsole, args: CompletionArguments) -> None:
    import shtab

    # The console would wrap the lines of the script.
    print(shtab.complete(make_parser(), args.shell))


def make_parser() -> argparse.ArgumentParser:
    """Return a parser of all commands and their options, which is only used for completion."""
    from shtab import FILE

    parser = argparse.ArgumentParser("hf-mwp", allow_abbrev=False)
    parser.add_argument("--version", action="store_true", help="print the version")
    subparsers = parser.add_subparsers(parser_class=command_parser)
    for name, text in COMMANDS.items():
        subparser = subparsers.add_parser(name, help=text, command=name)
        for action in subparser._actions:
            if action.type is str and action.choices is None:
                action.complete = FILE
    return parser


def command_parser(command: str, **_) -> argparse.ArgumentParser:
    """Return the parser of a command."""
    if command == "run":
        return run_command.make_parser()
    parser = OptionParser(command, command_module(command).__doc__, types_of(command))
    parser.add_argument("--config", metavar="FILE", help="YAML file with any of these options")
    parser.add_argument("--help", action="help", help="list the options and exit")
    return parser
