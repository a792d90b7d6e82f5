"""What of the models' insides is compared: knowledge types and bottleneck networks."""

import copy

import pytest
import torch

from hf_mwp.compress.losses import AttentionMSELoss, FSPLoss, NSTLoss
from hf_mwp.compress.pruning import prune_heads
from hf_mwp.compress.trainers import ParameterMixingCallback
from hf_mwp.solver.batches.mwp_collator import MwpCollator
from hf_mwp.solver.models import MwpSolver, MwpSolverConfig
from tests.compress.trainers.distilling import assert_same_training, copy_of, training_logs, unchanged
from tests.tiny import tiny_classifier, tiny_problems, tiny_solver


def eager(model):
    model.set_attn_implementation("eager")
    return model


def with_bottlenecks(processor, layers, size, hidden_size=24, count=4):
    plain = tiny_solver(processor, layers=count, hidden_size=hidden_size, seed=1)
    config = MwpSolverConfig(
        encoder_config=plain.encoder.config,
        decoder_config=plain.decoder.config,
        bottleneck_layers=layers,
        bottleneck_size=size,
    )
    torch.manual_seed(2)
    return MwpSolver(config, encoder=plain.encoder, decoder=plain.decoder)


def batch_of(processor):
    columns = [processor.encode([problem], with_labels=True) for problem in tiny_problems()]
    return MwpCollator(processor)([{name: values[0] for name, values in each.items()} for each in columns])


def one_step(trainer):
    """What is logged of a step that changes nothing and what both models say to its batch."""
    student = copy.deepcopy(trainer.model)
    trainer.train()
    (entry,) = training_logs(trainer)
    batch = batch_of(trainer.processing_class)
    attention = {name: value for each in trainer.objectives for name, value in each.options.items()}
    with torch.no_grad():
        outputs = [
            model.eval()(**batch, **{"output_hidden_states": True, **attention})
            for model in (student, trainer.teacher_model)
        ]
    return entry, *outputs, batch["attention_mask"]


KNOWLEDGE = ["mse", "attention", "attention_mean", "fsp", "nst", "minilm"]  # with a part for each mapped layer

ONE_STEP = {
    "learning_rate": 0.0,
    "decoder_learning_rate": 0.0,
    "projection_learning_rate": 0.0,
    "max_steps": 1,
    "per_device_train_batch_size": 24,
    "soft_label_weight": 0.0,
    "embedding_weight": 0.0,
}


@pytest.mark.parametrize("name", KNOWLEDGE)
def test_each_knowledge_type_trains_student_and_projections(solvers, processor, name):
    student = tiny_solver(processor)
    teacher = tiny_solver(processor, layers=4, hidden_size=24, seed=1)
    trainer = solvers(eager(student), eager(teacher), hidden_loss=name, max_steps=2, warmup_steps=0)
    before = copy_of(student), copy_of(teacher), copy_of(trainer.projections.module)
    trainer.train()
    entry = training_logs(trainer)[-1]
    assert {"loss_hidden_1", "loss_hidden_2", "loss_embedding"} <= set(entry)
    total = 0.5 * entry["loss_soft"] + 0.5 * entry["loss_hard"] + entry["loss_embedding"]
    assert entry["loss"] == pytest.approx(total + entry["loss_hidden_1"] + entry["loss_hidden_2"], rel=1e-4)
    names = {
        "mse": {"hidden_1.weight", "hidden_2.weight", "embedding.weight"},
        "fsp": {"hidden_0.weight", "hidden_1.weight", "hidden_2.weight", "embedding.weight"},
    }.get(name, {"embedding.weight"})
    assert set(before[2]) == names
    for key, value in trainer.projections.module.state_dict().items():
        assert not torch.equal(value, before[2][key]), key
    assert unchanged(trainer.teacher_model, before[1]) and not unchanged(trainer.model, before[0])


def test_attention_of_mapped_layers_is_compared(solvers, processor):
    models = eager(tiny_solver(processor)), eager(tiny_solver(processor, layers=4, seed=1))
    entry, ours, theirs, mask = one_step(solvers(*models, hidden_loss="attention", **ONE_STEP))
    for s, t in ((1, 2), (2, 4)):
        expected = AttentionMSELoss()(ours.attentions[s - 1], theirs.attentions[t - 1], mask).item()
        assert entry[f"loss_hidden_{s}"] == pytest.approx(expected, rel=1e-4)


def test_nst_compares_one_layer_and_fsp_the_flow_between_mapped_layers(solvers, processor):
    models = tiny_solver(processor), tiny_solver(processor, layers=4, seed=1)
    entry, ours, theirs, mask = one_step(solvers(*map(copy.deepcopy, models), hidden_loss="nst", **ONE_STEP))
    ours = ours.hidden_states
    theirs = theirs.hidden_states
    for s, t in ((1, 2), (2, 4)):
        expected = NSTLoss()(ours[s], theirs[t], mask).item()
        assert entry[f"loss_hidden_{s}"] == pytest.approx(expected, rel=1e-4)
    entry, *_ = one_step(solvers(*map(copy.deepcopy, models), hidden_loss="fsp", **ONE_STEP))
    expected = FSPLoss()(ours[:2], (theirs[0], theirs[2]), mask).item()
    assert entry["loss_hidden_1"] == pytest.approx(expected, rel=1e-4)
    expected = FSPLoss()(ours[1:], (theirs[2], theirs[4]), mask).item()
    assert entry["loss_hidden_2"] == pytest.approx(expected, rel=1e-4)
    trainer = solvers(*models, hidden_loss="fsp", layer_mapping="2:3,0:1", **ONE_STEP)
    entry, *_ = one_step(trainer)
    assert entry["loss_hidden_0"] == pytest.approx(FSPLoss()([ours[0]] * 2, [theirs[1]] * 2, mask).item(), rel=1e-4)
    expected = FSPLoss()((ours[0], ours[2]), (theirs[1], theirs[3]), mask).item()
    assert entry["loss_hidden_2"] == pytest.approx(expected, rel=1e-4)


@pytest.mark.parametrize("name", KNOWLEDGE)
def test_accumulation_changes_nothing(others, name):
    runs = []
    for size, steps in ((8, 1), (4, 2)):
        student = tiny_classifier()
        teacher = tiny_classifier(1, hidden_size=24, num_hidden_layers=4)
        fields = {"per_device_train_batch_size": size, "gradient_accumulation_steps": steps}
        trainer = others(eager(student), eager(teacher), hidden_loss=name, **fields)
        trainer.train()
        runs.append((training_logs(trainer), trainer.model.state_dict()))
    assert_same_training(runs, abs=1e-6)


def test_attention_that_cannot_be_compared_is_named(solvers, processor):
    teacher = tiny_solver(processor, layers=4, seed=1)
    with pytest.raises(ValueError, match=r'student.*attention.*set_attn_implementation\("eager"\)'):
        solvers(teacher=eager(teacher), hidden_loss="attention")
    with pytest.raises(ValueError, match=r'teacher.*attention.*set_attn_implementation\("eager"\)'):
        solvers(eager(tiny_solver(processor)), tiny_solver(processor, layers=4), hidden_loss="attention")
    with pytest.raises(ValueError, match=r"\[0, 0\].*attention"):
        solvers(eager(tiny_solver(processor)), eager(teacher), hidden_loss="attention", layer_mapping="0:0,2:4")
    with pytest.raises(ValueError, match="attention.*`cache_teacher_outputs=False`"):
        solvers(eager(tiny_solver(processor)), eager(teacher), hidden_loss="attention", cache_teacher_outputs=True)


def test_different_numbers_of_heads(others):
    def models():
        return eager(tiny_classifier()), eager(tiny_classifier(1, hidden_size=24, num_attention_heads=4))

    with pytest.raises(ValueError, match='2 heads.* 4.*"attention_mean"'):
        others(*models(), hidden_loss="attention")
    others(*models(), hidden_loss="attention_mean", max_steps=1).train()


@pytest.mark.parametrize("cached", [False, True])
@pytest.mark.parametrize("which", ["student", "teacher", "both"])
def test_a_layer_without_heads_has_no_relations(others, which, cached):
    models = {"student": tiny_classifier(), "teacher": tiny_classifier(1)}
    for name in models if which == "both" else [which]:
        models[name] = prune_heads(models[name], {0: [0, 1]})
    trainer = others(**models, hidden_loss="minilm", embedding_weight=0.0, cache_teacher_outputs=cached, max_steps=1)
    trainer.train()
    (entry,) = training_logs(trainer)
    assert entry["loss_hidden_1"] == 0.0 and entry["loss_hidden_2"] > 0.0


def test_narrow_states_are_the_targets_where_there_are_any(solvers, processor):
    teacher = with_bottlenecks(processor, [2, 4], 16)
    trainer = solvers(tiny_solver(processor), teacher, **ONE_STEP)
    assert trainer.teacher_source.request.features == ("bottleneck_0", "bottleneck_1")
    assert not len(trainer.projections)
    entry, ours, theirs, mask = one_step(trainer)
    for s, narrow in ((1, theirs.bottleneck_states[0]), (2, theirs.bottleneck_states[1])):
        difference = (ours.hidden_states[s] - narrow)[mask.bool()]
        assert entry[f"loss_hidden_{s}"] == pytest.approx(difference.square().mean().item(), rel=1e-4)


def test_layers_without_a_bottleneck_and_other_widths_are_projected(solvers, processor):
    teacher = with_bottlenecks(processor, [1, 4], 16)
    trainer = solvers(tiny_solver(processor), teacher, max_steps=1)
    shapes = {name: tuple(value.shape) for name, value in trainer.projections.module.state_dict().items()}
    assert shapes == {"hidden_1.weight": (24, 16), "embedding.weight": (24, 16)}
    trainer.train()
    trainer = solvers(tiny_solver(processor), with_bottlenecks(processor, [2, 4], 8), max_steps=1)
    shapes = {name: tuple(value.shape) for name, value in trainer.projections.module.state_dict().items()}
    assert shapes["hidden_1.weight"] == shapes["hidden_2.weight"] == (8, 16)
    trainer.train()


def test_bottlenecks_may_be_ignored(solvers, processor):
    trainer = solvers(tiny_solver(processor), with_bottlenecks(processor, [2, 4], 16), use_bottlenecks=False)
    assert trainer.teacher_source.request.features == ("hidden_0", "hidden_2", "hidden_4", "logits")
    shapes = {tuple(value.shape) for value in trainer.projections.module.state_dict().values()}
    assert shapes == {(24, 16)}


@pytest.mark.parametrize("name", ["fsp", "nst"])
def test_other_knowledge_types_read_narrow_states_too(solvers, processor, name):
    trainer = solvers(tiny_solver(processor), with_bottlenecks(processor, [2, 4], 16), hidden_loss=name, **ONE_STEP)
    entry, ours, theirs, mask = one_step(trainer)
    narrow = theirs.bottleneck_states
    if name == "nst":
        expected = NSTLoss()(ours.hidden_states[2], narrow[1], mask)
    else:
        assert trainer.teacher_source.request.features == ("bottleneck_0", "bottleneck_1", "hidden_0")
        expected = FSPLoss()(ours.hidden_states[1:], narrow, mask)
    assert entry["loss_hidden_2"] == pytest.approx(expected.item(), rel=1e-4)


def test_cached_narrow_states_train_the_same_student(solvers, processor, tmp_path):
    runs = []
    for cached in (False, True):
        trainer = solvers(
            tiny_solver(processor),
            with_bottlenecks(processor, [2, 4], 16),
            num_train_epochs=2,
            cache_teacher_outputs=cached,
            teacher_cache_dir=str(tmp_path / "cache"),
        )
        trainer.train()
        runs.append(training_logs(trainer))
    for live, read in zip(*runs, strict=True):
        assert read == pytest.approx(live, rel=2e-3, abs=1e-3)


def test_mixing_after_distillation_from_narrow_states(solvers, processor):
    student = tiny_solver(processor)
    before = copy.deepcopy(student)
    callback = ParameterMixingCallback(before, pretrained_weight=1.0)
    trainer = solvers(
        student, with_bottlenecks(processor, [2, 4], 16), keywords={"callbacks": [callback]}, max_steps=1
    )
    trainer.train()
    assert unchanged(trainer.model, copy_of(before))


def test_a_decoder_mapping_for_an_encoder(others):
    with pytest.raises(ValueError, match="BertForSequenceClassification.*decoder"):
        others(decoder_layer_mapping="1:1")


@pytest.mark.filterwarnings("ignore:`gradient_checkpointing:FutureWarning")
@pytest.mark.parametrize(
    "fields",
    [
        {"torch_compile": True},
        {"gradient_checkpointing": True, "gradient_checkpointing_kwargs": {"use_reentrant": True}},
    ],
)
def test_hooks_that_would_be_skipped_are_refused(others, fields):
    with pytest.raises(ValueError, match="hidden need hooks.*`torch_compile=False`"):
        others(hidden_loss="minilm", max_steps=1, **fields).train()
