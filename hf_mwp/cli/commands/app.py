"""Serve a page on this machine where problems are typed and solved. Nothing is loaded from elsewhere."""

import webbrowser
from dataclasses import dataclass

from ...options import option
from ..terminal.console import CommandConsole


@dataclass
class AppArguments:
    """Options of `hf-mwp app`."""

    model: str = option("hf_mwp_quickstart/student", "Folder of a solver that the runtime reads.")
    compare: str | None = option(None, "Folder of a second one, whose answers stand beside those of the first.")
    port: int = option(8000, "Port of the page; 0 takes a free one.")
    open_browser: bool = option(False, "Open the page in a browser.")


TYPES = [AppArguments]
NEEDS_TORCH = False


def run(console: CommandConsole, args: AppArguments) -> None:
    """Serve the page until the command is interrupted."""
    from ..app.server import make_server

    folders = [args.model] if args.compare is None else [args.model, args.compare]
    with make_server(folders, args.port) as server:
        address = f"http://127.0.0.1:{server.server_port}/"
        console.print(f"{address}  (Ctrl+C stops)")
        if args.open_browser:
            webbrowser.open(address)
        server.serve_forever()
