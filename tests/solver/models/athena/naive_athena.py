"""
ATHENA one problem and one round at a time, as the paper and the authors' program have it: slow and obvious, the
reference of the batched one.

Thoughts are nested tuples: `("NUM", 0)`, `("CON", value)`, `("NEG", a)`, `("ADD", a, b, ...)` with sorted children.
"""

import itertools
from collections import Counter
from fractions import Fraction

import torch
from torch.nn.functional import binary_cross_entropy_with_logits, gelu, layer_norm


def aggregate(operation, left, right):
    children = []
    for thought in (left, right):
        children += thought[1:] if thought[0] == operation else [thought]
    return (operation, *sorted(children, key=repr))


class Node:
    """A thought as an equation writes it, with the nodes below it."""

    def __init__(self, thought, *operands):
        self.thought = thought
        self.nodes = {thought}.union(*(operand.nodes for operand in operands))
        self.value = thought[1] if thought[0] == "CON" else None


def unary(operation, node):
    return Node((operation, node.thought), node)


def binary(operation, left, right):
    return Node(aggregate(operation, left.thought, right.thought), left, right)


def multiply(left, right):
    for factor, other in ((left, right), (right, left)):
        if factor.value == 1:
            return other
        if factor.value == -1:
            return unary("NEG", other)
        if factor.value in (2, -2):
            double = Node(aggregate("ADD", other.thought, other.thought), other)
            return double if factor.value == 2 else unary("NEG", double)
    return binary("MUL", left, right)


def read(expression, constants):
    """The node of an equation; `constants` maps literals to values, `("INV", value)` where written as a reciprocal."""
    if expression.is_leaf:
        if expression.is_slot:
            return Node(("NUM", expression.slot_index))
        value = constants[expression.token]
        if isinstance(value, tuple):
            return unary("INV", Node(("CON", value[1])))
        return Node(("CON", value))
    left = read(expression.left, constants)
    right = read(expression.right, constants)
    if expression.token == "+":
        return binary("ADD", left, right)
    if expression.token == "-":
        return binary("ADD", left, unary("NEG", right))
    if expression.token == "*":
        return multiply(left, right)
    if expression.token == "/":
        if right.value == 2:
            return unary("HALF", left)
        return multiply(left, unary("INV", right))
    if right.value == Fraction(1, 2):
        return unary("ROOT", left)
    power = left
    for _ in range(1, int(right.value)):
        power = multiply(power, left)
    return power


AGGREGATES = ("ADD", "MUL")
TRANSFORMS = ("NEG", "INV", "ROOT", "HALF")


def naive_form(table, thought, values):
    """A thought of a `ThoughtTable` as a nested tuple; `values` are those of the constants."""
    operation = table.kinds[thought]
    children = table.children[thought]
    if operation == "NUM":
        return ("NUM", children[0])
    if operation == "CON":
        return ("CON", values[children[0]])
    return (operation, *sorted((naive_form(table, child, values) for child in children), key=repr))


def contains(thought, other):
    """Whether `other` is a sub-multiset of a node of a thought."""
    if thought[0] == other[0] and Counter(other[1:]) <= Counter(thought[1:]):
        return True
    return thought[0] not in ("NUM", "CON") and any(contains(child, other) for child in thought[1:])


def expand(initial, judge, max_rounds=0, stop=lambda pool: False):
    """The pool, and rounds of candidates `(operation, operands, thought)` with the indices of the accepted ones, which
    `judge(round, candidates, pool)` returns."""
    pool = []
    rounds = []
    num_transformed = 0
    num_aggregated = 0
    for turn in itertools.count():
        if 0 < max_rounds <= turn:
            break
        candidates = []
        if turn == 0:
            candidates = [(None, (index,), thought) for index, thought in enumerate(initial)]
        elif turn % 2:
            if num_transformed == len(pool):
                break
            for operation, index in itertools.product(TRANSFORMS, range(num_transformed, len(pool))):
                if (operation, pool[index]) not in pool:
                    candidates.append((operation, (index,), (operation, pool[index])))
            num_transformed = len(pool)
        else:
            if num_aggregated == len(pool):
                break
            new = range(num_aggregated, len(pool))
            pairs = [*itertools.product(range(num_aggregated), new)]
            pairs += itertools.combinations_with_replacement(new, 2)
            known = set(pool)
            for operation, (left, right) in itertools.product(AGGREGATES, pairs):
                thought = aggregate(operation, pool[left], pool[right])
                if thought not in known:
                    known.add(thought)
                    candidates.append((operation, (left, right), thought))
            num_aggregated = len(pool)
        accepted = judge(turn, candidates, pool)
        pool = pool + [candidates[index][2] for index in accepted]
        rounds.append((candidates, accepted))
        if stop(pool):
            break
    return pool, rounds


def gold(initial, node, subsets=False):
    """Pool and rounds under gold selection."""

    def judge(turn, candidates, pool):
        accepted = []
        for index, (_, _, thought) in enumerate(candidates):
            if contains(node.thought, thought) if subsets else thought in node.nodes:
                accepted.append(index)
        return accepted

    return expand(initial, judge, stop=lambda pool: node.thought in pool)


class NaiveAthena:
    """Layers of a decoder applied to one problem and one round at a time."""

    def __init__(self, decoder, states, number_positions, question_positions):
        self.decoder = decoder
        self.config = decoder.config
        self.is_pre = decoder.config.norm == "pre"
        if decoder.config.encoder_hidden_size != decoder.config.hidden_size:
            linear, _, norm = decoder.input_projection
            states = self.norm(norm, gelu(linear(states)))
        layer = decoder.constants
        constants = layer.down(gelu(layer.up(self.norm(layer.norm, layer.weight))))
        self.initial = torch.cat([states[number_positions], constants])
        self.reference = states[:1]
        self.goals = states[question_positions[-1:] if self.config.goal == "last" else question_positions]
        self.pool = states[:0]
        # Embeddings, contexts, logits and acceptance of all candidates.
        self.embeddings = []
        self.contexts = []
        self.logits = []
        self.accepted = []

    def norm(self, norm, rows):
        return layer_norm(rows, norm.normalized_shape, norm.weight, norm.bias, norm.eps)

    def pre_norm(self, norm, rows):
        return self.norm(norm, rows) if self.is_pre else rows

    def post_norm(self, norm, rows):
        return rows if self.is_pre else self.norm(norm, rows)

    def feed_forward(self, layer, rows):
        inner = gelu(layer.up(self.pre_norm(layer.norm, rows)))
        return self.post_norm(layer.norm, rows + layer.down(inner))

    def attention(self, queries, keys, values):
        """Multi-head attention of rows `(..., n, H)` over rows `(..., m, H)`."""
        num_heads = self.config.num_attention_heads
        head_size = self.config.hidden_size // num_heads
        queries = queries.unflatten(-1, (num_heads, head_size))
        keys = keys.unflatten(-1, (num_heads, head_size))
        values = values.unflatten(-1, (num_heads, head_size))
        weights = (torch.einsum("...nhs,...mhs->...hnm", queries, keys) * head_size**-0.5).softmax(-1)
        return torch.einsum("...hnm,...mhs->...nhs", weights, values).flatten(-2)

    def judged(self, judge, thoughts, reference):
        """Contexts and logits of thoughts."""
        rows = self.feed_forward(judge.feed_forward, thoughts)
        queries = judge.query(self.pre_norm(judge.norm, rows))
        keys, values = judge.key_value(self.pre_norm(judge.reference_norm, reference)).chunk(2, -1)
        rows = rows + judge.dense(self.attention(queries, keys, values))
        contexts = self.feed_forward(judge.output, self.post_norm(judge.norm, rows))
        return contexts, judge.score(contexts)[:, 0]

    def embed(self, operation, operands):
        """Embeddings of thoughts of one operation; `operands` `(n, 1)` or `(n, 2)` are indices in the pool."""
        if operation is None:
            return self.initial[operands[:, 0]]
        if operands.shape[1] == 1:
            return self.feed_forward(self.decoder.transforms[operation], self.pool[operands[:, 0]])
        layer = self.decoder.aggregates[operation]
        inputs = layer.query_key_value(self.pre_norm(layer.norm, self.pool))
        mixed = self.attention(*inputs[operands].chunk(3, -1)).sum(1)
        rows = layer.dense(mixed) + self.pool[operands].sum(1)
        return self.feed_forward(layer.feed_forward, self.post_norm(layer.norm, rows))

    def take_round(self, candidates, choose):
        """Judge a round, and return the indices of the accepted candidates, which `choose(logits)` returns."""
        embeddings = []
        for operation, group in itertools.groupby(candidates, key=lambda candidate: candidate[0]):
            operands = torch.tensor([operands for _, operands, _ in group])
            embeddings.append(self.embed(operation, operands))
        embeddings = torch.cat(embeddings)
        contexts, logits = self.judged(self.decoder.reason, embeddings, self.reference)
        accepted = choose(logits)
        self.embeddings.append(embeddings)
        self.contexts.append(contexts)
        self.logits.append(logits)
        self.accepted += [index in accepted for index in range(len(candidates))]
        self.pool = torch.cat([self.pool, embeddings[accepted]])
        if self.config.chain == "append":
            self.reference = torch.cat([self.reference, contexts[accepted]])
        elif self.config.chain == "replace" and accepted:
            self.reference = contexts[accepted]
        return accepted

    def answers(self):
        return self.judged(self.decoder.answer, self.pool, self.goals)[1]

    def loss(self, rounds, target):
        """Summed loss of gold rounds, and the number of judged and pooled thoughts."""
        for candidates, accepted in rounds:
            if candidates:
                self.take_round(candidates, lambda logits, accepted=accepted: accepted)
        logits = torch.cat(self.logits)
        answers = self.answers()
        is_answer = torch.zeros_like(answers)
        is_answer[target] = 1
        loss = binary_cross_entropy_with_logits(logits, torch.tensor(self.accepted).to(logits), reduction="sum")
        loss = loss + binary_cross_entropy_with_logits(answers, is_answer, reduction="sum")
        return loss, len(logits) + len(answers)

    def search(self, initial, max_rounds, threshold, strength):
        """Pool and rounds of the search of the paper."""

        def judge(turn, candidates, pool):
            def choose(logits):
                passed = (logits.sigmoid() >= threshold).nonzero()[:, 0].tolist()
                if turn == 0 and not passed:
                    return list(range(len(candidates)))
                return passed

            return self.take_round(candidates, choose) if candidates else []

        return expand(initial, judge, max_rounds, stop=lambda pool: self.answers().sigmoid().max() >= strength)
