import pytest

from tests.tiny import tiny_tokenizer


@pytest.fixture
def save_encoder(tmp_path):
    """Function that saves an encoder and the tiny tokenizer to the test's folder, and returns the folder's name."""

    def save(model):
        model.save_pretrained(tmp_path)
        tiny_tokenizer().save_pretrained(tmp_path)
        return str(tmp_path)

    return save
