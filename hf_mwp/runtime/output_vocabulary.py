"""Output vocabulary of a tree decoder: operators, constants and number slots."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Self

from hf_mwp.utils.checked_types import checked
from hf_mwp.utils.json_fields import damaged

from .expressions import OPERATORS, Expression, ExpressionError, parse_number
from .problems import MathWordProblem, ProblemError
from .problems.equation_alignment import align_literals


@checked
@dataclass(frozen=True)
class OutputVocabulary:
    """
    Mapping between the symbols of an expression and ids: operators, then constants, then the numbers of the problem
    (slots `N0`, `N1`, ... of any count).

    Args:
        operators (`Sequence[str]`, *optional*, defaults to `("+", "-", "*", "/", "^")`): Binary operators.
        constants (`Sequence[str]`, *optional*, defaults to `()`): Numbers that an expression may use even if they
            are not in the text, as canonical literals (`"3.14"`).
        written (`Sequence[str]`, *optional*, defaults to `()`): Constants that no training problem needs, but that
            the decoder uses to write expressions (the 1 in `1 / a`).

    Raises:
        ValueError: An operator is unknown, or a symbol is repeated.
    """

    operators: Sequence[str] = OPERATORS
    constants: Sequence[str] = ()
    written: Sequence[str] = field(default=(), compare=False)

    def __post_init__(self) -> None:
        for name in ("operators", "constants", "written"):
            object.__setattr__(self, name, tuple(getattr(self, name)))
        unknown = [operator for operator in self.operators if operator not in OPERATORS]
        if unknown:
            raise ValueError(f"Unknown operators {unknown}. Use a selection of {list(OPERATORS)}.")
        symbols = self.operators + self.constants
        if len(set(symbols)) != len(symbols):
            raise ValueError(f"An output vocabulary must not repeat a symbol, got {list(symbols)}.")

    @classmethod
    def from_problems(cls, problems: Iterable[MathWordProblem], min_constant_count: int = 5) -> Self:
        """Create the vocabulary with the constants that occur in at least `min_constant_count` training problems (5 in
        the original implementation of GTS). Problems with an equation that cannot be parsed are skipped."""
        counts = Counter()
        for problem in problems:
            try:
                leaves = problem.expression.leaves()
            except (ExpressionError, ProblemError):
                continue
            counts.update({leaf.token for leaf in leaves if not leaf.is_slot})
        frequent = [constant for constant, num_problems in counts.most_common() if num_problems >= min_constant_count]
        return cls(constants=frequent)

    def with_constants(self, constants: Iterable[str], written: bool = False) -> Self:
        """Return the vocabulary with further constants at the end. With `written=True`, new constants are also listed
        in the attribute `written`. Raises `ExpressionError` if a constant is not a number."""
        tokens = []
        for constant in constants:
            # With the spelling that equations have: 2 for 2.0, 0.5 for 50%.
            try:
                tree = align_literals(Expression.from_infix(str(constant)), ())
            except ExpressionError:
                tree = None
            if tree is None or tree.left is not None or tree.is_slot:
                raise ExpressionError(f"the constant {constant!r} is not a number", token=str(constant))
            tokens.append(tree.token)
        new_constants = [token for token in dict.fromkeys(tokens) if token not in self.constants]
        if written:
            written_constants = [*self.written, *new_constants]
        else:
            written_constants = [token for token in self.written if token not in tokens]
        return replace(self, constants=(*self.constants, *new_constants), written=tuple(written_constants))

    @property
    def num_operators(self) -> int:
        return len(self.operators)

    @property
    def num_symbols(self) -> int:
        """Number of operators and constants. The number slot `N_i` has the id `num_symbols + i`."""
        return len(self.operators) + len(self.constants)

    def token_to_id(self, token: str) -> int:
        """Return the id of an operator, constant or slot `N_i`. Raises `ExpressionError` for unknown symbols."""
        if token[:1] == "N" and token[1:].isdecimal():
            return self.num_symbols + int(token[1:])
        symbols = self.operators + self.constants
        if token not in symbols:
            raise ExpressionError(f"{token!r} is not a symbol of this solver; it has {list(symbols)}", token=token)
        return symbols.index(token)

    def id_to_token(self, index: int) -> str:
        """Return the symbol of an id, the inverse of [`~OutputVocabulary.token_to_id`]."""
        symbols = self.operators + self.constants
        return symbols[index] if index < len(symbols) else f"N{index - len(symbols)}"

    def encode(self, expression: Expression) -> list[int]:
        """Return the prefix ids of an expression over slots and constants."""
        return list(map(self.token_to_id, expression.to_prefix()))

    def decode(self, ids: Iterable[int]) -> Expression:
        """Return the expression of prefix ids, ignoring negative ids. Raises `ExpressionError` for invalid trees."""
        return Expression.from_prefix([self.id_to_token(int(index)) for index in ids if index >= 0])


def check_symbols(operators: Sequence[str], constants: Sequence[str], path: Path) -> None:
    """Raise `UsageError` for operators and constants of a file that are unknown, repeated or no numbers."""
    try:
        OutputVocabulary(tuple(operators), tuple(constants))
        for constant in constants:
            parse_number(constant)
    except (ExpressionError, ValueError) as error:
        raise damaged(f"{path}: `operators` or `constants` cannot be used: {error}") from error
