"""Distillation of wrapped models, image segmentation, audio and models with `return_dict=False`."""

import copy

import pytest
import torch
from torch import nn
from transformers import (
    SegformerConfig,
    SegformerForSemanticSegmentation,
    Wav2Vec2Config,
    Wav2Vec2ForSequenceClassification,
)

from hf_mwp.compress.distillation.objectives import DKD, HardLabels, HiddenStates, SoftLabels, TeacherValues
from hf_mwp.compress.losses import CKALoss, product_loss
from hf_mwp.compress.trainers import DistillationConfig, DistillationTrainer
from tests.compress.models.test_model_kind import WRAPPERS
from tests.compress.trainers.distilling import gpt2, pad, training_logs
from tests.tiny import tiny_classifier, tiny_classifier_rows, tiny_processor, tiny_rows, tiny_solver


PEFT_WARNINGS = ("ignore:`is_gradient_checkpointing` is deprecated", "ignore:fan_in_fan_out is set")


def collate(rows):
    return {name: torch.stack([torch.as_tensor(row[name]) for row in rows]) for name in rows[0]}


@pytest.fixture
def make(tmp_path):
    def make_trainer(student, teacher, objectives, rows, collator=collate, **fields):
        options = {"output_dir": str(tmp_path), "use_cpu": True, "report_to": "none", "disable_tqdm": True}
        options |= {"save_strategy": "no", "logging_steps": 1, "max_steps": 1, "warmup_steps": 0}
        args = DistillationConfig(**options | fields)
        return DistillationTrainer(student, teacher, args, collator, rows, objectives=objectives)

    return make_trainer


@pytest.mark.filterwarnings(*(f"{each}" for each in PEFT_WARNINGS))
@pytest.mark.parametrize("wrapper", ["none", "peft", "compile", "own", "own of peft"])
@torch.compiler.set_stance("force_eager")
def test_wrapped_causal_language_models_are_refused(make, wrapper):
    rows = [{**row, "labels": row["input_ids"]} for row in tiny_classifier_rows(4)]
    for objective in (DKD(), SoftLabels(), HardLabels()):
        with pytest.raises(ValueError, match="`GPT2LMHeadModel`.*TRL"):
            make(WRAPPERS[wrapper](gpt2(16, 0)), gpt2(16, 1), [objective], rows, pad)


@pytest.mark.filterwarnings(*PEFT_WARNINGS)
@pytest.mark.parametrize("wrapper", ["own", "compile"])
@torch.compiler.set_stance("force_eager")
def test_a_wrapped_classifier_learns_as_without_its_wrapper(make, wrapper):
    rows = tiny_classifier_rows(8)
    logs = []
    for wrap in (WRAPPERS["none"], WRAPPERS[wrapper]):
        student = wrap(tiny_classifier())
        teacher = wrap(tiny_classifier(1, hidden_size=24))
        trainer = make(student, teacher, [SoftLabels(), HardLabels(), HiddenStates()], rows, pad)
        trainer.train()
        logs.append(training_logs(trainer)[0]["loss"])
    assert logs[0] == pytest.approx(logs[1], rel=1e-6)


@torch.compiler.set_stance("force_eager")
def test_a_wrapped_solver_is_a_solver(tmp_path):
    processor = tiny_processor()
    args = DistillationConfig(str(tmp_path), use_cpu=True, report_to="none", max_steps=1, disable_tqdm=True)
    keywords = {"processing_class": processor, "train_dataset": tiny_rows(8), "eval_dataset": tiny_rows(4)}
    found = []
    for wrap in (WRAPPERS["none"], WRAPPERS["own"], WRAPPERS["compile"]):
        student = wrap(tiny_solver(processor))
        teacher = wrap(tiny_solver(processor, seed=1))
        trainer = DistillationTrainer(model=student, teacher_model=teacher, args=args, **keywords)
        found.append(trainer.evaluate())
    for metrics in found[1:]:
        assert metrics["eval_loss"] == pytest.approx(found[0]["eval_loss"])
        assert metrics["eval_answer_accuracy"] == found[0]["eval_answer_accuracy"]


def segformer(width, seed, num_labels=3):
    torch.manual_seed(seed)
    sizes = {"num_encoder_blocks": 2, "depths": [1, 1], "sr_ratios": [2, 1], "hidden_sizes": [width, width]}
    sizes |= {"patch_sizes": [3, 3], "strides": [2, 2], "num_attention_heads": [1, 1], "mlp_ratios": [1, 1]}
    sizes |= {"decoder_hidden_size": width, "num_labels": num_labels, "initializer_range": 0.5}
    dropouts = {"classifier_dropout_prob": 0.0, "drop_path_rate": 0.0}
    return SegformerForSemanticSegmentation(SegformerConfig(**sizes, **dropouts))


def images(count):
    generator = torch.Generator().manual_seed(0)
    return [
        {
            "pixel_values": torch.randn(3, 12, 16, generator=generator),
            "labels": torch.randint(0, 3, (12, 16), generator=generator),
        }
        for _ in range(count)
    ]


def test_pixels_of_images_are_compared_over_classes(make):
    student = segformer(8, 0)
    teacher = segformer(16, 1).eval()
    rows = images(4)
    # Batch norm of the student uses the statistics of the batch.
    with torch.no_grad():
        pixels = collate(rows)["pixel_values"]
        logits = copy.deepcopy(student).train()(pixels).logits
        theirs = teacher(pixels).logits
    total = 0.0
    for image in range(4):
        for y in range(logits.shape[2]):
            for x in range(logits.shape[3]):
                q, p = (each[image, :, y, x].log_softmax(0) for each in (logits, theirs))
                total += float((p.exp() * (p - q)).sum())
    count = 4 * logits.shape[2] * logits.shape[3]
    trainer = make(student, teacher, [SoftLabels(temperature=1.0), HardLabels()], rows)
    trainer.train()
    assert training_logs(trainer)[0]["loss_soft"] == pytest.approx(total / count, rel=1e-4)
    values = make(segformer(8, 0), teacher, [TeacherValues()], rows)
    values.train()
    expected = (logits - theirs).square().mean().item()
    assert training_logs(values)[0]["loss_soft"] == pytest.approx(expected, rel=1e-4)
    with pytest.raises(ValueError, match="one correct class.*classes of pixels"):
        make(segformer(8, 0), teacher, [DKD()], rows)


class Grid(nn.Module):
    """Returns logits with the classes at the end."""

    def __init__(self, shape):
        super().__init__()
        self.bias = nn.Parameter(torch.zeros(shape))

    def forward(self, pixel_values, labels=None):
        logits = self.bias.expand(len(pixel_values), *self.bias.shape)
        return {"loss": logits.mean() + pixel_values.mean(), "logits": logits}


def test_other_shapes_of_logits_are_named(make):
    for shape in ((4, 4, 3), (3, 4, 4), (3, 2, 2, 2)):
        with pytest.raises(ValueError, match=r"`Grid` returns logits of the shape.*`soft_label_weight=0`"):
            make(Grid(shape), Grid(shape), [SoftLabels()], images(4))
        make(Grid(shape), Grid(shape), [HardLabels()], images(4)).train()


def wav2vec2(layers, seed, layerdrop=0.0):
    torch.manual_seed(seed)
    sizes = {"hidden_size": 16, "num_hidden_layers": layers, "num_attention_heads": 2, "intermediate_size": 16}
    sizes |= {"conv_dim": [8, 8], "conv_kernel": [4, 4], "conv_stride": [4, 4], "num_feat_extract_layers": 2}
    sizes |= {"num_conv_pos_embeddings": 4, "num_conv_pos_embedding_groups": 2, "classifier_proj_size": 8}
    dropouts = ("hidden_dropout", "attention_dropout", "activation_dropout", "feat_proj_dropout", "final_dropout")
    settings = dict.fromkeys(dropouts, 0.0) | {"apply_spec_augment": False, "num_labels": 3}
    return Wav2Vec2ForSequenceClassification(Wav2Vec2Config(**sizes, **settings, layerdrop=layerdrop))


def test_layerdrop_in_the_config_is_turned_off(make):
    generator = torch.Generator().manual_seed(0)
    rows = [{"input_values": torch.randn(400, generator=generator), "labels": label % 3} for label in range(4)]
    logs = []
    for layerdrop in (0.0, 1.0):
        student = wav2vec2(2, 0, layerdrop)
        trainer = make(student, wav2vec2(4, 1, 0.5), [HiddenStates(), SoftLabels()], rows)
        trainer.train()
        logs.append(training_logs(trainer)[0]["loss"])
        # The saved config is that of the user.
        assert student.config.layerdrop == layerdrop
        assert student.config.to_dict()["layerdrop"] == layerdrop
    assert logs[0] == logs[1]


@pytest.mark.parametrize("cached", [False, True])
def test_models_that_return_tuples(make, cached):
    logs = []
    metrics = []
    for return_dict in (True, False):
        student = tiny_classifier()
        teacher = tiny_classifier(1, hidden_size=24)
        student.config.return_dict = teacher.config.return_dict = return_dict
        objectives = [SoftLabels(), HardLabels(), HiddenStates()]
        rows = tiny_classifier_rows(8)
        trainer = make(student, teacher, objectives, rows, pad, cache_teacher_outputs=cached)
        trainer.train()
        logs.append({name: value for name, value in training_logs(trainer)[0].items() if name.startswith("loss")})
        metrics.append(trainer.evaluate(rows)["eval_loss"])
        several = make(copy.deepcopy(student), [teacher, tiny_classifier(2)], [SoftLabels()], rows, pad)
        several.train()
        logs[-1]["several"] = training_logs(several)[0]["loss"]
    assert logs[0] == logs[1] and metrics[0] == metrics[1]


def short_rows(count):
    return [{**row, "input_ids": row["input_ids"][:1], "attention_mask": [1]} for row in tiny_classifier_rows(count)]


@pytest.mark.parametrize(("size", "steps", "pool"), [(4, 1, False), (1, 4, True), (2, 2, True)])
def test_batches_of_one_token_are_enough_for_a_step(make, size, steps, pool):
    objective = HiddenStates(CKALoss(), pool_statistics=pool)
    fields = {"per_device_train_batch_size": size, "gradient_accumulation_steps": steps}
    trainer = make(tiny_classifier(), tiny_classifier(1), [objective], short_rows(4), pad, **fields)
    trainer.train()
    assert training_logs(trainer)[0]["loss_hidden_1"] > 0


@pytest.mark.parametrize("fields", [{}, {"gradient_accumulation_steps": 2}])
def test_a_step_with_too_few_tokens_is_refused(make, fields):
    objective = HiddenStates(CKALoss(), pool_statistics=bool(fields))
    options = {"per_device_train_batch_size": 1} | fields
    trainer = make(tiny_classifier(), tiny_classifier(1), [objective], short_rows(4), pad, **options)
    with pytest.raises(ValueError, match="at least 3 valid tokens, but this (batch|step) has"):
        trainer.train()


def test_too_few_tokens_on_a_device_that_is_not_waited_for_end_the_training(make, monkeypatch):
    monkeypatch.setattr(product_loss, "check_rows", lambda *args: None)
    objectives = [HiddenStates(CKALoss()), SoftLabels()]
    # The first batch has enough tokens, the last one has one.
    rows = [*tiny_classifier_rows(4), *short_rows(1)]
    fields = {"per_device_train_batch_size": 4, "num_train_epochs": 1, "max_steps": -1}
    fields["train_sampling_strategy"] = "sequential"
    trainer = make(tiny_classifier(), tiny_classifier(1), objectives, rows, pad, **fields)
    with pytest.raises(ValueError, match="NaN or infinite: `loss_hidden_1`, `loss_hidden_2` at step 2"):
        trainer.train()
    assert all(parameter.isfinite().all() for parameter in trainer.model.parameters())
