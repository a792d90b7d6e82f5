import pytest
from transformers import AlbertConfig, AlbertModel, DistilBertConfig, DistilBertModel

from hf_mwp.commands.building.pretraining import PretrainingArguments, PretrainingBuilder
from hf_mwp.utils.usage_error import UsageError
from tests.tiny import tiny_tokenizer


def test_a_distilbert_becomes_a_student_with_its_dropouts(tmp_path):
    tokenizer = tiny_tokenizer()
    sizes = {"vocab_size": len(tokenizer), "dim": 16, "n_layers": 2, "n_heads": 2, "hidden_dim": 32}
    DistilBertModel(DistilBertConfig(**sizes, dropout=0.2, attention_dropout=0.3)).save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    config = PretrainingBuilder(PretrainingArguments(encoder=str(tmp_path)), None).build(None).config
    assert config.model_type == "mwp_student"
    assert (config.hidden_dropout_prob, config.attention_probs_dropout_prob) == (0.2, 0.3)


def test_word_embeddings_narrower_than_the_states(tmp_path):
    tokenizer = tiny_tokenizer()
    sizes = {"embedding_size": 8, "hidden_size": 16, "num_attention_heads": 2, "intermediate_size": 32}
    AlbertModel(AlbertConfig(vocab_size=len(tokenizer), **sizes, num_hidden_layers=1)).save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    with pytest.raises(UsageError, match="'albert'.* 8 dimensions, .*16"):
        PretrainingBuilder(PretrainingArguments(encoder=str(tmp_path)), None)
