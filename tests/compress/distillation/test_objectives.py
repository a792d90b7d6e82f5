"""Each objective: its parts, how batches weigh, with a cache, beside others, and where no tensor may be on the CPU."""

import copy

import pytest
import torch
from torch import nn
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
from tests.compress.pruning.encoders import FOREIGN, tiny_batch, tiny_encoder
from tests.compress.trainers.distilling import (
    ONE_STEP,
    bart,
    copy_of,
    eager,
    encoded_batch,
    gpt2,
    pad,
    set_up,
    training_logs,
    unchanged,
)
from tests.slow_parameters import slow_after, slow_except
from tests.tiny import tiny_classifier, tiny_classifier_rows, tiny_processor, tiny_solver


class Norm(Objective):
    """A toy: nothing but this class is needed for a new objective."""

    options = {"output_hidden_states": True}

    def setup(self, student, teacher, inputs):
        self.parts = {self.name: self.weight}
        self.teacher_reads = ("hidden_0",)

    def losses(self, student, teacher, inputs):
        student_norm = student["hidden_0"][:, 0].square().sum(-1)
        teacher_norm = teacher["hidden_0"][:, 0].square().sum(-1)
        return {self.name: (student_norm - teacher_norm).abs().mean()}

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


def eager_models(teacher_width=24):
    """A student of two layers and a teacher of four."""
    sizes = {"hidden_size": teacher_width, "num_hidden_layers": 4, "initializer_range": 0.5}
    return eager(tiny_classifier()), eager(tiny_classifier(1, **sizes))


def train(objectives, folder, size=8, **fields):
    """Trains for a step, and returns the trainer and what it has logged of losses and gradient."""
    steps = {"per_device_train_batch_size": size, "gradient_accumulation_steps": -(-7 // size)}
    trainer = DistillationTrainer(
        *eager_models(),
        DistillationConfig(str(folder), **(ONE_STEP | steps | fields)),
        pad,
        tiny_classifier_rows(7),  # the last of several batches is a smaller one
        objectives=objectives,
    )
    trainer.train()
    (entry,) = training_logs(trainer)
    return trainer, {name: value for name, value in entry.items() if name.startswith(("loss", "grad"))}


@pytest.mark.parametrize("name", slow_except(TABLE, "KD", "hidden states"))
def test_a_step_is_the_same_at_once_in_batches_and_with_a_cache(name, tmp_path):
    make_objective, parts = TABLE[name]
    student, _ = eager_models()
    before = copy_of(student)
    trainer, at_once = train([make_objective()], tmp_path)
    assert at_once.keys() == {"loss", "grad_norm"} | {f"loss_{part}" for part in parts}
    assert at_once["loss"] == pytest.approx(sum(at_once[f"loss_{part}"] for part in parts), rel=1e-5)
    assert at_once["loss"] > 0
    assert not unchanged(trainer.model, before)
    _, in_batches = train([make_objective()], tmp_path, size=4)
    assert in_batches == pytest.approx(at_once, rel=1e-4, abs=1e-6)
    if make_objective().cacheable:
        trainer, cached = train([make_objective()], tmp_path, cache_teacher_outputs=True)
        assert cached == pytest.approx(at_once, rel=5e-3, abs=1e-4)
        (objective,) = trainer.objectives
        if objective.teacher_reads:
            layout = trainer.teacher_source.cache.layout
            assert layout.states.keys() == {*objective.teacher_reads} - {"logits"}
            assert (layout.logits is None) == ("logits" not in objective.teacher_reads)


def test_objectives_of_one_class_need_names(tmp_path):
    with pytest.raises(ValueError, match="'hidden_2'.*`name`"):
        train([HiddenStates(), HiddenStates(layer_mapping="2:3")], tmp_path)
    objectives = [HiddenStates(), HiddenStates(layer_mapping="2:3", name="more"), PKD()]
    trainer, entry = train(objectives, tmp_path)
    assert entry.keys() >= {"loss_hidden_1", "loss_hidden_2", "loss_more_2", "loss_patient"}
    assert trainer.projections.reads.keys() == {"hidden_1", "hidden_2", "more_2", "patient_1", "patient_2"}


@pytest.mark.parametrize("name", slow_except(TABLE, "relations"))
def test_no_tensor_is_moved_to_the_cpu(name, monkeypatch):
    # The one look of transformers at a mask; from there on a step asks no device for a value.
    monkeypatch.setattr(masking_utils, "_ignore_bidirectional_mask_sdpa", lambda *args, **kwargs: False)
    make_objective, _ = TABLE[name]
    objective = make_objective()
    inputs = pad(tiny_classifier_rows(4))
    student, teacher = eager_models()
    set_up(objective, student, teacher, inputs)
    projections = FeatureProjections(objective.projections)
    student = student.to("meta").train()
    teacher = teacher.to("meta")
    projections.attach(student)
    inputs = {key: value.to("meta") for key, value in inputs.items()}
    teacher_features = read_features(teacher, inputs, objective.options, objective.teacher_reads)
    student_features = read_features(student, inputs, objective.options, objective.student_reads)
    student_features.projected = projections.read(student_features.output)
    losses = objective.losses(student_features, teacher_features, inputs)
    assert losses.keys() == objective.parts.keys() == objective.num_items(inputs).keys()
    sum(losses.values()).backward()
    assert all(loss.is_meta for loss in losses.values())
    assert all(parameter.grad is None or parameter.grad.is_meta for parameter in student.parameters())


def test_patient_states_are_those_of_all_mapped_layers():
    student = tiny_classifier()
    teacher = tiny_classifier(1, num_hidden_layers=4)
    inputs = pad(tiny_classifier_rows(4))
    objective = PKD(layer_mapping="1:2,2:3")
    student_features, teacher_features = set_up(objective, student, teacher, inputs)
    student_states = student_features.layers("hidden")[1:]
    teacher_states = teacher_features.layers("hidden")[2:4]
    expected = PKDLoss()(student_states, teacher_states, inputs["attention_mask"])
    assert torch.equal(objective.losses(student_features, teacher_features, inputs)["patient"], expected)
    all_layers = HiddenStates(layer_weights=1, layer_mapping="1:2,2:3")
    set_up(all_layers, student, teacher, inputs)
    assert all_layers.parts == {"hidden_1": 0.5, "hidden_2": 0.5}
    with pytest.raises(ValueError, match=r"`hidden_weights`.* 2 .* 1 .*\['patient'\]"):
        set_up(PKD(layer_weights=[1.0, 1.0]), student, teacher, inputs)


def test_relations_are_read_where_attention_is_computed():
    student, teacher = eager_models()
    inputs = pad(tiny_classifier_rows(4))
    objective = AttentionRelations(2, ("value",), layer_mapping=[(2, 4)])
    set_up(objective, student, teacher, inputs)
    student_features = read_features(student, inputs, objective.options, objective.student_reads)
    teacher_features = read_features(teacher, inputs, objective.options, objective.teacher_reads)
    student_values = student.bert.encoder.layer[1].attention.self.value(student_features["hidden_1"])
    teacher_values = teacher.bert.encoder.layer[3].attention.self.value(teacher_features["hidden_3"])
    expected = RelationLoss(2)(student_values, teacher_values, inputs["attention_mask"])
    losses = objective.losses(student_features, teacher_features, inputs)
    torch.testing.assert_close(losses["relations_2"], expected)
    for layer in (*attention_inputs(student), *attention_inputs(teacher)):
        assert not any(module._forward_hooks for module in layer.values())
    # By default, as many heads as both widths (16 and 24) and 12 have in common.
    objective = AttentionRelations()
    set_up(objective, student, teacher, inputs)
    assert objective.loss.heads == 4
    with pytest.raises(ValueError, match=r"\b16 .*\b5 relation heads"):
        set_up(AttentionRelations(5), student, teacher, inputs)
    with pytest.raises(ValueError, match=r"\[0, 0\].*queries"):
        set_up(AttentionRelations(layer_mapping=[(0, 0)]), student, teacher, inputs)


@pytest.mark.parametrize(
    ("name", "pruned_heads"),
    slow_after(
        2,
        [
            ("modernbert", {0: [0, 1, 2, 3], 1: [2]}),
            ("deberta-v2", {0: [0, 1, 2, 3], 1: [2]}),
            ("modernbert", {}),
            ("deberta-v3", {}),
            ("mpnet", {0: [0, 1, 2, 3], 1: [2]}),
            ("nomic_bert", {}),
        ],
    ),
)
def test_relations_of_other_encoders(name, pruned_heads):
    if name not in FOREIGN:
        pytest.skip(f"this Transformers has no {name}")
    student = tiny_encoder("bert")
    teacher = tiny_encoder(name)
    if pruned_heads:
        teacher = prune_heads(teacher, pruned_heads)
    inputs = tiny_batch(student)
    objective = AttentionRelations(2, layer_mapping=[(1, 1), (2, 2)])
    set_up(objective, student, teacher, inputs)
    layers = layer_parts(teacher)
    layers_with_heads = [layer for layer in layers[:2] if layer.num_heads > 0]
    assert len(objective.teacher_reads) == 3 * len(layers_with_heads)
    features = read_features(teacher, inputs, objective.options, objective.teacher_reads)
    linears = layers[1].state_projections
    width = 6 * layers[1].num_heads
    for index, vector in enumerate(("query", "key", "value")):
        states = features["hidden_1"]
        if name == "modernbert":
            states = teacher.layers[1].attn_norm(states)
            expected = linears[0](states)[..., index * width : (index + 1) * width]
        else:
            expected = linears[index](states)
        assert expected.shape == (3, 9, width)
        torch.testing.assert_close(features[f"{vector}_2"], expected)


def distilbert():
    sizes = {"dim": 16, "n_layers": 2, "n_heads": 2, "hidden_dim": 16, "vocab_size": 40}
    return DistilBertForSequenceClassification(DistilBertConfig(**sizes, max_position_embeddings=16))


@pytest.mark.parametrize(
    "make_model", [tiny_classifier, distilbert, lambda: bart(16, 0), lambda: tiny_solver(tiny_processor())]
)
def test_hooks_on_queries_are_removed_after_an_error(make_model):
    model = make_model()
    assert len(attention_inputs(model)) == 2
    with pytest.raises(RuntimeError), recorded_inputs(model, ["query_1", "hidden_1"]):
        assert sum(len(module._forward_hooks) for module in model.modules()) == 1
        raise RuntimeError
    assert not any(module._forward_hooks for module in model.modules())


def test_models_with_interleaved_queries_and_keys_are_refused():
    inputs = {"input_ids": torch.tensor([[5, 6, 7]])}
    with pytest.raises(ValueError, match="`GPT2LMHeadModel`.* 2 layers.* 0"):
        set_up(AttentionRelations(), gpt2(16, 0), gpt2(16, 1), inputs)


def test_equal_numbers_of_a_problem_are_one_correct_class():
    processor = tiny_processor()
    batch = encoded_batch(processor, 6)
    student = tiny_solver(processor)
    objective = DKD(alpha=1.0, beta=0.0)
    student_features, teacher_features = set_up(objective, student, tiny_solver(processor, seed=1), batch)
    num_symbols = student.decoder.num_symbols
    distinct = objective._targets(student_features["logits"], batch)
    valid = batch["labels"] != -100
    assert torch.equal(distinct[valid].sum(-1), torch.ones(int(valid.sum()), dtype=torch.long))
    assert torch.equal(distinct[valid].int().argmax(-1), batch["labels"][valid])
    # Say that the second number of the first problem is the first one again.
    groups = batch["number_groups"].clone()
    groups[0, 1] = 0
    targets = objective._targets(student_features["logits"], batch | {"number_groups": groups})
    both_numbers = {num_symbols, num_symbols + 1}
    for node in valid[0].nonzero().flatten().tolist():
        label = batch["labels"][0, node].item()
        expected = both_numbers if label in both_numbers else {label}
        assert {*targets[0, node].nonzero().flatten().tolist()} == expected
    assert torch.equal(targets[1:], distinct[1:])
    loss = objective.losses(student_features, teacher_features, batch)["soft"]
    assert loss.isfinite()
    assert loss > 0
    del batch["labels"]
    with pytest.raises(ValueError, match='labels.*`prediction_loss="kd"`'):
        objective.losses(student_features, teacher_features, batch)


@pytest.mark.parametrize("make_objective", [DKD, PKD, ContextRelations, AttentionRelations])
def test_the_loss_of_a_student_equal_to_its_teacher_is_zero(make_objective):
    student = tiny_classifier()
    teacher = copy.deepcopy(student)
    inputs = pad(tiny_classifier_rows(4))
    objective = make_objective()
    set_up(objective, student, teacher, inputs)
    student_features = read_features(student, inputs, objective.options, objective.teacher_reads)
    teacher_features = read_features(teacher, inputs, objective.options, objective.teacher_reads)
    for name, loss in objective.losses(student_features, teacher_features, inputs).items():
        assert loss.item() == pytest.approx(0.0, abs=1e-6), name


def test_several_correct_classes_have_no_probabilities_to_learn():
    student = Features({"logits": torch.zeros(2, 3)}, model=tiny_classifier())
    teacher = Features({"logits": torch.zeros(2, 3)}, model=tiny_classifier())
    student.model.config.problem_type = "multi_label_classification"
    for objective in (SoftLabels(), DKD()):
        with pytest.raises(ValueError, match='`prediction_loss="mse"`.*`soft_label_weight=0`'):
            objective.setup(student, teacher, {"labels": None})
    TeacherValues().setup(student, teacher, {"labels": None})


def test_values_of_a_regression_are_compared_by_their_squared_distance():
    inputs = pad(tiny_classifier_rows(4))
    objective = TeacherValues()
    models = (tiny_classifier(num_labels=1), tiny_classifier(1, num_labels=1))
    student_features, teacher_features = set_up(objective, *models, inputs)
    expected = (student_features["logits"] - teacher_features["logits"]).square().mean()
    torch.testing.assert_close(objective.losses(student_features, teacher_features, inputs)["soft"], expected)
    processor = tiny_processor()
    with pytest.raises(ValueError, match='solver.*`prediction_loss="kd"`'):
        set_up(TeacherValues(), tiny_solver(processor), tiny_solver(processor, seed=1), encoded_batch(processor, 2))


def test_losses_of_classifiers_need_no_mask():
    inputs = pad(tiny_classifier_rows(4))
    objective = SoftLabels(loss=nn.MSELoss())
    student_features, teacher_features = set_up(objective, *eager_models(), inputs)
    expected = nn.functional.mse_loss(student_features["logits"], teacher_features["logits"])
    torch.testing.assert_close(objective.losses(student_features, teacher_features, inputs)["soft"], expected)
