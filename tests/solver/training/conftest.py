"""Trainers of tiny models, as in the tests of `compress`."""

from tests.compress.trainers.conftest import (  # noqa: F401 (fixtures for all tests of this folder)
    distillation_config,
    others,
    processor,
    solvers,
)
