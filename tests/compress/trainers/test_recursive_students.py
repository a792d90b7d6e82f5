import json

import pytest
import torch
from transformers import AutoModelForSequenceClassification, TrainerCallback

from hf_mwp import MwpSolver, RecursiveDistillationConfig, recursive_distillation
from hf_mwp.compress.distillation.objectives import AttentionMaps, HardLabels, LayerObjective, SoftLabels
from hf_mwp.compress.models.architecture import layer_parts
from hf_mwp.compress.pruning import RandomImportance
from tests.compress.pruning.encoders import tiny_encoder
from tests.compress.trainers.distilling import pad
from tests.tiny import tiny_athena_solver, tiny_classifier_rows, tiny_processor, tiny_rows, tiny_solver, tiny_tokenizer
from tests.tiny_seq2seq import tiny_pairs, tiny_seq2seq


FIELDS = {
    "ratios": [0.25, 0.5],
    "max_steps": 4,
    "num_pruning_steps": 2,
    "calibration_examples": 8,
    "per_device_train_batch_size": 4,
    "logging_steps": 1,
    "use_cpu": True,
    "report_to": "none",
    "disable_tqdm": True,
}


def arguments(folder, **fields):
    return RecursiveDistillationConfig(output_dir=str(folder), **(FIELDS | {"save_strategy": "no"} | fields))


def of_classifier(folder, teacher=None, fields=(), **kwargs):
    teacher = tiny_encoder("bert", "ForSequenceClassification") if teacher is None else teacher
    data = {"train_dataset": tiny_classifier_rows(16), "eval_dataset": tiny_classifier_rows(8, seed=1)}
    return recursive_distillation(teacher, arguments(folder, **dict(fields)), **data, data_collator=pad, **kwargs)


def same(model, other):
    weights = other.state_dict()
    return all(torch.equal(value, weights[name]) for name, value in model.state_dict().items())


def test_each_generation_is_the_next_ones_teacher(tmp_path):
    teacher = tiny_encoder("bert", "ForSequenceClassification")
    before = {name: value.clone() for name, value in teacher.state_dict().items()}
    seen = {}

    def on_trainer(trainer, number):
        seen[number] = trainer

    generations = of_classifier(tmp_path, teacher, on_trainer=on_trainer)
    # Of twelve heads a quarter is three, half is six.
    assert [sum(each.heads) for each in generations] == [9, 6]
    assert generations[1].parameters < generations[0].parameters < sum(p.numel() for p in teacher.parameters())
    assert same(seen[2].teacher_model, generations[0].load())
    # The model that is given stays as it is: weights, gradients, attention.
    assert all(torch.equal(value, before[name]) for name, value in teacher.state_dict().items())
    assert all(p.requires_grad for p in teacher.parameters())
    loaded = AutoModelForSequenceClassification.from_pretrained(generations[1].folder)
    assert sum(loaded.config.heads_per_layer) == 6 and same(loaded, generations[1].load())
    metrics = json.loads((generations[1].folder / "metrics.json").read_text())
    assert metrics["eval"]["eval_loss"] > 0
    # Heads are pruned in the first half of the steps.
    assert [event["step"] for event in metrics["events"]] == [1, 2]


def test_generations_of_another_type(tmp_path):
    teacher = tiny_encoder("deberta-v3", "ForSequenceClassification")
    generations = of_classifier(tmp_path, teacher)
    assert [sum(each.heads) for each in generations] == [9, 6]
    loaded = AutoModelForSequenceClassification.from_pretrained(generations[1].folder)
    assert type(loaded) is generations[1].model_class and same(loaded, generations[1].load())


def test_the_loss_is_that_of_equations_6_and_7(tmp_path):
    trainers = []
    of_classifier(
        tmp_path, fields={"ratios": [0.25], "soft_label_weight": 0.6}, on_trainer=lambda t, _: trainers.append(t)
    )
    kinds = {type(each): each for each in trainers[0].objectives}
    assert kinds.keys() == {SoftLabels, HardLabels, AttentionMaps}
    assert kinds[SoftLabels].temperature == 2.0 and kinds[SoftLabels].scale_by_square
    assert kinds[SoftLabels].weight == 0.6 and kinds[HardLabels].weight == pytest.approx(0.4)
    layers = len(layer_parts(trainers[0].model))
    assert kinds[AttentionMaps].parts == {f"hidden_{n}": pytest.approx(0.6 / layers) for n in range(1, layers + 1)}


@pytest.mark.parametrize(
    ("hidden_loss", "parts"),
    [
        ("pkd", {"hidden": 0.6}),
        ("attention+mse", {f"{name}_{layer}": 0.2 for name in ("attention", "mse") for layer in (1, 2, 3)}),
    ],
)
def test_the_weight_of_layers_is_divided_among_the_parts_of_any_loss(hidden_loss, parts, tmp_path):
    trainers = []
    fields = {"ratios": [0.25], "max_steps": 2, "soft_label_weight": 0.6, "hidden_loss": hidden_loss}
    of_classifier(tmp_path, fields=fields, on_trainer=lambda trainer, _: trainers.append(trainer))
    found = [each.parts for each in trainers[0].objectives if isinstance(each, LayerObjective)]
    assert {name: weight for each in found for name, weight in each.items()} == pytest.approx(parts)


@pytest.mark.parametrize("only_model", [False, True])
def test_a_killed_chain_goes_on_to_the_same_weights(only_model, tmp_path):
    fields = {"save_strategy": "steps", "save_steps": 1, "save_only_model": only_model}
    whole = of_classifier(tmp_path / "whole", fields=fields)
    made = []

    def kill(trainer, number):
        made.append(number)
        if number == 2:
            trainer.add_callback(Kill(3))

    with pytest.raises(InterruptedError):
        of_classifier(tmp_path / "parts", fields=fields, on_trainer=kill)
    again = of_classifier(tmp_path / "parts", fields=fields, on_trainer=lambda trainer, number: made.append(number))
    # The first one was there.
    assert made == [1, 2, 2]
    assert [each.heads for each in again] == [each.heads for each in whole]
    assert same(again[1].load(), whole[1].load())
    assert not list(again[1].folder.glob("checkpoint-*"))


class Kill(TrainerCallback):
    def __init__(self, step):
        self.step = step

    def on_step_begin(self, args, state, control, **kwargs):
        if state.global_step == self.step:
            raise InterruptedError


def test_other_data_or_arguments_are_other_generations(tmp_path):
    first = of_classifier(tmp_path, fields={"ratios": [0.25]})
    longer = of_classifier(tmp_path)
    assert longer[0].folder == first[0].folder
    others = [
        of_classifier(tmp_path, fields={"ratios": [0.25], "temperature": 3.0}),
        of_classifier(tmp_path, fields={"ratios": [0.25]}, importance=RandomImportance()),
        of_classifier(tmp_path, tiny_encoder("mwp_student", "ForSequenceClassification"), {"ratios": [0.25]}),
    ]
    assert len({each[0].folder for each in [first, *others]}) == 4


def test_stops_when_small_enough_or_too_bad(tmp_path):
    both = of_classifier(tmp_path)
    assert len(of_classifier(tmp_path, fields={"max_parameters": both[0].parameters})) == 1
    losses = [each.metrics["eval"]["eval_loss"] for each in both]
    bound = losses[0] - 1e-6
    assert of_classifier(tmp_path, fields={"least_metric": bound}) == []
    with pytest.raises(ValueError, match=r"\b10 heads.*\b9\b.*\b1 "):
        of_classifier(tmp_path / "none", fields={"ratios": [0.25, 0.85]})
    assert not (tmp_path / "none").exists()
    with pytest.raises(ValueError, match="`least_metric`.*`eval_dataset`"):
        recursive_distillation(tiny_encoder("bert"), arguments(tmp_path, least_metric=0.5), [])
    with pytest.raises(ValueError, match="`metric_for_best_model`.*'accuracy'"):
        of_classifier(tmp_path / "none", fields={"least_metric": 0.5, "metric_for_best_model": "accuracy"})
    unknown = {"compute_metrics": lambda output: {"spearman": float("nan")}}
    fields = {"least_metric": -1.0, "metric_for_best_model": "spearman"}
    assert of_classifier(tmp_path / "nan", fields=fields, **unknown) == []


@pytest.mark.parametrize("make", [tiny_solver, tiny_athena_solver])
def test_a_solver(make, tmp_path):
    processor = tiny_processor()
    rows = tiny_rows(8)
    generations = recursive_distillation(
        make(processor), arguments(tmp_path, ratios=[0.25]), rows, rows[:4], processor
    )
    loaded = MwpSolver.from_pretrained(generations[0].folder)
    assert sum(len(range(parts.num_heads)) for parts in layer_parts(loaded)) == sum(generations[0].heads)
    assert "eval_answer_accuracy" in generations[0].metrics["eval"]


def test_a_sequence_to_sequence_model_without_a_collator(tmp_path):
    args = arguments(tmp_path, ratios=[0.25])
    rows = tiny_pairs(10)
    (generation,) = recursive_distillation(tiny_seq2seq(), args, rows[:8], rows[8:], tiny_tokenizer())
    assert sum(generation.heads) == 9 and "eval_loss" in generation.metrics["eval"]


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
def test_impossible_arguments(fields, message, tmp_path):
    with pytest.raises(ValueError, match=message):
        arguments(tmp_path, **fields)
