import pytest

from hf_mwp import StarkConfig


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"sparsities": []}, "at least one"),
        ({"sparsities": [0.5, 0.3]}, "in ascending order"),
        ({"sparsities": [0.3, 0.3]}, "in ascending order"),
        ({"sparsities": [1.0]}, "at least 0 and below 1"),
        ({"sparsities": [-0.1]}, "at least 0 and below 1"),
        ({"tradeoff": 1.5}, "`tradeoff` must be from 0 to 1"),
        ({"round_to": 0}, "`round_to` must be at least 1"),
        ({"score_batch_size": 0}, "`score_batch_size` must be at least 1"),
        ({"single_weights": True, "mask": True}, "`mask` is of heads and neurons"),
        ({"keep_caches": True}, "set `cache_teacher_outputs`"),
        ({"push_to_hub": True}, "push the chosen one"),
    ],
)
def test_impossible_arguments(fields, message, tmp_path):
    with pytest.raises(ValueError, match=message):
        StarkConfig(output_dir=str(tmp_path), **fields)


def test_the_defaults_are_the_papers(tmp_path):
    config = StarkConfig(output_dir=str(tmp_path))
    assert config.sparsities == [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9]
    assert (config.tradeoff, config.temperature, config.scale_by_square, config.soft_label_weight) == (
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
