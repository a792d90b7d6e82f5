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
        ({"push_to_hub": True}, "`push_to_hub`.*`trainer.model`"),
    ],
)
def test_impossible_arguments(fields, message, tmp_path):
    with pytest.raises(ValueError, match=message):
        StarkConfig(output_dir=str(tmp_path), **fields)


def test_the_defaults_are_the_papers(tmp_path):
    config = StarkConfig(output_dir=str(tmp_path))
    assert config.sparsities == [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9]
    assert (config.expressiveness_weight, config.temperature, config.scale_by_square, config.soft_label_weight) == (
        0.5,
        2,
        True,
        0.5,
    )
    assert (config.weight_decay, config.warmup_steps, config.max_grad_norm) == (0.01, 0.1, 5.0)
    assert config.lr_scheduler_type == "linear" and (config.num_train_epochs, config.early_stopping_patience) == (
        10,
        5,
    )
