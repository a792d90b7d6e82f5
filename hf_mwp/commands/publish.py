"""Publish a model folder made by `hf-mwp card` or `hf-mwp export` on the Hugging Face Hub: only card, configuration,
weights, processor and record. Run the command again to resume an interrupted upload."""

from dataclasses import dataclass

from hf_mwp.utils.checks import check_options
from hf_mwp.utils.option import option, option_values

from . import hub
from .terminal.console import CommandConsole


@dataclass
class PublishArguments:
    """Options of `hf-mwp publish`."""

    folder: str = option("", "Folder of the model.", positional=True)
    repo_id: str | None = option(None, "Repository to publish to, as user/name.", required=True)
    private: bool | None = option(None, "Visibility of a new repository; private if not given.")
    revision: str | None = option(None, "Branch to commit to, created if it does not exist; main if not given.")
    commit_message: str = option("Publish with hf_mwp", "First line of the commit.")
    token: str | None = option(None, "Token with write access; that of `hf auth login` if not given.")
    dry_run: bool = option(False, "List the files and their sizes without uploading them.")
    overwrite: bool = option(False, "Replace the content of a repository that this command did not create.")

    def __post_init__(self):
        check_options(self)


OPTIONS = (PublishArguments,)
EXAMPLES = (
    "hf-mwp publish runs/card --repo_id user/my-solver --dry_run",
    "hf-mwp publish runs/card --repo_id user/my-solver --private false",
)


def run(console: CommandConsole, args: PublishArguments) -> None:
    publication = hub.push_solver_to_hub(**option_values(args))
    for name, size in publication.files.items():
        console.print(f"{size:>13,}  {name}")
    console.print(f"{sum(publication.files.values()):>13,}  bytes in {len(publication.files)} files")
    if publication.left_out:
        console.print(f"Left out: {', '.join(publication.left_out)}")
    if not publication.figures:
        console.print("The card has no results. `hf-mwp card --evaluations` adds the results of `hf-mwp evaluate`.")
    if publication.url is None:
        console.print(f"Nothing was uploaded to {publication.repo_id} (dry run).")
    else:
        visibility = "private" if publication.private else "public"
        console.print(f"Published as {publication.url} ({visibility}).")
