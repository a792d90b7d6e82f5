"""Distillation of wrapped models, image segmentation, audio and models with `return_dict=False`."""

import copy

import pytest
import torch
from torch import nn
from transformers import (
    SegformerConfig,
    SegformerForSemanticSegmentation,
    Wav2Vec2Config,
    Wav2Vec2ForCTC,
    Wav2Vec2ForSequenceClassification,
    YolosConfig,
    YolosForObjectDetection,
)

from hf_mwp.compress.distillation.objectives import DKD, HardLabels, HiddenStates, SoftLabels, TeacherValues
from hf_mwp.compress.losses import CKALoss, product_loss
from hf_mwp.compress.trainers import DistillationConfig, DistillationTrainer
from tests.compress.trainers.distilling import ONE_STEP, first_losses, gpt2, pad
from tests.slow_parameters import slow_after, slow_except
from tests.tiny import tiny_classifier, tiny_classifier_rows, tiny_processor, tiny_rows, tiny_solver


PEFT_WARNINGS = ("ignore:`is_gradient_checkpointing` is deprecated", "ignore:fan_in_fan_out is set")


def stack_columns(rows):
    batch = {}
    for name in rows[0]:
        batch[name] = torch.stack([torch.as_tensor(row[name]) for row in rows])
    return batch


@pytest.fixture
def trainer_of(tmp_path):
    def make(student, teacher, objectives, rows, collator=stack_columns, **fields):
        args = DistillationConfig(str(tmp_path), **(ONE_STEP | fields))
        return DistillationTrainer(student, teacher, args, collator, rows, objectives=objectives)

    return make


class Wrapper(nn.Module):
    """A user's module around a model."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, **inputs):
        return self.model(**inputs)


def with_adapters(model):
    peft = pytest.importorskip("peft")
    return peft.get_peft_model(model, peft.LoraConfig(r=2, target_modules=["c_attn"]))


# The first one returns the model itself.
@pytest.mark.filterwarnings(*PEFT_WARNINGS)
@pytest.mark.parametrize(
    "wrap", slow_except([nn.Module.train, with_adapters, torch.compile, Wrapper], with_adapters, Wrapper)
)
@torch.compiler.set_stance("force_eager")
def test_wrapped_causal_language_model_learns_as_without_its_wrapper(trainer_of, wrap):
    rows = tiny_classifier_rows(4)
    for row in rows:
        row["labels"] = row["input_ids"]
    objectives = [DKD(), SoftLabels(name="kd"), HardLabels(), HiddenStates()]
    expected = first_losses(trainer_of(gpt2(16, 0), gpt2(16, 1), objectives, rows, pad))
    losses = first_losses(trainer_of(wrap(gpt2(16, 0)), gpt2(16, 1), objectives, rows, pad))
    assert losses == pytest.approx(expected, rel=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("wrap", [Wrapper, torch.compile])
@torch.compiler.set_stance("force_eager")
def test_a_wrapped_classifier_learns_as_without_its_wrapper(trainer_of, wrap):
    def losses_of_models(student, teacher):
        objectives = [SoftLabels(), HardLabels(), HiddenStates()]
        return first_losses(trainer_of(student, teacher, objectives, tiny_classifier_rows(8), pad))

    expected = losses_of_models(tiny_classifier(), tiny_classifier(1, hidden_size=24))
    losses = losses_of_models(wrap(tiny_classifier()), wrap(tiny_classifier(1, hidden_size=24)))
    assert losses == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("wrap", slow_after(1, [Wrapper, torch.compile]))
@torch.compiler.set_stance("force_eager")
def test_a_wrapped_solver_is_evaluated_as_without_its_wrapper(tmp_path, wrap):
    processor = tiny_processor()
    args = DistillationConfig(str(tmp_path), **ONE_STEP)
    keywords = {"processing_class": processor, "train_dataset": tiny_rows(8), "eval_dataset": tiny_rows(4)}
    student = tiny_solver(processor)
    teacher = tiny_solver(processor, seed=1)
    expected = DistillationTrainer(student, teacher, args, **keywords).evaluate()
    metrics = DistillationTrainer(wrap(student), wrap(teacher), args, **keywords).evaluate()
    for name in ("eval_loss", "eval_answer_accuracy"):
        assert metrics[name] == pytest.approx(expected[name])


def segformer(width, seed, num_labels=3):
    torch.manual_seed(seed)
    sizes = {"num_encoder_blocks": 2, "depths": [1, 1], "sr_ratios": [2, 1], "hidden_sizes": [width, width]}
    sizes |= {"patch_sizes": [3, 3], "strides": [2, 2], "num_attention_heads": [1, 1], "mlp_ratios": [1, 1]}
    sizes |= {"decoder_hidden_size": width, "num_labels": num_labels, "initializer_range": 0.5}
    dropouts = {"classifier_dropout_prob": 0.0, "drop_path_rate": 0.0}
    return SegformerForSemanticSegmentation(SegformerConfig(**sizes, **dropouts))


def images(count=4):
    generator = torch.Generator().manual_seed(0)
    rows = []
    for _ in range(count):
        pixels = torch.randn(3, 12, 16, generator=generator)
        labels = torch.randint(0, 3, (12, 16), generator=generator)
        rows.append({"pixel_values": pixels, "labels": labels})
    return rows


def test_pixels_of_images_are_compared_over_classes(trainer_of):
    student = segformer(8, 0)
    teacher = segformer(16, 1).eval()
    rows = images()
    # Batch norm of the student uses the statistics of the batch.
    with torch.no_grad():
        pixels = stack_columns(rows)["pixel_values"]
        student_logits = copy.deepcopy(student).train()(pixels).logits
        teacher_logits = teacher(pixels).logits
    student_pixels = student_logits.permute(0, 2, 3, 1).reshape(-1, 3)
    teacher_pixels = teacher_logits.permute(0, 2, 3, 1).reshape(-1, 3)
    student_log = student_pixels.log_softmax(1)
    teacher_log = teacher_pixels.log_softmax(1)
    divergences = (teacher_log.exp() * (teacher_log - student_log)).sum(1)
    losses = first_losses(trainer_of(student, teacher, [SoftLabels(temperature=1.0), HardLabels()], rows))
    assert losses["loss_soft"] == pytest.approx(divergences.mean().item(), rel=1e-4)
    losses = first_losses(trainer_of(segformer(8, 0), teacher, [TeacherValues()], rows))
    expected = (student_logits - teacher_logits).square().mean().item()
    assert losses["loss_soft"] == pytest.approx(expected, rel=1e-4)
    with pytest.raises(ValueError, match="one correct class.*classes of pixels"):
        trainer_of(segformer(8, 0), teacher, [DKD()], rows)


class Grid(nn.Module):
    """Returns logits with the classes at the end."""

    def __init__(self, shape):
        super().__init__()
        self.bias = nn.Parameter(torch.zeros(shape))

    def forward(self, pixel_values, labels=None):
        logits = self.bias.expand(len(pixel_values), *self.bias.shape)
        return {"loss": logits.mean() + pixel_values.mean(), "logits": logits}


@pytest.mark.parametrize("shape", [(4, 4, 3), (3, 4, 4), (3, 2, 2, 2)])
def test_logits_of_other_shapes_are_refused(trainer_of, shape):
    with pytest.raises(ValueError, match=r"`Grid` returns logits of the shape.*`soft_label_weight=0`"):
        trainer_of(Grid(shape), Grid(shape), [SoftLabels()], images())
    trainer_of(Grid(shape), Grid(shape), [HardLabels()], images()).train()


def wav2vec2(layers, seed, layerdrop=0.0):
    torch.manual_seed(seed)
    sizes = {"hidden_size": 16, "num_hidden_layers": layers, "num_attention_heads": 2, "intermediate_size": 16}
    sizes |= {"conv_dim": [8, 8], "conv_kernel": [4, 4], "conv_stride": [4, 4], "num_feat_extract_layers": 2}
    sizes |= {"num_conv_pos_embeddings": 4, "num_conv_pos_embedding_groups": 2, "classifier_proj_size": 8}
    dropouts = ("hidden_dropout", "attention_dropout", "activation_dropout", "feat_proj_dropout", "final_dropout")
    settings = dict.fromkeys(dropouts, 0.0) | {"apply_spec_augment": False, "num_labels": 3}
    return Wav2Vec2ForSequenceClassification(Wav2Vec2Config(**sizes, **settings, layerdrop=layerdrop))


def ctc(layers, seed):
    config = wav2vec2(layers, seed).config
    config.vocab_size = 8
    torch.manual_seed(seed)
    return Wav2Vec2ForCTC(config)


def yolos(layers, seed):
    torch.manual_seed(seed)
    sizes = {"hidden_size": 16, "num_hidden_layers": layers, "num_attention_heads": 2, "intermediate_size": 16}
    sizes |= {"image_size": [32, 32], "patch_size": 16, "num_detection_tokens": 3, "num_labels": 2}
    return YolosForObjectDetection(YolosConfig(**sizes))


def speech(count=4):
    generator = torch.Generator().manual_seed(0)
    rows = []
    for _ in range(count):
        rows.append({"input_values": torch.randn(400, generator=generator), "labels": torch.tensor([1, 2, 3])})
    return rows


def photos(count=4):
    generator = torch.Generator().manual_seed(0)
    return [{"pixel_values": torch.randn(3, 32, 32, generator=generator)} for _ in range(count)]


UNMATCHED = {"CTC": (ctc, speech), "detection": (yolos, photos)}


@pytest.mark.parametrize("cached", slow_after(1, [False, True]))
@pytest.mark.parametrize("name", slow_after(1, UNMATCHED))
def test_models_without_comparable_predictions_learn_hidden_states(name, cached, trainer_of):
    make, rows = UNMATCHED[name]
    student = make(2, 0)
    teacher = make(4, 1).eval()
    options = {"output_hidden_states": True}
    with torch.no_grad():
        inputs = {key: value for key, value in stack_columns(rows()).items() if key != "labels"}
        student_hidden = copy.deepcopy(student).eval()(**inputs, **options).hidden_states
        teacher_hidden = teacher(**inputs, **options).hidden_states
    trainer = trainer_of(student, teacher, [HiddenStates()], rows(), cache_teacher_outputs=cached)
    losses = first_losses(trainer)
    for layer in (1, 2):
        expected = (student_hidden[layer] - teacher_hidden[2 * layer]).square().mean().item()
        assert losses[f"loss_hidden_{layer}"] == pytest.approx(expected, rel=1e-2 if cached else 1e-4)
    for objective in (SoftLabels(), TeacherValues()):
        with pytest.raises(ValueError, match=r"`(Wav2Vec2ForCTC|YolosForObjectDetection)`.*`prediction_weight=0`"):
            trainer_of(make(2, 0), make(4, 1), [objective], rows())


def test_ctc_loss_is_the_models_own(trainer_of):
    rows = speech()
    expected = ctc(2, 0).eval()(**stack_columns(rows)).loss.item()
    trainer = trainer_of(ctc(2, 0), ctc(4, 1), [HardLabels(), HiddenStates()], rows)
    assert trainer.evaluate(rows)["eval_loss"] == pytest.approx(expected, rel=1e-5)
    assert first_losses(trainer)["loss_hard"] == pytest.approx(expected, rel=1e-5)


def test_masks_of_samples_are_no_masks_of_states(trainer_of):
    rows = speech()
    for row in rows:
        row["attention_mask"] = torch.ones(400, dtype=torch.long)
    with pytest.raises(ValueError, match="25 hidden states.*400 positions.*`attention_mask`"):
        trainer_of(ctc(2, 0), ctc(4, 1), [HiddenStates()], rows)


def test_layerdrop_in_the_config_has_no_effect(trainer_of):
    generator = torch.Generator().manual_seed(0)
    rows = [{"input_values": torch.randn(400, generator=generator), "labels": label} for label in (0, 1, 2, 0)]
    losses = []
    for layerdrop in (0.0, 1.0):
        student = wav2vec2(2, 0, layerdrop)
        losses.append(first_losses(trainer_of(student, wav2vec2(4, 1, 0.5), [HiddenStates(), SoftLabels()], rows)))
        # The saved config is that of the user.
        assert student.config.to_dict()["layerdrop"] == layerdrop
    assert losses[0] == losses[1]


@pytest.mark.parametrize(("num_teachers", "cached"), slow_after(1, [(1, False), (1, True), (2, False)]))
def test_models_that_return_tuples(trainer_of, cached, num_teachers):
    rows = tiny_classifier_rows(8)
    losses = []
    for return_dict in (True, False):
        student = tiny_classifier()
        teachers = [tiny_classifier(seed, hidden_size=24) for seed in range(num_teachers)]
        for model in (student, *teachers):
            model.config.return_dict = return_dict
        objectives = [SoftLabels(), HardLabels(), HiddenStates()]
        trainer = trainer_of(student, teachers, objectives, rows, pad, cache_teacher_outputs=cached)
        losses.append((first_losses(trainer), trainer.evaluate(rows)["eval_loss"]))
    assert losses[0] == losses[1]


def rows_of_one_token(count=4):
    rows = tiny_classifier_rows(count)
    for row in rows:
        row["input_ids"] = row["input_ids"][:1]
        row["attention_mask"] = [1]
    return rows


@pytest.mark.parametrize(
    ("size", "steps", "pool_statistics"), slow_after(1, [(1, 4, True), (4, 1, False), (2, 2, True)])
)
def test_batches_of_one_token_are_enough_for_a_step(trainer_of, size, steps, pool_statistics):
    objective = HiddenStates(CKALoss(), pool_statistics=pool_statistics)
    fields = {"per_device_train_batch_size": size, "gradient_accumulation_steps": steps}
    trainer = trainer_of(tiny_classifier(), tiny_classifier(1), [objective], rows_of_one_token(), pad, **fields)
    assert first_losses(trainer)["loss_hidden_1"] > 0


@pytest.mark.parametrize("num_batches", [1, 2])
def test_a_step_with_too_few_tokens_is_refused(trainer_of, num_batches):
    objective = HiddenStates(CKALoss(), pool_statistics=num_batches > 1)
    fields = {"per_device_train_batch_size": 1, "gradient_accumulation_steps": num_batches}
    trainer = trainer_of(tiny_classifier(), tiny_classifier(1), [objective], rows_of_one_token(), pad, **fields)
    with pytest.raises(ValueError, match="at least 3 valid tokens, but this (batch|step) has"):
        trainer.train()


def test_too_few_tokens_on_a_device_that_is_not_waited_for_end_the_training(trainer_of, monkeypatch):
    monkeypatch.setattr(product_loss, "check_rows", lambda *args: None)
    objectives = [HiddenStates(CKALoss()), SoftLabels()]
    # The first batch has enough tokens, the last one has one.
    rows = tiny_classifier_rows(4) + rows_of_one_token(1)
    fields = {"per_device_train_batch_size": 4, "max_steps": 2, "train_sampling_strategy": "sequential"}
    trainer = trainer_of(tiny_classifier(), tiny_classifier(1), objectives, rows, pad, **fields)
    with pytest.raises(ValueError, match="NaN or infinite: `loss_hidden_1`, `loss_hidden_2` at step 2"):
        trainer.train()
    assert all(parameter.isfinite().all() for parameter in trainer.model.parameters())
