"""Trees of arithmetic expressions."""

from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction

from .canonical import canonical_prefix
from .evaluation import Number, evaluate_postfix
from .numbers import ExpressionError, normalize_number, parse_number
from .operators import PRECEDENCE, infix_from_postfix, nesting_level
from .parsing import check_tokens, infix_to_postfix, is_slot


MAX_NODES = 10_000  # of one tree, which bounds the time of all its methods
MAX_DEPTH = 100
MAX_LENGTH = 4096


class Expression:
    """
    An immutable binary tree of the operators `+ - * / ^`, literals and number slots `N0`, `N1`, ...

    Trees are equal if they have the same shape and tokens; [`~Expression.canonical`] makes `a+b` and `b+a` equal. No
    method is recursive. `len(expression)` counts nodes.

    Args:
        token (`str`): An operator or, for a leaf, a slot or a literal, which is stored in half-width characters and
            without thousands commas.
        left (`Expression`, *optional*), right (`Expression`, *optional*): Operands of an operator.

    Raises:
        ExpressionError: the token does not fit the operands, or the tree has more than `MAX_NODES` nodes.

    Example:

    ```python
    >>> expression = Expression.from_infix("x=(N0+N1)/4")
    >>> expression.to_prefix()
    ['/', '+', 'N0', 'N1', '4']
    >>> expression.evaluate(["70", "6"])
    Fraction(19, 1)
    ```
    """

    __slots__ = ("_hash", "_size", "depth", "left", "right", "token")

    token: str
    left: "Expression | None"
    right: "Expression | None"
    depth: int
    """Most operators between the root and a leaf; 0 for a leaf."""

    def __init__(self, token: str, left: "Expression | None" = None, right: "Expression | None" = None):
        if not isinstance(token, str):
            raise ExpressionError(f"a token must be a string, not {type(token).__name__}", token=str(token))
        if left is None and right is None:
            if token in PRECEDENCE:
                raise ExpressionError("an operator needs two operands", token=token)
            if not is_slot(token):
                parse_number(token)
                token = normalize_number(token)
            size, depth = 1, 0
        else:
            if token not in PRECEDENCE:
                raise ExpressionError("operands need one of the operators + - * / ^", token=token)
            if not isinstance(left, Expression) or not isinstance(right, Expression):
                raise ExpressionError("an operator needs two expressions as operands", token=token)
            size, depth = len(left) + len(right) + 1, max(left.depth, right.depth) + 1
            if size > MAX_NODES:
                raise ExpressionError(f"an expression may have at most {MAX_NODES} nodes", token=token)
        fields = {"token": token, "left": left, "right": right, "depth": depth, "_size": size}
        for name, value in (fields | {"_hash": hash((token, left, right))}).items():
            object.__setattr__(self, name, value)

    @classmethod
    def from_infix(
        cls,
        text: str,
        numbers: Iterable[str] | None = None,
        max_depth: int | None = MAX_DEPTH,
        max_length: int | None = MAX_LENGTH,
    ) -> "Expression":
        """
        Read an equation as the data sets write it.

        - `x=4+2`, `X = 4+2`, `4+2=x` (an unknown alone on one side), `4+2`; `7+2=9`, `200/28=7 r4` and `9=3+6`, whose
          result is ignored;
        - operators `+ - * / ^`, also `**` for `^`, `:` for `/`, and `× ÷ − －`, left-associative except powers;
          `(3+4)%` and `N0%` are divided by 100;
        - brackets `( )`, `[ ]`, `{ }`;
        - literals `12`, `1,234`, `3.5`, `.5`, `80%`, `1(3/4)` (mixed: 1+3/4), and slots `N0`;
        - signs: `-a` is `0-a` and binds tighter than `*`, looser than `^`; `+a` is `a`;
        - all of these in full-width characters.

        Args:
            text (`str`): The equation.
            numbers (`Iterable[str]`, *optional*): Numbers of the problem text as written. `(3/8)` or `-5` is one
                literal if it is among them (`-5^2` is not), otherwise a division in brackets or `0-5`.
            max_depth (`int`, *optional*, defaults to 100), max_length (`int`, *optional*, defaults to 4096): Largest
                depth of the tree and number of characters; `None` for no limit.

        Raises:
            ExpressionError: the text cannot be read; with `position` (character offset) and `token`.
        """
        tokens, positions = infix_to_postfix(text, numbers, max_length)
        return cls._build(tokens, positions, max_depth)

    @classmethod
    def from_postfix(
        cls, tokens: Sequence[str], max_depth: int | None = MAX_DEPTH, max_length: int | None = MAX_LENGTH
    ) -> "Expression":
        """
        Build the tree of postfix tokens; the inverse of [`~Expression.to_postfix`].

        Args:
            tokens (`Sequence[str]`): Operators, slots and literals, also bracketed fractions.
            max_depth (`int`, *optional*, defaults to 100), max_length (`int`, *optional*, defaults to 4096): Largest
                depth of the tree and number of tokens; `None` for no limit.

        Raises:
            ExpressionError: the tokens are no tree; with `position` (index into `tokens`) and `token`.
        """
        tokens = check_tokens(tokens, max_length)
        return cls._build(tokens, range(len(tokens)), max_depth)

    @classmethod
    def from_prefix(
        cls, tokens: Sequence[str], max_depth: int | None = MAX_DEPTH, max_length: int | None = MAX_LENGTH
    ) -> "Expression":
        """Build the tree of prefix tokens; see [`~Expression.from_postfix`]."""
        tokens = check_tokens(tokens, max_length)
        return cls._build(tokens[::-1], range(len(tokens))[::-1], max_depth, reverse=True)

    @classmethod
    def _build(
        cls, tokens: Sequence[str], positions: Sequence[int], max_depth: int | None, reverse: bool = False
    ) -> "Expression":
        """Build from postfix tokens or, with `reverse`, from reversed prefix tokens."""
        stack: list[tuple[Expression, int]] = []
        for token, position in zip(tokens, positions, strict=True):
            operands = ()
            if token in PRECEDENCE:
                if len(stack) < 2:
                    raise ExpressionError("an operator lacks operands", position, token)
                last, first = stack.pop()[0], stack.pop()[0]
                operands = (last, first) if reverse else (first, last)
            try:
                node = cls(token, *operands)
            except ExpressionError as error:
                raise ExpressionError(error.reason, position, token) from error
            if max_depth is not None and node.depth > max_depth:
                raise ExpressionError(f"the tree is deeper than max_depth={max_depth}", position, token)
            stack.append((node, position))
        if len(stack) > 1:
            node, position = stack[-2] if reverse else stack[1]
            raise ExpressionError("more operands than operators: tokens left over", position, node.token)
        return stack[0][0]

    @property
    def is_leaf(self) -> bool:
        """Return whether the tree is a literal or slot."""
        return self.left is None

    @property
    def is_slot(self) -> bool:
        """Return whether the tree is a number slot."""
        return self.left is None and is_slot(self.token)

    @property
    def slot_index(self) -> int | None:
        """The `i` of slot `Ni`, `None` for any other tree."""
        return int(self.token[1:]) if self.is_slot else None

    @property
    def num_operators(self) -> int:
        """Number of inner nodes."""
        return self._size // 2

    def leaves(self) -> "Iterator[Expression]":
        """Return the leaves from left to right."""
        return (node for node in self._nodes() if node.left is None)

    def _nodes(self) -> "Iterator[Expression]":
        todo = [self]
        while todo:
            node = todo.pop()
            yield node
            if node.left is not None:
                todo.append(node.right)
                todo.append(node.left)

    def to_prefix(self) -> list[str]:
        """Return the tokens in prefix order: operator, left operand, right operand."""
        return [node.token for node in self._nodes()]

    def to_postfix(self) -> list[str]:
        """Return the tokens in postfix order: left operand, right operand, operator."""
        tokens, todo = [], [self]
        while todo:
            node = todo.pop()
            tokens.append(node.token)
            if node.left is not None:
                todo.append(node.left)
                todo.append(node.right)
        return tokens[::-1]

    def to_infix(self) -> str:
        """
        Return the infix text with as few brackets as possible. `from_infix(text, numbers)` returns the same tree if
        `numbers` has the fractions and negative literals of the leaves.
        """
        return infix_from_postfix(self.to_postfix())

    def evaluate(self, numbers: Sequence[str | Fraction | float] | None = None) -> Number:
        """
        Compute the value, in bounded time. It is exact (`Fraction`) while numerator and denominator have at most 1,000
        bits; longer values, roots and long powers are rounded (`float`).

        Args:
            numbers (`Sequence[str | Fraction | float]`, *optional*): Literals or values for the slots.

        Returns:
            `Fraction` or `float`: never infinite or nan, and always convertible to a float.

        Raises:
            ExpressionError: division by zero, a complex result, a result too large or too small for a float, or a slot
                without a number; `position` is the offset in [`~Expression.to_infix`].
        """
        return evaluate_postfix(self.to_postfix(), numbers)

    def bind(self, numbers: Sequence[str]) -> "Expression":
        """Return the tree with literals in place of slots; `ExpressionError` for a slot without a number."""
        tokens = []
        for node in self._nodes():
            index = node.slot_index
            if index is not None and index >= len(numbers):
                raise ExpressionError(f"a slot has no number: {len(numbers)} given", token=node.token)
            tokens.append(node.token if index is None else numbers[index])
        return Expression.from_prefix(tokens, max_depth=None, max_length=None)

    def canonical(self) -> "Expression":
        """
        Return a tree that is equal for all trees which differ only by commuting and regrouping.

        Sums (`+` and `-`) and products (`*` and `/`) are flattened and their terms sorted, inverse ones last:
        `a+b = b+a`, `(a+b)+c = c+(a+b)`, `a-b-c = a-(b+c)`, `a-(b-c) = c+a-b`, `a/(b/c) = c*a/b`. Nothing is computed
        or expanded; `10.0` is spelt `10`. The value stays the same, except that `a/(b/c)` has none for `c = 0`.
        """
        return Expression.from_prefix(canonical_prefix(self.to_postfix()), max_depth=None, max_length=None)

    def complexity(self) -> str:
        """
        Return the level of symbolic complexity, the higher one of the two counts (Yu et al., "Efficient Mathematical
        Reasoning Models via Dynamic Pruning and Knowledge Distillation", section 4.1):

        | level | operators | nesting |
        |---|---|---|
        | `"low"` | 0 to 2 | none |
        | `"medium"` | 3 or 4 | single |
        | `"high"` | 5 or more | multiple |

        The paper does not define nesting. Here it is the depth of brackets that change the value: none in `a*b+c` and
        `a+(b+c)`, single in `(a+b)*c`, multiple in `a/(b-(c+d))`. A fraction that is one literal counts as a number.
        """
        nesting = nesting_level(self.to_postfix())
        if self.num_operators >= 5 or nesting >= 2:
            return "high"
        return "medium" if self.num_operators >= 3 or nesting == 1 else "low"

    def __setattr__(self, name: str, value: object = None) -> None:
        raise AttributeError(f"an Expression is immutable: {name} cannot be changed")

    __delattr__ = __setattr__

    def __len__(self) -> int:
        return self._size

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Expression):
            return NotImplemented
        same = self._hash == other._hash and self._size == other._size
        return self is other or (same and self.to_prefix() == other.to_prefix())

    def __hash__(self) -> int:
        return self._hash

    def __reduce__(self):
        return Expression.from_prefix, (self.to_prefix(), None, None)

    def __str__(self) -> str:
        return self.to_infix()

    def __repr__(self) -> str:
        return f"Expression.from_prefix({self.to_prefix()!r})"


def draw(expression: Expression) -> str:
    """
    Draw a tree with box characters, one node per line, the left operand above the right one.

    Example:

    ```python
    >>> print(draw(Expression.from_infix("(70+6)/4")))
    /
    ├── +
    │   ├── 70
    │   └── 6
    └── 4
    ```
    """
    lines = []
    todo = [(expression, "", "")]
    while todo:
        node, lead, indent = todo.pop()
        lines.append(lead + node.token)
        if not node.is_leaf:
            todo.append((node.right, f"{indent}└── ", f"{indent}    "))
            todo.append((node.left, f"{indent}├── ", f"{indent}│   "))
    return "\n".join(lines)
