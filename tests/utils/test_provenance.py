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


def test_training_texts_are_saved_and_loaded_with_the_model(processor, tmp_path):
    solver = tiny_solver(processor)
    assert training_texts_of(solver) is None
    assert len(ancestry_of(solver)) == 0 and ancestry_of(solver).complete
    solver.training_texts = TrainingTexts.from_texts(["求面积"], ["a.txt"])
    solver.save_pretrained(tmp_path / "first")
    loaded = MwpSolver.from_pretrained(tmp_path / "first")
    assert training_texts_of(loaded).sources == ("a.txt",)
    loaded.save_pretrained(tmp_path / "second")
    assert TrainingTexts.load(tmp_path / "second").seen("求面积 ") == (True, True)
    # Another model in the same folder replaces them.
    tiny_solver(processor).save_pretrained(tmp_path / "second")
    assert TrainingTexts.load(tmp_path / "second") is None


def test_model_without_training_texts_is_an_unknown_source(processor, tmp_path):
    folder = tmp_path / "runs" / "teacher"
    tiny_solver(processor).save_pretrained(folder)
    loaded = MwpSolver.from_pretrained(folder)
    assert training_texts_of(loaded) is None
    assert ancestry_of(loaded).unknown == ("runs/teacher",)


def test_models_made_of_others_inherit_their_texts(processor, tmp_path):
    tiny_solver(processor).encoder.save_pretrained(tmp_path / "encoder")
    solver = MwpSolver.from_encoder_decoder_pretrained(str(tmp_path / "encoder"), processor)
    assert ancestry_of(solver).unknown == (f"{tmp_path.name}/encoder",)
    assert training_texts_of(solver) is None
    solver.training_texts = TrainingTexts.from_texts(["求面积"], ["a.txt"])
    student = cut_student(solver, 1)
    assert ancestry_of(student).sources == ("a.txt",) and training_texts_of(student) is None
    teacher = copy.deepcopy(solver)
    teacher.training_texts = TrainingTexts.from_texts(["求周长"], ["b.txt"])
    mixed = mix_parameters(teacher, solver)
    assert training_texts_of(mixed).sources == ("a.txt", "b.txt")
    assert training_texts_of(solver).sources == ("a.txt",)
    inherit_training_texts(solver, mixed)
    assert training_texts_of(solver).seen("求周长") == (True, True)


@pytest.mark.parametrize("dataset", [tiny_rows(6), tiny_dataset(6), Dataset.from_list(tiny_rows(6))])
def test_rows_name_their_source(dataset):
    texts = TrainingTexts.from_rows(dataset)
    assert len(texts) == 6 and texts.sources == ("tiny",) and texts.unknown == ()
    for row in tiny_rows(6):
        assert texts.seen(row["text"]) == (True, True)


@pytest.mark.parametrize(
    ("rows", "number", "unknown"),
    [
        ([], 0, ("rows without texts",)),
        ([{"input_ids": [1], "labels": [1]}], 0, ("rows without texts",)),
        (Dataset.from_dict({"text": [["有", "1", "个"], []]}), 0, ("rows without texts",)),
        (Dataset.from_dict({"text": ["有1个", None]}), 1, None),
    ],
)
def test_rows_of_other_forms(rows, number, unknown):
    texts = TrainingTexts.from_rows(rows)
    assert len(texts) == number
    assert unknown is None or texts.unknown == unknown


def test_rows_that_are_tokenized_on_the_fly_have_texts():
    dataset = Dataset.from_list(tiny_rows(6)).with_transform(lambda batch: {"input_ids": [[1]] * len(batch["id"])})
    assert len(TrainingTexts.from_rows(dataset)) == 6
    assert dataset[0] == {"input_ids": [1]}


def test_texts_of_a_labeller_count(tmp_path):
    line = '{{"text": "{}", "equation": "x=1", "answer": "1"}}\n'
    (tmp_path / "mine.jsonl").write_text(line.format("有1个"), encoding="utf-8")
    (tmp_path / "run").mkdir()
    labelled = tmp_path / "run" / "labelled.jsonl"
    labelled.write_text(line.format("买1个"), encoding="utf-8")
    train = load_mwp_dataset(tmp_path / "mine.jsonl", extra_train=[labelled])["train"]
    assert TrainingTexts.from_rows(train).unknown == ("labeller of run/labelled.jsonl",)
    TrainingTexts.from_texts(["求面积"], ["a.txt"]).save(tmp_path / "run")
    texts = TrainingTexts.from_rows(train.select([0]))
    assert texts.sources == ("mine.jsonl (files), train", "run/labelled.jsonl", "a.txt") and texts.complete
    assert texts.seen("有1个")[0] and texts.seen("求面积")[0] and not texts.seen("买1个")[0]
