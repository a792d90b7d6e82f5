import threading

import pytest

from hf_mwp.cli.app.server import make_server


@pytest.fixture(scope="module")
def address(solver_folder):
    """Address of a server of the page, which runs in a thread."""
    server = make_server([solver_folder])
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()
