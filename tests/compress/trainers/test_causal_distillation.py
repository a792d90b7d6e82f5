"""Distillation of causal language models."""

import math

import pytest
import torch
from transformers import AutoModelForCausalLM, DataCollatorWithPadding, Trainer, TrainingArguments

from hf_mwp.compress.distillation.features import read_features
from hf_mwp.compress.losses import CKALoss
from hf_mwp.compress.models.model_kind import kind_of
from hf_mwp.compress.trainers import CausalLMDistillationConfig, DistillationTrainer
from hf_mwp.compress.trainers.causal_rows import CausalCollator, tokenize_causal_rows
from tests.compress.trainers.distilling import (
    PLAIN_SGD,
    QUIET,
    assert_same_training,
    copy_of,
    first_losses,
    same_weights,
    training_logs,
)
from tests.other_tokens import other_processor
from tests.slow_parameters import slow_after, slow_except
from tests.tiny import tiny_classifier, tiny_processor, tiny_rows, tiny_tokenizer
from tests.tiny_causal import CAUSAL_TYPES, tiny_causal


ONLY_LABELS = {"soft_label_weight": 0.0, "prediction_weight": 1.0, "hidden_loss": None}
ONLY_SOFT = {"soft_label_weight": 1.0, "prediction_weight": 1.0, "hidden_loss": None}
# The tiny tokenizer has this number of tokens.
VOCABULARY = len(tiny_tokenizer())


def tokenizer_of(padding_side="right"):
    tokenizer = tiny_tokenizer()
    tokenizer.padding_side = padding_side
    return tokenizer


def causal_rows(count=16, prompts=False, seed=0):
    rows = []
    for row in tiny_rows(count, seed):
        text = row["text"]
        rows.append({"prompt": text[:5], "completion": text[5:]} if prompts else {"text": text})
    return rows


def make_trainer(folder, student=None, teacher=None, rows=None, keywords=None, **fields):
    arguments = CausalLMDistillationConfig(
        output_dir=str(folder), **(QUIET | {"save_strategy": "no", "logging_steps": 1} | fields)
    )
    return DistillationTrainer(
        tiny_causal() if student is None else student,
        tiny_causal(seed=1) if teacher is None else teacher,
        arguments,
        train_dataset=causal_rows() if rows is None else rows,
        **({"processing_class": tokenizer_of()} | (keywords or {})),
    )


def reference(student, teacher, batch, direction="forward"):
    """The divergence, position by position, and the CKA loss of the embeddings, in fp64."""
    inputs = {name: value for name, value in batch.items() if name != "labels"}
    inputs |= {"output_hidden_states": True, "use_cache": False}
    with torch.no_grad():
        student_output = student(**inputs)
        teacher_output = teacher(**inputs)
    divergences = []
    student_states = []
    teacher_states = []
    for row, labels in enumerate(batch["labels"].tolist()):
        for position in range(len(labels)):
            is_last = position == len(labels) - 1
            if is_last or labels[position + 1] == -100:
                continue
            student_log = student_output.logits[row, position].log_softmax(-1)
            teacher_log = teacher_output.logits[row, position].log_softmax(-1)
            if direction == "reverse":
                student_log, teacher_log = teacher_log, student_log
            divergences.append((teacher_log.exp() * (teacher_log - student_log)).sum())
            student_states.append(student_output.hidden_states[1][row, position])
            teacher_states.append(teacher_output.hidden_states[1][row, position])
    cka = CKALoss()(torch.stack(student_states).unsqueeze(0), torch.stack(teacher_states).unsqueeze(0))
    return torch.stack(divergences).mean().item(), cka.item()


@pytest.mark.parametrize("direction", slow_after(1, ["forward", "reverse"]))
@pytest.mark.parametrize("kind_of_rows", slow_except(["right", "left", "prompts", "packed"], "prompts", "packed"))
def test_losses_equal_a_loop_over_positions(kind_of_rows, direction, tmp_path):
    student = tiny_causal().double()
    teacher = tiny_causal(seed=1, hidden_size=48).double()
    side = "left" if kind_of_rows == "left" else "right"
    fields = {"packing": True, "max_length": 40} if kind_of_rows == "packed" else {}
    fields |= {"kl_direction": direction, "layer_mapping": "1:1", "hidden_mask": "labels"}
    trainer = make_trainer(
        tmp_path,
        student,
        teacher,
        causal_rows(prompts=kind_of_rows == "prompts"),
        {"processing_class": tokenizer_of(side)},
        per_device_train_batch_size=16,
        **fields,
    )
    batch = next(iter(trainer.get_train_dataloader()))
    soft, cka = reference(student, teacher, batch, direction)
    trainer.model.train()
    trainer.current_gradient_accumulation_steps = 1
    trainer.compute_loss(trainer.model, dict(batch))
    parts = trainer._loss_parts
    assert parts["loss_soft"].item() == pytest.approx(soft, rel=1e-6)
    assert parts["loss_hidden_1"].item() == pytest.approx(cka, rel=1e-5)
    # In fp64, without the trainer's log.
    [soft_labels, _, hidden_states] = trainer.objectives
    teacher_features = trainer.teacher_source.outputs(dict(batch))
    student_features = read_features(trainer.model, batch, trainer._options)
    assert soft_labels.losses(student_features, teacher_features, batch)["soft"].item() == pytest.approx(
        soft, abs=1e-9
    )
    cka_loss = hidden_states.losses(student_features, teacher_features, batch)["hidden_1"]
    assert cka_loss.item() == pytest.approx(cka, abs=1e-9)


@pytest.mark.slow
def test_documents_of_a_packed_row_do_not_see_each_other(tmp_path):
    # The loss of packed rows is that of the same rows in a batch.
    rows = causal_rows()
    fields = {"max_steps": 1, "per_device_train_batch_size": 16, "layer_mapping": "1:1"}
    expected = first_losses(make_trainer(tmp_path, rows=rows, **fields))
    packed = make_trainer(tmp_path, rows=rows, packing=True, max_length=64, **fields)
    assert len(packed.train_dataset) < len(rows)
    assert first_losses(packed) == pytest.approx(expected, rel=1e-4)


@pytest.mark.parametrize("prompts", slow_except([False, True], True))
def test_only_labels_equal_trainer(prompts, tmp_path):
    rows = tokenize_causal_rows(causal_rows(prompts=prompts), tokenizer_of())
    student = tiny_causal()
    distilled = make_trainer(
        tmp_path, student, rows=rows, max_steps=3, train_sampling_strategy="random", **ONLY_LABELS
    )
    distilled.train()
    model = tiny_causal()
    names = (
        "learning_rate",
        "warmup_steps",
        "max_grad_norm",
        "per_device_train_batch_size",
        "train_sampling_strategy",
    )
    same_fields = {name: getattr(distilled.args, name) for name in names}
    arguments = TrainingArguments(str(tmp_path), max_steps=3, save_strategy="no", **QUIET, **same_fields)
    Trainer(model, arguments, CausalCollator(tokenizer_of()), rows).train()
    assert same_weights(student, model)
    assert not same_weights(student, tiny_causal())


def causal_teacher(model_type, **changes):
    layer_types = {}
    if model_type == "gemma3_text":
        layer_types["layer_types"] = ["sliding_attention", "full_attention"] * 2
    return tiny_causal(model_type, seed=1, num_hidden_layers=4, **layer_types, **changes)


@pytest.mark.parametrize("cached", slow_after(1, [False, True]))
@pytest.mark.parametrize("model_type", slow_except(CAUSAL_TYPES, "llama"))
def test_every_type_learns_and_generates_after_reloading(model_type, cached, tmp_path):
    student = tiny_causal(model_type)
    before = copy_of(student)
    teacher = causal_teacher(model_type)
    teacher_before = copy_of(teacher)
    rows = causal_rows()
    fields = {"cache_teacher_outputs": cached, "cache_top_k": 8, "eval_strategy": "steps", "eval_steps": 4}
    trainer = make_trainer(
        tmp_path, student, teacher, rows, {"eval_dataset": rows}, max_steps=4, learning_rate=1e-2, **fields
    )
    loss = trainer.evaluate()["eval_loss"]
    trainer.train()
    metrics = trainer.evaluate()
    assert metrics["eval_loss"] < loss
    assert metrics["eval_perplexity"] == pytest.approx(math.exp(metrics["eval_loss"]))
    for name, parameter in student.named_parameters():
        assert not torch.equal(parameter, before[name]), name
    for name, value in teacher.state_dict().items():
        assert torch.equal(value, teacher_before[name])
    trainer.save_model()
    reloaded = AutoModelForCausalLM.from_pretrained(tmp_path)
    inputs = {"input_ids": torch.tensor([[2, 7, 8]]), "attention_mask": torch.ones(1, 3, dtype=torch.long)}
    options = {"max_new_tokens": 5, "do_sample": False}
    assert torch.equal(reloaded.generate(**inputs, **options), student.eval().generate(**inputs, **options))


@pytest.mark.parametrize("prediction_loss", slow_after(1, ["kd", "dkd"]))
def test_cache_of_all_tokens_equals_the_live_teacher(prediction_loss, tmp_path):
    fields = PLAIN_SGD | {"max_steps": 3, "prediction_loss": prediction_loss, "temperature": 2.0}
    runs = []
    for cached in (False, True):
        student = tiny_causal()
        rows = causal_rows(prompts=True)
        trainer = make_trainer(
            tmp_path, student, rows=rows, cache_teacher_outputs=cached, cache_top_k=VOCABULARY, **fields
        )
        trainer.train()
        runs.append((training_logs(trainer), copy_of(student)))
    for entry, cached_entry in zip(runs[0][0], runs[1][0], strict=True):
        assert cached_entry["loss_soft"] == pytest.approx(entry["loss_soft"], rel=5e-3)
        assert cached_entry["loss_hard"] == pytest.approx(entry["loss_hard"], rel=1e-3)


@pytest.mark.slow
def test_cached_loss_rises_to_the_full_loss_with_the_number_of_tokens(tmp_path):
    full = first_losses(make_trainer(tmp_path, max_steps=1, **ONLY_SOFT))["loss_soft"]
    losses = []
    for count in (1, 4, 16, VOCABULARY):
        fields = {"cache_teacher_outputs": True, "cache_top_k": count, "max_steps": 1}
        losses.append(first_losses(make_trainer(tmp_path / str(count), **fields, **ONLY_SOFT))["loss_soft"])
    assert losses == sorted(losses)
    assert losses[-1] == pytest.approx(full, rel=5e-3)
    assert losses[0] < 0.8 * full


@pytest.mark.slow
def test_cache_stores_at_most_six_bytes_for_each_token(tmp_path):
    rows = tokenize_causal_rows(causal_rows(prompts=True), tokenizer_of())
    sizes = []
    for count in (8, 24):
        trainer = make_trainer(
            tmp_path / str(count), rows=rows, cache_teacher_outputs=True, cache_top_k=count, max_steps=1, **ONLY_SOFT
        )
        trainer.train()
        sizes.append(trainer.teacher_source.cache.nbytes)
    num_labels = 0
    for row in rows:
        num_labels += sum(label != -100 for label in row["labels"][1:])
    # Files are compressed.
    assert sizes[0] < sizes[1] < sizes[0] + 6 * 16 * num_labels


def test_more_stored_tokens_than_the_vocabulary_are_refused(tmp_path):
    with pytest.raises(ValueError, match=f"`cache_top_k` must be between 1 and .* {VOCABULARY}, got {VOCABULARY + 1}"):
        make_trainer(tmp_path, cache_teacher_outputs=True, cache_top_k=VOCABULARY + 1)


@pytest.mark.slow
def test_accumulated_batches_equal_one_batch_of_rows_with_prompts(tmp_path):
    rows = causal_rows(prompts=True)
    runs = []
    for size, steps in ((16, 1), (4, 4), (1, 16)):
        student = tiny_causal()
        fields = {"per_device_train_batch_size": size, "gradient_accumulation_steps": steps, "max_steps": 1}
        trainer = make_trainer(
            tmp_path, student, rows=rows, layer_mapping="1:1", **(PLAIN_SGD | fields), hidden_loss="mse"
        )
        trainer.train()
        runs.append((training_logs(trainer), copy_of(student)))
    assert_same_training(runs[:2], abs=1e-5)
    assert_same_training([runs[0], runs[2]], abs=1e-5)


@pytest.mark.parametrize("cached", slow_after(1, [False, True]))
def test_spare_rows_of_the_teachers_vocabulary_are_left_out(cached, tmp_path):
    teacher = tiny_causal(seed=1, vocab_size=VOCABULARY + 6)
    smaller = tiny_causal(seed=2)
    with torch.no_grad():
        smaller.load_state_dict(
            {
                name: value[:VOCABULARY] if value.shape[0] == VOCABULARY + 6 else value
                for name, value in teacher.state_dict().items()
            }
        )
    fields = {"cache_teacher_outputs": cached, "max_steps": 1, "cache_top_k": 16}
    expected = first_losses(make_trainer(tmp_path / "same", teacher=smaller, **fields))
    keywords = {"teacher_processing_class": tokenizer_of()}
    losses = first_losses(make_trainer(tmp_path / "spare", teacher=teacher, keywords=keywords, **fields))
    assert losses == pytest.approx(expected, rel=1e-5)
    with pytest.raises(ValueError, match="embeds 30 tokens.*`teacher_processing_class`"):
        make_trainer(tmp_path, teacher=teacher)


@pytest.mark.parametrize("prediction_loss", slow_after(1, ["kd", "dkd"]))
def test_tokens_that_only_one_tokenizer_has_are_left_out(prediction_loss, tmp_path):
    tokenizer = tokenizer_of()
    tokenizer.add_tokens(["<think>", "</think>"])
    student = tiny_causal(vocab_size=VOCABULARY + 2)
    keywords = {"processing_class": tokenizer, "teacher_processing_class": tokenizer_of()}
    trainer = make_trainer(tmp_path, student, keywords=keywords, max_steps=1, prediction_loss=prediction_loss)
    first_losses(trainer)
    assert trainer.objectives[0].num_classes == VOCABULARY


def test_rows_with_tokens_unknown_to_the_teacher_are_refused(tmp_path):
    tokenizer = tokenizer_of()
    tokenizer.add_tokens(["<think>"])
    student = tiny_causal(vocab_size=VOCABULARY + 1)
    rows = [{"text": "<think>" + row["text"]} for row in causal_rows()]
    keywords = {"processing_class": tokenizer, "teacher_processing_class": tokenizer_of()}
    with pytest.raises(ValueError, match="Row 0.*'<think>'.*the teacher's tokenizer"):
        make_trainer(tmp_path, student, rows=rows, keywords=keywords)


def test_other_tokenizers_and_teachers_of_another_kind_are_refused(tmp_path):
    other = other_processor(tiny_processor()).tokenizer
    teacher = tiny_causal(seed=1, vocab_size=len(other))
    with pytest.raises(ValueError, match="different tokenizers.*those that the teacher generates"):
        make_trainer(tmp_path, teacher=teacher, keywords={"teacher_processing_class": other})
    with pytest.raises(ValueError, match="teacher, a `BertForSequenceClassification`, is not"):
        make_trainer(tmp_path, teacher=tiny_classifier())


@pytest.mark.slow
def test_hidden_states_at_labels(tmp_path):
    fields = {"max_steps": 1, "layer_mapping": "1:1", "per_device_train_batch_size": 16}
    rows = causal_rows(prompts=True)
    at_tokens = first_losses(make_trainer(tmp_path, rows=rows, **fields))
    at_labels = first_losses(make_trainer(tmp_path, rows=rows, hidden_mask="labels", **fields))
    cached = first_losses(
        make_trainer(tmp_path, rows=rows, hidden_mask="labels", cache_teacher_outputs=True, cache_top_k=8, **fields)
    )
    assert at_labels["loss_hidden_1"] != pytest.approx(at_tokens["loss_hidden_1"], rel=1e-3)
    assert at_labels["loss_hidden_1"] == pytest.approx(cached["loss_hidden_1"], rel=2e-3)


@pytest.mark.parametrize(
    "hidden_loss",
    slow_except(
        ["mse", "cosine", "procrustes", "gram", "nst", "attention", "minilm", "ckd", "pkd"], "mse", "attention"
    ),
)
def test_every_loss_on_layers(hidden_loss, tmp_path):
    models = [tiny_causal(), tiny_causal(seed=1, hidden_size=48)]
    if hidden_loss == "attention":
        for model in models:
            model.set_attn_implementation("eager")
    losses = first_losses(make_trainer(tmp_path, *models, hidden_loss=hidden_loss, layer_mapping="last", max_steps=1))
    assert losses["loss"] > 0


@pytest.mark.filterwarnings("ignore:`is_gradient_checkpointing` is deprecated")
def test_adapted_student_is_what_it_wraps(tmp_path):
    peft = pytest.importorskip("peft")
    config = peft.LoraConfig(r=2, target_modules=["q_proj", "v_proj"], task_type="CAUSAL_LM")
    student = peft.get_peft_model(tiny_causal(), config)
    trainer = make_trainer(tmp_path, student, max_steps=2)
    assert kind_of(student).name == "causal language model"
    losses = first_losses(trainer)
    expected = first_losses(make_trainer(tmp_path, max_steps=1))
    assert losses["loss_soft"] == pytest.approx(expected["loss_soft"], rel=1e-5)


@pytest.mark.slow
@torch.compiler.set_stance("force_eager")
def test_compiled_student_is_what_it_wraps(tmp_path):
    expected = first_losses(make_trainer(tmp_path, max_steps=1))
    losses = first_losses(make_trainer(tmp_path, max_steps=1, torch_compile=True))
    assert losses == pytest.approx(expected, rel=1e-5)


def test_rows_without_labels_learn_all_tokens_from_the_teacher(tmp_path):
    rows = []
    for row in tokenize_causal_rows(causal_rows(), tokenizer_of()):
        rows.append({"input_ids": row["input_ids"], "attention_mask": [1] * len(row["input_ids"])})
    keywords = {"processing_class": None, "data_collator": DataCollatorWithPadding(tokenizer_of())}
    trainer = make_trainer(tmp_path, rows=rows, keywords=keywords, max_steps=1, **ONLY_SOFT)
    assert first_losses(trainer)["loss_soft"] > 0


# Dropout, so that the random state matters.
DROPOUTS = {"gpt2": {"attn_pdrop": 0.2}, "phi3": {"resid_pdrop": 0.2}, "gpt_neox": {"hidden_dropout": 0.2}}


@pytest.mark.parametrize("model_type", slow_except(CAUSAL_TYPES, "qwen3"))
def test_resumed_training_is_bitwise_the_same(model_type, tmp_path):
    dropout = DROPOUTS.get(model_type, {"attention_dropout": 0.2})
    rows = causal_rows(24)
    fields = {"save_strategy": "steps", "save_steps": 2, "per_device_train_batch_size": 4}
    fields |= {"cache_teacher_outputs": True, "cache_top_k": 8}
    students = []
    for resume in (False, True):
        student = tiny_causal(model_type, **dropout)
        trainer = make_trainer(tmp_path, student, tiny_causal(model_type, seed=1), rows, max_steps=5, **fields)
        trainer.train(resume_from_checkpoint=str(tmp_path / "checkpoint-2") if resume else None)
        students.append(student)
    assert same_weights(*students)


@pytest.mark.slow
def test_best_checkpoint_has_all_weights_of_a_model_that_renames_some(tmp_path):
    # GPT-NeoX saves its head as `embed_out`. The learning rate makes the model worse after the first evaluation.
    rows = causal_rows()
    fields = {"save_strategy": "steps", "save_steps": 1, "eval_strategy": "steps", "eval_steps": 1, "max_steps": 3}
    fields |= {"load_best_model_at_end": True, "learning_rate": 0.5, "warmup_steps": 2}
    student = tiny_causal("gpt_neox")
    trainer = make_trainer(tmp_path, student, tiny_causal("gpt_neox", seed=1), rows, {"eval_dataset": rows}, **fields)
    trainer.train()
    best = trainer.state.best_model_checkpoint
    assert best is not None and not best.endswith("-3")
    assert same_weights(student, AutoModelForCausalLM.from_pretrained(best))
