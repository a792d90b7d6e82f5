"""The tree of an arithmetic expression: what solvers predict and what labels are."""

from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction

from .canonical import canonical_prefix
from .errors import ExpressionError
from .evaluation import Number, evaluate_postfix
from .formatting import infix_from_postfix, nesting_level
from .numbers import normalize_number, parse_number
from .operators import PRECEDENCE
from .parsing import check_tokens, infix_to_postfix, is_slot


MAX_NODES = 10_000
"""Most nodes of one tree: bounds the time of everything that walks it."""

MAX_DEPTH = 100
MAX_LENGTH = 4096


class Expression:
    """
    An immutable binary tree of the operators `+ - * / ^`, literals and number slots `N0`, `N1`, ...

    Trees are equal if they have the same shape and tokens; see [`~Expression.canonical`] for `a+b` against `b+a`. All
    methods work without recursion. `len(expression)` counts nodes.

    Args:
        token (`str`): An operator for a tree with two operands; a slot or a literal for a leaf, stored in half-width
            characters and without thousands commas.
        left (`Expression`, *optional*): Left operand.
        right (`Expression`, *optional*): Right operand.

    Raises:
        ExpressionError: if the token does not suit the number of operands, or the tree has over `MAX_NODES` nodes.

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
    """Most operators on a way from the root to a leaf; 0 for a leaf."""

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
        assign = object.__setattr__
        assign(self, "token", token)
        assign(self, "left", left)
        assign(self, "right", right)
        assign(self, "depth", depth)
        assign(self, "_size", size)
        assign(self, "_hash", hash((token, left, right)))

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

        - `x=4+2`, `X = 4+2`, `4+2=x` (any unknown that stands alone on one side), `4+2`; `7+2=9`, `200/28=7 r4` and
          `9=3+6` with the result stated on one side, which is cut off unread;
        - operators `+ - * / ^`, also `**` for `^`, `:` for `/`, and `× ÷ − －`; equal ones from the left, powers from
          the right; `(3+4)%` and `N0%` are divided by 100;
        - brackets `( )`, `[ ]`, `{ }`, nested at will, each closed by its own kind;
        - literals `12`, `1,234`, `3.5`, `.5`, `80%`, `1(3/4)` (mixed: 1+3/4), and slots `N0`;
        - signs: `-a` is `0-a` and binds tighter than `*`, looser than `^`; `+a` is `a`;
        - all of it in full-width characters too.

        Args:
            text (`str`): The equation.
            numbers (`Iterable[str]`, *optional*): Numbers of the problem text as written. `(3/8)` or `-5` is one
                literal if it is among them (`-5^2` is not); otherwise `(3/8)` is the division 3/8 in brackets and `-5`
                is `0-5`.
            max_depth (`int`, *optional*, defaults to 100): Limit on the depth of the tree; `None` for no limit.
            max_length (`int`, *optional*, defaults to 4096): Limit on the number of characters; `None` for no limit.

        Raises:
            ExpressionError: with `position` (character offset in `text`) and `token` of what cannot be read.
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
            tokens (`Sequence[str]`): Operators, slots and literals. A bracketed fraction is one token, and so a
                literal.
            max_depth (`int`, *optional*, defaults to 100): Limit on the depth of the tree; `None` for no limit.
            max_length (`int`, *optional*, defaults to 4096): Limit on the number of tokens; `None` for no limit.

        Raises:
            ExpressionError: with `position` (index into `tokens`) and `token` of what does not fit.
        """
        tokens = check_tokens(tokens, max_length)
        return cls._build(tokens, range(len(tokens)), max_depth)

    @classmethod
    def from_prefix(
        cls, tokens: Sequence[str], max_depth: int | None = MAX_DEPTH, max_length: int | None = MAX_LENGTH
    ) -> "Expression":
        """
        Build the tree of prefix tokens; the inverse of [`~Expression.to_prefix`].

        Arguments and errors are those of [`~Expression.from_postfix`].
        """
        tokens = check_tokens(tokens, max_length)
        return cls._build(tokens[::-1], range(len(tokens))[::-1], max_depth, reverse=True)

    @classmethod
    def _build(
        cls, tokens: Sequence[str], positions: Sequence[int], max_depth: int | None, reverse: bool = False
    ) -> "Expression":
        """Build from postfix tokens, or with `reverse` from prefix tokens last to first."""
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
        """Return whether this is a literal or slot."""
        return self.left is None

    @property
    def is_slot(self) -> bool:
        """Return whether this is a number slot."""
        return self.left is None and is_slot(self.token)

    @property
    def slot_index(self) -> int | None:
        """The `i` of slot `Ni`, `None` for everything else."""
        return int(self.token[1:]) if self.is_slot else None

    @property
    def num_operators(self) -> int:
        """Number of inner nodes."""
        return self._size // 2

    def leaves(self) -> "Iterator[Expression]":
        """The leaves from left to right."""
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
        """Tokens in prefix order: operator, left operand, right operand."""
        return [node.token for node in self._nodes()]

    def to_postfix(self) -> list[str]:
        """Tokens in postfix order: left operand, right operand, operator."""
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
        Infix text with only the brackets that the tree needs.

        `from_infix(text, numbers)` gives the same tree back if `numbers` lists the fractions and negative literals
        among the leaves; the tokens of all leaves will do.
        """
        return infix_from_postfix(self.to_postfix())

    def evaluate(self, numbers: Sequence[str | Fraction | float] | None = None) -> Number:
        """
        The value, in bounded time.

        Exact as long as numerator and denominator have at most 1,000 bits; beyond, and for roots and long powers, in
        floats on purpose. A float result therefore says that it may be rounded.

        Args:
            numbers (`Sequence[str | Fraction | float]`, *optional*): What fills the slots: literals as written, or
                values.

        Returns:
            `Fraction` or `float`: never infinite or nan, and always convertible to a float.

        Raises:
            ExpressionError: division by zero, a complex result, one too large or too small for a float, a slot without
                a number, a number that is none. `position` is the offset in [`~Expression.to_infix`]'s text.
        """
        return evaluate_postfix(self.to_postfix(), numbers)

    def bind(self, numbers: Sequence[str]) -> "Expression":
        """Return the tree with literals for slots `N0`, `N1`, ...; `ExpressionError` for a slot without a number."""
        tokens = []
        for node in self._nodes():
            index = node.slot_index
            if index is not None and index >= len(numbers):
                raise ExpressionError(f"a slot has no number: {len(numbers)} given", token=node.token)
            tokens.append(node.token if index is None else numbers[index])
        return Expression.from_prefix(tokens, max_depth=None, max_length=None)

    def canonical(self) -> "Expression":
        """
        The representative of all trees that commuting and regrouping lead to.

        Sums (`+` and `-` alike) and products (`*` and `/` alike) are flattened, their terms sorted and put together
        from the left, those added before those taken off: `a+b = b+a`, `(a+b)+c = c+(a+b)`, `a-b-c = a-(b+c)`,
        `a-(b-c) = c+a-b`, `a/(b/c) = c*a/b`. Nothing is computed or multiplied out; `10.0` is spelt `10`. The value
        stays the same (up to rounding where it is a float) where there is one: `a/(b/c)` has none for `c = 0`.
        """
        return Expression.from_prefix(canonical_prefix(self.to_postfix()), max_depth=None, max_length=None)

    def complexity(self) -> str:
        """
        Level of symbolic complexity: the higher of what the two counts give.

        After Yu et al., "Efficient Mathematical Reasoning Models via Dynamic Pruning and Knowledge Distillation",
        section 4.1:

        | level | operators | nesting |
        |---|---|---|
        | `"low"` | 0 to 2 | none |
        | `"medium"` | 3 or 4 | single |
        | `"high"` | 5 or more | multiple |

        The paper does not define nesting. Here it is how deeply brackets nest in the infix form, those left out that
        do not change the value: none in `a*b+c` and `a+(b+c)`, single in `(a+b)*c`, multiple in `a/(b-(c+d))`. A
        fraction that is one literal counts as a number.
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
