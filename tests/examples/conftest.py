"""The scripts leave libraries as they found them, as the command line does."""

from tests.commands.conftest import library_settings  # noqa: F401 (a fixture for all tests of this folder)
