"""Distractors for English problems: sentences with a number that is not needed for the answer."""

import random
import re
from collections.abc import Iterator, Sequence
from fractions import Fraction

from hf_mwp.runtime.problems.math_word_problem import MathWordProblem


_TRIES = 20
_MAX_STATEMENT = 100
SENTENCE = re.compile(r"\S.*?(?:(?<!\bMr)(?<!\bMrs)(?<!\bMs)(?<!\bDr)[.?!]+(?=\s|$)|$)", re.DOTALL)
_WORD = re.compile(r"[A-Za-z][a-z]+")
_OPEN = re.compile(r"(?i)\b(?:if|how|what|when|who|which|each|every|per|total|this|these|those|that|another|other)\b")
_PRONOUN = re.compile(r"\b(?:he|she|it|they|his|her|him|its|their|them|each)\b", re.IGNORECASE)
SUBJECT = re.compile(
    r"(?!He |She |It |They |You |We )([A-Z][a-z]+)"
    r" (?:has|had|bought|found|made|read|baked|ate|saw|picked|collected|sold|drew|got|took)\b"
)
_COMMON = frozenset(
    "the there was were are and for from with has had have his her its they them than then some how many much what "
    "does did will would can now left all total each one two into out not more most less fewer were been that this on "
    "bought found made read baked ate saw picked collected sold got took gave give gets used spent paid needs wants "
    "day days week weeks month months year years hour hours time times yesterday today".split()
)

Statement = tuple[str, Fraction, str]  # sentence with a single number, its value, the name at the beginning or ""


def add_english_distractors(problems: Sequence[MathWordProblem], seed: int) -> Iterator[tuple[str, int] | None]:
    """Yield the text of each problem with distractors, and the number of added numbers ([`add_distractors`])."""
    statements = []
    for problem in problems:
        statement = _opening(problem)
        if statement is not None:
            statements.append(statement)
    for index, problem in enumerate(problems):
        rng = random.Random(f"{seed} {index} {problem.text}")
        yield _distract(problem, statements, rng)


def _opening(problem: MathWordProblem) -> Statement | None:
    """Return the first sentence of a problem if it has a single number and makes sense in a different problem."""
    matches = list(SENTENCE.finditer(problem.text))
    if len(matches) < 2:
        return None
    sentence = matches[0][0]
    numbers = [mention for mention in problem.masked.mentions if mention.start < matches[0].end()]
    if len(numbers) != 1 or len(sentence) > _MAX_STATEMENT or sentence[-1] != "." or _OPEN.search(sentence):
        return None
    if _PRONOUN.match(sentence) or not sentence[0].isupper():
        return None
    subject = SUBJECT.match(sentence)
    name = subject[1] if subject else ""
    return sentence, numbers[0].value, name


def _content(text: str) -> set[str]:
    """Return the content words of a text in lower case, without a final s."""
    content = set()
    for written in _WORD.findall(text):
        word = written.lower()
        if len(word) > 2 and word not in _COMMON:
            content.add(word.removesuffix("s"))
    return content


def _distract(problem: MathWordProblem, statements: Sequence[Statement], rng: random.Random) -> tuple[str, int] | None:
    sentences = SENTENCE.findall(problem.text)
    if len(sentences) < 2 or not problem.masked.mentions or not problem.agrees() or not statements:
        return None
    used_words = _content(problem.text)
    used_values = problem.known_values
    subject = SUBJECT.search(problem.text)
    num_added = 0
    for _ in range(_TRIES):
        if num_added == 1 and rng.random() < 0.6:
            break
        statement, value, name = rng.choice(statements)
        index = len(sentences) - 1  # of the question
        if rng.random() >= 0.7:
            index = rng.randrange(1, len(sentences))
        if name and subject and name != subject[1] and rng.random() < 0.6:
            statement = statement.replace(name, subject[1])
        elif _PRONOUN.search(sentences[index]):  # It would refer to the subject of the distractor.
            continue
        words = _content(statement)
        if subject:
            words.discard(subject[1].lower())
        if value in used_values or words & used_words or num_added == 3:
            continue
        sentences.insert(index, statement)
        used_values.add(value)
        used_words |= words
        num_added += 1
    return " ".join(sentences), num_added
