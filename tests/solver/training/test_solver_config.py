import dataclasses

import pytest
from transformers import HfArgumentParser, TrainingArguments

from hf_mwp.compress.trainers import DistillationConfig
from hf_mwp.solver.training import SolverDistillationConfig, SolverStarkConfig, SolverTrainingConfig


CONFIGS = [SolverTrainingConfig, SolverDistillationConfig]


def make(config_class, tmp_path, **fields):
    return config_class(output_dir=str(tmp_path), use_cpu=True, report_to="none", **fields)


@pytest.mark.parametrize("config_class", CONFIGS)
def test_they_are_training_arguments(config_class, tmp_path):
    args = make(config_class, tmp_path)
    assert isinstance(args, TrainingArguments)
    assert args.decoder_learning_rate == 1e-3 and args.learning_rate == 1e-4
    assert args.max_grad_norm == 5.0 and args.train_sampling_strategy == "group_by_length"
    assert args.get_warmup_steps(200) == 20


@pytest.mark.parametrize("config_class", CONFIGS)
def test_every_field_has_help(config_class):
    inherited = {field.name for field in dataclasses.fields(TrainingArguments)}
    for field in dataclasses.fields(config_class):
        if field.name not in inherited:
            assert field.metadata.get("help"), field.name


@pytest.mark.parametrize("config_class", CONFIGS)
def test_flags(config_class, tmp_path):
    flags = ["--output_dir", str(tmp_path), "--use_cpu", "--num_beams", "5", "--decoder_learning_rate", "2e-3"]
    (args,) = HfArgumentParser(config_class).parse_args_into_dataclasses([*flags, "--report_to", "none"])
    assert (args.num_beams, args.decoder_learning_rate, args.max_decode_length) == (5, 2e-3, None)


def test_flags_of_distillation(tmp_path):
    parser = HfArgumentParser(SolverDistillationConfig)
    flags = f"--output_dir {tmp_path} --use_cpu --report_to none --scale_by_square false --layer_mapping 1:4".split()
    (args,) = parser.parse_args_into_dataclasses([*flags, "--hidden_weights", "1.0"])
    assert (args.layer_mapping, args.hidden_weights) == ("1:4", [1.0]) and args.scale_by_square is False
    (args,) = parser.parse_args_into_dataclasses([*flags, "--hidden_loss", "none"])
    assert args.hidden_loss is None


def test_help_is_printable(capsys):
    for config_class in CONFIGS:
        with pytest.raises(SystemExit):
            HfArgumentParser(config_class).parse_args_into_dataclasses(["--help"])
    assert "--soft_label_weight" in capsys.readouterr().out


def test_metric_is_left_to_the_trainer(tmp_path):
    assert make(SolverTrainingConfig, tmp_path).metric_for_best_model == "answer_accuracy"
    assert make(SolverTrainingConfig, tmp_path).greater_is_better
    fields = {"load_best_model_at_end": True, "eval_strategy": "epoch", "save_strategy": "epoch"}
    args = make(DistillationConfig, tmp_path, **fields)
    assert args.metric_for_best_model is None and args.greater_is_better is None
    args = make(DistillationConfig, tmp_path, metric_for_best_model="loss", **fields)
    assert args.metric_for_best_model == "loss" and args.greater_is_better is False


def test_distillation_has_no_options_of_solvers(tmp_path):
    with pytest.raises(TypeError, match="num_beams"):
        make(DistillationConfig, tmp_path, num_beams=3)
    args = make(SolverDistillationConfig, tmp_path, num_beams=3)
    assert isinstance(args, DistillationConfig) and isinstance(args, SolverTrainingConfig)
    solver_fields = {field.name for field in dataclasses.fields(SolverTrainingConfig)}
    general = make(DistillationConfig, tmp_path)
    for field in dataclasses.fields(general):
        if field.name not in ("logging_dir", "run_name", "local_rank"):
            assert getattr(general, field.name) == getattr(make(SolverDistillationConfig, tmp_path), field.name)
    added = {field.name for field in dataclasses.fields(args)} - {field.name for field in dataclasses.fields(general)}
    assert added < solver_fields and "answer_match" in added
    stark = make(SolverStarkConfig, tmp_path, decoder_learning_rate=5e-4)
    assert (stark.learning_rate, stark.temperature, stark.decoder_learning_rate) == (3e-5, 2.0, 5e-4)


@pytest.mark.parametrize("config_class", [DistillationConfig, SolverDistillationConfig])
def test_papers_defaults_of_distillation(config_class, tmp_path):
    args = make(config_class, tmp_path)
    assert (args.learning_rate, args.per_device_train_batch_size) == (1e-4, 32)
    assert (args.temperature, args.soft_label_weight, args.layer_mapping) == (4.0, 0.5, "uniform")
    assert (args.hidden_loss, args.embedding_weight, args.prediction_weight) == ("mse", 1.0, 1.0)


@pytest.mark.parametrize(
    ("config_class", "fields", "message"),
    [
        (SolverTrainingConfig, {"num_beams": 0}, "num_beams"),
        (SolverTrainingConfig, {"max_decode_length": 0}, "max_decode_length"),
        (SolverTrainingConfig, {"decoder_learning_rate": -1.0}, "decoder_learning_rate"),
        (SolverTrainingConfig, {"decoder_weight_decay": -0.1}, "decoder_weight_decay"),
        (SolverTrainingConfig, {"answer_match": "mine"}, "answer_match"),
        (SolverDistillationConfig, {"num_beams": 0}, "num_beams"),
        (SolverDistillationConfig, {"temperature": 0.0}, "temperature"),
        (SolverTrainingConfig, {"early_stopping_patience": 2}, "eval_strategy"),
        (SolverTrainingConfig, {"early_stopping_patience": 0, "eval_strategy": "epoch"}, "early_stopping_patience"),
        (DistillationConfig, {"temperature": 0.0}, "temperature"),
        (DistillationConfig, {"soft_label_weight": 1.5}, "soft_label_weight"),
        (DistillationConfig, {"hidden_loss": "hamming"}, "hidden_loss"),
        (DistillationConfig, {"embedding_weight": -1.0}, "embedding_weight"),
        (DistillationConfig, {"hidden_weights": [1.0, -1.0]}, "hidden_weights"),
        (DistillationConfig, {"projection_learning_rate": -1.0}, "projection_learning_rate"),
    ],
)
def test_impossible_values_are_named(config_class, fields, message, tmp_path):
    with pytest.raises(ValueError, match=message):
        make(config_class, tmp_path, **fields)
