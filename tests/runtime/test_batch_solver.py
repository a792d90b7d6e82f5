import pickle
import shutil
from dataclasses import replace
from math import isnan

import numpy as np
import pytest
from datasets import Dataset

from hf_mwp.runtime import BatchSolver, load_solver
from hf_mwp.runtime.plausibility import PlausibilityReranker
from tests.tiny import tiny_processor, tiny_rows, tiny_solver


TEXTS = [row["text"] for row in tiny_rows(5)] + ["没有数"]


@pytest.fixture(scope="module")
def expected(solver_folder):
    return load_solver(solver_folder)(TEXTS, num_beams=3)


@pytest.mark.slow
def test_dataset_is_mapped_by_two_processes(solver_folder, expected):
    rows = Dataset.from_dict({"text": TEXTS, "line": list(range(6))})
    solved = rows.map(BatchSolver(solver_folder, num_beams=3), batched=True, batch_size=2, num_proc=2)
    assert solved["line"][:] == list(range(6))
    for name in ("equation", "value", "error"):
        assert solved[name][:] == [record.get(name) or "" for record in expected]
    assert solved["error"][5] and not solved["equation"][5]
    assert isnan(solved["answer"][5])


def test_several_answers_of_a_row_are_refused(solver_folder):
    with pytest.raises(ValueError, match="top_k"):
        BatchSolver(solver_folder, top_k=2)


def test_pickled_solver_is_the_name_of_its_folder(solver_folder, expected):
    solver = BatchSolver(solver_folder, column="problem", num_beams=3)
    columns = solver({"problem": np.array(TEXTS, dtype=object)})
    assert columns["equation"] == [record["equation"] or "" for record in expected]
    assert columns["problem"] == TEXTS
    pickled = pickle.dumps(solver)
    assert len(pickled) < 500
    assert pickle.loads(pickled)({"problem": TEXTS})["score"] == columns["score"]  # noqa: S301


def test_solver_that_was_replaced_in_its_folder_is_loaded_again(solver_folder, tmp_path):
    folder = shutil.copytree(solver_folder, tmp_path / "solver")
    rows = Dataset.from_dict({"text": TEXTS[:5]})
    before = rows.map(BatchSolver(folder), batched=True)["score"][:]
    tiny_solver(tiny_processor(), seed=7).save_pretrained(folder)
    after = rows.map(BatchSolver(folder), batched=True)["score"][:]
    assert after == [record["score"] for record in load_solver(folder)(TEXTS[:5])]
    assert after != before


def test_reranker_that_was_replaced_in_its_folder_is_loaded_again(solver_folder, tmp_path):
    reranker = PlausibilityReranker.from_pretrained("zh")
    reranker.save_pretrained(tmp_path)
    before = BatchSolver(solver_folder, num_beams=8, rerank=tmp_path)
    before({"text": TEXTS})
    reversed_weights = {name: -weight for name, weight in reranker.weights.items()}
    replace(reranker, weights=reversed_weights).save_pretrained(tmp_path)
    after = BatchSolver(solver_folder, num_beams=8, rerank=tmp_path)
    plausibilities = after({"text": TEXTS[:5]})["plausibility"]
    assert pickle.dumps(before) != pickle.dumps(after)
    records = load_solver(solver_folder)(TEXTS[:5], num_beams=8, rerank=tmp_path)
    assert plausibilities == [record["plausibility"] for record in records]


def test_missing_text_is_empty(solver_folder):
    errors = BatchSolver(solver_folder)({"text": [None, np.nan, "", "nan"]})["error"]
    assert errors[:3] == ["The text is empty."] * 3
    assert "no number" in errors[3]


@pytest.mark.parametrize(
    ("columns", "error", "message"),
    [
        ({"text": ["4个", b"4 apples"]}, TypeError, r"Row 1 of the column 'text'.* bytes: b'4 apples'"),
        ({"text": np.array([b"4 apples"])}, TypeError, "Row 0.* bytes"),
        ({"text": [4]}, TypeError, "Row 0.* int: 4"),
        ({"text": "小明有4个苹果"}, TypeError, "list of texts, not a str.*batched=True"),
        (["小明有4个苹果"], KeyError, "no column 'text'"),
        ({"question": ["4个"]}, KeyError, r"no column 'text'.*\['question'\].*`column=`"),
    ],
    ids=["bytes", "array of bytes", "number", "single row", "list", "another column"],
)
def test_column_that_does_not_contain_texts_is_refused(solver_folder, columns, error, message):
    with pytest.raises(error, match=message):
        BatchSolver(solver_folder)(columns)
