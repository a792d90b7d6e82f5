"""Distillation of sequence-to-sequence models, with generation in evaluations."""

import pytest
import torch
from torch.nn import functional
from transformers import AutoModelForSeq2SeqLM, DataCollatorForSeq2Seq

from hf_mwp import Seq2SeqDistillationConfig, Seq2SeqDistillationTrainer
from hf_mwp.utils.usage_error import UsageError
from tests.compress.trainers.distilling import QUIET, copy_of, first_losses, losses_of, training_logs, unchanged
from tests.slow_parameters import slow_after, slow_except
from tests.tiny import tiny_classifier, tiny_tokenizer
from tests.tiny_seq2seq import KINDS, tiny_pairs, tiny_seq2seq


FIELDS = QUIET | {
    "save_strategy": "no",
    "per_device_train_batch_size": 4,
    "num_train_epochs": 1,
    "logging_steps": 1,
    "warmup_steps": 0,
    "max_decode_length": 8,
}


@pytest.fixture
def trainer_of(tmp_path):
    def make(architecture="bart", student=None, teacher=None, keywords=None, **fields):
        defaults = {
            "train_dataset": tiny_pairs(),
            "eval_dataset": tiny_pairs(5, 1),
            "processing_class": tiny_tokenizer(),
        }
        if student is None:
            student = tiny_seq2seq(architecture, decoder_layers=1)
        if teacher is None:
            teacher = tiny_seq2seq(architecture, 24, 4, 2, seed=1)
        args = Seq2SeqDistillationConfig(str(tmp_path), **(FIELDS | fields))
        return Seq2SeqDistillationTrainer(student, teacher_model=teacher, args=args, **(defaults | (keywords or {})))

    return make


@pytest.mark.parametrize("architecture", slow_after(1, KINDS))
def test_each_architecture_learns_saves_and_loads(trainer_of, architecture, tmp_path):
    trainer = trainer_of(architecture)
    teacher = copy_of(trainer.teacher_model)
    student = copy_of(trainer.model)
    losses = first_losses(trainer)
    encoder_losses = {"loss_hidden_0", "loss_hidden_1", "loss_hidden_2"}
    decoder_losses = {"loss_decoder_hidden_0", "loss_decoder_hidden_1"}
    assert losses.keys() == {"loss", "loss_soft", "loss_hard"} | encoder_losses | decoder_losses
    assert unchanged(trainer.teacher_model, teacher)
    assert not unchanged(trainer.model, student)
    trainer.save_model(tmp_path / "saved")
    loaded = AutoModelForSeq2SeqLM.from_pretrained(tmp_path / "saved")
    inputs = {name: torch.tensor([value]) for name, value in tiny_pairs(1)[0].items()}
    assert torch.equal(loaded(**inputs).logits, trainer.model.eval()(**inputs).logits)
    assert trainer.evaluate().keys() >= {"eval_bleu", "eval_chrf", "eval_loss"}


# peft reads it; transformers will remove it.
@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:`is_gradient_checkpointing` is deprecated")
def test_only_the_adapters_of_a_student_with_peft_learn(trainer_of, tmp_path):
    peft = pytest.importorskip("peft")
    config = peft.LoraConfig(r=2, target_modules=["q_proj", "v_proj"], task_type="SEQ_2_SEQ_LM")
    trainer = trainer_of(student=peft.get_peft_model(tiny_seq2seq(decoder_layers=1), config), max_steps=2)
    before = copy_of(trainer.model)
    trainer.train()
    weights = trainer.model.state_dict()
    changed = [name for name, value in weights.items() if not torch.equal(value, before[name])]
    assert changed
    assert all("lora_" in name for name in changed)
    assert trainer.evaluate().keys() >= {"eval_bleu", "eval_loss"}
    trainer.save_model()
    assert unchanged(peft.PeftModel.from_pretrained(tiny_seq2seq(decoder_layers=1), tmp_path), weights)


def test_all_losses_have_the_weight_1_of_the_paper(trainer_of):
    objectives = trainer_of().objectives
    for objective in objectives:
        assert set(objective.parts.values()) == {1.0}
    assert objectives[0].temperature == 1


@pytest.mark.parametrize("architecture", slow_after(1, ["bart", "t5"]))
def test_cached_teacher_equals_live_teacher(trainer_of, architecture):
    logs = []
    for cached in (False, True):
        fields = {"hidden_loss": "mse+cka+minilm", "layer_mapping": "uniform", "cache_teacher_outputs": cached}
        trainer = trainer_of(architecture, **fields)
        trainer.train()
        logs.append(training_logs(trainer))
    for live_entry, cached_entry in zip(*logs, strict=True):
        assert losses_of(cached_entry) == pytest.approx(losses_of(live_entry), rel=2e-3)


def test_layers_of_each_stack_are_mapped(trainer_of):
    fields = {"layer_mapping": "1:3,2:4", "decoder_layer_mapping": "0:0,1:2", "decoder_mask": "shifted"}
    _, _, encoder_states, decoder_states = trainer_of(**fields).objectives
    assert encoder_states.layers == [(1, 3), (2, 4)]
    assert decoder_states.layers == [(0, 0), (1, 2)]
    assert decoder_states.decoder_mask == "shifted"
    assert len(trainer_of(decoder_layer_mapping="none").objectives) == 3
    with pytest.raises(ValueError, match="layer 3 of the student"):
        trainer_of(decoder_layer_mapping="3:1")


def test_one_map_for_both_stacks(trainer_of):
    trainer = trainer_of(hidden_loss="mse", shared_projection=True)
    (linear,) = trainer.projections.module.values()
    weight = linear.weight.clone()
    trainer.train()
    assert len(trainer.projections.reads) == 5
    assert not torch.equal(linear.weight, weight)
    assert linear.weight.shape == (24, 16)
    assert linear.bias is not None


def authors_cka(student_states, teacher_states, mask):
    student = student_states[mask].double()
    teacher = teacher_states[mask].double()
    student -= student.mean(0)
    teacher -= teacher.mean(0)
    student_norm = torch.norm(student.T @ student) + 1e-8
    teacher_norm = torch.norm(teacher.T @ teacher) + 1e-8
    return (1 - torch.norm(student.T @ teacher) / torch.sqrt(student_norm * teacher_norm)).item()


@pytest.mark.slow
def test_the_authors_fourteen_terms(trainer_of):
    student = tiny_seq2seq("bart", 16, 6, 6)
    teacher = tiny_seq2seq("bart", 24, 12, 12, seed=1)
    fields = {"decoder_mask": "shifted", "per_device_train_batch_size": 8, "train_sampling_strategy": "sequential"}
    trainer = trainer_of(student=student, teacher=teacher, **fields)
    batch = next(iter(trainer.get_train_dataloader()))
    with torch.no_grad():
        student_output = student(**batch, output_hidden_states=True)
        teacher_output = teacher(**batch, output_hidden_states=True)
    encoder_mask = batch["attention_mask"].bool()
    decoder_mask = functional.pad(batch["labels"][:, :-1] != -100, (1, 0))
    losses = first_losses(trainer)
    for layer in range(7):
        student_states = student_output.encoder_hidden_states[layer]
        teacher_states = teacher_output.encoder_hidden_states[2 * layer]
        expected = authors_cka(student_states, teacher_states, encoder_mask)
        assert losses[f"loss_hidden_{layer}"] == pytest.approx(expected, abs=2e-5)
        student_states = student_output.decoder_hidden_states[layer]
        teacher_states = teacher_output.decoder_hidden_states[2 * layer]
        expected = authors_cka(student_states, teacher_states, decoder_mask)
        assert losses[f"loss_decoder_hidden_{layer}"] == pytest.approx(expected, abs=2e-5)
    assert len([name for name in losses if "hidden" in name]) == 14


@pytest.mark.slow
def test_no_layer_of_the_student_is_skipped(trainer_of):
    """LayerDrop, which M2M100 has by default, would leave out the states of a layer."""
    layers = {"encoder_layers": 3, "decoder_layers": 3}
    teacher = tiny_seq2seq("m2m_100", 24, 3, 3, seed=1)
    expected = first_losses(trainer_of(student=tiny_seq2seq("m2m_100", **layers), teacher=teacher, max_steps=1))
    dropped = tiny_seq2seq("m2m_100", **layers, encoder_layerdrop=0.9, decoder_layerdrop=0.9)
    assert first_losses(trainer_of(student=dropped, teacher=teacher, max_steps=1)) == expected
    assert dropped.config.encoder_layerdrop == 0.9


@pytest.mark.slow
def test_a_collator_without_the_model_gives_the_same_loss(trainer_of):
    rows = tiny_pairs()
    # mBART cannot shift a row of labels that are all masked.
    rows[1]["labels"] = rows[1]["labels"][-1:]
    losses = []
    for model in (None, tiny_seq2seq("mbart")):
        collator = DataCollatorForSeq2Seq(tiny_tokenizer(), model=model)
        keywords = {"train_dataset": rows, "data_collator": collator}
        losses.append(first_losses(trainer_of("mbart", keywords=keywords, max_steps=1)))
    assert losses[0] == losses[1]


@pytest.mark.parametrize("architecture", slow_except(["bart", "mbart", "t5"], "mbart"))
def test_rows_without_a_label_do_not_change_the_loss(trainer_of, architecture):
    rows = tiny_pairs(3)
    unlabelled_rows = [{**tiny_pairs(4)[3], "labels": labels} for labels in ([-100, -100], [])]
    fields = {"hidden_loss": "none", "max_steps": 1, "train_sampling_strategy": "sequential"}
    losses = []
    for train_dataset in (rows, rows + unlabelled_rows):
        keywords = {"train_dataset": train_dataset, "eval_dataset": None}
        trainer = trainer_of(architecture, keywords=keywords, per_device_train_batch_size=5, **fields)
        losses.append(first_losses(trainer))
    assert losses[0] == pytest.approx(losses[1], rel=1e-5)


@pytest.mark.parametrize("architecture", slow_after(1, ["bart", "m2m_100"]))
def test_padding_changes_nothing_on_either_side_of_a_tokenizer(trainer_of, architecture):
    losses = []
    for side in ("right", "left"):
        tokenizer = tiny_tokenizer()
        tokenizer.padding_side = side
        trainer = trainer_of(architecture, keywords={"processing_class": tokenizer})
        losses.append(trainer.evaluate()["eval_loss"])
    assert losses[0] == losses[1]
    assert tokenizer.padding_side == "left"


def test_layers_that_are_nan_are_named(trainer_of):
    teacher = tiny_seq2seq(width=24)
    torch.nn.init.constant_(teacher.model.decoder.layers[1].fc1.weight, float("nan"))
    with pytest.raises(ValueError, match="teacher .decoder_hidden_2, logits"):
        trainer_of(teacher=teacher)


def test_beams_and_lengths_reach_generate(trainer_of, monkeypatch):
    trainer = trainer_of(num_beams=3, max_decode_length=6)
    options = []
    generate = trainer.model.generate

    def recording_generate(**inputs):
        options.append((inputs["num_beams"], inputs["max_length"]))
        return generate(**inputs)

    monkeypatch.setattr(trainer.model, "generate", recording_generate)
    trainer.evaluate()
    trainer.predict(tiny_pairs(2))
    trainer.evaluate(num_beams=2)
    assert options == [(3, 6), (3, 6), (2, 6)]
    # The model has 64 positions.
    assert trainer_of(max_decode_length=100).args.generation_max_length == 64


def test_arguments_come_before_the_generation_config(trainer_of, monkeypatch):
    """`generate` prefers `max_new_tokens` of the config, and would draw texts at random."""
    student = tiny_seq2seq(decoder_layers=1)
    student.generation_config.update(max_new_tokens=12, do_sample=True, temperature=9.0, eos_token_id=None)
    config = student.generation_config.to_dict()
    trainer = trainer_of(student=student, max_decode_length=6)
    texts = []
    generate = student.generate

    def recording_generate(**inputs):
        texts.append(generate(**inputs))
        return texts[-1]

    monkeypatch.setattr(student, "generate", recording_generate)
    trainer.evaluate()
    trainer.evaluate()
    trainer.evaluate(max_length=8)
    assert [ids.shape[1] for ids in texts] == [6, 6, 8]
    assert torch.equal(texts[0], texts[1])
    assert student.generation_config.to_dict() == config


def test_metrics_compare_texts_without_padding(trainer_of):
    evaluated_references = []

    def exact_match(predictions, references):
        evaluated_references.append(references)
        return {"exact_match": sum(map(str.__eq__, predictions, references)) / len(references)}

    fields = {"eval_strategy": "epoch", "save_strategy": "epoch", "load_best_model_at_end": True}
    trainer = trainer_of(keywords={"text_metrics": exact_match}, **fields)
    assert trainer.args.metric_for_best_model == "exact_match"
    assert trainer.args.greater_is_better
    trainer.train()
    tokenizer = tiny_tokenizer()
    texts = [tokenizer.decode(row["labels"], skip_special_tokens=True) for row in tiny_pairs(5, 1)]
    assert evaluated_references[-1] == texts
    assert trainer.state.best_metric == trainer.state.log_history[-2]["eval_exact_match"]


@pytest.mark.slow
@pytest.mark.parametrize("architecture", ["bart", "t5"])
def test_resuming_is_exact(trainer_of, architecture, tmp_path):
    fields = {"save_strategy": "steps", "save_steps": 1, "num_train_epochs": 2, "seed": 3}
    fields |= {"hidden_loss": "mse", "shared_projection": True}
    teacher = tiny_seq2seq(architecture, width=24, seed=1)
    uninterrupted = trainer_of(student=tiny_seq2seq(architecture, dropout=0.1), teacher=teacher, **fields)
    uninterrupted.train()
    resumed = trainer_of(student=tiny_seq2seq(architecture, seed=5, dropout=0.1), teacher=teacher, **fields)
    resumed.train(resume_from_checkpoint=str(tmp_path / "checkpoint-2"))
    assert unchanged(resumed.model, copy_of(uninterrupted.model))


@pytest.mark.parametrize(
    ("make_changes", "message"),
    [
        (lambda: {"metric_for_best_model": "blue", "eval_strategy": "epoch"}, "'blue'.*bleu"),
        (lambda: {"batch_eval_metrics": True}, "`batch_eval_metrics=False`"),
        (lambda: {"eval_do_concat_batches": False}, "`eval_do_concat_batches=True`"),
        (lambda: {"student": tiny_classifier()}, "BertForSequenceClassification"),
        (lambda: {"teacher": tiny_classifier()}, "the teacher, a `BertForSequenceClassification`, is not"),
        (lambda: {"student": tiny_seq2seq(vocab_size=50)}, "50 tokens.*pseudo-label"),
        (lambda: {"student": tiny_seq2seq(decoder_start_token_id=3)}, "decoder_start_token_id=3"),
        (lambda: {"decoder_layer_mapping": "1:9"}, r"`decoder_hidden` \(decoder layers\).*layer 9 of the teacher"),
        (lambda: {"decoder_mask": "shifted", "cache_teacher_outputs": True}, "decoder_hidden.*cached"),
    ],
)
def test_impossible_trainings_are_refused_before(trainer_of, make_changes, message):
    with pytest.raises(ValueError, match=message):
        trainer_of(**make_changes())


def test_a_collator_needs_a_tokenizer_beside_it(trainer_of):
    keywords = {"processing_class": None, "data_collator": DataCollatorForSeq2Seq(tiny_tokenizer())}
    with pytest.raises(ValueError, match="`processing_class`"):
        trainer_of(keywords=keywords)


def test_a_missing_package_of_the_metrics_is_named_before_training(trainer_of, monkeypatch):
    monkeypatch.setattr("hf_mwp.compress.metrics.text_generation.find_spec", lambda name: None)
    with pytest.raises(UsageError, match=r"sacrebleu: pip install 'hf-mwp\[seq2seq\]'"):
        trainer_of()
