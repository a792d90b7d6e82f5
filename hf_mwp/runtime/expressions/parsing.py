"""Parser for the infix notations of datasets: a single scan with an operator stack, without recursion."""

import re
from collections.abc import Iterable

from .notations import plain_notation
from .numbers import (
    NUMBER_PATTERN,
    SLOT_PATTERN,
    VULGAR,
    VULGAR_PATTERN,
    ExpressionError,
    normalize_number,
    parse_number,
    to_half_width,
    vulgar_literal,
)
from .operators import BRACKETS, OPERATOR_SPELLINGS, PRECEDENCE, RIGHT_ASSOCIATIVE, SIGN_PRECEDENCE


_SPACE = re.compile(r"\s*")
_WORD = re.compile(rf"[^\W\d{VULGAR}]\w*")
_OPERATOR = re.compile(r"\*\*|[-+*/^:]")
_FRACTION = re.compile(r"\(\d+/\d+\)", flags=re.ASCII)
_BARE_FRACTION = re.compile(r"\d+/\d+(?![\d.]|\s*%)", flags=re.ASCII)
_POWER = re.compile(r"\s*(?:\^|\*\*)")
_RESULT = re.compile(rf"\s*-?(?:{VULGAR_PATTERN.pattern}|{NUMBER_PATTERN.pattern})(?:\s*r\s*\d+)?\s*")
_CLOSING = frozenset(BRACKETS.values())


def split_equation(text: str) -> tuple[int, int]:
    """Return start and end of the side to compute: `4+2` in `x=4+2` and `4+2=x`, `7+2` in `7+2=9` and `9=7+2`."""
    semicolon = text.find(";")
    if semicolon >= 0:
        raise ExpressionError("a system of equations cannot be converted to one expression", semicolon, ";")
    equals = text.find("=")
    if equals < 0:
        return 0, len(text)
    second_equals = text.find("=", equals + 1)
    if second_equals >= 0:
        raise ExpressionError("the equation has more than one equals sign", second_equals, "=")
    left = text[:equals].strip()
    right = text[equals + 1 :].strip()
    if _is_unknown(left):
        return equals + 1, len(text)
    if _is_unknown(right):
        return 0, equals
    states_right = _RESULT.fullmatch(right) is not None
    for word in _WORD.finditer(text):
        if _is_unknown(word.group()) and not (states_right and word.start() > equals):
            fault = "one side of the equation must be only the unknown: solve the equation for it first"
            raise ExpressionError(fault, word.start(), word.group())
    if left and states_right:
        return 0, equals
    if right and _RESULT.fullmatch(left):
        return equals + 1, len(text)
    raise ExpressionError("one side of the equation must be only an unknown or only a number", equals, "=")


def infix_to_postfix(text: str, numbers: Iterable[str] | None = None) -> list[tuple[str, int]]:
    """Convert an equation ([`Expression.from_infix`]) to postfix tokens with their character offsets."""
    if not isinstance(text, str):
        raise ExpressionError(f"an expression must be a string, not {type(text).__name__}")
    text = plain_notation(to_half_width(text))
    start, end = split_equation(text)
    return _Scan(text, start, end, numbers or ()).run()


def _is_unknown(word: str) -> bool:
    return _WORD.fullmatch(word) is not None and SLOT_PATTERN.fullmatch(word) is None


def _literal(number: re.Match) -> str:
    return vulgar_literal(number) if number.re is VULGAR_PATTERN else normalize_number(number.group())


class _Scan:
    """Parser state: output tokens, stack of pending operators and open brackets, and position in the text."""

    def __init__(self, text: str, start: int, end: int, numbers: Iterable[str]):
        self.text = text
        self.position = start
        self.end = end
        written = {normalize_number(number) for number in numbers}
        # Fractions and negative numbers are literals only if the problem text contains them.
        self.fractions = {number for number in written if number[:1] == "("}
        self.negatives = {parse_number(number) for number in written if number[:1] == "-"}
        self.bare_fractions = {number for number in written if _BARE_FRACTION.fullmatch(number)}
        self.output: list[tuple[str, int]] = []  # token, offset
        self.stack: list[tuple[str, int, int]] = []  # operator or open bracket, precedence (0: bracket), offset

    def run(self) -> list[tuple[str, int]]:
        expects_operand = True
        while True:
            self.position = _SPACE.match(self.text, self.position).end()
            if self.position >= self.end:
                break
            expects_operand = self._operand() if expects_operand else self._operator()
        if not self.output and not self.stack:
            raise ExpressionError("the expression is empty", self.position)
        if expects_operand:
            fault = "expected a number, slot or bracket, but the expression ends"
            raise ExpressionError(fault, self.position)
        self._reduce(1)
        if self.stack:
            symbol, _, offset = self.stack[-1]
            raise ExpressionError("the opening bracket is not closed", offset, symbol)
        return self.output

    def _operand(self) -> bool:
        """Parse a literal, slot, sign or opening bracket. Return whether an operand must follow."""
        position = self.position
        symbol = self.text[position]
        literal = None
        if self.bare_fractions or (symbol in "(-" and (self.fractions or self.negatives)):
            literal = self._listed_literal()
        if literal:
            self.output.append((literal, position))
            return False
        if symbol in BRACKETS:
            self.stack.append((symbol, 0, position))
        elif symbol == "-":
            # `-a` is `0-a`: the zero is emitted before `a`, the minus after it.
            self.output.append(("0", position))
            self.stack.append(("-", SIGN_PRECEDENCE, position))
        elif symbol != "+":
            self._number_or_slot()
            return False
        self.position += 1
        return True

    def _listed_literal(self) -> str | None:
        """Parse a fraction or negative number that the problem text contains; return its literal or `None`."""
        position = self.position
        bare = _BARE_FRACTION.match(self.text, position, self.end)
        if bare:
            # a/1/2 is not a/(1/2), and a/-1/2 is not a/-(1/2).
            divides = bool(self.stack) and (self.stack[-1][0] in "/^" or self.stack[-1][1] == SIGN_PRECEDENCE)
            if divides or _POWER.match(self.text, bare.end(), self.end) or bare.group() not in self.bare_fractions:
                return None
            self.position = bare.end()
            return f"({bare.group()})"
        if self.text[position] == "-":
            number = self._number(_SPACE.match(self.text, position + 1).end())
            # -5^2 is always 0-5^2.
            if number is None or _POWER.match(self.text, number.end(), self.end):
                return None
        else:
            number = _FRACTION.match(self.text, position, self.end)
        if number is None:
            return None
        literal = _literal(number)
        if self.text[position] == "-":
            literal = f"-{literal}"
        # Fractions are compared as written (3/6 is not 1/2), negative numbers by value (-2.0 is -2).
        if literal not in self.fractions and not (literal[0] == "-" and parse_number(literal) in self.negatives):
            return None
        self.position = number.end()
        return literal

    def _number(self, position: int) -> re.Match | None:
        vulgar = VULGAR_PATTERN.match(self.text, position, self.end)
        return vulgar or NUMBER_PATTERN.match(self.text, position, self.end)

    def _number_or_slot(self) -> None:
        position = self.position
        number = self._number(position)
        if number:
            literal = _literal(number)
            tokens = [literal]
            # Like (1/2), ½ is a division if the problem text does not contain it.
            if literal[0] == "(" and literal not in self.fractions:
                tokens = [*literal[1:-1].split("/"), "/"]
            self.output += [(token, position) for token in tokens]
            self.position = number.end()
            return
        word = _WORD.match(self.text, position, self.end)
        if word is None:
            raise ExpressionError("expected a number, slot or bracket", position, self.text[position])
        if SLOT_PATTERN.fullmatch(word.group()) is None:
            fault = "expected a number or a slot such as N0: remove unknowns and units from the expression"
            raise ExpressionError(fault, position, word.group())
        self.output.append((word.group(), position))
        self.position = word.end()

    def _operator(self) -> bool:
        """Parse an operator, percent sign or closing bracket. Return whether an operand must follow."""
        position = self.position
        match = _OPERATOR.match(self.text, position, self.end)
        if match:
            operator = OPERATOR_SPELLINGS[match.group()]
            precedence = PRECEDENCE[operator]
            self._reduce(precedence + (operator in RIGHT_ASSOCIATIVE))
            self.stack.append((operator, precedence, position))
            self.position = match.end()
            return True
        symbol = self.text[position]
        self.position += 1
        if symbol in _CLOSING:
            self._close(symbol, position)
        elif symbol == "%":
            self._percent(position)
        else:
            word = _WORD.match(self.text, position, self.end) or NUMBER_PATTERN.match(self.text, position, self.end)
            raise ExpressionError("expected an operator", position, word.group() if word else symbol)
        return False

    def _reduce(self, precedence: int) -> None:
        """Emit the pending operators of at least this precedence, back to the last open bracket."""
        while self.stack and self.stack[-1][1] >= precedence:
            symbol, _, offset = self.stack.pop()
            self.output.append((symbol, offset))

    def _close(self, symbol: str, position: int) -> None:
        self._reduce(1)
        if not self.stack:
            raise ExpressionError("the closing bracket has no opening bracket", position, symbol)
        opened, _, offset = self.stack.pop()
        if BRACKETS[opened] != symbol:
            raise ExpressionError(f"the bracket does not match {opened!r} at {offset}", position, symbol)

    def _percent(self, position: int) -> None:
        """Apply a percent sign: `20 %` becomes the literal `20%`; `(3+4)%` and `N0%` are divided by 100."""
        last, offset = self.output[-1]
        before = self.text[:position].rstrip()[-1]
        if before == "%":
            raise ExpressionError("the number has two percent signs", position, "%")
        if before.isdigit() and last.replace(".", "").isdigit():
            self.output[-1] = (f"{last}%", offset)
        else:
            self.output += [("100", position), ("/", position)]
