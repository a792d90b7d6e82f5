"""The tree decoder one problem and one node at a time: slow and obvious, the reference of the batched one."""

import math

import torch


def gated(layer, inputs):
    value, gate = layer.linear(inputs).chunk(2)
    return torch.tanh(value) * torch.sigmoid(gate)


def additive_scores(scorer, query, keys):
    weight = torch.cat([scorer.query.weight, scorer.key.weight], 1)
    scores = [query.new_zeros(0)]
    for key in keys:
        hidden = torch.tanh(weight @ torch.cat([query, key]) + scorer.query.bias)
        scores.append(scorer.score.weight @ hidden)
    return torch.cat(scores)


class NaiveGTS:
    """Sections 2.2 to 2.5 of the decoder for one problem without padding."""

    def __init__(self, decoder, states, positions):
        self.decoder = decoder
        self.num_operators = decoder.num_operators
        self.states = decoder.input_projection(states)
        self.candidates = [*decoder.constant_embedding, *self.states[positions]]
        self.root = self.states[0] if decoder.config.root_goal == "cls" else self.states.mean(0)

    def goal(self, before, sibling):
        if sibling is None:
            return gated(self.decoder.goal_left, before)
        return gated(self.decoder.goal_right, torch.cat([sibling, before]))

    def context(self, goal):
        return additive_scores(self.decoder.attention, goal, self.states).softmax(0) @ self.states

    def scores(self, goal, context):
        state = torch.cat([goal, context])
        candidates = additive_scores(self.decoder.candidate_scorer, state, self.candidates)
        return torch.cat([self.decoder.operator_scorer(state), candidates])

    def children(self, goal, context, operator):
        embedding = self.decoder.operator_embedding.weight[operator]
        return gated(self.decoder.generate_children, torch.cat([goal, context, embedding])).chunk(2)

    def merge(self, operator, left, right):
        embedding = self.decoder.operator_embedding.weight[operator]
        return gated(self.decoder.merge, torch.cat([embedding, left, right]))

    def score_tree(self, ids):
        """Scores `(len(ids), symbols)` of the nodes of a prefix sequence."""
        rows = []
        remaining = list(ids)

        def visit(before, sibling):
            symbol = remaining.pop(0)
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
        assert not remaining
        return torch.stack(rows)

    def search(self, num_beams, max_length, score_margin=math.inf):
        """All beams `(score, ids)`, best first; `[]` if no symbol can be a leaf."""
        if not self.candidates:
            return []
        # Each beam has a score, ids, the goals of unvisited nodes, and a stack of operators and subtrees.
        beams = [(0.0, [], [self.root], [])]
        while any(goals for _, _, goals, _ in beams):
            extended = []
            for beam in beams:
                extended += self._extend(beam, max_length) if beam[2] else [beam]
            beams = sorted(extended, key=lambda beam: -beam[0])[:num_beams]
            lowest = beams[0][0] - score_margin
            beams = [beam for beam in beams if beam[0] >= lowest or not beam[2]]
        return [(score, ids) for score, ids, _, _ in beams if math.isfinite(score)]

    def _extend(self, beam, max_length):
        score, ids, goals, stack = beam
        sibling = stack[-1] if stack and not isinstance(stack[-1], int) else None
        goal = self.goal(goals[-1], sibling)
        context = self.context(goal)
        log_probs = self.scores(goal, context).log_softmax(0)
        beams = []
        for symbol, log_prob in enumerate(log_probs.tolist()):
            is_operator = symbol < self.num_operators
            if is_operator and len(ids) + len(goals) + 2 > max_length:
                continue
            if is_operator:
                left, right = self.children(goal, context, symbol)
                new_goals = [*goals[:-1], right, left]
                new_stack = [*stack, symbol]
            else:
                new_goals = goals[:-1]
                new_stack = self._add_leaf(stack, self.candidates[symbol - self.num_operators])
            beams.append((score + log_prob, [*ids, symbol], new_goals, new_stack))
        return beams

    def _add_leaf(self, stack, subtree):
        stack = list(stack)
        while stack and not isinstance(stack[-1], int):
            left = stack.pop()
            operator = stack.pop()
            subtree = self.merge(operator, left, subtree)
        return [*stack, subtree]
