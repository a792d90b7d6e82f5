import json

import pytest

from hf_mwp.runtime.problems import MathWordProblem
from hf_mwp.solver.solving import kept_records as module
from hf_mwp.solver.solving.kept_records import kept_records, solve_to_file


PROBLEMS = [MathWordProblem(f"{number}个苹果和2个梨") for number in range(5)]


@pytest.fixture(autouse=True)
def chunks_of_two(monkeypatch):
    monkeypatch.setattr(module, "AT_ONCE", 2)


def test_what_is_kept_is_made_once_wherever_it_stands(tmp_path):
    made = []

    def make(problems):
        made.extend(problem.numbers[0] for problem in problems)
        return [None if problem.numbers[0] == "1" else [problem.numbers[0], 0.1] for problem in problems]

    def kept(folder, problems, **facts):
        return kept_records(folder, facts, problems, make)

    expected = [["0", 0.1], None, ["2", 0.1], ["3", 0.1], ["4", 0.1]]
    assert kept(tmp_path, PROBLEMS[:3]) == expected[:3] and made == ["0", "1", "2"]
    assert kept(tmp_path, PROBLEMS) == expected and made == ["0", "1", "2", "2", "3", "4"], "the first chunk is kept"
    assert kept(tmp_path, PROBLEMS[2:4] + PROBLEMS[:2]) == expected[2:4] + expected[:2] and len(made) == 6
    assert kept(tmp_path, PROBLEMS[:2], num_beams=5) == expected[:2] and len(made) == 8


def test_what_was_made_before_a_kill_is_there(tmp_path):
    def make(problems):
        if problems[0].numbers[0] == "2":
            raise KeyboardInterrupt
        return [problem.numbers[0] for problem in problems]

    with pytest.raises(KeyboardInterrupt):
        kept_records(tmp_path, {}, PROBLEMS, make)
    assert kept_records(tmp_path, {}, PROBLEMS[:2], None) == ["0", "1"]


def test_answers_in_the_folder_of_the_model_are_kept_too(tmp_path):
    output, asked = tmp_path / "answers.jsonl", []
    problems = [{"text": f"{number}个和2个"} for number in range(6)]
    (tmp_path / "config.json").write_text("{}", "utf-8")

    def solve(chunk):
        asked.append(len(chunk))
        if len(asked) == 3:
            raise KeyboardInterrupt
        return [[{"score": 1.0}] for _ in chunk]

    with pytest.raises(KeyboardInterrupt):
        solve_to_file(problems, solve, tmp_path, {}, output, None)
    solve_to_file(problems, solve, tmp_path, {}, output, None)
    assert asked == [2, 2, 2, 2], "only the last chunk is solved again"


def test_answers_of_another_reranker_in_the_same_folder_are_not_kept(tmp_path):
    reranker, asked = tmp_path / "plausibility.json", []
    options = "model", {"reranker": str(reranker)}, tmp_path / "answers.jsonl", None

    def solve(chunk):
        asked.append(reranker.read_text())
        if len(asked) == 2:
            raise KeyboardInterrupt
        return [[{"score": 1.0}] for _ in chunk]

    reranker.write_text("1")
    problems = [{"text": f"{number}个和2个"} for number in range(4)]
    with pytest.raises(KeyboardInterrupt):
        solve_to_file(problems, solve, *options)
    reranker.write_text("22")
    solve_to_file(problems, solve, *options)
    assert asked == ["1", "1", "22", "22"]


def test_half_a_surrogate_pair_does_not_stop_the_others(tmp_path):
    problems, output = [{"text": "4个\ud83d和2个"}, {"text": "4个😀"}], tmp_path / "answers.jsonl"
    solve_to_file(problems, lambda chunk: [[{"score": 1.0}] for _ in chunk], "model", {}, output, None)
    lines = output.read_text("utf-8").splitlines()
    assert [json.loads(line) for line in lines] == [problem | {"score": 1.0} for problem in problems]
