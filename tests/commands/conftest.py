"""The command line leaves libraries as it found them."""

import pytest


@pytest.fixture(autouse=True)
def library_settings():
    """Commands turn the libraries' progress bars off; other tests get them back."""
    import datasets
    from transformers.utils import logging

    yield
    datasets.enable_progress_bars()
    logging.enable_progress_bar()
