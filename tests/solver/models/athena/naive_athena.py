"""
ATHENA one problem and one round at a time, as the paper and the authors' program have it: slow, obvious, the truth for
the batched one.

Thoughts are nested tuples: `("NUM", 0)`, `("CON", value)`, `("NEG", a)`, `("ADD", a, b, ...)` with sorted children.
"""

import itertools
from fractions import Fraction

import torch
from torch.nn.functional import binary_cross_entropy_with_logits, gelu, layer_norm

from hf_mwp.runtime.expressions import Expression


def aggregate(kind, left, right):
    children = [child for each in (left, right) for child in (each[1:] if each[0] == kind else (each,))]
    return (kind, *sorted(children, key=repr))


class Node:
    """A thought as an equation writes it, with the nodes below it."""

    def __init__(self, thought, *operands):
        self.thought = thought
        self.nodes = {thought}.union(*(operand.nodes for operand in operands))
        self.value = thought[1] if thought[0] == "CON" else None


def multiply(left, right):
    for factor, other in ((left, right), (right, left)):
        if factor.value == 1:
            return other
        if factor.value == -1:
            return Node(("NEG", other.thought), other)
        if factor.value in (2, -2):
            double = Node(aggregate("ADD", other.thought, other.thought), other)
            return double if factor.value == 2 else Node(("NEG", double.thought), double)
    return Node(aggregate("MUL", left.thought, right.thought), left, right)


def read(expression, constants):
    """The node of an equation; `constants` maps literals to values, `("INV", value)` where written as a reciprocal."""
    if expression.is_leaf:
        if expression.is_slot:
            return Node(("NUM", expression.slot_index))
        value = constants[expression.token]
        if isinstance(value, tuple):
            inner = Node(("CON", value[1]))
            return Node(("INV", inner.thought), inner)
        return Node(("CON", value))
    left, right = read(expression.left, constants), read(expression.right, constants)
    if expression.token == "+":
        return Node(aggregate("ADD", left.thought, right.thought), left, right)
    if expression.token == "-":
        negative = Node(("NEG", right.thought), right)
        return Node(aggregate("ADD", left.thought, negative.thought), left, negative)
    if expression.token == "*":
        return multiply(left, right)
    if expression.token == "/":
        if right.value == 2:
            return Node(("HALF", left.thought), left)
        return multiply(left, Node(("INV", right.thought), right))
    if right.value == 1:
        return left
    if right.value == 2:
        return multiply(left, left)
    if right.value == 3:
        return multiply(multiply(left, left), left)
    if right.value == Fraction(1, 2):
        return Node(("ROOT", left.thought), left)
    raise ValueError(f"exponent {expression.right}")


def infix(thought):
    """A thought of the twin as an expression, by its definition."""
    kind, *children = thought
    if kind == "NUM":
        return Expression(f"N{children[0]}")
    if kind == "CON":
        return Expression(str(float(children[0])) if children[0].denominator > 1 else str(children[0]))
    if kind in ("ADD", "MUL"):
        sign, inverse, undo = ("+", "NEG", "-") if kind == "ADD" else ("*", "INV", "/")
        tree = None
        for child in sorted(children, key=lambda each: each[0] == inverse):
            taken = child[0] == inverse
            term = infix(child[1]) if taken else infix(child)
            if tree is None:
                tree = (
                    Expression("-" if kind == "ADD" else "/", Expression("01"[kind == "MUL"]), term) if taken else term
                )
            else:
                tree = Expression(undo if taken else sign, tree, term)
        return tree
    left, sign, right = {
        "NEG": ("0", "-", None), "INV": ("1", "/", None), "HALF": (None, "/", "2"), "ROOT": (None, "^", "0.5")
    }[kind]  # fmt: skip
    inner = infix(children[0])
    return Expression(sign, Expression(left) if left else inner, Expression(right) if right else inner)


def has_part(thought, part):
    """Whether `part` is a sub-multiset of a node of a thought."""
    if thought[0] == part[0]:
        rest = list(thought[1:])
        if all(child in rest and (rest.remove(child) or True) for child in part[1:]):
            return True
    return thought[0] not in ("NUM", "CON") and any(has_part(child, part) for child in thought[1:])


def expand(initial, judge, max_rounds=0, stop=lambda pool: False):
    """Rounds of `(kind, operands, thought)`; `judge(round, candidates, pool)` returns the places of those kept."""
    pool, rounds, transformed, aggregated = [], [], 0, 0
    for turn in itertools.count():
        if 0 < max_rounds <= turn:
            break
        candidates = []
        if turn == 0:
            candidates = [(None, (place,), thought) for place, thought in enumerate(initial)]
        elif turn % 2:
            if transformed == len(pool):
                break
            for kind in ("NEG", "INV", "ROOT", "HALF"):
                for place in range(transformed, len(pool)):
                    if (kind, pool[place]) not in pool:
                        candidates.append((kind, (place,), (kind, pool[place])))
            transformed = len(pool)
        else:
            if aggregated == len(pool):
                break
            old, new = range(aggregated), range(aggregated, len(pool))
            for kind in ("ADD", "MUL"):
                for pair in [*itertools.product(old, new), *itertools.combinations_with_replacement(new, 2)]:
                    thought = aggregate(kind, pool[pair[0]], pool[pair[1]])
                    if thought not in pool and all(thought != other[2] for other in candidates):
                        candidates.append((kind, pair, thought))
            aggregated = len(pool)
        kept = judge(turn, candidates, pool)
        pool = pool + [candidates[place][2] for place in kept]
        rounds.append((candidates, kept))
        if stop(pool):
            break
    return pool, rounds


def gold(initial, node, subsets=False):
    """Pool and rounds under gold selection."""

    def judge(turn, candidates, pool):
        is_positive = (lambda each: has_part(node.thought, each)) if subsets else node.nodes.__contains__
        return [place for place, candidate in enumerate(candidates) if is_positive(candidate[2])]

    return expand(initial, judge, stop=lambda pool: node.thought in pool)


class NaiveAthena:
    """Layers of a decoder applied to one problem and one round at a time."""

    def __init__(self, decoder, states, number_positions, question_positions):
        self.decoder, self.config, self.pre = decoder, decoder.config, decoder.config.norm == "pre"
        if decoder.config.encoder_hidden_size != decoder.config.hidden_size:
            linear, _, norm = decoder.input_projection
            states = self.norm(norm, gelu(linear(states)))
        layer = decoder.constants
        constants = layer.down(gelu(layer.up(self.norm(layer.norm, layer.weight))))
        self.initial = torch.cat([states[number_positions], constants])
        self.reference = states[:1]
        self.goals = states[question_positions[-1:] if self.config.goal == "last" else question_positions]
        self.pool = states[:0]
        self.embeddings, self.contexts, self.logits, self.kept = [], [], [], []

    def norm(self, norm, rows):
        return layer_norm(rows, norm.normalized_shape, norm.weight, norm.bias, norm.eps)

    def feed_forward(self, layer, rows):
        if self.pre:
            return rows + layer.down(gelu(layer.up(self.norm(layer.norm, rows))))
        return self.norm(layer.norm, rows + layer.down(gelu(layer.up(rows))))

    def attention(self, queries, keys, values):
        """Multi-head attention of rows `(..., n, H)` over rows `(..., m, H)`."""
        heads = (self.config.num_attention_heads, self.config.hidden_size // self.config.num_attention_heads)
        queries, keys, values = (each.unflatten(-1, heads) for each in (queries, keys, values))
        weights = (torch.einsum("...nhs,...mhs->...hnm", queries, keys) * heads[1] ** -0.5).softmax(-1)
        return torch.einsum("...hnm,...mhs->...nhs", weights, values).flatten(-2)

    def judged(self, judge, thoughts, reference):
        """Contexts and logits of thoughts."""
        rows = self.feed_forward(judge.feed_forward, thoughts)
        queries = judge.query(self.norm(judge.norm, rows) if self.pre else rows)
        keys, values = judge.key_value(self.norm(judge.reference_norm, reference) if self.pre else reference).chunk(
            2, -1
        )
        rows = rows + judge.dense(self.attention(queries, keys, values))
        contexts = self.feed_forward(judge.output, rows if self.pre else self.norm(judge.norm, rows))
        return contexts, judge.score(contexts)[:, 0]

    def embed(self, kind, operands):
        """Embeddings of thoughts of one kind; `operands` are one or two places in the pool for each."""
        if kind is None:
            return self.initial[operands[:, 0]]
        if operands.shape[1] == 1:
            return self.feed_forward(self.decoder.transforms[kind], self.pool[operands[:, 0]])
        layer = self.decoder.aggregates[kind]
        inputs = layer.query_key_value(self.norm(layer.norm, self.pool) if self.pre else self.pool)
        mixed = self.attention(*inputs[operands].chunk(3, -1)).sum(1)
        rows = layer.dense(mixed) + self.pool[operands].sum(1)
        return self.feed_forward(layer.feed_forward, rows if self.pre else self.norm(layer.norm, rows))

    def take_round(self, candidates, choose):
        """Judges a round; `choose(logits)` returns the places that are kept."""
        groups = itertools.groupby(candidates, key=lambda candidate: candidate[0])
        groups = [(kind, torch.tensor([operands for _, operands, _ in group])) for kind, group in groups]
        embeddings = torch.cat([self.embed(kind, operands) for kind, operands in groups])
        contexts, logits = self.judged(self.decoder.reason, embeddings, self.reference)
        kept = choose(logits)
        self.embeddings.append(embeddings)
        self.contexts.append(contexts)
        self.logits.append(logits)
        self.kept += [place in kept for place in range(len(candidates))]
        self.pool = torch.cat([self.pool, embeddings[kept]])
        if self.config.chain == "append":
            self.reference = torch.cat([self.reference, contexts[kept]])
        elif self.config.chain == "replace" and kept:
            self.reference = contexts[kept]
        return kept

    def answers(self):
        return self.judged(self.decoder.answer, self.pool, self.goals)[1]

    def loss(self, rounds, target):
        """Summed loss of gold rounds, and the number of judged and pooled thoughts."""
        for candidates, kept in rounds:
            if candidates:
                self.take_round(candidates, lambda logits, kept=kept: kept)
        logits, answers = torch.cat(self.logits), self.answers()
        right = torch.zeros_like(answers)
        right[target] = 1
        loss = binary_cross_entropy_with_logits(logits, torch.tensor(self.kept).to(logits), reduction="sum")
        loss = loss + binary_cross_entropy_with_logits(answers, right, reduction="sum")
        return loss, len(logits) + len(answers)

    def search(self, initial, max_rounds, threshold, strength):
        """Pool and rounds of the search of the paper."""

        def judge(turn, candidates, pool):
            def choose(logits):
                passed = (logits.sigmoid() >= threshold).nonzero()[:, 0].tolist()
                return passed or (list(range(len(candidates))) if turn == 0 else [])

            return self.take_round(candidates, choose) if candidates else []

        return expand(initial, judge, max_rounds, stop=lambda pool: self.answers().sigmoid().max() >= strength)
