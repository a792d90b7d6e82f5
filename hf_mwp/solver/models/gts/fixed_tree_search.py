"""Tree search with tensors of fixed shapes, for devices that compute while the host continues."""

from __future__ import annotations

import torch
from torch import Tensor

from ..solve_output import SolveOutput
from .tree_search import TreeSearch


class FixedTreeSearch(TreeSearch):
    """
    [`TreeSearch`] whose tensors have the same shapes in all steps, with the same results. It needs no index lists,
    whose length the host would have to wait for: all beams take all branches, and masks select the results. The host
    waits once per step, to learn how many subtrees a symbol can complete, and whether all problems are finished.
    """

    def run(self) -> SolveOutput:
        """Run the search and return the results of all problems in their original order."""
        self._add_beams()
        while self.length < self.max_length:
            num_merges, is_finished = self._progress().tolist()
            if is_finished:
                break
            self._step(num_merges)
        self._write(self.problems)
        self.result.sequences = self.result.sequences[:, :, : max(self.length, 1)]
        return self.result

    def _add_beams(self) -> None:
        """Add all beams. Those without a tree are complete and impossible."""
        num_beams = self.num_beams
        self.goal = self.goal.repeat_interleave(num_beams, 0)
        self.depth = self.depth.repeat(num_beams)
        self.scores = self.scores.repeat(1, num_beams)
        self.scores[:, 1:] = -torch.inf
        self.complete = self.complete.repeat(1, num_beams)
        self.complete[:, 1:] = True
        self.symbols = self.symbols.repeat(1, num_beams, 1)
        self.stack = self.stack.repeat(1, num_beams, 1)
        # A step stores one embedding for each row: the goal of a right child, or a subtree.
        num_rows = len(self.goal)
        candidates = self.memory.candidates
        self.rows = torch.arange(num_rows, device=candidates.device)
        self.embeddings = candidates.new_zeros(self.max_length * num_rows, candidates.shape[-1])

    def _progress(self) -> Tensor:
        """Return the number of subtrees that the next symbol merges at most, and whether all problems are finished."""
        # A leaf completes the operators above the last one in the stack whose left subtree is incomplete. Without such
        # an operator it completes the tree, which needs no embedding.
        slots = torch.arange(self.stack.shape[-1], device=self.depth.device)
        last_waiting = torch.where(self._waiting_slots(), slots, -1).amax(1)
        is_merged = (last_waiting >= 0) & ~self.complete.flatten()
        num_merges = torch.where(is_merged, self.depth - 1 - last_waiting, 0).amax()
        is_final = self.complete[:, 0] if self.num_return == 1 else self.complete
        return torch.stack([num_merges, is_final.all().long()])

    def _step(self, num_merges: int) -> None:
        """Extend each incomplete beam by one symbol, which merges at most `num_merges` subtrees."""
        decoder = self.decoder
        memory = self.memory
        batch, beams = self.scores.shape
        goal = self.goal.view(batch, beams, -1)
        state = torch.cat([goal, decoder.all_contexts(goal, memory)], -1)
        scores = decoder.symbol_scores(state, memory.candidate_keys.unsqueeze(1), memory.missing.unsqueeze(1))
        parent, symbol = self._choose(scores.float().log_softmax(-1))

        # Reorder the state: each new beam extends its parent beam.
        problems = self.rows // beams
        parent_rows = problems * beams + parent.flatten()
        self.symbols = self.symbols.gather(1, parent.unsqueeze(-1).expand(-1, -1, self.max_length))
        self.symbols[:, :, self.length] = symbol
        self.depth = self.depth[parent_rows]
        self.stack = self.stack[:, parent_rows]
        state = state.flatten(0, 1)[parent_rows]

        # In incomplete trees, operators have two goals; constants and numbers are leaves, which complete subtrees.
        symbol = symbol.flatten()
        is_open = ~self.complete.flatten()
        is_leaf = is_open & (symbol >= decoder.num_operators)
        is_operator = is_open & ~is_leaf
        operators = decoder.embed_operators(symbol.clamp(0, decoder.num_operators - 1))
        left_goal, right_goal = decoder.expand(state, operators)
        candidates = (symbol - decoder.num_operators).clamp_min(0)
        subtree = self._merge(memory.candidates[problems, candidates], is_leaf, num_merges)
        self._store(torch.where(is_leaf.unsqueeze(1), subtree, right_goal))
        self._update_stack(symbol, is_operator, is_leaf)

        # The next goal: of the left child of an operator, or of the sibling of a left subtree.
        top = (self.depth - 1).clamp_min(0)
        sibling_goal = decoder.right_goal(self._load(self.stack[1, self.rows, top]), subtree)
        self.goal = torch.where(is_leaf.unsqueeze(1), sibling_goal, decoder.left_goal(left_goal))
        self.length += 1

    def _merge(self, subtree: Tensor, is_leaf: Tensor, num_merges: int) -> Tensor:
        """Return the largest subtrees `(rows, H)` that new leaves complete, and remove their operators."""
        for _ in range(num_merges):
            top = (self.depth - 1).clamp_min(0)
            operator, _, left = self.stack[:, self.rows, top]
            is_complete = is_leaf & (left >= 0)
            children = torch.cat([self._load(left), subtree], -1)
            merged = self.decoder.combine(self.decoder.embed_operators(operator.clamp_min(0)), children)
            subtree = torch.where(is_complete.unsqueeze(1), merged, subtree)
            self.depth = self.depth - is_complete.long()
        return subtree

    def _update_stack(self, symbol: Tensor, is_operator: Tensor, is_leaf: Tensor) -> None:
        """Push new operators, and set the left subtree of the operator above new leaves."""
        self.depth = self.depth + is_operator.long()
        top = (self.depth - 1).clamp_min(0)
        before = self.stack[:, self.rows, top]
        stored = self.length * len(self.rows) + self.rows
        opened = torch.stack([symbol, stored, torch.full_like(stored, -1)])
        closed = torch.stack([before[0], before[1], stored])
        after = torch.where(is_operator, opened, torch.where(is_leaf, closed, before))
        self.stack[:, self.rows, top] = after

    def _store(self, embeddings: Tensor) -> None:
        """Store the embeddings `(rows, H)` of this step."""
        start = self.length * len(self.rows)
        self.embeddings[start : start + len(self.rows)] = embeddings

    def _load(self, indices: Tensor) -> Tensor:
        """Return the stored embeddings `(rows, H)` at indices; any where they are negative."""
        return self.embeddings[indices.clamp_min(0)]


def uses_fixed_shapes(states: Tensor) -> bool:
    """Return whether the device of hidden states computes while the host continues, and should not be waited for."""
    return states.device.type not in ("cpu", "mps")
