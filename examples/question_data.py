"""
Create training problems that teach a solver to read the question, from Math23k and UnbiasedMWP:

    python examples/question_data.py FOLDER --data_dir DATA

`DATA` is a folder with the folders `math23k`, `unbiasedmwp`, `cm17k`, `hmwp`, `ape_clean` and `ape210k`. Texts of
their held-out problems are left out.

`FOLDER/train.jsonl` has Math23k's training problems: every second problem with distractors (irrelevant numbers),
the others unchanged, each followed by one of its reversed problems. UnbiasedMWP's problems are unchanged, with
distractors, and reversed; if the answer is a number of the text, every second problem is used. Distractors come
from problems on the same topic, a list of remarks, and any problem. `FOLDER/validation.jsonl` is Math23k's
validation split. Then:

    hf-mwp train --dataset FOLDER ...
"""

import argparse
import random
import re
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator
from itertools import chain
from pathlib import Path

from hf_mwp.runtime.augmentation.distractors import with_added_numbers
from hf_mwp.runtime.problems import MathWordProblem, add_distractors, reverse_operations, write_problems
from hf_mwp.runtime.problems.clauses import split_clauses
from hf_mwp.solver.data import load_mwp_dataset, problem_from_row


HELD_OUT = ["unbiasedmwp", "cm17k", "hmwp", "ape_clean:test", "ape210k:test"]
MIN_TOPIC = 40
"""Minimum number of problems on a topic. A problem's topic is its rarest pair of characters in that many problems."""
MIN_THING = 3
"""Minimum number of problems that count a thing, such as 本书, which remarks may mention."""

_THING = re.compile(r"\d(?!/)([个只本支张条辆棵块头朵盒根袋把件台名箱套筐瓶颗包][一-鿿]{1,3})(?=[，,．。])")
_PERSON = re.compile(r"小[明红华刚军丽强林芳亮东兰方李王张]|[爷奶爸妈叔]{2}|[王李张]老师|[王李张]师傅")
_REMARKS = ("旁边还有{n}{thing}", "另外还有{n}{thing}", "那里还放着{n}{thing}", "{person}还买了{n}{thing}",
            "{person}家有{n}{thing}", "{person}今年{n}岁", "{person}家有{n}口人", "{person}每天走{n}分钟",
            "当天的气温是{n}度", "这里已经开放{n}年", "这里离车站{n}千米", "现场有{n}名工作人员",
            "每{thing}重{n}克", "有{n}人来参观", "工人每天工作{n}小时")  # fmt: skip


def _character_pairs(text: str) -> set[str]:
    """Return the pairs of adjacent letters in a text."""
    pairs = {text[start : start + 2] for start in range(len(text) - 1)}
    return {pair for pair in pairs if pair.isalpha()}


def distract_by_topic(problems: list[MathWordProblem], seed: int) -> list[MathWordProblem | None]:
    """Add distractors to each problem from problems that share its topic."""
    pairs_of_problems = [_character_pairs(problem.text) for problem in problems]
    frequencies = Counter(chain.from_iterable(pairs_of_problems))
    topics = defaultdict(list)
    for index, pairs in enumerate(pairs_of_problems):
        frequent = [(frequencies[pair], pair) for pair in pairs if frequencies[pair] >= MIN_TOPIC]
        topic = min(frequent, default=(0, ""))
        topics[topic].append(index)
    distracted: list[MathWordProblem | None] = [None] * len(problems)
    for indices in topics.values():
        same_topic = [problems[index] for index in indices]
        for index, new in zip(indices, add_distractors(same_topic, seed), strict=True):
            distracted[index] = new
    return distracted


def add_remarks(problems: list[MathWordProblem], seed: int) -> Iterator[MathWordProblem | None]:
    """Add one to four remarks with a number to each problem, about its person or things counted in other problems."""
    frequencies = Counter()
    for problem in problems:
        frequencies.update(set(_THING.findall(problem.text)))
    things = sorted(thing for thing, frequency in frequencies.items() if frequency >= MIN_THING)
    for index, problem in enumerate(problems):
        rng = random.Random(f"{seed} {index} {problem.text}")
        clauses = split_clauses(problem.text)
        if len(clauses) < 2 or not problem.agrees():
            yield None
            continue
        known_values = problem.known_values
        person = _PERSON.search(problem.text)
        numbers = [n for n in (*range(2, 60), 80, 100, 120, 200) if n not in known_values]
        possible = []
        for remark in rng.sample(_REMARKS, len(_REMARKS)):
            thing = ""
            if things:
                thing = rng.choice(things)
            elif "{thing}" in remark:
                continue
            ending = remark.split("{n}")[1].replace("{thing}", thing)
            is_in_text = ending[:2] in problem.text or (thing and thing[1:] in problem.text)
            if is_in_text or ("{person}" in remark and not person):
                continue
            name = ""
            if person:
                name = "他"
                if rng.random() < 0.5:
                    name = person[0]
            number = numbers.pop(rng.randrange(len(numbers)))
            possible.append(remark.format(n=number, thing=thing, person=name))
        added = possible[: rng.choice((1, 1, 2, 3, 4))]
        text = problem.text
        starts = [start for start, _ in clauses[1:]]
        position = starts[-1]
        if rng.random() >= 0.7:
            position = rng.choice(starts)
        mark = text[position - 1]
        if mark not in "，,．。；;":
            mark = "，"
        new_text = f"{text[:position]}{'，'.join(added)}{mark}{text[position:]}"
        yield with_added_numbers(problem, new_text, len(added), "R")


def distract(problems: list[MathWordProblem], seed: int) -> list[MathWordProblem | None]:
    """Add distractors to each problem by one of three methods; if it fails, try the others."""
    by_topic = distract_by_topic(problems, seed)
    with_remarks = add_remarks(problems, seed)
    by_any_problem = add_distractors(problems, seed)
    distracted = []
    for index, candidates in enumerate(zip(by_topic, with_remarks, by_any_problem, strict=True)):
        first = random.Random(f"{seed} {index}").randrange(3)
        rotated = candidates[first:] + candidates[:first]
        successful = (problem for problem in rotated if problem is not None)
        distracted.append(next(successful, None))
    return distracted


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="Folder for the two files.")
    parser.add_argument("--data_dir", required=True, help="Folder of the datasets.")
    parser.add_argument("--seed", type=int, default=0, help="Seed of the distractors and the choice of problems.")
    args = parser.parse_args()
    data = load_mwp_dataset("math23k", args.data_dir, extra_train=["unbiasedmwp"], extra_exclude=HELD_OUT)
    problems = [problem_from_row(row) for row in data["train"]]
    distracted = distract(problems, args.seed)
    training = []
    for index, (row, problem, new) in enumerate(zip(data["train"], problems, distracted, strict=True)):
        is_second = (index + args.seed) % 2 == 1
        if row["dataset"] == "math23k" and is_second:
            if new is None:
                training.append(problem)
            else:
                training.append(new)
        elif row["dataset"] == "math23k":
            training.append(problem)
            reversed_problems = reverse_operations(problem)
            if reversed_problems:
                training.append(reversed_problems[(index // 2 + args.seed) % len(reversed_problems)])
        elif is_second or not problem.expression.is_leaf:
            training.append(problem)
            if new is not None:
                training.append(new)
            training.extend(reverse_operations(problem))
    args.folder.mkdir(parents=True, exist_ok=True)
    validation = [problem_from_row(row) for row in data["validation"]]
    for split, split_problems in (("train", training), ("validation", validation)):
        write_problems(args.folder / f"{split}.jsonl", split_problems)
    print(f"{len(training):,} training problems in {args.folder}")


if __name__ == "__main__":
    try:
        main()
    except (OSError, ValueError) as error:
        sys.exit(f"question_data.py: {error}")
