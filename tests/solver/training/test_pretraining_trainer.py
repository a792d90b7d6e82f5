import dataclasses
import json

import numpy as np
import pytest
import torch
from datasets import Dataset
from torch.nn.functional import cross_entropy
from transformers import AutoModel, AutoModelForMaskedLM, AutoModelForPreTraining

from hf_mwp.compress.models import MwpStudentForMaskedLM
from hf_mwp.solver.batches import MwpProcessor
from hf_mwp.solver.corpus import PreTrainingCollator, PreTrainingEncoder, encode_corpus, pos_label_list
from hf_mwp.solver.corpus.pretraining_encoder import KEYWORD, NUMBER
from hf_mwp.solver.data import DataError
from hf_mwp.solver.metrics import pos_report
from hf_mwp.solver.training import PreTrainingConfig, PreTrainingTrainer
from tests.pretraining import TAGS, quantity_pairs, text_processor, tiny_pairs, tiny_student, tiny_texts
from tests.slow_parameters import slow_after, slow_except
from tests.solver.training.conftest import QUIET
from tests.tiny import tiny_masked_lm, tiny_solver


LOSSES = ("loss", "mlm_loss", "pos_loss")


@pytest.fixture(scope="module")
def processor():
    return text_processor(indexed_numbers=True)


def build_trainer(processor, folder, model=None, texts=None, keywords=None, **fields):
    defaults = {"output_dir": str(folder), "save_strategy": "no", "per_device_train_batch_size": 8, **QUIET}
    defaults |= {"num_train_epochs": 1, "logging_steps": 1, "learning_rate": 1e-3, "validation_fraction": 0.2}
    return PreTrainingTrainer(
        model=tiny_student(processor) if model is None else model,
        args=PreTrainingConfig(**(defaults | fields)),
        train_dataset=tiny_pairs(60) if texts is None else texts,
        processing_class=processor,
        **(keywords or {}),
    )


@pytest.fixture
def make(processor, tmp_path):
    """Makes a trainer of a tiny student on tagged texts."""

    def make(*args, **fields):
        return build_trainer(processor, tmp_path, *args, **fields)

    return make


@pytest.fixture(scope="module")
def trained(processor, tmp_path_factory):
    """The trainer of a student after an epoch."""
    trainer = build_trainer(processor, tmp_path_factory.mktemp("trained"))
    trainer.train()
    return trainer


def masked_student(processor, **fields):
    """A student without a tagging head."""
    no_tags = {"num_pos_tags": 0, "pos_labels": None, "pos_tagger": None}
    return tiny_student(processor, model_class=MwpStudentForMaskedLM, **(no_tags | fields))


def bert(processor):
    return tiny_masked_lm(vocab_size=len(processor.tokenizer), max_position_embeddings=64)


def logged(trainer, name):
    return [entry[name] for entry in trainer.state.log_history if name in entry]


def text_keys(dataset):
    return dataset["text_key"][:].tolist()


def test_all_weights_change(trained, processor):
    initial = tiny_student(processor).state_dict()
    for name, weight in trained.model.state_dict().items():
        assert not torch.equal(weight, initial[name]), name


def test_loss_is_the_sum_of_both_losses_with_weights_1_and_5(trained):
    losses = np.array([logged(trained, name) for name in LOSSES])
    assert losses.shape == (3, trained.state.global_step)
    np.testing.assert_allclose(losses[0], losses[1] + 5 * losses[2], atol=2e-3)
    assert trained.model.config.pos_loss_weight == 5.0


def test_both_tasks_are_learned(make):
    trainer = make(num_train_epochs=8, learning_rate=1e-2, logging_steps=50, validation_fraction=0.1)
    before = trainer.evaluate()
    trainer.train()
    after = trainer.evaluate()
    assert after["eval_pos_f1"] > 0.9 > 0.5 > before["eval_pos_f1"]
    assert after["eval_mlm_loss"] < before["eval_mlm_loss"] - 0.5
    assert after["eval_mlm_loss_numbers"] < before["eval_mlm_loss_numbers"]


@pytest.mark.parametrize(("off", "on"), slow_after(1, [("mlm", "pos"), ("pos", "mlm")]))
def test_a_task_of_weight_0_is_not_trained(make, off, on, monkeypatch):
    trainer = make(max_steps=2, **{f"{off}_loss_weight": 0})
    head = trainer.model.cls.predictions if off == "mlm" else trainer.model.cls.pos_tagger
    # The decoder's matrix is that of the word embeddings.
    names = [name for name in head.state_dict() if name != "decoder.weight"]
    before = {name: head.state_dict()[name].clone() for name in names}
    if off == "mlm":
        monkeypatch.setattr(type(head), "forward", None)  # not called at all
        assert "labels" not in next(iter(trainer.get_train_dataloader()))
    trainer.train()
    metrics = trainer.evaluate()
    assert f"eval_{on}_loss" in metrics
    assert f"eval_{off}_loss" not in metrics
    assert logged(trainer, f"{on}_loss")
    assert not logged(trainer, f"{off}_loss")
    for name in names:
        assert torch.equal(head.state_dict()[name], before[name]), name


@pytest.mark.parametrize("build_model", slow_except([masked_student, bert], bert))
def test_without_tagging_any_masked_model_learns_untagged_texts(make, processor, build_model):
    trainer = make(build_model(processor), tiny_texts(20), pos_loss_weight=0)
    trainer.train()
    metrics = trainer.evaluate()
    assert metrics["eval_mlm_loss"] > 0
    assert "eval_mlm_accuracy" in metrics


def num_numbers(dataset):
    return (np.concatenate(dataset["mask_class"][:]) == NUMBER).sum()


@pytest.mark.slow
def test_masks_are_the_same_without_the_loss_of_tagging(make, processor):
    corpus = Corpus(quantity_pairs(40))
    tagging = make(texts=corpus, train_sampling_strategy="sequential")
    fields = {"pos_loss_weight": 0, "train_sampling_strategy": "sequential"}
    masking = make(masked_student(processor), corpus, **fields)
    assert "pos_labels" in tagging.train_dataset.column_names
    assert "pos_labels" not in masking.train_dataset.column_names
    batches = zip(tagging.get_train_dataloader(), masking.get_train_dataloader(), strict=True)
    for batch, expected in batches:
        assert torch.equal(batch["labels"], expected["labels"])
        assert torch.equal(batch["input_ids"], expected["input_ids"])
    assert num_numbers(tagging.train_dataset) == num_numbers(masking.train_dataset)
    untagged = make(texts=tiny_texts(40), pos_loss_weight=0)
    assert num_numbers(untagged.train_dataset) < num_numbers(masking.train_dataset)


def test_the_vocabulary_is_scored_only_at_masked_tokens_while_training(make):
    trainer = make(max_steps=1)
    head = trainer.model.cls.predictions
    num_dimensions = set()
    head.decoder.register_forward_hook(lambda module, inputs, output: num_dimensions.add(output.dim()))
    trainer.train()
    trainer.evaluate()
    assert num_dimensions == {2}
    assert head.sparse is False
    assert trainer.model.config.sparse_prediction is False


@pytest.mark.parametrize(
    ("build_model", "names", "fields"),
    slow_after(1, [(tiny_student, (*LOSSES, "grad_norm"), {}), (bert, ("loss", "grad_norm"), {"pos_loss_weight": 0})]),
)
def test_accumulated_batches_are_one(make, processor, build_model, names, fields):
    logs = []
    for size, steps in ((16, 1), (4, 4)):
        fields |= {"per_device_train_batch_size": size, "gradient_accumulation_steps": steps}
        trainer = make(build_model(processor), tiny_pairs(40), **fields)
        trainer.train()
        logs.append([logged(trainer, name) for name in names])
    assert len(logs[0][0]) == 3
    np.testing.assert_allclose(logs[0], logs[1], rtol=2e-4)


class RecordingCollator(PreTrainingCollator):
    """Records the labels of each epoch."""

    def __call__(self, features):
        batch = super().__call__(features)
        self.labels.setdefault(self.epoch, []).append(batch["labels"])
        return batch


def test_masks_differ_between_epochs(make, processor):
    collator = RecordingCollator(processor)
    collator.labels = {}
    keywords = {"data_collator": collator}
    trainer = make(None, tiny_pairs(20), keywords, num_train_epochs=2, train_sampling_strategy="sequential")
    trainer.train()
    first, second = collator.labels.values()
    assert len(first) == len(second) == 3
    assert not torch.equal(first[0], second[0])


def test_metrics_equal_those_of_one_text_at_a_time(trained):
    metrics = trained.evaluate()
    model = trained.model.eval()
    names = model.config.pos_labels
    mlm_losses = []
    mlm_hits = []
    mask_classes = []
    pos_losses = []
    predicted = []
    gold = []
    for row in trained.eval_dataset:
        batch = trained.evaluation_collator([row])
        with torch.no_grad():
            mlm_logits = model(batch["input_ids"], batch["attention_mask"]).logits[0]
            pos_logits = model(batch["original_ids"], batch["attention_mask"]).pos_logits[0]
        labels = batch["labels"][0]
        masked = labels != -100
        mlm_losses += cross_entropy(mlm_logits[masked], labels[masked], reduction="none").tolist()
        mlm_hits += (mlm_logits.argmax(-1) == labels)[masked].tolist()
        mask_classes += batch["mask_class"][0, masked].tolist()
        pos_labels = batch["pos_labels"][0]
        tagged = pos_labels >= 0
        pos_losses += cross_entropy(pos_logits[tagged], pos_labels[tagged], reduction="none").tolist()
        predicted.append([names[label] for label in pos_logits.argmax(-1)])
        gold.append([names[label] if label >= 0 else None for label in pos_labels])
    mlm_losses = np.array(mlm_losses)
    mask_classes = np.array(mask_classes)
    report = pos_report(predicted, gold)
    expected = {
        "eval_mlm_loss": mlm_losses.mean(),
        "eval_mlm_accuracy": np.mean(mlm_hits),
        "eval_mlm_loss_keywords": mlm_losses[mask_classes == KEYWORD].mean(),
        "eval_mlm_loss_numbers": mlm_losses[mask_classes == NUMBER].mean(),
        "eval_pos_loss": np.mean(pos_losses),
        "eval_loss": mlm_losses.mean() + 5 * np.mean(pos_losses),
    }
    for name in ("f1", "precision", "recall", "accuracy"):
        expected[f"eval_pos_{name}"] = report[name]
    assert {name: metrics[name] for name in expected} == pytest.approx(expected, rel=1e-4)
    with open(f"{trained.args.output_dir}/pos_tags_eval.json", encoding="utf-8") as file:
        assert json.load(file) == report
    assert set(report["tags"]) <= set(TAGS)


@pytest.mark.slow
def test_evaluation_depends_on_the_data_seed_only(make):
    first = make(seed=1, data_seed=9)
    second = make(seed=2, data_seed=9)
    assert text_keys(first.eval_dataset) == text_keys(second.eval_dataset)
    loss = first.evaluate()["eval_mlm_loss"]
    assert first.evaluate()["eval_mlm_loss"] == loss == second.evaluate()["eval_mlm_loss"]
    assert text_keys(make(data_seed=10).eval_dataset) != text_keys(first.eval_dataset)


def test_other_texts_can_be_evaluated(trained, tmp_path, monkeypatch):
    monkeypatch.setattr(trained.args, "output_dir", str(tmp_path))
    metrics = trained.evaluate(tiny_pairs(12, seed=5), metric_key_prefix="other")
    assert 0 <= metrics["other_pos_f1"] <= 1
    assert (tmp_path / "pos_tags_other.json").exists()
    assert trained.predict(tiny_pairs(7, seed=6)).metrics["test_pos_loss"] > 0


def test_without_predictions_only_the_loss_is_evaluated(make):
    metrics = make(prediction_loss_only=True).evaluate()
    assert "eval_pos_f1" not in metrics
    assert metrics["eval_loss"] > 0


def test_texts_are_held_out(make):
    trainer = make(validation_fraction=0.25)
    train = set(text_keys(trainer.train_dataset))
    held_out = set(text_keys(trainer.eval_dataset))
    assert not train & held_out
    assert len(held_out) == round(0.25 * len(train | held_out))
    # An added text hardly changes the choice.
    grown = make(texts=[*tiny_pairs(60), ("又买了苹果", [])], validation_fraction=0.25)
    assert len(held_out - set(text_keys(grown.eval_dataset))) <= 1


def test_no_texts_are_held_out_of_fraction_0_or_with_evaluation_texts(make):
    trainer = make(validation_fraction=0)
    assert trainer.eval_dataset is None
    assert len(trainer.train_dataset) == 60
    trainer = make(keywords={"eval_dataset": tiny_pairs(10, seed=4)})
    assert len(trainer.eval_dataset) == 10
    assert len(trainer.train_dataset) == 60


@pytest.mark.slow
def test_best_checkpoint_has_the_least_loss(make):
    steps = {"eval_strategy": "steps", "eval_steps": 1, "save_strategy": "steps", "save_steps": 1}
    trainer = make(load_best_model_at_end=True, max_steps=2, **steps)
    trainer.train()
    assert trainer.args.metric_for_best_model == "loss"
    assert trainer.args.greater_is_better is False
    assert trainer.state.best_metric == min(logged(trainer, "eval_loss"))


def test_saved_folder_loads_with_all_auto_classes(trained, tmp_path):
    trained.save_model(str(tmp_path))
    loaded = AutoModelForPreTraining.from_pretrained(tmp_path)
    assert loaded.config.pos_labels == pos_label_list(TAGS)
    assert loaded.config.pos_tagger == "jieba"
    torch.testing.assert_close(loaded.state_dict(), trained.model.state_dict(), rtol=0, atol=0)
    assert AutoModelForMaskedLM.from_pretrained(tmp_path).config.num_pos_tags == 2 * len(TAGS)
    encoder = AutoModel.from_pretrained(tmp_path)
    assert torch.equal(encoder.embeddings.word_embeddings.weight, loaded.get_input_embeddings().weight)
    assert MwpProcessor.from_pretrained(tmp_path).indexed_numbers is True


@pytest.mark.slow
def test_loader_workers_mask_alike(make):
    losses = []
    for num_workers in (0, 2):
        trainer = make(texts=tiny_pairs(20), dataloader_num_workers=num_workers, num_train_epochs=2)
        trainer.train()
        losses.append(logged(trainer, "loss"))
    assert len(losses[0]) == 6
    assert losses[0] == losses[1]


def test_encoded_texts_are_used_as_they_are(make, processor, tmp_path):
    encoder = PreTrainingEncoder(processor, TAGS, "jieba")
    dataset = encode_corpus(tiny_pairs(20), encoder, tmp_path / "elsewhere")
    make(texts=dataset, max_steps=1).train()
    assert not (tmp_path / "encoded").exists()
    with pytest.raises(DataError, match="'pos_labels'.*input_ids.*`encode_corpus`"):
        make(texts=dataset.remove_columns("pos_labels"))
    model = tiny_student(processor, pos_labels=None, num_pos_tags=10)
    make(model, dataset)
    assert model.config.pos_labels == encoder.pos_labels


def test_model_without_labels_gets_those_of_the_corpus(make, processor):
    model = tiny_student(processor, pos_labels=None, pos_tagger=None, num_pos_tags=2 * len(TAGS))
    make(model)
    assert model.config.pos_labels == pos_label_list(TAGS)
    model = tiny_student(processor, pos_labels=None, pos_tagger=None, num_pos_tags=4)
    with pytest.raises(ValueError, match="4 labels.* 10.*`pos_labels=pos_label_list"):
        make(model)


class Corpus(list):
    """A tagged corpus in memory."""

    fingerprint = "0"

    def __init__(self, pairs, tagger="jieba", tags=TAGS):
        super().__init__(pairs)
        self.tagger = tagger
        self.tags = list(tags)


def test_labels_of_another_tagger_are_refused(make):
    make(texts=Corpus(tiny_pairs(20)))
    with pytest.raises(ValueError, match="jieba.* ltp.*`new_pos_head`"):
        make(texts=Corpus(tiny_pairs(20), "ltp"))
    with pytest.raises(ValueError, match="B-zz, I-zz.*`new_pos_head`"):
        make(texts=Corpus(tiny_pairs(20), tags=[*TAGS, "zz"]))


def test_labels_of_encoded_texts_must_be_those_of_the_model(make, processor, tmp_path):
    def encoded(tags, tagger):
        new_tags = dict(zip(TAGS, tags, strict=True))
        pairs = []
        for text, words in tiny_pairs(10):
            pairs.append((text, [dataclasses.replace(word, tag=new_tags[word.tag]) for word in words]))
        return encode_corpus(pairs, PreTrainingEncoder(processor, list(tags), tagger), tmp_path)

    make(texts=Dataset.from_dict(encoded(TAGS, "jieba").to_dict()))
    with pytest.raises(ValueError, match="jieba.* ltp.*`new_pos_head`"):
        make(texts=encoded("abcde", "ltp"))
    with pytest.raises(ValueError, match="B-a, I-a.*`new_pos_head`"):
        make(texts=encoded("abcde", "jieba").select(range(5)))


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        ([], "empty"),
        (tiny_texts(5), "text 0 .*`pos_loss_weight`.*`tag_corpus`"),
        ([*tiny_pairs(3), *tiny_texts(5)[3:]], "text 3 .*`pos_loss_weight`.*`tag_corpus`"),
        (tiny_pairs(1), "`validation_fraction=0`"),
    ],
)
def test_unusable_texts_are_named(make, texts, message):
    with pytest.raises(DataError, match=message):
        make(texts=texts)


@pytest.mark.parametrize(
    ("build_model", "error", "message"),
    [
        (masked_student, ValueError, "`MwpStudentForMaskedLM`.*`pos_loss_weight=0`"),
        (
            lambda processor: tiny_student(processor, vocab_size=20),
            ValueError,
            r"\d+ tokens.* 20\b.*`processor.resize_embeddings\(model\)`",
        ),
        (tiny_solver, TypeError, "`model`.*MwpSolver"),
    ],
)
def test_unusable_models_are_named(make, processor, build_model, error, message):
    with pytest.raises(error, match=message):
        make(build_model(processor))


def test_wrong_types_are_named(processor):
    with pytest.raises(TypeError, match=r"`MwpProcessor`.*`Tokenizer.*`.*`MwpProcessor\(tokenizer\)`"):
        PreTrainingTrainer(tiny_student(processor), processing_class=processor.tokenizer)
    with pytest.raises(TypeError, match="`args`.*`PreTrainingConfig`.*`str`"):
        PreTrainingTrainer(tiny_student(processor), args="fast", processing_class=processor)
