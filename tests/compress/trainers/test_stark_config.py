import pytest

from hf_mwp import StarkConfig


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"sparsities": []}, r"`sparsities`.*\[\]"),
        ({"sparsities": [0.5, 0.3]}, r"`sparsities`.*\[0\.5, 0\.3\]"),
        ({"sparsities": [0.3, 0.3]}, r"`sparsities`.*\[0\.3, 0\.3\]"),
        ({"sparsities": [1.0]}, r"sparsity.* 1\.0"),
        ({"sparsities": [-0.1]}, r"sparsity.* -0\.1"),
        ({"expressiveness_weight": 1.5}, r"`expressiveness_weight`.* 1\.5"),
        ({"round_to": 0}, "`round_to`.* 0"),
        ({"score_batch_size": 0}, "`score_batch_size`.* 0"),
        ({"unstructured": True, "per_example": True}, "`per_example`.*`unstructured`"),
    ],
)
def test_impossible_arguments_are_named(fields, message, tmp_path):
    with pytest.raises(ValueError, match=message):
        StarkConfig(output_dir=str(tmp_path), **fields)


PAPER = {
    "sparsities": [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9],
    "expressiveness_weight": 0.5,
    "temperature": 2,
    "scale_by_square": True,
    "soft_label_weight": 0.5,
    "weight_decay": 0.01,
    "warmup_steps": 0.1,
    "max_grad_norm": 5.0,
    "lr_scheduler_type": "linear",
    "num_train_epochs": 10,
    "early_stopping_patience": 5,
}


def test_the_defaults_are_the_papers(tmp_path):
    config = StarkConfig(output_dir=str(tmp_path))
    assert {name: getattr(config, name) for name in PAPER} == PAPER
