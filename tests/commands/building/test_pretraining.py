import pytest
from transformers import AlbertConfig, AlbertModel, DistilBertConfig, DistilBertModel

from hf_mwp.commands.building.pretraining import PretrainingArguments, PretrainingBuilder
from hf_mwp.utils.usage_error import UsageError
from tests.tiny import tiny_tokenizer


VOCAB_SIZE = len(tiny_tokenizer())


def test_distilbert_becomes_a_student_with_its_dropout_rates(save_encoder):
    sizes = {"vocab_size": VOCAB_SIZE, "dim": 16, "n_layers": 2, "n_heads": 2, "hidden_dim": 32}
    folder = save_encoder(DistilBertModel(DistilBertConfig(**sizes, dropout=0.2, attention_dropout=0.3)))
    config = PretrainingBuilder(PretrainingArguments(encoder=folder), None).build(None).config
    assert config.model_type == "mwp_student"
    assert (config.hidden_dropout_prob, config.attention_probs_dropout_prob) == (0.2, 0.3)


def test_embeddings_narrower_than_the_hidden_states_are_refused(save_encoder):
    sizes = {"embedding_size": 8, "hidden_size": 16, "num_attention_heads": 2, "intermediate_size": 32}
    folder = save_encoder(AlbertModel(AlbertConfig(vocab_size=VOCAB_SIZE, **sizes, num_hidden_layers=1)))
    with pytest.raises(UsageError, match="'albert'.* 8 dimensions, .*16"):
        PretrainingBuilder(PretrainingArguments(encoder=folder), None)
