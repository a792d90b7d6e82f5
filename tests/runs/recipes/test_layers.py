import pytest
from transformers import BertModel, DistilBertConfig

from hf_mwp.runs.recipes import Recipe
from hf_mwp.runs.recipes.layers import made_layers, source_layers
from tests.tiny import tiny_bert_config, tiny_processor, tiny_solver


@pytest.fixture
def layers(tmp_path):
    """Layers of the model that the last of some stages makes."""

    def count(*stages):
        content = {f"s{number}": stage for number, stage in enumerate(stages)}
        return made_layers(Recipe({"stages": content}, tmp_path).stages[f"s{len(stages) - 1}"])

    return count


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"encoder_config": {"num_hidden_layers": 5}}, 5),
        ({"encoder_config": {}}, 3),
        ({"encoder_config": {"num_hidden_layers": "abc"}}, None),
        ({"encoder_config": {"num_hidden_layers": None}}, None),
        ({"encoder_config": {"num_hidden_layers": True}}, None),
        ({"encoder": "someone/bert", "encoder_layers": "abc"}, None),
        ({"encoder": "someone/bert", "encoder_layers": {"first": 3}}, None),
        ({"encoder": "someone/bert"}, None),
        ({"encoder": "someone/bert", "encoder_layers": "4"}, 4),
        ({"encoder": "someone/bert", "encoder_layers": 4}, 4),
        ({"encoder": "someone/bert", "encoder_layers": "0,2"}, 2),
        ({"encoder": "someone/bert", "encoder_layers": [0, 2, 5]}, 3),
        ({"encoder": "someone/bert", "encoder_layers": [7]}, 1),
        ({"encoder": "someone/bert", "project_to": {}}, 3),
        ({"encoder": "someone/bert", "project_to": {}, "encoder_layers": 2}, 2),
    ],
)
def test_layers_of_what_one_stage_makes(layers, options, expected):
    assert layers({"command": "pretrain", **options}) == expected


def test_layers_of_what_is_made_of_other_stages(layers):
    first = {"command": "train", "encoder_config": {"num_hidden_layers": 6}}
    assert layers(first, {"command": "train", "solver": "${s0}"}) == 6
    assert layers(first, {"command": "distill", "teacher": "${s0}"}) == 3
    assert layers(first, {"command": "distill", "teacher": "${s0}", "student_layers": "0,5"}) == 2
    assert layers(first, {"command": "distill", "teacher": "${s0}", "student_start": "prune"}) == 6
    assert layers(first, {"command": "distill", "teacher": "teacher", "student_encoder": "${s0}"}) == 6
    assert layers(first, {"command": "mix", "pretrained": "p", "distilled": "${s0}"}) == 6
    assert layers(first, {"command": "evaluate", "model": "${s0}"}) is None


def test_layers_of_local_models(layers, tmp_path):
    BertModel(tiny_bert_config(num_hidden_layers=2)).save_pretrained(tmp_path / "bert")
    DistilBertConfig(n_layers=5).save_pretrained(tmp_path / "distilbert")
    tiny_solver(tiny_processor(), layers=3).save_pretrained(tmp_path / "solver")
    found = [layers({"command": "train", "encoder": str(tmp_path / n)}) for n in ("bert", "distilbert", "solver")]
    assert found == [2, 5, 3]


def test_layers_before_a_stage_cuts_them(tmp_path):
    content = {"stages": {"a": {"command": "train", "encoder_config": {"num_hidden_layers": 6}}}}
    content["stages"]["b"] = {"command": "train", "encoder": "${a}", "encoder_layers": 2}
    stage = Recipe(content, tmp_path).stages["b"]
    assert (source_layers(stage), made_layers(stage)) == (6, 2)
