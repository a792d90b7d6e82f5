from types import SimpleNamespace

import pytest

from hf_mwp.commands.recipes import Stage
from hf_mwp.compress.models import MwpStudentConfig, MwpStudentModel
from hf_mwp.solver.metrics import count_parameters
from reproduce.descriptions import count_layers, describe_teacher, measure_shape
from tests.slow_parameters import slow_after


@pytest.mark.parametrize(
    ("shape", "size"),
    [
        ({"num_hidden_layers": 4, "hidden_size": 64}, "4 x 64"),
        ('{"num_hidden_layers": 4, "hidden_size": 64}', "4 x 64"),
        ({"model_type": "marian", "d_model": 256, "encoder_layers": 3, "decoder_layers": 2}, "3 + 2 x 256"),
    ],
)
def test_teacher_with_random_weights_is_described_by_its_shape(shape, size):
    stages = {"teacher": Stage("teacher", "train", {"encoder_config": shape, "dataset": "pears", "max_steps": 2})}
    description = describe_teacher(SimpleNamespace(stages=stages), "teacher", stages)
    assert description == f"random weights, {size}, pears, 2 steps"


def test_teacher_in_a_folder_is_described_by_its_files(tmp_path):
    folder = tmp_path / "mine"
    folder.mkdir()
    (folder / "config.json").write_text('{"model_type": "bert", "num_hidden_layers": 6}')
    (folder / "run_config.yaml").write_text("{dataset: plums, num_train_epochs: 8}")
    stages = {"distill": Stage("distill", "train", {"teacher": str(folder)})}
    assert describe_teacher(None, "teacher", stages) == "mine, 6 layers, plums, 8 epochs"
    assert count_layers(None, "teacher", stages) == 6


def by_hand(layers, width, neurons, vocabulary, tokens, pooling):
    """Parameters and operations (two per multiply-add) of a BERT."""
    layer = 4 * width * (width + 1) + (width + 1) * neurons + (neurons + 1) * width + 4 * width
    parameters = (vocabulary + 512 + 2) * width + 2 * width + layers * layer + pooling * width * (width + 1)
    products = tokens * (4 * width * width + 2 * width * neurons) + 2 * tokens * tokens * width
    return {"parameters": parameters, "flops": 2 * (layers * products + pooling * width * width)}


@pytest.mark.parametrize("pooling", slow_after(1, [True, False]))
@pytest.mark.parametrize(("layers", "width", "neurons", "vocabulary"), [(3, 312, 1200, 21128), (2, 72, 96, 500)])
def test_parameters_and_operations_of_a_shape(layers, width, neurons, vocabulary, pooling):
    shape = {"num_hidden_layers": layers, "hidden_size": width, "intermediate_size": neurons, "vocab_size": vocabulary}
    assert measure_shape({**shape, "pooling": pooling}) == by_hand(layers, width, neurons, vocabulary, 128, pooling)
    measured = measure_shape({**shape, "pooling": pooling, "tokens": 7})
    assert measured == by_hand(layers, width, neurons, vocabulary, 7, pooling)


def test_parameters_equal_those_of_a_student():
    model = MwpStudentModel(MwpStudentConfig(num_hidden_layers=1, hidden_size=24))
    assert measure_shape({"num_hidden_layers": 1, "hidden_size": 24})["parameters"] == count_parameters(model)
