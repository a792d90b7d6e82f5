import dataclasses

import pytest
from transformers import HfArgumentParser

from hf_mwp.compress.trainers import DistillationConfig
from hf_mwp.solver.training import SolverDistillationConfig, SolverStarkConfig, SolverTrainingConfig
from tests.solver.training.conftest import QUIET


def make(config_class, tmp_path, **fields):
    return config_class(output_dir=str(tmp_path), **QUIET, **fields)


@pytest.mark.parametrize("config_class", [SolverTrainingConfig, SolverDistillationConfig])
def test_defaults_of_solvers(config_class, tmp_path):
    args = make(config_class, tmp_path)
    assert (args.learning_rate, args.decoder_learning_rate, args.per_device_train_batch_size) == (1e-4, 1e-3, 32)
    assert args.max_grad_norm == 5.0
    assert args.train_sampling_strategy == "group_by_length"
    assert args.get_warmup_steps(200) == 20


def test_best_checkpoint_of_a_solver_has_the_best_answer_accuracy(tmp_path):
    args = make(SolverTrainingConfig, tmp_path)
    assert args.metric_for_best_model == "answer_accuracy"
    assert args.greater_is_better


def test_defaults_of_distillation_are_the_papers(tmp_path):
    args = make(DistillationConfig, tmp_path)
    assert (args.learning_rate, args.per_device_train_batch_size) == (1e-4, 32)
    assert (args.temperature, args.soft_label_weight, args.layer_mapping) == (4.0, 0.5, "uniform")
    assert (args.hidden_loss, args.embedding_weight, args.prediction_weight) == ("mse", 1.0, 1.0)


def test_flags(tmp_path):
    parser = HfArgumentParser(SolverDistillationConfig)
    flags = f"--output_dir {tmp_path} --use_cpu --report_to none".split()
    flags += "--num_beams 5 --decoder_learning_rate 2e-3 --scale_by_square false --layer_mapping 1:4".split()
    (args,) = parser.parse_args_into_dataclasses([*flags, "--hidden_weights", "1.0"])
    assert (args.num_beams, args.decoder_learning_rate, args.max_decode_length) == (5, 2e-3, None)
    assert (args.layer_mapping, args.hidden_weights, args.scale_by_square) == ("1:4", [1.0], False)
    (args,) = parser.parse_args_into_dataclasses([*flags, "--hidden_loss", "none"])
    assert args.hidden_loss is None


@pytest.mark.parametrize("config_class", [SolverTrainingConfig, SolverDistillationConfig])
def test_help_is_printable(config_class):
    with pytest.raises(SystemExit):
        HfArgumentParser(config_class).parse_args_into_dataclasses(["--help"])


@pytest.mark.parametrize(("metric", "greater_is_better"), [(None, None), ("loss", False)])
def test_metric_of_distillation_depends_on_the_model(metric, greater_is_better, tmp_path):
    fields = {"load_best_model_at_end": True, "eval_strategy": "epoch", "save_strategy": "epoch"}
    args = make(DistillationConfig, tmp_path, metric_for_best_model=metric, **fields)
    assert args.metric_for_best_model == metric
    assert args.greater_is_better is greater_is_better


def test_only_configs_of_solvers_have_options_of_solvers(tmp_path):
    with pytest.raises(TypeError, match="num_beams"):
        make(DistillationConfig, tmp_path, num_beams=3)
    args = make(SolverDistillationConfig, tmp_path, num_beams=3)
    assert isinstance(args, DistillationConfig)
    assert isinstance(args, SolverTrainingConfig)
    general = make(DistillationConfig, tmp_path)
    for field in dataclasses.fields(general):
        if field.name not in ("logging_dir", "run_name", "local_rank", "metric_for_best_model", "greater_is_better"):
            assert getattr(general, field.name) == getattr(args, field.name), field.name
    stark = make(SolverStarkConfig, tmp_path, decoder_learning_rate=5e-4)
    assert (stark.learning_rate, stark.temperature, stark.decoder_learning_rate) == (3e-5, 2.0, 5e-4)


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
