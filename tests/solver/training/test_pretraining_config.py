import dataclasses

import pytest
from transformers import HfArgumentParser

from hf_mwp.compress.trainers.base_config import BaseConfig
from hf_mwp.solver.training import PreTrainingConfig


def config(tmp_path, **fields):
    return PreTrainingConfig(output_dir=str(tmp_path), use_cpu=True, report_to="none", **fields)


def test_defaults(tmp_path):
    args = config(tmp_path)
    assert (args.mlm_loss_weight, args.pos_loss_weight, args.mlm_probability) == (1.0, 5.0, 0.15)
    assert (args.weight_decay, args.learning_rate, args.per_device_train_batch_size) == (1e-5, 5e-4, 32)
    assert args.max_grad_norm == 1.0 and args.train_sampling_strategy == "group_by_length"


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


def test_every_field_has_help():
    inherited = {field.name for field in dataclasses.fields(BaseConfig)}
    for field in dataclasses.fields(PreTrainingConfig):
        if field.name not in inherited:
            assert field.metadata.get("help"), field.name


def test_flags(tmp_path):
    flags = ["--output_dir", str(tmp_path), "--use_cpu", "--report_to", "none", "--number_weight", "1.5"]
    (args,) = HfArgumentParser(PreTrainingConfig).parse_args_into_dataclasses([*flags, "--keyword_weight", "2"])
    assert (args.number_weight, args.keyword_weight) == (1.5, 2.0)
