"""What holds for all tests: no network, one thread, and deprecated use of transformers is a failure."""

import logging
import os
from pathlib import Path

import pytest


os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
os.environ.setdefault("HF_MWP_SHARED_DATA", str(Path(__file__).parents[2] / "shared" / "data"))


class _FailOnDeprecation(logging.Handler):
    """transformers logs most of its deprecations instead of warning."""

    def emit(self, record: logging.LogRecord) -> None:
        message = record.getMessage()
        if "deprecated" in message.lower():
            raise AssertionError(f"transformers calls this use deprecated: {message}")


@pytest.fixture(autouse=True)
def no_deprecated_use():
    logger, handler = logging.getLogger("transformers"), _FailOnDeprecation()
    logger.addHandler(handler)
    yield
    logger.removeHandler(handler)


@pytest.fixture(scope="session")
def repository() -> Path:
    """The root of the repository."""
    return Path(__file__).parents[1]


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder of the full data sets (see CONTRIBUTING.md); the test is skipped where it is missing."""
    folder = Path(os.environ["HF_MWP_SHARED_DATA"])
    if not folder.is_dir():
        pytest.skip(f"the full data sets are not at {folder} (HF_MWP_SHARED_DATA)")
    return folder


def pytest_configure(config: pytest.Config) -> None:
    try:
        import torch
    except ImportError:
        return
    torch.set_num_threads(1)
