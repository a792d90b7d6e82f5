import pytest

from hf_mwp.solver.training import PreTrainingConfig
from tests.solver.training.conftest import QUIET


def config(tmp_path, **fields):
    return PreTrainingConfig(output_dir=str(tmp_path), **QUIET, **fields)


def test_defaults(tmp_path):
    args = config(tmp_path)
    assert (args.mlm_loss_weight, args.pos_loss_weight, args.mlm_probability) == (1.0, 5.0, 0.15)
    assert (args.weight_decay, args.learning_rate, args.per_device_train_batch_size) == (1e-5, 5e-4, 32)
    assert args.max_grad_norm == 1.0
    assert args.train_sampling_strategy == "group_by_length"


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"mlm_probability": 0}, "`mlm_probability`.* 0"),
        ({"keyword_weight": 0}, "`keyword_weight`.* 0"),
        ({"number_weight": -1}, "`number_weight`.*-1"),
        ({"pos_loss_weight": -1}, "`pos_loss_weight`.*-1"),
        ({"mlm_loss_weight": 0, "pos_loss_weight": 0}, "`mlm_loss_weight`.*`pos_loss_weight`.* 0"),
        ({"validation_fraction": 1}, "`validation_fraction`.* 1"),
        ({"label_smoothing_factor": 0.1}, "`label_smoothing_factor`"),
        ({"dataloader_num_workers": 1, "dataloader_persistent_workers": True}, "`dataloader_persistent_workers`"),
    ],
)
def test_impossible_values_are_named(fields, message, tmp_path):
    with pytest.raises(ValueError, match=message):
        config(tmp_path, **fields)


@pytest.mark.parametrize("name", ["num_beams", "decoder_learning_rate"])
def test_options_of_solvers_are_refused(name, tmp_path):
    with pytest.raises(TypeError, match=name):
        config(tmp_path, **{name: 1})
