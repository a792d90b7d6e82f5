"""Trainers note what they trained on, in the model and in all folders that they write."""

import pytest

from hf_mwp.compress.trainers import ParameterMixingCallback
from hf_mwp.solver.data import TrainingTexts
from hf_mwp.solver.training import PreTrainingConfig, PreTrainingTrainer, SolverTrainer, SolverTrainingConfig
from hf_mwp.utils.provenance import inherit_training_texts, training_texts_of
from tests.pretraining import text_processor, tiny_pairs, tiny_student
from tests.tiny import tiny_classifier_rows, tiny_dataset, tiny_rows, tiny_solver


def seen(texts, rows):
    return [texts.seen(row["text"])[0] for row in rows]


@pytest.mark.parametrize("make_rows", [tiny_rows, tiny_dataset])
def test_a_solver(processor, tmp_path, make_rows):
    model = tiny_solver(processor)
    pretrained = tiny_solver(processor)
    pretrained.training_texts = TrainingTexts.from_texts(["求面积"], ["corpus.txt"])
    inherit_training_texts(model, pretrained)
    fields = {"use_cpu": True, "report_to": "none", "disable_tqdm": True, "max_steps": 2, "save_steps": 1}
    config = SolverTrainingConfig(output_dir=str(tmp_path), eval_strategy="no", **fields)
    trainer = SolverTrainer(model=model, args=config, train_dataset=make_rows(12), processing_class=processor)
    trainer.save_model(tmp_path / "before")
    assert TrainingTexts.load(tmp_path / "before") is None
    trainer.train()
    assert seen(training_texts_of(model), tiny_rows(12)) == [True] * 12
    trainer.save_model()
    for folder in (tmp_path, tmp_path / "checkpoint-1"):
        texts = TrainingTexts.load(folder)
        assert texts.sources == ("corpus.txt", "tiny") and texts.complete and len(texts) == 13


def test_a_student_with_its_teacher_and_what_is_mixed_in(solvers, processor, tmp_path):
    teacher = tiny_solver(processor, layers=4, hidden_size=24)
    pretrained = tiny_solver(processor)
    teacher.training_texts = TrainingTexts.from_texts(["求面积"], ["teacher's"])
    pretrained.training_texts = TrainingTexts.from_texts(["求周长"], ["mixed in"])
    trainer = solvers(teacher=teacher, keywords={"callbacks": [ParameterMixingCallback(pretrained)]}, max_steps=1)
    trainer.train()
    trainer.save_model()
    texts = TrainingTexts.load(tmp_path)
    assert set(texts.sources) == {"teacher's", "mixed in", "tiny"}
    assert texts.seen("求面积")[0] and texts.seen("求周长")[0] and seen(texts, tiny_rows()) == [True] * 24


def test_models_that_are_no_solvers_note_nothing(others, tmp_path):
    trainer = others(max_steps=1)
    trainer.train()
    trainer.save_model()
    assert TrainingTexts.load(tmp_path) is None


def test_streams_are_not_read_to_their_end(others):
    from datasets import Dataset, IterableDataset

    rows = [{**row, "text": str(number)} for number, row in enumerate(tiny_classifier_rows() * 20)]
    read = []

    def stream():
        for row in rows:
            read.append(row)
            yield row

    dataset = IterableDataset.from_generator(stream, features=Dataset.from_list(rows).features)
    others(rows=dataset, max_steps=1).train()
    assert "text" in dataset.column_names and 8 <= len(read) < len(rows)


def test_pretraining_notes_what_it_does_not_hold_out(tmp_path):
    pairs = tiny_pairs(40)
    reads = text_processor()
    config = PreTrainingConfig(
        output_dir=str(tmp_path),
        use_cpu=True,
        report_to="none",
        disable_tqdm=True,
        max_steps=1,
        validation_fraction=0.3,
    )
    trainer = PreTrainingTrainer(model=tiny_student(reads), args=config, train_dataset=pairs, processing_class=reads)
    trainer.train()
    trainer.save_model()
    texts = TrainingTexts.load(tmp_path)
    known = [texts.seen(text)[0] for text, _ in pairs]
    assert sum(known) == len(trainer.train_dataset) == len(texts)
    assert sum(known) + len(trainer.eval_dataset) == len(pairs)
    assert texts.sources == ("a corpus",)
