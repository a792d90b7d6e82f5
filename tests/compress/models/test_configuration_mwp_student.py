import json

import pytest
from huggingface_hub.errors import StrictDataclassError
from transformers import AutoConfig

from hf_mwp.compress.models.mwp_student import MwpStudentConfig


def test_defaults_are_the_papers():
    config = MwpStudentConfig()
    assert (config.num_hidden_layers, config.hidden_size, config.vocab_size) == (3, 312, 21128)
    assert config.heads_per_layer == [12, 12, 12]
    assert config.neurons_per_layer == [1200, 1200, 1200]
    assert config.head_dim == 26
    assert config.pos_loss_weight == 5.0
    assert config.pos_labels is None and config.num_pos_tags == 0


def test_saved_config_is_loaded(tmp_path):
    config = MwpStudentConfig(
        num_attention_heads=[12, 5, 0],
        head_dim=26,
        intermediate_size=[0, 1200, 7],
        pos_labels=["B-n", "I-n"],
        pos_tagger="jieba",
    )
    config.save_pretrained(tmp_path)
    loaded = AutoConfig.from_pretrained(tmp_path)
    assert type(loaded) is MwpStudentConfig
    assert loaded.heads_per_layer == [12, 5, 0]
    assert loaded.neurons_per_layer == [0, 1200, 7]
    assert loaded.head_dim == 26
    assert loaded.pos_labels == ["B-n", "I-n"] and loaded.pos_tagger == "jieba" and loaded.num_pos_tags == 2


@pytest.mark.parametrize("heads", [6, 0, [6, 6, 6]])
def test_head_width_is_saved_although_it_is_the_default(heads, tmp_path):
    # Without it 312 // 6 = 52 would be derived on loading.
    MwpStudentConfig(num_attention_heads=heads, head_dim=26).save_pretrained(tmp_path)
    assert json.loads((tmp_path / "config.json").read_text())["head_dim"] == 26
    assert AutoConfig.from_pretrained(tmp_path).head_dim == 26


def test_numbers_per_layer_follow_changed_fields():
    config = MwpStudentConfig()
    config.num_attention_heads = [12, 11, 10]
    assert config.heads_per_layer == [12, 11, 10]
    config.num_hidden_layers = 2
    with pytest.raises(ValueError, match="`num_attention_heads`.* 3 .*num_hidden_layers=2"):
        _ = config.heads_per_layer


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"hidden_size": 310}, "hidden_size=310 .*num_attention_heads=12.*`head_dim`"),
        ({"num_attention_heads": [12, 6, 3]}, "`head_dim`"),
        ({"num_attention_heads": 0}, "`head_dim`"),
        ({"num_attention_heads": [12, 6], "head_dim": 26}, "`num_attention_heads`.* 2 .*num_hidden_layers=3"),
        ({"intermediate_size": [12, 6, -3]}, "`intermediate_size`.*-3"),
        ({"num_hidden_layers": 0}, "`num_hidden_layers`.* at least 1"),
        ({"vocab_size": 0, "pad_token_id": None}, "`vocab_size`.* at least 1"),
        ({"head_dim": 0}, "`head_dim`.* at least 1"),
        ({"pos_labels": ["B-n"], "num_pos_tags": 2}, "`pos_labels`.* 1 .*num_pos_tags=2"),
        ({"pad_token_id": 21128}, "pad_token_id=21128 .*21128"),
        ({"position_offset": 2, "max_position_embeddings": 2}, "max_position_embeddings=2 .*position_offset=2"),
        ({"position_offset": 2, "pad_token_id": None}, "position_offset=2 .*`pad_token_id`"),
        ({"hidden_size": "312"}, "hidden_size"),
        ({"intermediate_size": 1200.5}, "intermediate_size"),
    ],
)
def test_impossible_fields_raise(fields, message):
    with pytest.raises((ValueError, StrictDataclassError), match=message):
        MwpStudentConfig(**fields)
