import json

import pytest

from hf_mwp.runtime.problems import MathWordProblem
from hf_mwp.solver.solving import kept_records as module
from hf_mwp.solver.solving.kept_records import kept_records, solve_to_file


PROBLEMS = [MathWordProblem(f"{number}个苹果和2个梨") for number in range(5)]
ROWS = [{"text": f"{number}个和2个"} for number in range(6)]


@pytest.fixture(autouse=True)
def chunks_of_two(monkeypatch):
    monkeypatch.setattr(module, "AT_ONCE", 2)


class Solver:
    """Records its chunks, and is interrupted in one of them."""

    def __init__(self, interrupted=None):
        self.chunks = []
        self.interrupted = interrupted

    def __call__(self, chunks):
        for index, chunk in enumerate(chunks):
            self.chunks.append(list(chunk))
            if len(self.chunks) == self.interrupted:
                raise KeyboardInterrupt
            yield index, [[{"score": 1.0}] for _ in chunk]


def first_numbers(problems):
    return [None if problem.numbers[0] == "1" else [problem.numbers[0], 0.1] for problem in problems]


def test_records_of_a_chunk_are_made_once_wherever_it_is(tmp_path):
    made = []

    def make(problems):
        made.append(problems)
        return first_numbers(problems)

    def check(problems, num_made, **facts):
        assert kept_records(tmp_path, facts, problems, make) == first_numbers(problems)
        assert sum(map(len, made)) == num_made

    check(PROBLEMS[:3], 3)
    check(PROBLEMS, 6)  # The first chunk is kept.
    check(PROBLEMS[2:4] + PROBLEMS[:2], 6)
    check(PROBLEMS[:2], 8, num_beams=5)


def test_interrupted_run_solves_only_the_last_chunks_again(tmp_path):
    # The answers are in the folder of the model.
    (tmp_path / "config.json").write_text("{}", "utf-8")
    solve = Solver(interrupted=3)
    arguments = (ROWS, solve, tmp_path, {}, tmp_path / "answers.jsonl", None)
    with pytest.raises(KeyboardInterrupt):
        solve_to_file(*arguments)
    solve_to_file(*arguments)
    assert solve.chunks == [ROWS[:2], ROWS[2:4], ROWS[4:], ROWS[4:]]


def test_answers_of_another_reranker_in_the_same_folder_are_not_kept(tmp_path):
    reranker = tmp_path / "plausibility.json"
    solve = Solver(interrupted=2)
    arguments = (ROWS[:4], solve, "model", {"reranker": str(reranker)}, tmp_path / "answers.jsonl", None)
    reranker.write_text("1")
    with pytest.raises(KeyboardInterrupt):
        solve_to_file(*arguments)
    reranker.write_text("22")
    solve_to_file(*arguments)
    assert solve.chunks == [ROWS[:2], ROWS[2:4]] * 2


def test_chunks_may_be_answered_in_any_order(tmp_path):
    counts = []

    def solve_all(chunks):
        for index, chunk in reversed(list(enumerate(chunks))):
            yield index, [[{"score": float(row["text"][0])}] for row in chunk]

    def progress(chunks):
        counts.append(len(chunks))
        return chunks

    output = tmp_path / "answers.jsonl"
    solve_to_file(ROWS, solve_all, "model", {}, output, progress)
    lines = [json.loads(line) for line in output.read_text("utf-8").splitlines()]
    assert lines == [row | {"score": float(number)} for number, row in enumerate(ROWS)]
    assert counts == [3]


def test_half_a_surrogate_pair_does_not_stop_the_others(tmp_path):
    rows = [{"text": "4个\ud83d和2个"}, {"text": "4个😀"}]
    output = tmp_path / "answers.jsonl"
    solve_to_file(rows, Solver(), "model", {}, output, None)
    lines = output.read_text("utf-8").splitlines()
    assert [json.loads(line) for line in lines] == [row | {"score": 1.0} for row in rows]
