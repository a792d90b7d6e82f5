"""Trainers note what they trained on, in the model and in all folders that they write."""

import pytest
from datasets import Dataset, IterableDataset

from hf_mwp.compress.trainers import ParameterMixingCallback
from hf_mwp.solver.data import TrainingTexts
from hf_mwp.solver.training import PreTrainingConfig, PreTrainingTrainer
from hf_mwp.utils.provenance import inherit_training_texts, training_texts_of
from tests.compress.trainers.distilling import QUIET
from tests.pretraining import text_processor, tiny_pairs, tiny_student
from tests.slow_parameters import slow_after
from tests.tiny import tiny_classifier_rows, tiny_dataset, tiny_rows, tiny_solver


def is_trained_on(texts, text):
    return texts.seen(text)[0]


@pytest.mark.parametrize("make_rows", slow_after(1, [tiny_rows, tiny_dataset]))
def test_a_solver_records_its_texts_and_those_of_its_encoder(processor, fine_tuning_trainer, tmp_path, make_rows):
    model = tiny_solver(processor)
    pretrained = tiny_solver(processor)
    pretrained.training_texts = TrainingTexts.from_texts(["求面积"], ["corpus.txt"])
    inherit_training_texts(model, pretrained)
    trainer = fine_tuning_trainer(model, make_rows(12), max_steps=2, save_strategy="steps", save_steps=1)
    trainer.save_model(tmp_path / "before")
    assert TrainingTexts.load(tmp_path / "before") is None
    trainer.train()
    assert all(is_trained_on(training_texts_of(model), row["text"]) for row in tiny_rows(12))
    trainer.save_model()
    for folder in (tmp_path / "run", tmp_path / "run" / "checkpoint-1"):
        texts = TrainingTexts.load(folder)
        assert texts.sources == ("corpus.txt", "tiny")
        assert texts.complete
        assert len(texts) == 13


def test_a_student_records_texts_of_its_teacher_and_of_mixed_weights(solver_trainer, processor, tmp_path):
    teacher = tiny_solver(processor, layers=4, hidden_size=24)
    pretrained = tiny_solver(processor)
    teacher.training_texts = TrainingTexts.from_texts(["求面积"], ["teacher's"])
    pretrained.training_texts = TrainingTexts.from_texts(["求周长"], ["mixed in"])
    keywords = {"callbacks": [ParameterMixingCallback(pretrained)]}
    trainer = solver_trainer(teacher=teacher, keywords=keywords, max_steps=1)
    trainer.train()
    trainer.save_model()
    texts = TrainingTexts.load(tmp_path)
    assert set(texts.sources) == {"teacher's", "mixed in", "tiny"}
    for text in ("求面积", "求周长", *(row["text"] for row in tiny_rows())):
        assert is_trained_on(texts, text)


def test_models_that_are_no_solvers_record_nothing(model_trainer, tmp_path):
    trainer = model_trainer(max_steps=1)
    trainer.train()
    trainer.save_model()
    assert TrainingTexts.load(tmp_path) is None


def test_streams_are_not_read_to_their_end(model_trainer):
    rows = tiny_classifier_rows(320)
    for number, row in enumerate(rows):
        row["text"] = str(number)
    num_read = 0

    def stream():
        nonlocal num_read
        for row in rows:
            num_read += 1
            yield row

    dataset = IterableDataset.from_generator(stream, features=Dataset.from_list(rows).features)
    model_trainer(rows=dataset, max_steps=1).train()
    assert "text" in dataset.column_names
    assert 8 <= num_read < len(rows)


def test_pretraining_records_the_texts_that_are_not_held_out(tmp_path):
    pairs = tiny_pairs(40)
    processor = text_processor()
    config = PreTrainingConfig(str(tmp_path), max_steps=1, validation_fraction=0.3, **QUIET)
    model = tiny_student(processor)
    trainer = PreTrainingTrainer(model=model, args=config, train_dataset=pairs, processing_class=processor)
    trainer.train()
    trainer.save_model()
    texts = TrainingTexts.load(tmp_path)
    num_trained_on = sum(is_trained_on(texts, text) for text, _ in pairs)
    assert num_trained_on == len(trainer.train_dataset) == len(texts)
    assert num_trained_on + len(trainer.eval_dataset) == len(pairs)
    assert texts.sources == ("a corpus",)
