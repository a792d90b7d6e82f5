"""Start a local web page for solving problems. The page loads no scripts, fonts or data from other hosts."""

from dataclasses import dataclass

from hf_mwp.utils.checks import check_options
from hf_mwp.utils.option import option

from .terminal.console import CommandConsole


@dataclass
class AppArguments:
    """Options of `hf-mwp app`."""

    model: str | None = option(None, "Folder of a solver that the runtime can load.", required=True)
    compare: str | None = option(None, "Folder of a second solver, whose answers are shown beside the first solver's.")
    port: int = option(8000, "Port of the page; 0 chooses a free port.")
    host: str = option("127.0.0.1", "Address of the page. Other machines can open it at 0.0.0.0; there is no login.")

    def __post_init__(self):
        check_options(self)


OPTIONS = (AppArguments,)
NEEDS_TORCH = False
EXAMPLES = (
    "hf-mwp app --model runs/exported",
    "hf-mwp app --model runs/exported --compare runs/student --port 9000",
)


def run(console: CommandConsole, args: AppArguments) -> None:
    from .web_app.server import make_server

    folders = [args.model]
    if args.compare is not None:
        folders.append(args.compare)
    with make_server(folders, args.port, args.host) as server:
        console.print(f"{server.url}  (Ctrl+C stops)")
        server.serve_forever()
