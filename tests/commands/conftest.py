"""Running commands, and leaving libraries as they were."""

import pytest

from hf_mwp.commands.main import main


@pytest.fixture(autouse=True)
def library_settings():
    """Commands turn the libraries' progress bars off; other tests get them back."""
    import datasets
    from transformers.utils import logging

    yield
    datasets.enable_progress_bars()
    logging.enable_progress_bar()


@pytest.fixture
def output_of(capsys):
    """Function that runs a command and returns its output, with single spaces instead of line ends."""

    def run(*argv):
        capsys.readouterr()
        assert main([str(word) for word in argv]) == 0
        return " ".join(capsys.readouterr().out.split())

    return run


@pytest.fixture
def error_of(capsys):
    """Function that runs a command that must fail, and returns its error, with single spaces instead of line ends."""

    def run(*argv):
        capsys.readouterr()
        assert main([str(word) for word in argv]) == 1
        return " ".join(capsys.readouterr().err.split())

    return run
