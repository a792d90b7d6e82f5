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
from pathlib import Path

from hf_mwp.runtime.augmentation.distractors import with_added_numbers
from hf_mwp.runtime.problems import MathWordProblem, add_distractors, reverse_operations
from hf_mwp.runtime.problems.clauses import split_clauses
from hf_mwp.solver.data import load_mwp_dataset, problem_from_row
from hf_mwp.utils.files import write_json_lines


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


def distract_by_topic(problems: list[MathWordProblem], seed: int) -> list[MathWordProblem | None]:
    """Add distractors to each problem from problems that share its topic."""
    texts = [problem.text for problem in problems]
    pairs = [{text[i : i + 2] for i in range(len(text) - 1) if text[i : i + 2].isalpha()} for text in texts]
    counts = Counter(pair for each in pairs for pair in each)
    topics = defaultdict(list)
    for index, each in enumerate(pairs):
        shared = ((counts[pair], pair) for pair in each if counts[pair] >= MIN_TOPIC)
        topics[min(shared, default=(0, ""))].append(index)
    distracted: list[MathWordProblem | None] = [None] * len(problems)
    for members in topics.values():
        for index, new in zip(members, add_distractors([problems[i] for i in members], seed), strict=True):
            distracted[index] = new
    return distracted


def add_remarks(problems: list[MathWordProblem], seed: int) -> Iterator[MathWordProblem | None]:
    """Add one to four remarks with a number to each problem, about its person or things counted in other problems."""
    counts = Counter(thing for problem in problems for thing in set(_THING.findall(problem.text)))
    things = sorted(thing for thing, count in counts.items() if count >= MIN_THING)
    for index, problem in enumerate(problems):
        rng = random.Random(f"{seed} {index} {problem.text}")
        clauses = split_clauses(problem.text)
        if len(clauses) < 2 or not problem.agrees():
            yield None
            continue
        taken = problem.known_values
        person = _PERSON.search(problem.text)
        numbers = [n for n in (*range(2, 60), 80, 100, 120, 200) if n not in taken]
        possible = []
        for remark in rng.sample(_REMARKS, len(_REMARKS)):
            thing = rng.choice(things) if things else ""
            if not thing and "{thing}" in remark:
                continue
            said = remark.split("{n}")[1].replace("{thing}", thing)
            known = said[:2] in problem.text or (thing and thing[1:] in problem.text)
            if known or ("{person}" in remark and not person):
                continue
            name = person[0] if person and rng.random() < 0.5 else "他" if person else ""
            possible.append(remark.format(n=numbers.pop(rng.randrange(len(numbers))), thing=thing, person=name))
        added = possible[: rng.choice((1, 1, 2, 3, 4))]
        text = problem.text
        starts = [start for start, _ in clauses[1:]]
        place = starts[-1] if rng.random() < 0.7 else rng.choice(starts)
        mark = text[place - 1] if text[place - 1] in "，,．。；;" else "，"
        new_text = f"{text[:place]}{'，'.join(added)}{mark}{text[place:]}"
        yield with_added_numbers(problem, new_text, len(added), "R")


def distract(problems: list[MathWordProblem], seed: int) -> list[MathWordProblem | None]:
    """Add distractors to each problem by one of three methods; if it fails, try the others."""
    by_topic, remarks = distract_by_topic(problems, seed), add_remarks(problems, seed)
    chosen = []
    for index, news in enumerate(zip(by_topic, remarks, add_distractors(problems, seed), strict=True)):
        turn = random.Random(f"{seed} {index}").randrange(3)
        chosen.append(next((new for new in news[turn:] + news[:turn] if new is not None), None))
    return chosen


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="Folder for the two files.")
    parser.add_argument("--data_dir", required=True, help="Folder of the datasets.")
    parser.add_argument("--seed", type=int, default=0, help="Seed of the distractors and the choice of problems.")
    args = parser.parse_args()
    data = load_mwp_dataset("math23k", args.data_dir, extra_train=["unbiasedmwp"], extra_exclude=HELD_OUT)
    problems = [problem_from_row(row) for row in data["train"]]
    distracted = distract(problems, args.seed)
    chosen = []
    for index, (row, problem, new) in enumerate(zip(data["train"], problems, distracted, strict=True)):
        second = (index + args.seed) % 2 == 1
        if row["dataset"] == "math23k":
            chosen.append(new if second and new is not None else problem)
            turned = [] if second else reverse_operations(problem)
            if turned:
                chosen.append(turned[(index // 2 + args.seed) % len(turned)])
        elif second or not problem.expression.is_leaf:
            chosen += [problem, *([] if new is None else [new]), *reverse_operations(problem)]
    args.folder.mkdir(parents=True, exist_ok=True)
    for split, kept in (("train", chosen), ("validation", map(problem_from_row, data["validation"]))):
        fields = ("id", "text", "equation", "answer")
        write_json_lines(
            args.folder / f"{split}.jsonl", ({name: getattr(each, name) for name in fields} for each in kept)
        )
    print(f"{len(chosen):,} training problems in {args.folder}")


if __name__ == "__main__":
    try:
        main()
    except (OSError, ValueError) as error:
        sys.exit(f"question_data.py: {error}")
