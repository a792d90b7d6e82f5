import dataclasses
import json
import math

import numpy as np
import pytest
import torch
from datasets import Dataset
from transformers import AutoModel, AutoModelForMaskedLM, AutoModelForPreTraining

from hf_mwp.compress.models import MwpStudentForMaskedLM
from hf_mwp.solver.batches import MwpProcessor
from hf_mwp.solver.corpus import PreTrainingEncoder, encode_corpus, pos_label_list
from hf_mwp.solver.corpus.pretraining_encoder import NUMBER
from hf_mwp.solver.data import DataError
from hf_mwp.solver.metrics import pos_report
from hf_mwp.solver.training import PreTrainingConfig, PreTrainingTrainer
from tests.pretraining import TAGS, quantity_pairs, text_processor, tiny_pairs, tiny_student, tiny_texts
from tests.tiny import tiny_masked_lm, tiny_solver


@pytest.fixture(scope="module")
def processor():
    return text_processor(indexed_numbers=True)


@pytest.fixture
def make(processor, tmp_path):
    """Makes a trainer of a tiny student on tagged texts."""

    def make(model=None, texts=None, keywords=None, **fields):
        defaults = {"output_dir": str(tmp_path), "use_cpu": True, "report_to": "none", "disable_tqdm": True}
        defaults |= {"save_strategy": "no", "per_device_train_batch_size": 8, "num_train_epochs": 1}
        defaults |= {"logging_steps": 1, "learning_rate": 1e-3, "validation_fraction": 0.2}
        return PreTrainingTrainer(
            model=tiny_student(processor) if model is None else model,
            args=PreTrainingConfig(**(defaults | fields)),
            train_dataset=tiny_pairs(60) if texts is None else texts,
            processing_class=processor,
            **(keywords or {}),
        )

    return make


def state(model):
    return {name: value.clone() for name, value in model.state_dict().items()}


def logged(trainer, name):
    return [entry[name] for entry in trainer.state.log_history if name in entry]


def test_everything_learns(make):
    trainer = make()
    before = state(trainer.model)
    trainer.train()
    for name, value in trainer.model.state_dict().items():
        assert not torch.equal(value, before[name]), name
    assert len(logged(trainer, "mlm_loss")) == len(logged(trainer, "loss")) == trainer.state.global_step


def test_the_loss_is_one_to_five(make):
    trainer = make()
    trainer.train()
    parts = zip(*(logged(trainer, name) for name in ("loss", "mlm_loss", "pos_loss")), strict=True)
    for loss, mlm, pos in parts:
        assert loss == pytest.approx(mlm + 5 * pos, abs=2e-3)
    assert trainer.model.config.pos_loss_weight == 5.0


def test_both_tasks_are_learned(make):
    trainer = make(num_train_epochs=25, learning_rate=5e-3, logging_steps=20)
    before = trainer.evaluate()
    trainer.train()
    after = trainer.evaluate()
    assert after["eval_pos_f1"] > 0.9 > 0.5 > before["eval_pos_f1"]
    assert after["eval_mlm_loss"] < before["eval_mlm_loss"] - 0.5
    assert after["eval_mlm_loss_numbers"] < before["eval_mlm_loss_numbers"]


@pytest.mark.parametrize("off", ["mlm", "pos"])
def test_a_task_can_be_left_away(make, off, monkeypatch):
    trainer = make(**{f"{off}_loss_weight": 0})
    model = trainer.model
    head = model.cls.predictions if off == "mlm" else model.cls.pos_tagger
    before = state(head)
    if off == "mlm":
        monkeypatch.setattr(type(head), "forward", None)  # not called at all
    trainer.train()
    figures = trainer.evaluate()
    name = {"mlm": "pos", "pos": "mlm"}[off]
    assert f"eval_{name}_loss" in figures and f"eval_{off}_loss" not in figures
    assert logged(trainer, f"{name}_loss") and not logged(trainer, f"{off}_loss")
    # The decoder's matrix is that of the word embeddings.
    own = [key for key in before if key != "decoder.weight"]
    assert all(torch.equal(head.state_dict()[key], before[key]) for key in own)
    if off == "mlm":
        assert not any("labels" in batch for batch in trainer.get_train_dataloader())


def test_without_tagging_texts_need_no_tags_and_any_masked_model_will_do(make, processor):
    model = tiny_student(processor, model_class=MwpStudentForMaskedLM)
    trainer = make(model, tiny_texts(30), pos_loss_weight=0)
    trainer.train()
    assert trainer.evaluate()["eval_mlm_loss"] > 0
    bert = tiny_masked_lm(vocab_size=len(processor.tokenizer), max_position_embeddings=64)
    trainer = make(bert, tiny_texts(30), pos_loss_weight=0)
    trainer.train()
    assert {"eval_mlm_loss", "eval_mlm_accuracy"} <= trainer.evaluate().keys()


def test_masks_are_the_same_without_the_loss_of_tagging(make, processor):
    runs = []
    for weight in (5, 0):
        given = {"num_pos_tags": 0, "pos_labels": None, "pos_tagger": None, "model_class": MwpStudentForMaskedLM}
        model = tiny_student(processor, **({} if weight else given))
        corpus = Corpus(quantity_pairs(60))
        trainer = make(model, corpus, pos_loss_weight=weight, train_sampling_strategy="sequential")
        runs.append((trainer.train_dataset, list(trainer.get_train_dataloader())))
    (tagged, ours), (plain, theirs) = runs
    assert "pos_labels" in tagged.column_names and "pos_labels" not in plain.column_names
    assert len(ours) == len(theirs) > 2
    for a, b in zip(ours, theirs, strict=True):
        assert torch.equal(a["labels"], b["labels"]) and torch.equal(a["input_ids"], b["input_ids"])
    bare = make(texts=tiny_texts(60), pos_loss_weight=0).train_dataset
    classes = [np.concatenate(dataset["mask_class"][:]) for dataset in (tagged, plain, bare)]
    assert (classes[0] == classes[1]).all() and (classes[2] == NUMBER).sum() < (classes[1] == NUMBER).sum()


def test_the_vocabulary_is_scored_sparsely_only_while_training(make):
    trainer = make()
    head, sizes = trainer.model.cls.predictions, []
    head.decoder.register_forward_hook(lambda module, inputs, output: sizes.append(output.dim()))
    trainer.train()
    trainer.evaluate()
    assert set(sizes) == {2} and head.sparse is False and trainer.model.config.sparse_prediction is False


def test_accumulated_batches_are_one(make, processor):
    logs = []
    for size, steps in ((16, 1), (4, 4)):
        trainer = make(
            tiny_student(processor, seed=1),
            per_device_train_batch_size=size,
            gradient_accumulation_steps=steps,
        )
        trainer.train()
        logs.append([logged(trainer, name) for name in ("loss", "mlm_loss", "pos_loss", "grad_norm")])
    assert len(logs[0][0]) == len(logs[1][0]) >= 3
    np.testing.assert_allclose(logs[0], logs[1], rtol=2e-4)


def test_accumulated_batches_of_any_masked_language_model_are_one(make, processor):
    logs = []
    for size, steps in ((16, 1), (4, 4)):
        model = tiny_masked_lm(vocab_size=len(processor.tokenizer), max_position_embeddings=64)
        fields = {"per_device_train_batch_size": size, "gradient_accumulation_steps": steps, "pos_loss_weight": 0}
        trainer = make(model, **fields)
        trainer.train()
        logs.append([logged(trainer, name) for name in ("loss", "mlm_loss", "grad_norm")])
    np.testing.assert_allclose(logs[0], logs[1], rtol=2e-4)


def test_masks_differ_between_epochs(make):
    trainer = make(num_train_epochs=2, train_sampling_strategy="sequential")
    seen = []
    collate = trainer.data_collator
    original = type(collate).__call__

    def spy(self, features):
        batch = original(self, features)
        if self is collate:
            seen.append((self.epoch, batch["labels"]))
        return batch

    try:
        type(collate).__call__ = spy
        trainer.train()
    finally:
        type(collate).__call__ = original
    first, second = ([labels for epoch, labels in seen if epoch == number] for number in (0, 1))
    assert len(first) == len(second) > 2
    assert any(not torch.equal(a, b) for a, b in zip(first, second, strict=True))


def test_evaluation_against_a_loop_over_texts(make, tmp_path):
    trainer = make(per_device_eval_batch_size=5)
    trainer.train()
    figures = trainer.evaluate()
    model, labels = trainer.model.eval(), trainer.model.config.pos_labels
    losses, right, kinds, pos_losses, predicted, gold = [], [], [], [], [], []
    rows = [trainer.eval_dataset[index] for index in range(len(trainer.eval_dataset))]
    for row in rows:
        batch = trainer.evaluation_collator([row])
        with torch.no_grad():
            masked = model(batch["input_ids"], batch["attention_mask"]).logits[0]
            tagged = model(batch["original_ids"], batch["attention_mask"]).pos_logits[0]
        for place, label in enumerate(batch["labels"][0].tolist()):
            if label != -100:
                losses.append(-masked[place].log_softmax(-1)[label].item())
                right.append(masked[place].argmax().item() == label)
                kinds.append(row["mask_class"][place])
        truth = batch["pos_labels"][0].tolist()
        pos_losses += [-tagged[i].log_softmax(-1)[label].item() for i, label in enumerate(truth) if label >= 0]
        gold.append([labels[label] if label >= 0 else None for label in truth])
        predicted.append([labels[label] for label in tagged.argmax(-1).tolist()])
    report = pos_report(predicted, gold)
    expected = {
        "mlm_loss": np.mean(losses),
        "mlm_accuracy": np.mean(right),
        "mlm_loss_keywords": np.mean([loss for loss, kind in zip(losses, kinds, strict=True) if kind == 2]),
        "mlm_loss_numbers": np.mean([loss for loss, kind in zip(losses, kinds, strict=True) if kind == 3]),
        "pos_loss": np.mean(pos_losses),
        "loss": np.mean(losses) + 5 * np.mean(pos_losses),
        **{f"pos_{name}": report[name] for name in ("f1", "precision", "recall", "accuracy")},
    }
    assert {name: figures[f"eval_{name}"] for name in expected} == pytest.approx(expected, rel=1e-4)
    written = json.loads((tmp_path / "pos_tags_eval.json").read_text(encoding="utf-8"))
    assert written == report
    assert set(written["tags"]) <= set(TAGS)


def test_evaluation_is_the_same_each_time_and_for_each_model_seed(make, processor):
    first, second = make(seed=1, data_seed=9), make(tiny_student(processor), seed=2, data_seed=9)
    assert first.eval_dataset["text_key"][:].tolist() == second.eval_dataset["text_key"][:].tolist()
    figures = first.evaluate()
    assert first.evaluate()["eval_mlm_loss"] == figures["eval_mlm_loss"] == second.evaluate()["eval_mlm_loss"]
    assert make(data_seed=10).eval_dataset["text_key"][:].tolist() != first.eval_dataset["text_key"][:].tolist()


def test_other_texts_can_be_evaluated(make, tmp_path):
    trainer = make()
    figures = trainer.evaluate(tiny_pairs(12, seed=5), metric_key_prefix="other")
    assert 0 <= figures["other_pos_f1"] <= 1 and (tmp_path / "pos_tags_other.json").exists()
    assert trainer.predict(tiny_pairs(7, seed=6)).metrics["test_pos_loss"] > 0
    only = make(prediction_loss_only=True)
    assert "eval_pos_f1" not in only.evaluate() and only.evaluate()["eval_loss"] > 0


def test_held_out_texts(make):
    trainer = make(validation_fraction=0.25)
    train, held_out = (set(part["text_key"][:].tolist()) for part in (trainer.train_dataset, trainer.eval_dataset))
    assert not train & held_out
    assert len(held_out) == round(0.25 * len(train | held_out))
    grown = make(texts=tiny_pairs(60) + [("又买了苹果", [])], validation_fraction=0.25)
    assert len(held_out - set(grown.eval_dataset["text_key"][:].tolist())) <= 1
    nothing = make(validation_fraction=0)
    assert nothing.eval_dataset is None and len(nothing.train_dataset) == 60
    given = make(keywords={"eval_dataset": tiny_pairs(10, seed=4)})
    assert len(given.eval_dataset) == 10 and len(given.train_dataset) == 60


def test_best_checkpoint_by_loss(make, tmp_path):
    trainer = make(eval_strategy="epoch", save_strategy="epoch", load_best_model_at_end=True, num_train_epochs=2)
    trainer.train()
    assert trainer.args.metric_for_best_model == "loss" and trainer.args.greater_is_better is False
    assert trainer.state.best_metric == min(logged(trainer, "eval_loss"))


def test_what_is_saved_loads_as_everything(make, tmp_path):
    trainer = make()
    trainer.train()
    trainer.save_model(str(tmp_path / "saved"))
    folder = str(tmp_path / "saved")
    again = AutoModelForPreTraining.from_pretrained(folder)
    assert again.config.pos_labels == pos_label_list(TAGS) and again.config.pos_tagger == "jieba"
    assert all(torch.equal(value, trainer.model.state_dict()[name]) for name, value in again.state_dict().items())
    assert AutoModelForMaskedLM.from_pretrained(folder).config.num_pos_tags == 2 * len(TAGS)
    encoder = AutoModel.from_pretrained(folder)
    assert torch.equal(encoder.embeddings.word_embeddings.weight, again.get_input_embeddings().weight)
    assert MwpProcessor.from_pretrained(folder).indexed_numbers is True


def test_bf16(make):
    trainer = make(bf16=True, num_train_epochs=2)
    trainer.train()
    assert all(math.isfinite(loss) for loss in logged(trainer, "loss"))
    assert trainer.evaluate()["eval_pos_f1"] >= 0
    assert trainer.model.dtype == torch.float32


def test_loader_workers_mask_alike(make, processor):
    logs = []
    for workers in (0, 2):
        trainer = make(tiny_student(processor), dataloader_num_workers=workers, num_train_epochs=2)
        trainer.train()
        logs.append(logged(trainer, "loss"))
    assert logs[0] == logs[1]


def test_encoded_texts_are_taken(make, processor, tmp_path):
    encoder = PreTrainingEncoder(processor, TAGS, "jieba")
    dataset = encode_corpus(tiny_pairs(30), encoder, tmp_path / "elsewhere")
    trainer = make(texts=dataset)
    trainer.train()
    assert not (tmp_path / "encoded").exists()
    with pytest.raises(DataError, match="'pos_labels'.*input_ids.*`encode_corpus`"):
        make(texts=dataset.remove_columns("pos_labels"))
    bare = tiny_student(processor, pos_labels=None, num_pos_tags=10)
    make(bare, texts=dataset)
    assert bare.config.pos_labels == encoder.pos_labels


def test_a_model_without_a_list_of_labels_takes_over_the_corpus(make, processor):
    model = tiny_student(processor, pos_labels=None, pos_tagger=None, num_pos_tags=2 * len(TAGS))
    make(model)
    assert model.config.pos_labels == pos_label_list(TAGS)
    wrong = tiny_student(processor, pos_labels=None, pos_tagger=None, num_pos_tags=4)
    with pytest.raises(ValueError, match="4 labels.* 10.*`pos_labels=pos_label_list"):
        make(wrong)


class Corpus(list):
    """What is there of a tagged corpus."""

    tags, fingerprint = list(TAGS), "0"

    def __init__(self, pairs, tagger="jieba"):
        super().__init__(pairs)
        self.tagger = tagger


def test_labels_of_another_tagger_are_refused(make):
    make(texts=Corpus(tiny_pairs(20)))
    with pytest.raises(ValueError, match="jieba.* ltp.*`new_pos_head`"):
        make(texts=Corpus(tiny_pairs(20), "ltp"))
    new = Corpus(tiny_pairs(20))
    new.tags = [*TAGS, "zz"]
    with pytest.raises(ValueError, match="B-zz, I-zz.*`new_pos_head`"):
        make(texts=new)


def test_labels_of_encoded_texts_are_those_of_the_model(make, processor, tmp_path):
    def encoded(tags, tagger):
        words = dict(zip(TAGS, tags, strict=True))
        pairs = [(text, [dataclasses.replace(w, tag=words[w.tag]) for w in own]) for text, own in tiny_pairs(20)]
        return encode_corpus(pairs, PreTrainingEncoder(processor, sorted(tags), tagger), tmp_path)

    make(texts=encoded(TAGS, "jieba"))
    with pytest.raises(ValueError, match="jieba.* ltp.*`new_pos_head`"):
        make(texts=encoded("abcde", "ltp"))
    with pytest.raises(ValueError, match="B-a, I-a.*`new_pos_head`"):
        make(texts=encoded("abcde", "jieba").select(range(15)))
    make(texts=Dataset.from_dict(encoded(TAGS, "jieba").to_dict()))


def test_errors_before_the_work(make, processor):
    with pytest.raises(DataError, match="empty"):
        make(texts=[])
    with pytest.raises(DataError, match="text 0 .*`pos_loss_weight`.*`tag_corpus`"):
        make(texts=tiny_texts(5))
    with pytest.raises(DataError, match="text 3 .*`pos_loss_weight`.*`tag_corpus`"):
        make(texts=[*tiny_pairs(3), *tiny_texts(5)[3:]])
    with pytest.raises(DataError, match="`validation_fraction=0`"):
        make(texts=tiny_pairs(1))
    with pytest.raises(ValueError, match="`MwpStudentForMaskedLM`.*`pos_loss_weight=0`"):
        make(tiny_student(processor, model_class=MwpStudentForMaskedLM, num_pos_tags=0, pos_labels=None))
    with pytest.raises(ValueError, match=r"\d+ tokens.* 20\b.*`processor.resize_embeddings\(model\)`"):
        make(tiny_student(processor, vocab_size=20))
    with pytest.raises(TypeError, match="`model`.*MwpSolver"):
        make(tiny_solver(processor))
    with pytest.raises(TypeError, match=r"`MwpProcessor`.*`Tokenizer.*`.*`MwpProcessor\(tokenizer\)`"):
        PreTrainingTrainer(tiny_student(processor), processing_class=processor.tokenizer)
    with pytest.raises(TypeError, match="`args`.*`PreTrainingConfig`.*`str`"):
        PreTrainingTrainer(tiny_student(processor), args="fast", processing_class=processor)
