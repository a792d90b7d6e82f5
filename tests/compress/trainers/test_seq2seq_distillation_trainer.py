"""Distillation of sequence-to-sequence models, with generation in evaluations."""

import pytest
import torch
from torch.nn import functional
from transformers import AutoModelForSeq2SeqLM, DataCollatorForSeq2Seq

from hf_mwp import HeadPruningCallback, Seq2SeqDistillationConfig, Seq2SeqDistillationTrainer
from hf_mwp.compress.pruning import HeadGates
from hf_mwp.utils.usage_error import UsageError
from tests.compress.trainers.distilling import copy_of, training_logs, unchanged
from tests.tiny import tiny_classifier, tiny_tokenizer
from tests.tiny_seq2seq import KINDS, tiny_pairs, tiny_seq2seq


@pytest.fixture
def make(tmp_path):
    def make(kind="bart", student=None, teacher=None, keywords=None, **fields):
        defaults = {"output_dir": str(tmp_path), "use_cpu": True, "report_to": "none", "disable_tqdm": True}
        defaults |= {"save_strategy": "no", "per_device_train_batch_size": 4, "num_train_epochs": 1}
        defaults |= {"logging_steps": 1, "warmup_steps": 0, "max_decode_length": 8}
        keywords = {"train_dataset": tiny_pairs(), "eval_dataset": tiny_pairs(5, 1)} | (keywords or {})
        return Seq2SeqDistillationTrainer(
            tiny_seq2seq(kind, decoder_layers=1) if student is None else student,
            teacher_model=tiny_seq2seq(kind, 24, 4, 2, seed=1) if teacher is None else teacher,
            args=Seq2SeqDistillationConfig(**(defaults | fields)),
            **({"processing_class": tiny_tokenizer()} | keywords),
        )

    return make


@pytest.mark.parametrize("kind", KINDS)
def test_each_kind_learns_saves_and_loads(make, kind, tmp_path):
    trainer = make(kind)
    teacher = copy_of(trainer.teacher_model)
    student = copy_of(trainer.model)
    trainer.train()
    logs = training_logs(trainer)[0]
    hidden = [f"loss_{stack}hidden_{layer}" for stack, last in (("", 2), ("decoder_", 1)) for layer in range(last + 1)]
    assert {"loss_soft", "loss_hard", *hidden} == {name for name in logs if name.startswith("loss_")}
    assert unchanged(trainer.teacher_model, teacher)
    assert not unchanged(trainer.model, student)
    trainer.save_model(tmp_path / "saved")
    loaded = AutoModelForSeq2SeqLM.from_pretrained(tmp_path / "saved")
    inputs = {name: torch.tensor([value]) for name, value in tiny_pairs(1)[0].items()}
    assert torch.equal(loaded(**inputs).logits, trainer.model.eval()(**inputs).logits)
    assert {"eval_bleu", "eval_chrf", "eval_loss"} <= {*trainer.evaluate()}


# peft reads it; transformers will remove it.
@pytest.mark.filterwarnings("ignore:`is_gradient_checkpointing` is deprecated")
def test_a_student_with_adapters_of_peft(make, tmp_path):
    peft = pytest.importorskip("peft")
    config = peft.LoraConfig(r=2, target_modules=["q_proj", "v_proj"], task_type="SEQ_2_SEQ_LM")
    trainer = make(student=peft.get_peft_model(tiny_seq2seq(decoder_layers=1), config), max_steps=2)
    before = copy_of(trainer.model)
    trainer.train()
    changed = {name for name, value in trainer.model.state_dict().items() if not torch.equal(value, before[name])}
    assert changed and all("lora_" in name for name in changed)
    assert {"eval_bleu", "eval_loss"} <= {*trainer.evaluate()}
    trainer.save_model()
    loaded = peft.PeftModel.from_pretrained(tiny_seq2seq(decoder_layers=1), tmp_path)
    assert unchanged(loaded, trainer.model.state_dict())


def test_the_paper_weighs_all_losses_alike(make):
    trainer = make(max_steps=1)
    trainer.train()
    (logs,) = training_logs(trainer)
    parts = [value for name, value in logs.items() if name.startswith("loss_")]
    assert logs["loss"] == pytest.approx(sum(parts), rel=1e-4)
    assert {part for each in trainer.objectives for part in each.parts.values()} == {1.0}
    assert trainer.objectives[0].temperature == 1


@pytest.mark.parametrize("kind", KINDS)
def test_a_cached_teacher_is_the_live_one(make, kind):
    logs = []
    for cached in (False, True):
        trainer = make(kind, cache_teacher_outputs=cached, hidden_loss="mse+cka+minilm", layer_mapping="uniform")
        trainer.train()
        logs.append(training_logs(trainer))
    for ours, theirs in zip(*logs, strict=True):
        names = [name for name in ours if name.startswith("loss")]
        assert [ours[name] for name in names] == pytest.approx([theirs[name] for name in names], rel=2e-3)


def test_layers_of_each_stack_are_mapped_by_hand(make):
    trainer = make(layer_mapping="1:3,2:4", decoder_layer_mapping="0:0,1:2", decoder_mask="shifted")
    assert [each.layers for each in trainer.objectives[2:]] == [[(1, 3), (2, 4)], [(0, 0), (1, 2)]]
    assert trainer.objectives[3].decoder_mask == "shifted"
    assert len(make(decoder_layer_mapping="none").objectives) == 3
    with pytest.raises(ValueError, match="layer 3 of the student"):
        make(decoder_layer_mapping="3:1")


def test_one_map_for_both_stacks(make):
    trainer = make(hidden_loss="mse", shared_projection=True)
    (before,) = trainer.projections.module.values()
    weight = before.weight.clone()
    trainer.train()
    assert len(trainer.projections.reads) == 5 and not torch.equal(before.weight, weight)
    assert before.weight.shape == (24, 16) and before.bias is not None


def authors_cka(student, teacher, mask):
    s, t = (states[mask].double() for states in (student, teacher))
    s = s - s.mean(0)
    t = t - t.mean(0)
    norms = [torch.norm(a.T @ b) for a, b in ((s, t), (s, s), (t, t))]
    return (1 - norms[0] / torch.sqrt((norms[1] + 1e-8) * (norms[2] + 1e-8))).item()


def test_the_authors_fourteen_terms(make):
    student = tiny_seq2seq("bart", 16, 6, 6)
    teacher = tiny_seq2seq("bart", 24, 12, 12, seed=1)
    fields = {"decoder_mask": "shifted", "per_device_train_batch_size": 8, "train_sampling_strategy": "sequential"}
    trainer = make(student=student, teacher=teacher, **fields)
    batch = next(iter(trainer.get_train_dataloader()))
    with torch.no_grad():
        ours, theirs = (model(**batch, output_hidden_states=True) for model in (student, teacher))
    labels = batch["labels"]
    masks = {"": batch["attention_mask"].bool(), "decoder_": functional.pad(labels[:, :-1] != -100, (1, 0))}
    expected = {}
    for prefix, mask in masks.items():
        pair = [output[f"{prefix or 'encoder_'}hidden_states"] for output in (ours, theirs)]
        for layer in range(7):
            expected[f"{prefix}hidden_{layer}"] = authors_cka(pair[0][layer], pair[1][2 * layer], mask)
    trainer.train()
    logs = training_logs(trainer)[0]
    found = {name.removeprefix("loss_"): value for name, value in logs.items() if "hidden" in name}
    assert len(expected) == 14 and found == pytest.approx(expected, abs=2e-5)


def test_several_teachers_and_heads_pruned_on_the_way(make):
    teachers = [tiny_seq2seq(width=16, encoder_layers=3, seed=seed) for seed in (1, 2)]
    callback = HeadPruningCallback(max_ratio=0.25, num_pruning_steps=1, end_fraction=0.5)
    fields = {"hidden_loss": "minilm+mse", "layer_mapping": "last", "num_train_epochs": 2}
    trainer = make(student=tiny_seq2seq(), teacher=teachers, keywords={"callbacks": [callback]}, **fields)
    trainer.train()
    assert sum(map(len, HeadGates.closed_on(trainer.model))) == 3
    assert all(torch.isfinite(torch.tensor(entry["loss"])) for entry in training_logs(trainer))


def test_no_layer_of_the_student_is_skipped(make):
    """LayerDrop, which M2M100 has by default, would leave out the states of a layer."""
    fields = {"encoder_layers": 3, "decoder_layers": 3}
    dropped = tiny_seq2seq("m2m_100", **fields, encoder_layerdrop=0.9, decoder_layerdrop=0.9)
    logs = []
    for student in (dropped, tiny_seq2seq("m2m_100", **fields)):
        trainer = make(student=student, teacher=tiny_seq2seq("m2m_100", 24, 3, 3, seed=1), max_steps=1)
        trainer.train()
        logs.append(training_logs(trainer)[0]["loss"])
    assert logs[0] == logs[1] and dropped.config.encoder_layerdrop == 0.9


def test_a_collator_without_the_model(make):
    rows = tiny_pairs()
    # mBART cannot shift a row of labels that are all masked.
    rows[1]["labels"] = rows[1]["labels"][-1:]
    logs = []
    for model in (None, tiny_seq2seq("mbart")):
        collator = DataCollatorForSeq2Seq(tiny_tokenizer(), model=model)
        trainer = make("mbart", keywords={"train_dataset": rows, "data_collator": collator}, max_steps=1)
        trainer.train()
        logs.append(training_logs(trainer)[0]["loss"])
    assert logs[0] == logs[1]


@pytest.mark.parametrize("kind", KINDS)
def test_rows_without_a_label_have_no_part_in_the_loss(make, kind):
    rows = tiny_pairs(3)
    logs = []
    for extra in ([], [{**tiny_pairs(4)[3], "labels": labels} for labels in ([-100, -100], [])]):
        fields = {"hidden_loss": "none", "max_steps": 1, "train_sampling_strategy": "sequential"}
        keywords = {"train_dataset": rows + extra, "eval_dataset": None}
        trainer = make(kind, keywords=keywords, per_device_train_batch_size=5, **fields)
        trainer.train()
        logs.append(training_logs(trainer)[0]["loss"])
    assert logs[0] == pytest.approx(logs[1], rel=1e-5)


@pytest.mark.parametrize("kind", KINDS)
def test_padding_changes_nothing_on_either_side_of_a_tokenizer(make, kind):
    losses = []
    for side in ("right", "left"):
        tokenizer = tiny_tokenizer()
        tokenizer.padding_side = side
        losses.append(make(kind, keywords={"processing_class": tokenizer}).evaluate()["eval_loss"])
    assert losses[0] == losses[1] and tokenizer.padding_side == "left"


def test_layers_that_are_nan_are_named(make):
    teacher = tiny_seq2seq(width=24)
    torch.nn.init.constant_(teacher.model.decoder.layers[1].fc1.weight, float("nan"))
    with pytest.raises(ValueError, match="teacher .decoder_hidden_2, logits"):
        make(teacher=teacher)


def test_beams_and_lengths_reach_generate(make, monkeypatch):
    trainer = make(num_beams=3, max_decode_length=6)
    seen = []
    generate = trainer.model.generate
    monkeypatch.setattr(trainer.model, "generate", lambda **inputs: seen.append(inputs) or generate(**inputs))
    trainer.evaluate()
    trainer.predict(tiny_pairs(2))
    trainer.evaluate(num_beams=2)
    assert [(each["num_beams"], each["max_length"]) for each in seen] == [(3, 6), (3, 6), (2, 6)]
    # The model has 64 positions.
    assert make(max_decode_length=100).args.generation_max_length == 64


def test_arguments_come_before_the_generation_config(make, monkeypatch):
    """`generate` prefers `max_new_tokens` of the config, and would draw texts at random."""
    student = tiny_seq2seq(decoder_layers=1)
    seen = []
    student.generation_config.update(max_new_tokens=12, do_sample=True, temperature=9.0, eos_token_id=None)
    own = student.generation_config.to_dict()
    generate = student.generate
    trainer = make(student=student, max_decode_length=6)
    monkeypatch.setattr(student, "generate", lambda **inputs: seen.append(generate(**inputs)) or seen[-1])
    trainer.evaluate()
    trainer.evaluate()
    trainer.evaluate(max_length=8)
    assert [each.shape[1] for each in seen] == [6, 6, 8] and torch.equal(*seen[:2])
    assert student.generation_config.to_dict() == own


def test_metrics_compare_texts_without_padding(make):
    seen = []

    def same(predictions, references):
        seen.append(references)
        return {"same": sum(map(str.__eq__, predictions, references)) / len(references)}

    fields = {"eval_strategy": "epoch", "save_strategy": "epoch", "load_best_model_at_end": True}
    trainer = make(keywords={"text_metrics": same}, **fields)
    assert trainer.args.metric_for_best_model == "same" and trainer.args.greater_is_better
    trainer.train()
    tokenizer = tiny_tokenizer()
    texts = [tokenizer.decode(row["labels"], skip_special_tokens=True) for row in tiny_pairs(5, 1)]
    assert seen[-1] == texts
    assert trainer.state.best_metric == trainer.state.log_history[-2]["eval_same"]


@pytest.mark.parametrize("kind", KINDS)
def test_resuming_is_exact(make, kind, tmp_path):
    fields = {"save_strategy": "steps", "save_steps": 1, "num_train_epochs": 2, "seed": 3}
    models = {"student": tiny_seq2seq(kind, dropout=0.1), "teacher": tiny_seq2seq(kind, width=24, seed=1)}
    trainer = make(**models, **fields, hidden_loss="mse", shared_projection=True)
    trainer.train()
    again = make(
        student=tiny_seq2seq(kind, seed=5, dropout=0.1),
        teacher=models["teacher"],
        **fields,
        hidden_loss="mse",
        shared_projection=True,
    )
    again.train(resume_from_checkpoint=str(tmp_path / "checkpoint-2"))
    assert unchanged(again.model, copy_of(trainer.model))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"metric_for_best_model": "blue", "eval_strategy": "epoch"}, "'blue'.*bleu"),
        (
            {
                "metric_for_best_model": "bleu",
                "eval_strategy": "epoch",
                "keywords": {"eval_dataset": {"a": tiny_pairs(2)}},
            },
            "'bleu'.* a_bleu, a_chrf, a_loss",
        ),
        ({"batch_eval_metrics": True}, "`batch_eval_metrics=False`"),
        ({"eval_do_concat_batches": False}, "`eval_do_concat_batches=True`"),
        ({"student": tiny_classifier()}, "BertForSequenceClassification"),
        ({"teacher": tiny_classifier()}, "the teacher, a `BertForSequenceClassification`, is not"),
        ({"student": tiny_seq2seq(vocab_size=50)}, "50 tokens.*pseudo-label"),
        ({"decoder_layer_mapping": "1:9"}, r"`decoder_hidden` \(decoder layers\).*layer 9 of the teacher"),
        ({"student": tiny_seq2seq(decoder_start_token_id=3)}, "decoder_start_token_id=3"),
        ({"decoder_mask": "shifted", "cache_teacher_outputs": True}, "decoder_hidden.*cached"),
        ({"keywords": {"processing_class": None, "data_collator": len}}, "`processing_class`"),
    ],
)
def test_what_does_not_fit_is_refused_before_training(make, change, message):
    if "processing_class" in change.get("keywords", ()):
        change = {"keywords": {"processing_class": None, "data_collator": DataCollatorForSeq2Seq(tiny_tokenizer())}}
    with pytest.raises(ValueError, match=message):
        make(**change)


def test_a_missing_package_of_the_metrics_is_named_before_training(make, monkeypatch):
    monkeypatch.setattr("hf_mwp.compress.metrics.text_generation.find_spec", lambda name: None)
    with pytest.raises(UsageError, match=r"sacrebleu: pip install 'hf-mwp\[seq2seq\]'"):
        make()
