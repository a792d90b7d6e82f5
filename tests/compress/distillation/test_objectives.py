"""Each objective: its parts, how batches weigh, with a cache, beside others, and where no tensor may be on the CPU."""

import copy

import pytest
import torch
from transformers import DistilBertConfig, DistilBertForSequenceClassification, masking_utils

from hf_mwp.compress.distillation import FeatureProjections
from hf_mwp.compress.distillation.features import Features, attention_inputs, read_features, recorded_inputs
from hf_mwp.compress.distillation.objectives import (
    DKD,
    FSP,
    PKD,
    AttentionMaps,
    AttentionRelations,
    ContextRelations,
    EmbeddingOutputs,
    HardLabels,
    HiddenStates,
    Objective,
    SoftLabels,
    TeacherValues,
)
from hf_mwp.compress.losses import NSTLoss, PKDLoss, RelationLoss
from hf_mwp.compress.models.architecture import layer_parts
from hf_mwp.compress.pruning import prune_heads
from hf_mwp.compress.trainers import DistillationConfig, DistillationTrainer
from hf_mwp.solver.batches.mwp_collator import MwpCollator
from tests.compress.pruning.encoders import FOREIGN, tiny_batch, tiny_encoder
from tests.compress.trainers.distilling import bart, gpt2, pad, training_logs
from tests.tiny import tiny_classifier, tiny_classifier_rows, tiny_problems, tiny_processor, tiny_solver


class Norm(Objective):
    """A toy: nothing but this class is needed for a new objective."""

    options = {"output_hidden_states": True}

    def setup(self, student, teacher, inputs):
        self.parts = {self.name: self.weight}
        self.teacher_reads = ("hidden_0",)

    def losses(self, student, teacher, inputs):
        norms = [features["hidden_0"][:, 0].square().sum(-1) for features in (student, teacher)]
        return {self.name: (norms[0] - norms[1]).abs().mean()}

    def num_items(self, inputs):
        return {self.name: len(inputs["input_ids"])}


# The parts of the loss, for two mapped layers.
TABLE = {
    "KD": (SoftLabels, ["soft"]),
    "labels": (HardLabels, ["hard"]),
    "DKD": (DKD, ["soft"]),
    "values": (TeacherValues, ["soft"]),
    "hidden states": (HiddenStates, ["hidden_1", "hidden_2"]),
    "NST": (lambda: HiddenStates(NSTLoss()), ["hidden_1", "hidden_2"]),
    "embeddings": (EmbeddingOutputs, ["embedding"]),
    "attention": (AttentionMaps, ["attention_1", "attention_2"]),
    "FSP": (FSP, ["flow_1", "flow_2"]),
    "PKD": (PKD, ["patient"]),
    "CKD": (ContextRelations, ["context_word_pairs", "context_word_triples", "context_layer_pairs"]),
    "relations": (AttentionRelations, ["relations_1", "relations_2"]),
    "toy": (lambda: Norm("norm"), ["norm"]),
}


def models():
    pair = tiny_classifier(), tiny_classifier(1, hidden_size=24, num_hidden_layers=4, initializer_range=0.5)
    for model in pair:
        model.set_attn_implementation("eager")
    return pair


def train(objectives, folder, size=8, **fields):
    student, teacher = models()
    options = {"output_dir": str(folder), "use_cpu": True, "report_to": "none", "disable_tqdm": True}
    options |= {"save_strategy": "no", "logging_steps": 1, "max_steps": 1, "warmup_steps": 0}
    options |= {"per_device_train_batch_size": size, "gradient_accumulation_steps": -(-7 // size)}
    trainer = DistillationTrainer(
        student,
        teacher,
        DistillationConfig(**options | fields),
        pad,
        tiny_classifier_rows(7),  # the last of several batches is a smaller one
        objectives=objectives,
    )
    trainer.train()
    (entry,) = training_logs(trainer)
    return trainer, {name: value for name, value in entry.items() if name.startswith(("loss", "grad"))}


@pytest.mark.parametrize("name", TABLE)
def test_a_step_at_once_in_batches_and_with_a_cache(name, tmp_path):
    make, parts = TABLE[name]
    before = models()[0].state_dict()
    trainer, whole = train([make()], tmp_path)
    assert set(whole) == {"loss", "grad_norm", *(f"loss_{part}" for part in parts)}
    assert whole["loss"] == pytest.approx(sum(whole[f"loss_{part}"] for part in parts), rel=1e-5) and whole["loss"] > 0
    assert any(not torch.equal(value, before[key]) for key, value in trainer.model.state_dict().items())
    assert train([make()], tmp_path, size=2)[1] == pytest.approx(whole, rel=1e-4, abs=1e-6)
    if make().cacheable:
        trainer, cached = train([make()], tmp_path, cache_teacher_outputs=True)
        assert cached == pytest.approx(whole, rel=5e-3, abs=1e-4)
        (objective,) = trainer.objectives
        kept = trainer.teacher_source.cache.layout.states if objective.teacher_reads else {}
        assert {*kept} == {*objective.teacher_reads} - {"logits"}


def test_objectives_stand_side_by_side(tmp_path):
    objectives = [HiddenStates(), HiddenStates(layer_mapping="2:3", weight=0.5, name="more"), AttentionMaps()]
    trainer, entry = train([*objectives, PKD(weight=2.0)], tmp_path)
    alone = {}
    for objective in (HiddenStates(), AttentionMaps()):
        alone |= {name: value for name, value in train([objective], tmp_path)[1].items() if name.count("_") == 2}
    assert entry["loss_attention_1"] == pytest.approx(alone["loss_attention_1"], rel=1e-5)
    total = sum(entry[f"loss_{part}"] for part in ("hidden_1", "hidden_2", "attention_1", "attention_2"))
    total += 0.5 * entry["loss_more_2"] + 2.0 * entry["loss_patient"]
    assert entry["loss"] == pytest.approx(total, rel=1e-5)
    assert set(trainer.projections.reads) == {"hidden_1", "hidden_2", "more_2", "patient_1", "patient_2"}
    with pytest.raises(ValueError, match="'hidden_2'.*`name`"):
        train([HiddenStates(), HiddenStates(layer_mapping="2:3")], tmp_path)
    with pytest.raises(ValueError, match="weights.* 0"):
        train([], tmp_path)


@pytest.mark.parametrize("name", TABLE)
def test_no_tensor_strays_to_the_cpu(name, monkeypatch):
    # The one look of transformers at a mask; from there on a step asks no device for a value.
    monkeypatch.setattr(masking_utils, "_ignore_bidirectional_mask_sdpa", lambda *args, **kwargs: False)
    objective = TABLE[name][0]()
    inputs = pad(tiny_classifier_rows(4))
    student, teacher = models()
    plain = [Features(model(**inputs, **objective.options), model=model) for model in (student, teacher)]
    objective.setup(*plain, inputs)
    maps = FeatureProjections(objective.projections)
    student = student.to("meta").train()
    teacher = teacher.to("meta")
    maps.attach(student)
    inputs = {key: value.to("meta") for key, value in inputs.items()}
    theirs = read_features(teacher, inputs, objective.options, objective.teacher_reads)
    ours = read_features(student, inputs, objective.options, objective.student_reads)
    ours.projected = maps.read(ours.output)
    losses = objective.losses(ours, theirs, inputs)
    assert set(losses) == {*objective.parts} == {*objective.num_items(inputs)}
    sum(losses.values()).backward()
    assert all(loss.is_meta for loss in losses.values())
    assert all(parameter.grad is None or parameter.grad.is_meta for parameter in student.parameters())


def planned(objective, student, teacher, inputs):
    outputs = [Features(model.eval()(**inputs, **objective.options), model=model) for model in (student, teacher)]
    objective.setup(*outputs, inputs)
    return outputs


def test_patient_states_are_those_of_all_mapped_layers():
    student = tiny_classifier()
    teacher = tiny_classifier(1, num_hidden_layers=4)
    inputs = pad(tiny_classifier_rows(4))
    objective = PKD(layer_mapping="1:2,2:3")
    ours, theirs = planned(objective, student, teacher, inputs)
    expected = PKDLoss()(ours.layers("hidden")[1:], theirs.layers("hidden")[2:4], inputs["attention_mask"])
    assert torch.equal(objective.losses(ours, theirs, inputs)["patient"], expected)
    planned(whole := HiddenStates(layer_weights=1, layer_mapping="1:2,2:3"), student, teacher, inputs)
    assert whole.parts == {"hidden_1": 0.5, "hidden_2": 0.5}
    with pytest.raises(ValueError, match=r"`hidden_weights`.* 2 .* 1 .*\['patient'\]"):
        planned(PKD(layer_weights=[1.0, 1.0]), student, teacher, inputs)


def test_relations_are_read_where_attention_is_made():
    student, teacher = models()
    inputs = pad(tiny_classifier_rows(4))
    objective = AttentionRelations(2, ("value",), layer_mapping=[(2, 4)])
    planned(objective, student, teacher, inputs)
    ours, theirs = (
        read_features(model, inputs, objective.options, names)
        for model, names in ((student, objective.student_reads), (teacher, objective.teacher_reads))
    )
    values = [
        model.bert.encoder.layer[layer].attention.self.value(features[f"hidden_{layer}"])
        for model, features, layer in ((student, ours, 1), (teacher, theirs, 3))
    ]
    expected = RelationLoss(2)(*values, inputs["attention_mask"])
    torch.testing.assert_close(objective.losses(ours, theirs, inputs)["relations_2"], expected)
    for layer in (*attention_inputs(student), *attention_inputs(teacher)):
        assert not any(module._forward_hooks for module in layer.values())
    # By default, as many heads as both widths (16 and 24) and 12 have in common.
    objective = AttentionRelations()
    planned(objective, student, teacher, inputs)
    assert objective.loss.heads == 4
    with pytest.raises(ValueError, match=r"\b16 .*\b5 relation heads"):
        planned(AttentionRelations(5), student, teacher, inputs)
    with pytest.raises(ValueError, match=r"\[0, 0\].*queries"):
        planned(AttentionRelations(layer_mapping=[(0, 0)]), student, teacher, inputs)


def distilbert():
    sizes = {"dim": 16, "n_layers": 2, "n_heads": 2, "hidden_dim": 16, "vocab_size": 40}
    return DistilBertForSequenceClassification(DistilBertConfig(**sizes, max_position_embeddings=16))


@pytest.mark.parametrize("name", ["modernbert", "deberta-v2", "deberta-v3", "mpnet", "nomic_bert"])
def test_relations_of_other_encoders(name):
    if name not in FOREIGN:
        pytest.skip(f"this Transformers has no {name}")
    teacher = tiny_encoder(name)
    student = tiny_encoder("bert").requires_grad_()
    inputs = tiny_batch(student)
    for each in (teacher, prune_heads(teacher, {0: [0, 1, 2, 3], 1: [2]})):
        objective = AttentionRelations(2, layer_mapping=[(1, 1), (2, 2)])
        planned(objective, student, each, inputs)
        pruned = layer_parts(each)
        assert len(objective.teacher_reads) == 3 * sum(parts.num_heads > 0 for parts in pruned[:2])
        found = read_features(each, inputs, objective.options, objective.teacher_reads)
        for position, kind in enumerate(("query", "key", "value")):
            made = found[f"{kind}_2"]
            assert made.shape == (3, 9, 6 * pruned[1].num_heads)
            linears = pruned[1].state_projections
            states = found["hidden_1"]
            if name == "modernbert":
                states = each.layers[1].attn_norm(states)
                expected = linears[0](states)[..., position * made.shape[-1] : (position + 1) * made.shape[-1]]
            else:
                expected = linears[position](states)
            torch.testing.assert_close(made, expected)


@pytest.mark.parametrize(
    "make", [tiny_classifier, distilbert, lambda: bart(16, 0), lambda: tiny_solver(tiny_processor())]
)
def test_where_queries_keys_and_values_are_made(make):
    model = make()
    assert len(attention_inputs(model)) == 2
    with pytest.raises(RuntimeError), recorded_inputs(model, ["query_1", "hidden_1"]):
        assert sum(len(module._forward_hooks) for module in model.modules()) == 1
        raise RuntimeError
    assert not any(module._forward_hooks for module in model.modules())


def test_models_that_make_them_in_one_are_refused():
    inputs = {"input_ids": torch.tensor([[5, 6, 7]])}
    with pytest.raises(ValueError, match="`GPT2LMHeadModel`.* 2 layers.* 0"):
        planned(AttentionRelations(), gpt2(16, 0), gpt2(16, 1), inputs)


def test_equal_numbers_of_a_problem_are_one_right_class():
    processor = tiny_processor()
    columns = [processor.encode([problem], with_labels=True) for problem in tiny_problems(6)]
    batch = MwpCollator(processor)([{name: values[0] for name, values in each.items()} for each in columns])
    student = tiny_solver(processor)
    teacher = tiny_solver(processor, seed=1)
    objective = DKD(alpha=1.0, beta=0.0)
    ours, theirs = planned(objective, student, teacher, batch)
    symbols = student.decoder.num_symbols
    targets = objective._targets(ours["logits"], batch)
    valid = batch["labels"] != -100
    assert torch.equal(targets[valid].sum(-1), torch.ones(int(valid.sum()), dtype=torch.long))
    assert torch.equal(targets[valid].int().argmax(-1), batch["labels"][valid])
    # Say that the second number of the first problem is the first one again.
    groups = batch["number_groups"].clone()
    groups[0, 1] = 0
    targets = objective._targets(ours["logits"], batch | {"number_groups": groups})
    for node in valid[0].nonzero().flatten().tolist():
        label = batch["labels"][0, node].item()
        expected = {symbols, symbols + 1} if label in (symbols, symbols + 1) else {label}
        assert {*targets[0, node].nonzero().flatten().tolist()} == expected
    assert torch.equal(targets[1:], objective._targets(ours["logits"], batch)[1:])
    loss = objective.losses(ours, theirs, batch)["soft"]
    assert loss.isfinite() and loss > 0
    with pytest.raises(ValueError, match='labels.*`prediction_loss="kd"`'):
        objective.losses(ours, theirs, {name: value for name, value in batch.items() if name != "labels"})


def test_causal_language_models_are_refused():
    inputs = pad([{**row, "labels": row["input_ids"]} for row in tiny_classifier_rows(4)])
    for objective in (DKD(), SoftLabels(), HardLabels()):
        with pytest.raises(ValueError, match="`GPT2LMHeadModel`.*TRL"):
            planned(objective, gpt2(16, 0), gpt2(16, 1), inputs)


def test_a_student_equal_to_its_teacher_has_nothing_to_learn():
    student = tiny_classifier()
    teacher = copy.deepcopy(student)
    inputs = pad(tiny_classifier_rows(4))
    for make in (DKD, PKD, ContextRelations, AttentionRelations):
        objective = make()
        planned(objective, student, teacher, inputs)
        ours, theirs = (
            read_features(model, inputs, objective.options, objective.teacher_reads) for model in (student, teacher)
        )
        for part, loss in objective.losses(ours, theirs, inputs).items():
            assert loss.item() == pytest.approx(0.0, abs=1e-6), part


def test_several_right_classes_have_no_probabilities_to_follow():
    student, teacher = (Features({"logits": torch.zeros(2, 3)}, model=tiny_classifier()) for _ in range(2))
    student.model.config.problem_type = "multi_label_classification"
    for refused in (SoftLabels(), DKD()):
        with pytest.raises(ValueError, match='`prediction_loss="mse"`.*`soft_label_weight=0`'):
            refused.setup(student, teacher, {"labels": None})
    TeacherValues().setup(student, teacher, {"labels": None})


def test_values_of_a_regression_are_compared_by_their_squared_distance():
    inputs = pad(tiny_classifier_rows(4))
    objective = TeacherValues()
    ours, theirs = planned(objective, tiny_classifier(num_labels=1), tiny_classifier(1, num_labels=1), inputs)
    expected = (ours["logits"] - theirs["logits"]).square().mean()
    torch.testing.assert_close(objective.losses(ours, theirs, inputs)["soft"], expected)
    processor = tiny_processor()
    columns = [processor.encode([problem], with_labels=True) for problem in tiny_problems(2)]
    batch = MwpCollator(processor)([{name: values[0] for name, values in each.items()} for each in columns])
    with pytest.raises(ValueError, match='solver.*`prediction_loss="kd"`'):
        planned(TeacherValues(), tiny_solver(processor), tiny_solver(processor, seed=1), batch)


def test_losses_of_classifiers_need_no_mask(tmp_path):
    student = tiny_classifier(0, initializer_range=0.5)
    teacher = tiny_classifier(1, initializer_range=0.5).eval()
    rows = tiny_classifier_rows(4)
    with torch.no_grad():
        expected = (student.eval()(**pad(rows)).logits - teacher(**pad(rows)).logits).square().mean()
    args = DistillationConfig(str(tmp_path), max_steps=1, logging_steps=1, use_cpu=True, report_to="none")
    options = {"objectives": [SoftLabels(loss=torch.nn.MSELoss())], "data_collator": pad, "train_dataset": rows}
    trainer = DistillationTrainer(student, teacher, args, **options)
    trainer.train()
    assert training_logs(trainer)[0]["loss_soft"] == pytest.approx(float(expected), rel=1e-4)
