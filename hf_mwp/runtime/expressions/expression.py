"""The expression tree class, and a function that draws a tree."""

from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction

from .canonical import canonical_prefix
from .evaluation import Number, evaluate_postfix
from .numbers import ExpressionError, is_slot, normalize_number, parse_number
from .operators import PRECEDENCE, infix_from_postfix, nesting_level
from .parsing import infix_to_postfix


MAX_NODES = 10_000  # maximum number of nodes of a tree; bounds the running time of all methods


class Expression:
    """
    An immutable binary expression tree. Inner nodes are the operators `+ - * / ^`; leaves are literals or number slots
    `N0`, `N1`, ..., which stand for the first, second, ... number in a problem text.

    Trees are equal if they have the same shape and tokens. Compare the results of [`~Expression.canonical`] to treat
    `a+b` and `b+a` as equal. `len(expression)` is the number of nodes.

    Args:
        token (`str`): An operator or, for a leaf, a slot or literal. Literals are stored in half-width characters
            without thousands commas.
        left (`Expression`, *optional*), right (`Expression`, *optional*): Operands. Required for an operator.

    Raises:
        ExpressionError: If an operator has no operands or a leaf has operands, or if the tree has more than
            `MAX_NODES` nodes.

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
    """Maximum number of operators on a path from the root to a leaf; 0 for a leaf."""

    def __init__(self, token: str, left: "Expression | None" = None, right: "Expression | None" = None):
        if not isinstance(token, str):
            raise ExpressionError(f"a token must be a string, not {type(token).__name__}", token=str(token))
        if token in PRECEDENCE:
            if not isinstance(left, Expression) or not isinstance(right, Expression):
                raise ExpressionError("an operator needs two operands of type Expression", token=token)
            size = len(left) + len(right) + 1
            depth = max(left.depth, right.depth) + 1
            if size > MAX_NODES:
                raise ExpressionError(f"an expression may have at most {MAX_NODES} nodes", token=token)
        elif left is not None or right is not None:
            raise ExpressionError("a node with operands must be one of + - * / ^", token=token)
        else:
            if not is_slot(token):
                parse_number(token)
                token = normalize_number(token)
            size = 1
            depth = 0
        set_field = object.__setattr__
        set_field(self, "token", token)
        set_field(self, "left", left)
        set_field(self, "right", right)
        set_field(self, "depth", depth)
        set_field(self, "_size", size)
        set_field(self, "_hash", hash((token, left, right)))

    @classmethod
    def from_infix(cls, text: str, numbers: Iterable[str] | None = None) -> "Expression":
        """
        Parse an equation in any of the notations that datasets use.

        - `4+2`; `x=4+2`, `X = 4+2` and `4+2=x` (one side is only the unknown); `7+2=9`, `200/28=7 r4` and `9=3+6`
          (the result is ignored);
        - operators `+ - * / ^`, also `**` for `^`, `:` for `/`, and `× ÷ − －`, left-associative except powers;
          `(3+4)%` and `N0%` are divided by 100;
        - brackets `( )`, `[ ]`, `{ }`;
        - literals `12`, `1,234`, `3.5`, `.5`, `80%`, `1(3/4)` (mixed: 1+3/4), and slots `N0`;
        - signs: `-a` is `0-a` and binds tighter than `*`, looser than `^`; `+a` is `a`;
        - full-width forms of all these characters.

        Args:
            text (`str`): The equation.
            numbers (`Iterable[str]`, *optional*): Numbers in the problem text, as written. A fraction `(3/8)` or a
                negative number `-5` in the equation becomes a single literal if `numbers` contains it (except in
                `-5^2`); otherwise it becomes the division `3/8` or the difference `0-5`.

        Raises:
            ExpressionError: The text cannot be parsed. `position` is a character offset in `text`.
        """
        return cls._build(infix_to_postfix(text, numbers))

    @classmethod
    def from_postfix(cls, tokens: Sequence[str]) -> "Expression":
        """
        Build a tree from postfix tokens: operators, slots and literals, including bracketed fractions. This is the
        inverse of [`~Expression.to_postfix`].

        Raises:
            ExpressionError: If the tokens do not form a tree. `position` is an index into `tokens`.
        """
        return cls._build([(token, index) for index, token in enumerate(tokens)])

    @classmethod
    def from_prefix(cls, tokens: Sequence[str]) -> "Expression":
        """Build a tree from prefix tokens. See [`~Expression.from_postfix`]."""
        positions = [(token, index) for index, token in enumerate(tokens)]
        return cls._build(positions[::-1], reverse=True)

    @classmethod
    def _build(cls, tokens: list[tuple[str, int]], reverse: bool = False) -> "Expression":
        """Build a tree from postfix tokens with their positions or, if `reverse`, from reversed prefix tokens."""
        stack: list[tuple[Expression, int]] = []
        for token, position in tokens:
            operands = ()
            if token in PRECEDENCE:
                if len(stack) < 2:
                    raise ExpressionError("the operator has fewer than two operands", position, token)
                last, _ = stack.pop()
                first, _ = stack.pop()
                operands = (last, first) if reverse else (first, last)
            try:
                stack.append((cls(token, *operands), position))
            except ExpressionError as error:
                raise ExpressionError(error.reason, position, error.token) from error
        if not stack:
            raise ExpressionError("the expression is empty: pass at least one token")
        if len(stack) > 1:
            node, position = stack[-2] if reverse else stack[1]
            raise ExpressionError("the tokens have too many operands for the operators", position, node.token)
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
        """Return the index `i` of a slot `Ni`, or `None` if the tree is not a slot."""
        return int(self.token[1:]) if self.is_slot else None

    @property
    def num_operators(self) -> int:
        """Number of operators (inner nodes)."""
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
        tokens = []
        todo = [self]
        while todo:
            node = todo.pop()
            tokens.append(node.token)
            if node.left is not None:
                todo.append(node.left)
                todo.append(node.right)
        return tokens[::-1]

    def to_infix(self) -> str:
        """Return the infix text with the minimum number of brackets. `from_infix(text, numbers)` returns the same tree
        if `numbers` contains all fractions and negative literals in the leaves; others are read as operations."""
        return infix_from_postfix(self.to_postfix())

    def evaluate(self, numbers: Sequence[str | Fraction | float] | None = None) -> Number:
        """
        Compute the value in bounded time. The value is exact (`Fraction`) while numerator and denominator have at most
        1,000 bits. Longer values, roots and large powers are rounded (`float`).

        Args:
            numbers (`Sequence[str | Fraction | float]`, *optional*): Literals or values of the slots.

        Returns:
            `Fraction` or `float`: A finite value that can be converted to a float.

        Raises:
            ExpressionError: If a division by zero occurs, a result is complex or too large or too small for a float,
                or a slot has no number. `position` is a character offset in the text of [`~Expression.to_infix`].
        """
        return evaluate_postfix(self.to_postfix(), numbers)

    def bind(self, numbers: Sequence[str]) -> "Expression":
        """Replace the slots by literals. Raises `ExpressionError` if a slot has no number."""
        tokens = []
        for node in self._nodes():
            index = node.slot_index
            if index is not None and index >= len(numbers):
                raise ExpressionError(f"the slot has no number: only {len(numbers)} were passed", token=node.token)
            token = node.token if index is None else numbers[index]
            tokens.append(token)
        return Expression.from_prefix(tokens)

    def canonical(self) -> "Expression":
        """
        Return the canonical form, which is equal for trees that differ only by commuting and regrouping.

        Sums and products are flattened and their terms are sorted, subtracted terms and divisors last: `a+b = b+a`,
        `a-b-c = a-(b+c)`, `a/(b/c) = c*a/b`. Nothing is computed or expanded; `10.0` is written `10`. The value is the
        same, except for `c = 0` in `a/(b/c)`: only the canonical form has a value.
        """
        return Expression.from_prefix(canonical_prefix(self.to_postfix()))

    def complexity(self) -> str:
        """
        Return the level of symbolic complexity: the higher level of the two columns (Yu et al., "Efficient
        Mathematical Reasoning Models via Dynamic Pruning and Knowledge Distillation", section 4.1).

        | level | operators | nesting |
        |---|---|---|
        | `"low"` | 0 to 2 | none |
        | `"medium"` | 3 or 4 | single |
        | `"high"` | 5 or more | multiple |

        The paper does not define nesting. Here, it is the depth of brackets that change the value: none in `a*b+c` and
        `a+(b+c)`, single in `(a+b)*c`, multiple in `a/(b-(c+d))`. A fraction that is a single literal has no operator.
        """
        nesting = nesting_level(self.to_postfix())
        if self.num_operators >= 5 or nesting >= 2:
            return "high"
        if self.num_operators >= 3 or nesting == 1:
            return "medium"
        return "low"

    def __setattr__(self, name: str, value: object = None) -> None:
        raise AttributeError(f"an Expression is immutable: cannot set or delete {name}")

    __delattr__ = __setattr__

    def __len__(self) -> int:
        return self._size

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Expression):
            return NotImplemented
        if self is other:
            return True
        may_be_equal = self._hash == other._hash and self._size == other._size
        return may_be_equal and self.to_prefix() == other.to_prefix()

    def __hash__(self) -> int:
        return self._hash

    def __reduce__(self):
        return Expression.from_prefix, (self.to_prefix(),)

    def __str__(self) -> str:
        return self.to_infix()

    def __repr__(self) -> str:
        return f"Expression.from_prefix({self.to_prefix()!r})"


def draw(expression: Expression) -> str:
    """
    Draw a tree with box characters: one node per line, the left operand above the right operand, as for `(70+6)/4`:

    ```
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
