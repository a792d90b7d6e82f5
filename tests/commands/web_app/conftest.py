import threading
from contextlib import contextmanager

import pytest

from hf_mwp.commands.web_app.server import make_server


@contextmanager
def serving(server):
    """Run a server in a thread."""
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.fixture(scope="module")
def address(solver_folder):
    """Address of a server of the page, which runs in a thread."""
    with serving(make_server([solver_folder])) as server:
        yield f"http://127.0.0.1:{server.server_port}"


@pytest.fixture(scope="session")
def serve():
    """Context manager that runs a server in a thread."""
    return serving
