"""Trainers of tiny models."""

import pytest

from tests.tiny import tiny_processor


QUIET = {"use_cpu": True, "report_to": "none", "disable_tqdm": True}


@pytest.fixture(scope="session")
def processor():
    return tiny_processor()
