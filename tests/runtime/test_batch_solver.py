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


@pytest.mark.parametrize("num_proc", [None, 2])
def test_a_dataset_is_mapped(solver_folder, expected, num_proc):
    rows = Dataset.from_dict({"text": TEXTS, "line": list(range(6))})
    solved = rows.map(BatchSolver(solver_folder, num_beams=3), batched=True, batch_size=2, num_proc=num_proc)
    assert solved["line"][:] == list(range(6))
    for name in ("equation", "value", "error"):
        assert solved[name][:] == [each.get(name) or "" for each in expected]
    assert solved["error"][5] and not solved["equation"][5] and isnan(solved["answer"][5])


def test_a_row_has_one_answer(solver_folder):
    with pytest.raises(ValueError, match="top_k"):
        BatchSolver(solver_folder, top_k=2)


def test_arrays_are_taken_and_a_loaded_solver_is_sent_as_a_name(solver_folder, expected):
    solver = BatchSolver(solver_folder, column="problem", num_beams=3)
    first = solver({"problem": np.array(TEXTS, dtype=object)})
    assert first["equation"] == [each["equation"] or "" for each in expected] and first["problem"] == TEXTS
    sent = pickle.dumps(solver)
    assert len(sent) < 500
    assert pickle.loads(sent)({"problem": TEXTS})["score"] == first["score"]  # noqa: S301


def test_a_solver_that_was_replaced_in_its_folder_is_read_again(solver_folder, tmp_path):
    folder = shutil.copytree(solver_folder, tmp_path / "solver")
    rows = Dataset.from_dict({"text": TEXTS})
    before = rows.map(BatchSolver(folder), batched=True)
    tiny_solver(tiny_processor(), seed=7).save_pretrained(folder)
    after = rows.map(BatchSolver(folder), batched=True)
    assert after["score"][:5] == [each["score"] for each in load_solver(folder)(TEXTS[:5])] != before["score"][:5]


def test_a_reranker_that_was_replaced_in_its_folder_is_read_again(solver_folder, tmp_path):
    reranker, solvers = PlausibilityReranker.from_pretrained("zh"), []
    for factor in (1, -1):
        weights = {name: factor * weight for name, weight in reranker.weights.items()}
        replace(reranker, weights=weights).save_pretrained(tmp_path)
        solvers.append(BatchSolver(solver_folder, num_beams=8, rerank=tmp_path))
        solvers[-1]({"text": TEXTS})
    assert pickle.dumps(solvers[0]) != pickle.dumps(solvers[1])
    expected = load_solver(solver_folder)(TEXTS[:5], num_beams=8, rerank=tmp_path)
    assert solvers[1]({"text": TEXTS[:5]})["plausibility"] == [each["plausibility"] for each in expected]


def test_a_missing_text_is_empty(solver_folder):
    solved = BatchSolver(solver_folder)({"text": [None, np.nan, "", "没有数"]})
    assert [error == "The text is empty." for error in solved["error"]] == [True, True, True, False]


CARELESS = {
    "bytes": ({"text": ["4个", b"4 apples"]}, TypeError, r"Row 1 of the column 'text'.* bytes: b'4 apples'"),
    "array of bytes": ({"text": np.array([b"4 apples"])}, TypeError, "Row 0.* bytes"),
    "number": ({"text": [4]}, TypeError, "Row 0.* int: 4"),
    "a single row": ({"text": "小明有4个苹果"}, TypeError, "list of texts, not a str.*batched=True"),
    "a list": (["小明有4个苹果"], KeyError, "no column 'text'"),
    "a text": ("小明有4个苹果", KeyError, "no column 'text'"),
    "another column": ({"question": ["4个"]}, KeyError, r"no column 'text'.*\['question'\].*`column=`"),
}


@pytest.mark.parametrize("name", CARELESS)
def test_a_column_that_does_not_contain_texts_is_refused(solver_folder, name):
    columns, error, message = CARELESS[name]
    with pytest.raises(error, match=message):
        BatchSolver(solver_folder)(columns)


def test_the_words_of_missing_values_are_texts(solver_folder):
    (error,) = BatchSolver(solver_folder)({"text": ["nan"]})["error"]
    assert "no number" in error
