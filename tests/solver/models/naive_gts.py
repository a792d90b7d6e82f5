"""The tree decoder one problem and one node at a time: slow, obvious, the truth for the batched one."""

import math

import torch


def _gated(layer, inputs):
    value, gate = layer.linear(inputs).chunk(2)
    return torch.tanh(value) * torch.sigmoid(gate)


def _additive(scorer, query, keys):
    weight = torch.cat([scorer.query.weight, scorer.key.weight], 1)
    scores = []
    for key in keys:
        hidden = torch.tanh(weight @ torch.cat([query, key]) + scorer.query.bias)
        scores.append(scorer.score.weight[0] @ hidden)
    return torch.stack(scores) if scores else query.new_zeros(0)


class NaiveGTS:
    """Sections 2.2 to 2.5 of the decoder for one problem without padding."""

    def __init__(self, decoder, states, positions):
        self.decoder, self.num_operators = decoder, decoder.num_operators
        self.states = decoder.input_projection(states)
        self.candidates = [*decoder.constant_embedding, *(self.states[position] for position in positions)]
        self.root = self.states[0] if decoder.config.root_goal == "cls" else self.states.mean(0)

    def goal(self, before, sibling):
        if sibling is None:
            return _gated(self.decoder.goal_left, before)
        return _gated(self.decoder.goal_right, torch.cat([sibling, before]))

    def context(self, goal):
        weights = _additive(self.decoder.attention, goal, self.states).softmax(0)
        return sum(weight * state for weight, state in zip(weights, self.states, strict=True))

    def scores(self, goal, context):
        state = torch.cat([goal, context])
        candidates = _additive(self.decoder.candidate_scorer, state, self.candidates)
        return torch.cat([self.decoder.operator_scorer(state), candidates])

    def children(self, goal, context, operator):
        embedding = self.decoder.operator_embedding.weight[operator]
        return _gated(self.decoder.generate_children, torch.cat([goal, context, embedding])).chunk(2)

    def merge(self, operator, left, right):
        embedding = self.decoder.operator_embedding.weight[operator]
        return _gated(self.decoder.merge, torch.cat([embedding, left, right]))

    def score_tree(self, ids):
        """Scores `(len(ids), symbols)` of the nodes of a prefix sequence."""
        rows, rest = [], list(ids)

        def visit(before, sibling):
            symbol = rest.pop(0)
            goal = self.goal(before, sibling)
            context = self.context(goal)
            rows.append(self.scores(goal, context))
            if symbol >= self.num_operators:
                return self.candidates[symbol - self.num_operators]
            left_goal, right_goal = self.children(goal, context, symbol)
            left = visit(left_goal, None)
            right = visit(right_goal, left)
            return self.merge(symbol, left, right)

        visit(self.root, None)
        assert not rest
        return torch.stack(rows)

    def search(self, beams, max_length):
        """All beams `(score, ids)`, best first; `[]` when no symbol is a legal leaf."""
        if not self.candidates:
            return []
        states = [(0.0, [], [self.root], [])]
        while any(todo for _, _, todo, _ in states):
            grown = []
            for score, ids, todo, stack in states:
                if not todo:
                    grown.append((score, ids, todo, stack))
                    continue
                sibling = stack[-1] if stack and not isinstance(stack[-1], int) else None
                goal = self.goal(todo[-1], sibling)
                context = self.context(goal)
                log_probs = self.scores(goal, context).log_softmax(0)
                for symbol, log_prob in enumerate(log_probs.tolist()):
                    if symbol < self.num_operators and len(ids) + 1 + len(todo) + 1 > max_length:
                        continue
                    grown.append(
                        (score + log_prob, ids + [symbol], *self._advance(todo, stack, goal, context, symbol))
                    )
            states = sorted(grown, key=lambda state: -state[0])[:beams]
        return [(score, ids) for score, ids, _, _ in states if math.isfinite(score)]

    def _advance(self, todo, stack, goal, context, symbol):
        todo, stack = todo[:-1], list(stack)
        if symbol < self.num_operators:
            left, right = self.children(goal, context, symbol)
            return [*todo, right, left], [*stack, symbol]
        subtree = self.candidates[symbol - self.num_operators]
        while stack and not isinstance(stack[-1], int):
            left, operator = stack.pop(), stack.pop()
            subtree = self.merge(operator, left, subtree)
        return todo, [*stack, subtree]
