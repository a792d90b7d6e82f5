import json

from hf_mwp.runtime.problems import MathWordProblem, write_problems
from hf_mwp.solver.data import load_mwp_dataset


PROBLEMS = [
    MathWordProblem("小明有3个苹果，又买了5个，一共有多少个？", "3+5", "8", id="a"),
    MathWordProblem("Ann had 7 pens and lost 2. How many are left?", "7-2", "5", id="b", language="en", kind="loss"),
]


def test_lines_have_the_fields_of_problems(tmp_path):
    file = tmp_path / "problems.jsonl"
    assert write_problems(file, iter(PROBLEMS)) == 2
    first, second = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    assert first == {"id": "a", "language": "zh", "text": PROBLEMS[0].text, "equation": "3+5", "answer": "8"}
    assert second == {"id": "b", "language": "en", "text": PROBLEMS[1].text, "equation": "7-2", "answer": "5"}


def test_the_file_is_a_dataset(tmp_path):
    file = tmp_path / "problems.jsonl"
    write_problems(file, PROBLEMS[1:])
    (row,) = load_mwp_dataset(str(file))["train"]
    assert (row["text"], row["language"]) == (PROBLEMS[1].text, "en")
