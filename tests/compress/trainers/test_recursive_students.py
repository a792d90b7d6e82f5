import json

import pytest
from transformers import AutoModelForSequenceClassification, TrainerCallback

from hf_mwp import MwpSolver, RecursiveDistillationConfig, recursive_distillation
from hf_mwp.compress.distillation.objectives import AttentionMaps, HardLabels, LayerObjective, SoftLabels
from hf_mwp.compress.metrics.efficiency import count_parameters
from hf_mwp.compress.models.architecture import layer_parts
from hf_mwp.compress.pruning import RandomImportance
from tests.compress.pruning.encoders import tiny_encoder
from tests.compress.trainers.distilling import QUIET, copy_of, pad, same_weights, unchanged
from tests.slow_parameters import slow_after
from tests.tiny import tiny_athena_solver, tiny_classifier_rows, tiny_processor, tiny_rows, tiny_solver, tiny_tokenizer
from tests.tiny_seq2seq import tiny_pairs, tiny_seq2seq


FIELDS = QUIET | {
    "ratios": [0.25, 0.5],
    "max_steps": 4,
    "num_pruning_steps": 2,
    "calibration_examples": 8,
    "per_device_train_batch_size": 4,
    "logging_steps": 1,
    "save_strategy": "no",
}
ONE_GENERATION = {"ratios": [0.25], "max_steps": 2, "num_pruning_steps": 1}


def arguments(folder, **fields):
    return RecursiveDistillationConfig(output_dir=str(folder), **(FIELDS | fields))


def classifier_generations(folder, teacher=None, keywords=None, **fields):
    if teacher is None:
        teacher = tiny_encoder("bert", "ForSequenceClassification")
    data = {"train_dataset": tiny_classifier_rows(16), "eval_dataset": tiny_classifier_rows(8, seed=1)}
    return recursive_distillation(teacher, arguments(folder, **fields), **data, data_collator=pad, **(keywords or {}))


def first_trainer(folder, teacher=None, keywords=None, **fields):
    """The trainer of the first generation, before its training."""
    trainers = []

    def stop(trainer, number):
        trainers.append(trainer)
        raise InterruptedError

    with pytest.raises(InterruptedError):
        classifier_generations(folder, teacher, {"on_trainer": stop} | (keywords or {}), **fields)
    return trainers[0]


@pytest.fixture(scope="module")
def chain_folder(tmp_path_factory):
    return tmp_path_factory.mktemp("chain")


@pytest.fixture(scope="module")
def generations(chain_folder):
    """Two generations, whose second teacher is the first of them and whose first teacher stays as it is."""
    teacher = tiny_encoder("bert", "ForSequenceClassification")
    before = copy_of(teacher)
    teachers = []

    def on_trainer(trainer, number):
        teachers.append(trainer.teacher_model)

    generations = classifier_generations(chain_folder, teacher, {"on_trainer": on_trainer})
    assert same_weights(teachers[1], generations[0].load())
    assert unchanged(teacher, before)
    assert all(parameter.requires_grad for parameter in teacher.parameters())
    assert generations[0].parameters < count_parameters(teacher)
    return generations


def test_each_generation_has_fewer_heads(generations):
    # Of twelve heads a quarter is three, half is six.
    first, second = generations
    assert sum(first.heads) == 9
    assert sum(second.heads) == 6
    assert second.parameters < first.parameters
    loaded = AutoModelForSequenceClassification.from_pretrained(second.folder)
    assert sum(loaded.config.heads_per_layer) == 6
    assert same_weights(loaded, second.load())
    metrics = json.loads((second.folder / "metrics.json").read_text())
    assert metrics["eval"]["eval_loss"] > 0
    # Heads are pruned in the first half of the steps.
    assert [event["step"] for event in metrics["events"]] == [1, 2]


def test_the_loss_is_that_of_equations_6_and_7(tmp_path):
    trainer = first_trainer(tmp_path, soft_label_weight=0.6)
    soft, hard, attention = trainer.objectives
    assert [type(objective) for objective in trainer.objectives] == [SoftLabels, HardLabels, AttentionMaps]
    assert soft.temperature == 2.0
    assert soft.scale_by_square
    assert soft.weight == 0.6
    assert hard.weight == pytest.approx(0.4)
    assert attention.parts == pytest.approx({"hidden_1": 0.2, "hidden_2": 0.2, "hidden_3": 0.2})


ATTENTION_AND_STATES = {
    "attention_1": 0.2,
    "attention_2": 0.2,
    "attention_3": 0.2,
    "mse_1": 0.2,
    "mse_2": 0.2,
    "mse_3": 0.2,
}


@pytest.mark.parametrize(
    ("hidden_loss", "weights"), slow_after(1, [("attention+mse", ATTENTION_AND_STATES), ("pkd", {"hidden": 0.6})])
)
def test_the_weight_of_layers_is_divided_among_the_parts_of_any_loss(hidden_loss, weights, tmp_path):
    trainer = first_trainer(tmp_path, soft_label_weight=0.6, hidden_loss=hidden_loss)
    part_weights = {}
    for objective in trainer.objectives:
        if isinstance(objective, LayerObjective):
            part_weights |= objective.parts
    assert part_weights == pytest.approx(weights)


class Kill(TrainerCallback):
    def on_step_begin(self, args, state, control, **kwargs):
        if state.global_step == 3:
            raise InterruptedError


@pytest.mark.slow
@pytest.mark.parametrize("only_model", [False, True])
def test_an_interrupted_chain_continues_to_the_same_weights(generations, only_model, tmp_path):
    fields = {"save_strategy": "steps", "save_steps": 2, "save_only_model": only_model}
    numbers = []

    def kill_second(trainer, number):
        numbers.append(number)
        if number == 2:
            trainer.add_callback(Kill())

    with pytest.raises(InterruptedError):
        classifier_generations(tmp_path, None, {"on_trainer": kill_second}, **fields)
    resumed = classifier_generations(
        tmp_path, None, {"on_trainer": lambda trainer, number: numbers.append(number)}, **fields
    )
    # The first generation is not trained again.
    assert numbers == [1, 2, 2]
    assert [generation.heads for generation in resumed] == [generation.heads for generation in generations]
    assert same_weights(resumed[1].load(), generations[1].load())
    assert not list(resumed[1].folder.glob("checkpoint-*"))


@pytest.mark.slow
def test_other_data_or_arguments_are_other_generations(tmp_path):
    student_teacher = tiny_encoder("mwp_student", "ForSequenceClassification")
    trainers = [
        first_trainer(tmp_path),
        first_trainer(tmp_path, temperature=3.0),
        first_trainer(tmp_path, keywords={"importance": RandomImportance()}),
        first_trainer(tmp_path, student_teacher),
    ]
    assert len({trainer.args.output_dir for trainer in trainers}) == 4
    assert first_trainer(tmp_path, ratios=[0.25]).args.output_dir == trainers[0].args.output_dir


def test_the_chain_ends_when_small_enough_or_too_bad(generations, chain_folder):
    assert len(classifier_generations(chain_folder, max_parameters=generations[0].parameters)) == 1
    loss = generations[0].metrics["eval"]["eval_loss"]
    assert classifier_generations(chain_folder, least_metric=loss - 1e-6) == []


@pytest.mark.slow
def test_a_chain_ends_at_a_metric_that_is_nan(tmp_path):
    keywords = {"compute_metrics": lambda output: {"spearman": float("nan")}}
    fields = {"least_metric": -1.0, "metric_for_best_model": "spearman"}
    assert classifier_generations(tmp_path, None, keywords, **(ONE_GENERATION | fields)) == []


def test_chains_that_cannot_end_are_refused(tmp_path):
    with pytest.raises(ValueError, match=r"\b10 heads.*\b9\b.*\b1 "):
        classifier_generations(tmp_path / "new", ratios=[0.25, 0.85])
    assert not (tmp_path / "new").exists()
    with pytest.raises(ValueError, match="`least_metric`.*`eval_dataset`"):
        recursive_distillation(tiny_encoder("bert"), arguments(tmp_path, least_metric=0.5), [])
    with pytest.raises(ValueError, match="`metric_for_best_model`.*'accuracy'"):
        classifier_generations(tmp_path, least_metric=0.5, metric_for_best_model="accuracy")


@pytest.mark.slow
@pytest.mark.parametrize("make_solver", [tiny_solver, tiny_athena_solver])
def test_solvers(make_solver, tmp_path):
    processor = tiny_processor()
    rows = tiny_rows(8)
    args = arguments(tmp_path, **ONE_GENERATION)
    (generation,) = recursive_distillation(make_solver(processor), args, rows, rows[:4], processor)
    loaded = MwpSolver.from_pretrained(generation.folder)
    assert [layer.num_heads for layer in layer_parts(loaded)] == list(generation.heads)
    assert "eval_answer_accuracy" in generation.metrics["eval"]


@pytest.mark.slow
def test_a_sequence_to_sequence_model_without_a_collator(tmp_path):
    args = arguments(tmp_path, **ONE_GENERATION)
    rows = tiny_pairs(10)
    (generation,) = recursive_distillation(tiny_seq2seq(), args, rows[:8], rows[8:], tiny_tokenizer())
    assert sum(generation.heads) == 9
    assert "eval_loss" in generation.metrics["eval"]


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"ratios": []}, r"`ratios`.*\[\]"),
        ({"ratios": [0.3, 0.2]}, r"`ratios`.*\[0\.3, 0\.2\]"),
        ({"ratios": [1.0]}, r"`ratios`.*\[1\.0\]"),
        ({"alpha": 1.5}, r"`alpha`.* 1\.5"),
        ({"power": 0}, "`power`"),
        ({"end_fraction": 0}, "`end_fraction`"),
        ({"num_pruning_steps": 0}, "`num_pruning_steps`"),
        ({"max_parameters": 0}, "`max_parameters`"),
    ],
)
def test_impossible_arguments_are_named(fields, message, tmp_path):
    with pytest.raises(ValueError, match=message):
        arguments(tmp_path, **fields)
