import copy

import pytest
from datasets import Dataset

from hf_mwp import MwpSolver, load_mwp_dataset
from hf_mwp.compress.distillation import mix_parameters
from hf_mwp.solver.data import TrainingTexts
from hf_mwp.solver.models.cut_student import cut_student
from hf_mwp.utils.provenance import ancestry_of, inherit_training_texts, training_texts_of
from tests.tiny import tiny_dataset, tiny_processor, tiny_rows, tiny_solver


@pytest.fixture(scope="module")
def processor():
    return tiny_processor()


def test_what_was_noted_is_saved_and_comes_back(processor, tmp_path):
    solver = tiny_solver(processor)
    assert training_texts_of(solver) is None and len(ancestry_of(solver)) == 0 and ancestry_of(solver).complete
    solver.training_texts = TrainingTexts.from_texts(["求面积"], ["a.txt"])
    solver.save_pretrained(tmp_path / "one")
    loaded = MwpSolver.from_pretrained(tmp_path / "one")
    assert training_texts_of(loaded).sources == ("a.txt",)
    loaded.save_pretrained(tmp_path / "two")
    assert TrainingTexts.load(tmp_path / "two").seen("求面积 ") == (True, True)
    # Another model in the same folder brings nothing along and leaves nothing of the first.
    tiny_solver(processor).save_pretrained(tmp_path / "two")
    assert TrainingTexts.load(tmp_path / "two") is None


def test_a_model_that_says_nothing_is_named(processor, tmp_path):
    tiny_solver(processor).save_pretrained(tmp_path / "runs" / "teacher")
    loaded = MwpSolver.from_pretrained(tmp_path / "runs" / "teacher")
    assert training_texts_of(loaded) is None
    assert ancestry_of(loaded).unknown == ("runs/teacher",)


def test_what_is_made_of_models_inherits(processor, tmp_path):
    tiny_solver(processor).encoder.save_pretrained(tmp_path / "encoder")
    solver = MwpSolver.from_encoder_decoder_pretrained(str(tmp_path / "encoder"), processor)
    assert ancestry_of(solver).unknown == (f"{tmp_path.name}/encoder",) and training_texts_of(solver) is None
    solver.training_texts = TrainingTexts.from_texts(["求面积"], ["a.txt"])
    student = cut_student(solver, 1)
    assert ancestry_of(student).sources == ("a.txt",) and training_texts_of(student) is None
    other = copy.deepcopy(solver)
    other.training_texts = TrainingTexts.from_texts(["求周长"], ["b.txt"])
    mixed = mix_parameters(other, solver)
    assert training_texts_of(mixed).sources == ("a.txt", "b.txt") and training_texts_of(solver).sources == ("a.txt",)
    inherit_training_texts(solver, mixed)
    assert training_texts_of(solver).seen("求周长") == (True, True)


def test_rows_say_where_they_are_from(tmp_path):
    rows = tiny_rows(6)
    for dataset in (rows, tiny_dataset(6), Dataset.from_list(rows)):
        texts = TrainingTexts.from_rows(dataset)
        assert (len(texts), texts.sources, texts.unknown) == (6, ("tiny",), ())
        assert all(texts.seen(row["text"]) == (True, True) for row in rows)
    assert TrainingTexts.from_rows([{"input_ids": [1], "labels": [1]}]).unknown == ("rows without texts",)
    assert len(TrainingTexts.from_rows([])) == 0


def test_rows_of_other_forms_have_texts_or_none():
    # As documented for tokenizing on the fly.
    dataset = Dataset.from_list(tiny_rows(6)).with_transform(lambda batch: {"input_ids": [[1] for _ in batch["id"]]})
    assert len(TrainingTexts.from_rows(dataset)) == 6 and dataset[0] == {"input_ids": [1]}
    words = Dataset.from_dict({"text": [["有", "1", "个"], []]})
    assert TrainingTexts.from_rows(words).unknown == ("rows without texts",)
    assert len(TrainingTexts.from_rows(Dataset.from_dict({"text": ["有1个", None]}))) == 1


def test_what_a_labeller_has_seen_counts(tmp_path):
    line = '{{"text": "{}", "equation": "x=1", "answer": "1"}}\n'
    (tmp_path / "mine.jsonl").write_text(line.format("有1个"), encoding="utf-8")
    (tmp_path / "run").mkdir()
    more = tmp_path / "run" / "labelled.jsonl"
    more.write_text(line.format("买1个"), encoding="utf-8")
    train = load_mwp_dataset(tmp_path / "mine.jsonl", extra_train=[more])["train"]
    assert TrainingTexts.from_rows(train).unknown == ("labeller of run/labelled.jsonl",)
    TrainingTexts.from_texts(["求面积"], ["a.txt"]).save(tmp_path / "run")
    texts = TrainingTexts.from_rows(train.select([0]))
    assert texts.sources == ("mine.jsonl (files), train", "run/labelled.jsonl", "a.txt") and texts.complete
    assert [texts.seen(text)[0] for text in ("有1个", "买1个", "求面积")] == [True, False, True]
