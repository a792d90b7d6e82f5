from transformers import DistilBertConfig, DistilBertModel

from hf_mwp.building.pretraining import PretrainingArguments, PretrainingBuilder
from tests.tiny import tiny_tokenizer


def test_a_distilbert_becomes_a_student_with_its_dropouts(tmp_path):
    tokenizer = tiny_tokenizer()
    sizes = {"vocab_size": len(tokenizer), "dim": 16, "n_layers": 2, "n_heads": 2, "hidden_dim": 32}
    DistilBertModel(DistilBertConfig(**sizes, dropout=0.2, attention_dropout=0.3)).save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    config = PretrainingBuilder(PretrainingArguments(encoder=str(tmp_path)), None).build(None).config
    assert config.model_type == "mwp_student"
    assert (config.hidden_dropout_prob, config.attention_probs_dropout_prob) == (0.2, 0.3)
