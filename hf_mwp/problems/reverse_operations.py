"""Problems turned around: the answer is told, and one of the numbers is asked for."""

import re
from collections import Counter
from collections.abc import Iterator
from fractions import Fraction

from ..expressions import Expression, ExpressionError, parse_number
from .clauses import UNITS, find_question_words, split_clauses
from .equation_alignment import INVERSE
from .errors import ProblemError
from .math_word_problem import MathWordProblem
from .numbers.number_mention import NumberMention, literal_of


MAX_ANSWER = 10**7
MAX_DENOMINATOR = 100
"""Of an answer that is to be a number of a text: no problem tells of 1234567/891 apples."""

_ENDS = re.compile(r"[，,．。；;？?！!：\s]+$")
# What only a question begins with.
_BEGINS = re.compile(r"^(?:求|问|请问|那么|则|请你算一算|算一算|请|你知道|想一想)[，,：]?")
# Of ordinals, lists, ratios, ranges and dates.
_BEFORE = tuple("第、:：-~～—至到")
_AFTER = tuple("、:：-~～—至到月日号")


def reverse_operations(problem: MathWordProblem) -> list[MathWordProblem]:
    """
    The problems that ask for one of a problem's numbers and tell its answer (reverse-operation augmentation: Liu et
    al., RODA, IEEE/ACM TASLP 2022, with rules of our own for where text goes): one for each number that its equation
    uses once, as far as the rules can turn it around.

    The last clause must ask for one thing (多少, 几...). It becomes a statement; the clause of the number becomes the
    question, at the end; the equation is solved for the number. What comes out is checked: as many operators, and an
    equation that gives the answer. Pronouns and tenses stay as they were, so that some read oddly.

    Args:
        problem ([`MathWordProblem`]): With equation and answer, in Chinese.

    Returns:
        `list[MathWordProblem]`: in the order of the numbers in the equation; empty if the problem cannot be turned
        around, as without an answer that its equation gives.

    Raises:
        ProblemError: the problem is not in Chinese.

    Example:

    ```python
    >>> problem = MathWordProblem("食堂运来105千克萝卜，运来的青菜是萝卜的3倍，运来青菜多少千克？", "x=105*3", "315")
    >>> for each in reverse_operations(problem):
    ...     print(each.text, each.equation)
    运来的青菜是萝卜的3倍，运来青菜315千克，食堂运来多少千克萝卜？ x=315/3
    食堂运来105千克萝卜，运来青菜315千克，运来的青菜是萝卜的多少倍？ x=315/105
    ```
    """
    if problem.language != "zh":
        raise ProblemError(f"problem {problem.id!r} is not in Chinese: only Chinese questions can be turned around")
    answer = _answer_in_text(problem)
    if answer is None:
        return []
    *_, (start, stop) = clauses = split_clauses(problem.text)
    asked = find_question_words(problem.text)
    if len(asked) != 1 or not start <= asked[0][0] < stop:
        return []
    values = Counter(mention.value for mention in problem.masked.mentions)
    constants = {parse_number(leaf.token) for leaf in problem.expression.leaves() if not leaf.is_slot}
    if problem.answer_value in values or problem.answer_value in constants:
        return []
    turned = []
    for slot, expression in _solved_for_slots(problem.expression, Expression(answer)):
        mention = problem.masked.mentions[slot]
        if values[mention.value] > 1 or mention.value in constants or not _can_be_asked(problem.text, mention):
            continue
        text = _turn_text(problem.text, clauses, asked[0], answer, mention)
        equation = f"x={expression.bind(problem.numbers).to_infix()}"
        new = MathWordProblem(text, equation, mention.text, f"{problem.id}-N{slot}", "zh", problem.numerals)
        if _is_sound(new, problem):
            turned.append(new)
    return turned


def _answer_in_text(problem: MathWordProblem) -> str | None:
    """The answer as a literal; `None` if the problem has no one to tell, or no operation to turn around."""
    try:
        if problem.expression.is_leaf or not problem.agrees():
            return None
    except (ExpressionError, ProblemError):
        return None
    value = Fraction(problem.answer_value)
    if not 0 < value <= MAX_ANSWER or value.denominator > MAX_DENOMINATOR:
        return None
    if "%" not in problem.answer and "百分之几" not in problem.text:
        return literal_of(value)
    percent = literal_of(100 * value)
    return None if "/" in percent else f"{percent}%"


def _solved_for_slots(tree: Expression, value: Expression) -> Iterator[tuple[int, Expression]]:
    """For each slot that occurs once and under no power: its index, and the equation `tree = value` solved for it."""
    once = {token for token, count in Counter(leaf.token for leaf in tree.leaves()).items() if count == 1}
    waiting = [(tree, value)]
    while waiting:
        node, known = waiting.pop()
        if node.is_slot and node.token in once:
            yield node.slot_index, known
        elif not node.is_leaf and node.token != "^":
            left, right = node.left, node.right
            inverse = INVERSE[node.token]
            if node.token in "+*":
                waiting.append((right, Expression(inverse, known, left)))
            else:
                waiting.append((right, Expression(node.token, left, known)))
            waiting.append((left, Expression(inverse, known, right)))


def _can_be_asked(text: str, mention: NumberMention) -> bool:
    before, after = text[: mention.start][-1:], text[mention.end :][:1]
    is_year = after == "年" and 1900 < mention.value < 2100
    return mention.value > 0 and not is_year and before not in _BEFORE and after not in _AFTER


def _turn_text(
    text: str, clauses: list[tuple[int, int]], asked: tuple[int, int], answer: str, mention: NumberMention
) -> str:
    unknown = "多少"
    if mention.is_percent:
        unknown = "百分之几"
    elif "/" in mention.literal and not text.startswith(tuple(UNITS), mention.end):
        unknown = "几分之几"
    # 多少钱 is asked in 元.
    begin, end = asked[0], asked[1] + (text[asked[1] :][:1] == "钱")
    answer += "元" * (end - asked[1])
    edits = sorted([(begin, end, answer), (mention.start, mention.end, unknown)], reverse=True)
    rest, told, question = [], [], ""
    for start, stop in clauses:
        clause = text[start:stop]
        for first, last, new in edits:
            if start <= first < stop:
                clause = clause[: first - start] + new + clause[last - start :]
        if start <= mention.start < stop:
            question = _ENDS.sub("", clause)
        elif start <= begin < stop:
            told = [_BEGINS.sub("", _ENDS.sub("", clause)), "，"]
        else:
            rest.append(clause)
    return "".join([*rest, *told, question, "？"])


def _is_sound(new: MathWordProblem, old: MathWordProblem) -> bool:
    """Whether a problem is what was meant when it is read again: its numbers, its operations and its value."""
    try:
        expression = new.expression
    except (ExpressionError, ProblemError):
        return False
    slots = [sum(leaf.is_slot for leaf in each.leaves()) for each in (expression, old.expression)]
    same_size = expression.num_operators == old.expression.num_operators and slots[0] == slots[1]
    return same_size and len(new.numbers) == len(old.numbers) and new.agrees()
