"""Greedy and beam search over expression trees, batched over problems and beams."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from ..solve_output import SolveOutput


@dataclass
class DecoderMemory:
    """Tensors of a batch that all decoding steps read: `B` problems, `S` tokens, and `C` candidates (the constants,
    then the numbers of the problem)."""

    states: Tensor  # (B, S, H): hidden states
    padding: Tensor  # (B, S): true at padding
    keys: Tensor  # (B, S, H): states projected for the attention
    candidates: Tensor  # (B, C, H): embeddings
    candidate_keys: Tensor  # (B, C, H): embeddings projected for their scores
    missing: Tensor  # (B, C): true for numbers that the problem does not have
    root: Tensor  # (B, H): first goal

    def select(self, problems: Tensor) -> DecoderMemory:
        """Return the memory of the given problems."""
        return DecoderMemory(**{name: tensor[problems] for name, tensor in vars(self).items()})


class TreeSearch:
    """
    Search with a [`GTSDecoder`]. Its state has the unfinished problems; rows are problems times beams.

    Each step extends all incomplete beams by a symbol in prefix order and keeps the best `num_beams` of each problem.
    A problem leaves the batch when its result is final. Scores only decrease, so a complete best beam is final. With a
    `score_margin`, incomplete beams with a score of more than this below that of the best beam are dropped.
    """

    def __init__(
        self,
        decoder: nn.Module,
        memory: DecoderMemory,
        num_beams: int,
        max_length: int,
        num_return_sequences: int,
        score_margin: float | None = None,
    ) -> None:
        batch = len(memory.root)
        device = memory.root.device
        self.decoder = decoder
        self.memory = memory
        self.num_beams = num_beams
        self.max_length = max_length
        self.num_return = num_return_sequences
        self.score_margin = score_margin
        self.problems = torch.arange(batch, device=device)
        # By row: the goal of the current node, and the depth of the stack.
        self.goal = decoder.left_goal(memory.root)
        self.depth = torch.zeros(batch, dtype=torch.long, device=device)
        # By problem and beam: log probability, whether the tree is complete, and symbols in prefix order.
        self.scores = torch.zeros(batch, 1, device=device)
        self.complete = torch.zeros(batch, 1, dtype=torch.bool, device=device)
        self.symbols = torch.full((batch, 1, max_length), -100, device=device)
        # For each operator on the path: id, `arena` index of its right child's goal, left subtree (-1: incomplete).
        self.stack = torch.full((3, batch, max_length // 2 + 1), -1, device=device)
        # Goals and subtrees. The arena only grows, so that reordering beams moves integers instead of embeddings.
        self.arena: list[Tensor] = []
        self.length = 0
        self.result = SolveOutput(
            sequences=torch.full((batch, num_return_sequences, max_length), -100, device=device),
            scores=torch.full((batch, num_return_sequences), -torch.inf, device=device),
            finished=torch.zeros(batch, num_return_sequences, dtype=torch.bool, device=device),
            finite=torch.ones(batch, dtype=torch.bool, device=device),
        )

    def _step(self) -> None:
        """Extend each incomplete beam by one symbol."""
        decoder = self.decoder
        memory = self.memory
        batch, beams = self.scores.shape
        # Score the symbols of incomplete beams only, because nearly half of twenty beams may be complete.
        going = _indices(~self.complete.flatten())
        problems = going // beams
        context = decoder.context(self.goal.view(batch, beams, -1), memory, going).flatten(0, 1)
        state = torch.cat([self.goal, context], -1)[going]
        keys = memory.candidate_keys.index_select(0, problems)
        missing = memory.missing.index_select(0, problems)
        log_probs = decoder.symbol_scores(state, keys, missing).float().log_softmax(-1)
        log_probs = log_probs.new_zeros(batch * beams, log_probs.shape[-1]).index_copy(0, going, log_probs)
        parent, symbol = self._choose(log_probs.view(batch, beams, -1))

        # Reorder the state: each new beam extends its parent beam.
        rows = (parent + torch.arange(batch, device=parent.device).unsqueeze(1) * beams).flatten()
        self.symbols = self.symbols.gather(1, parent.unsqueeze(-1).expand(-1, -1, self.max_length))
        self.symbols[:, :, self.length] = symbol
        self.length += 1
        self.depth = self.depth[rows]
        self.stack = self.stack[:, rows]
        goal = self.goal
        self.goal = goal.new_zeros(len(rows), goal.shape[-1])

        # In incomplete trees, operators open a subtree, constants and numbers close one or more.
        symbol = symbol.flatten()
        is_open = ~self.complete.flatten()
        is_leaf = symbol >= decoder.num_operators
        operators = _indices(is_open & ~is_leaf)
        if len(operators):
            former = rows[operators]
            self._open(operators, symbol[operators], torch.cat([goal[former], context[former]], -1))
        leaves = _indices(is_open & is_leaf)
        if len(leaves):
            problems = leaves // parent.shape[1]
            self._close(leaves, memory.candidates[problems, symbol[leaves] - decoder.num_operators])

    def _choose(self, log_probs: Tensor) -> tuple[Tensor, Tensor]:
        """Return parent beams and symbols (-100 for complete beams) of the best continuations of each problem, and
        update which of them are complete."""
        batch, beams, size = log_probs.shape
        num_operators = self.decoder.num_operators
        # Forbid numbers that a problem lacks.
        log_probs[:, :, num_operators:].masked_fill_(self.memory.missing.unsqueeze(1), -torch.inf)
        # Forbid operators whose operands would not fit; an incomplete left subtree still needs a right one.
        num_waiting = self._waiting_slots().sum(1).view(batch, beams)
        too_long = self.length + num_waiting + 3 > self.max_length
        log_probs[:, :, :num_operators].masked_fill_(too_long.unsqueeze(-1), -torch.inf)
        # A complete beam is continued unchanged, at no cost.
        log_probs.masked_fill_(self.complete.unsqueeze(-1), -torch.inf)
        log_probs[:, :, 0].masked_fill_(self.complete, 0.0)
        # Choose the best continuations over all beams of a problem; impossible ones count as complete.
        total = (self.scores.unsqueeze(-1) + log_probs).flatten(1)
        self.scores, best = total.topk(min(self.num_beams, total.shape[1]), dim=1)
        parent = best // size
        symbol = best % size
        is_unchanged = self.complete.gather(1, parent) | (self.scores == -torch.inf)
        # A leaf completes a tree if no operator waits for a left subtree, and so for a right one.
        is_last = (symbol >= num_operators) & (num_waiting.gather(1, parent) == 0)
        self.complete = is_unchanged | is_last
        self._cut()
        return parent, symbol.masked_fill(is_unchanged, -100)

    def _waiting_slots(self) -> Tensor:
        """Return which slots `(rows, slots)` of the stack have an operator whose left subtree is incomplete."""
        slots = torch.arange(self.stack.shape[-1], device=self.stack.device)
        return (self.stack[2] < 0) & (slots < self.depth.unsqueeze(1))

    def _cut(self) -> None:
        """Drop incomplete beams by the margin of scores: they count as complete, with a score of minus infinity."""
        if self.score_margin is None:
            return
        is_dropped = ~self.complete & (self.scores < self.scores[:, :1] - self.score_margin)
        self.scores = self.scores.masked_fill(is_dropped, -torch.inf)
        self.complete = self.complete | is_dropped

    def _open(self, rows: Tensor, operators: Tensor, state: Tensor) -> None:
        """Add operators: the left child is next, and the right child's goal is pushed onto the stack."""
        left, right = self.decoder.expand(state, self.decoder.embed_operators(operators))
        self.goal[rows] = self.decoder.left_goal(left)
        top = self.depth[rows]
        self.stack[0, rows, top] = operators
        self.stack[1, rows, top] = self._store(right)
        self.stack[2, rows, top] = -1
        self.depth[rows] = top + 1

    def _close(self, rows: Tensor, subtree: Tensor) -> None:
        """Add leaves of incomplete trees: merge the subtrees that they complete, then set the goal of the next right
        child."""
        while True:
            # If the top operator of a row has its left subtree, the current subtree is its right subtree.
            top = self.depth[rows] - 1
            left = self.stack[2, rows, top]
            ends = _indices(left >= 0)
            if not len(ends):
                break
            # Merge both subtrees with the operator, and remove it from the stack.
            operators = self.decoder.embed_operators(self.stack[0, rows[ends], top[ends]])
            children = torch.cat([self._load(left[ends]), subtree[ends]], -1)
            merged = self.decoder.combine(operators, children)
            # With mixed precision on a GPU, `index_copy` needs equal dtypes.
            subtree = subtree.index_copy(0, ends, merged.to(subtree.dtype))
            self.depth[rows[ends]] = top[ends]
        # The remaining subtree is the left subtree of the top operator, whose right child is next.
        self.stack[2, rows, top] = self._store(subtree)
        self.goal[rows] = self.decoder.right_goal(self._load(self.stack[1, rows, top]), subtree)

    def _store(self, embeddings: Tensor) -> Tensor:
        """Store embeddings `(n, H)` in the arena and return their indices."""
        size = sum(map(len, self.arena))
        self.arena.append(embeddings)
        return torch.arange(size, size + len(embeddings), device=embeddings.device)

    def _load(self, indices: Tensor) -> Tensor:
        """Return the embeddings `(n, H)` at indices of the arena."""
        if len(self.arena) > 1:
            self.arena = [torch.cat(self.arena)]
        return self.arena[0][indices]

    def _drop_finished(self) -> None:
        """Store the results of finished problems in the output, and remove these problems from the batch."""
        is_final = self.complete[:, 0] if self.num_return == 1 else self.complete.all(1)
        finished = _indices(is_final)
        if not len(finished):
            return
        self._write(finished)
        unfinished = _indices(~is_final)
        beams = self.scores.shape[1]
        rows = (unfinished.unsqueeze(1) * beams + torch.arange(beams, device=unfinished.device)).flatten()
        self.problems = self.problems[unfinished]
        self.memory = self.memory.select(unfinished)
        self.scores = self.scores[unfinished]
        self.complete = self.complete[unfinished]
        self.symbols = self.symbols[unfinished]
        self.goal = self.goal[rows]
        self.depth = self.depth[rows]
        self.stack = self.stack[:, rows]

    def _write(self, indices: Tensor) -> None:
        """Write the results of the problems at these indices: complete beams by score, then empty rows."""
        problems = self.problems[indices]
        scores = self.scores[indices]
        # A beam with a NaN score stays until the end, because `topk` treats NaN as the largest number.
        finite = ~scores.isnan().any(1)
        finished = self.complete[indices] & scores.isfinite() & finite.unsqueeze(1)
        num_rows = min(self.num_return, scores.shape[1])
        scores, order = scores.masked_fill(~finished, -torch.inf).topk(num_rows, dim=1)
        finished = finished.gather(1, order)
        symbols = self.symbols[indices].gather(1, order.unsqueeze(-1).expand(-1, -1, self.max_length))
        self.result.finite[problems] = finite
        self.result.sequences[problems, :num_rows] = symbols.masked_fill(~finished.unsqueeze(-1), -100)
        self.result.scores[problems, :num_rows] = scores
        self.result.finished[problems, :num_rows] = finished

    def run(self) -> SolveOutput:
        """Run the search and return the results of all problems in their original order."""
        while len(self.problems) and self.length < self.max_length:
            self._step()
            self._drop_finished()
        if len(self.problems):
            self._write(torch.arange(len(self.problems), device=self.problems.device))
        self.result.sequences = self.result.sequences[:, :, : max(self.length, 1)]
        return self.result


def _indices(mask: Tensor) -> Tensor:
    """Return the indices of the true elements of a vector."""
    return mask.nonzero().squeeze(1)


class LiveWeights:
    """Replacement of [`~runtime.weights.Weights`] for a decoder, sharing the memory of its parameters."""

    def __init__(self, decoder: nn.Module) -> None:
        self.decoder = decoder

    def __getitem__(self, name: str) -> np.ndarray:
        return self.decoder.get_parameter(name.removeprefix("decoder.")).detach().numpy()

    def linear(self, prefix: str, bias: bool = True) -> tuple[np.ndarray, np.ndarray | float]:
        weight = self[f"{prefix}.weight"].T
        return weight, self[f"{prefix}.bias"] if bias else 0.0


def uses_numpy(decoder: nn.Module, states: Tensor) -> bool:
    """Return whether states `(B, S, H)` belong to one problem, on a CPU, in fp32, and the decoder has neither active
    dropout nor adapters, which the NumPy runtime would ignore."""
    is_simple = states.device.type == "cpu" and states.dtype == torch.float32 and len(states) == 1
    if not is_simple or torch.is_autocast_enabled("cpu") or (decoder.training and decoder.config.dropout):
        return False
    # Adapters of peft are modules of its own.
    for module in decoder.modules():
        if not type(module).__module__.startswith(("torch.nn.modules.", "hf_mwp.")):
            return False
    return True
