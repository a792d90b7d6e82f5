"""Search of ATHENA: thought expansion for a batch of problems in inference."""

import math
from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Tensor, nn

from hf_mwp.compress.losses.precision import at_least_fp32

from ..solve_output import SolveOutput
from .gold_plan import PlanMaker
from .layers_athena import scatter_rows
from .thoughts import AGGREGATES, OPERATIONS, Candidate, Expansion, ThoughtTable


@dataclass
class ProblemState:
    """State of the search for one problem (a row of the batch)."""

    problem: int
    expansion: Expansion
    sources: list[int]  # rows of the initial thoughts in the initial embeddings
    reference: list[int]  # rows that candidates attend to; the first is row `problem`
    candidates: list[Candidate] | None = None  # of the current round; `None` if the expansion has ended
    capped: bool = False  # a limit cut the expansion short
    finite: bool = True  # no score is NaN or infinite
    # For each thought of the pool:
    rows: list[int] = field(default_factory=list)  # its row in the tensors of all thoughts
    nodes: list[frozenset[int]] = field(default_factory=list)  # the thoughts that it contains, including itself
    reasoning: list[float] = field(default_factory=list)  # its log probability
    answering: list[float] = field(default_factory=list)  # its answering logit

    def path_score(self, place: int) -> float:
        """Return the log answering probability of a thought plus the log probabilities of all its nodes."""
        log_probabilities = [self.reasoning[node] for node in self.nodes[place]]
        return _log_sigmoid(self.answering[place]) + sum(log_probabilities)


class ThoughtSearch:
    """
    Search that expands the thoughts of all problems of a batch together, round by round, until each has an answer.

    With one beam, this is the paper's search: candidates with a probability of at least `threshold` join the pool, the
    expansion ends when an answering probability reaches `strength`, and the largest answering logit is the answer.
    With more beams, `beam_threshold` is used, only limits end the expansion, and answers are ordered by `ranking`.

    `states` `(B, S, H)` are projected to the width of the `decoder` ([`AthenaModel`]), `number_positions` and
    `number_groups` have the shape `(B, N)`, and `goals` are the result of [`AthenaModel.goals`].
    """

    def __init__(
        self,
        decoder: nn.Module,
        states: Tensor,
        number_positions: Tensor,
        number_groups: Tensor | None,
        goals: tuple[Tensor, Tensor | None],
        num_beams: int,
    ) -> None:
        config = decoder.config
        size = states.shape[-1]
        self.decoder = decoder
        self.config = config
        self.goals = goals
        self.num_beams = num_beams
        self.maker = PlanMaker(config)
        self.table = ThoughtTable()
        self.threshold = config.threshold if num_beams == 1 else config.beam_threshold
        self.device = states.device
        self.initial = decoder.initial_embeddings(states, number_positions)
        self.reference = decoder.reason.project_reference(states[:, 0])
        # Rows of all kept thoughts, and their queries, keys and values for each aggregate.
        self.thoughts = self.initial.new_zeros(0, size)
        self.projected = dict.fromkeys(AGGREGATES, self.initial.new_zeros(0, 3 * size))
        max_rounds = int(decoder.deepest_target) if config.max_depth is None else config.max_depth
        batch, width = number_positions.shape
        groups = [None] * batch
        if number_groups is not None:
            groups = number_groups.tolist()
        constants = range(batch * width, len(self.initial))
        self.problems = []
        for problem, positions in enumerate(number_positions.tolist()):
            slots = self.maker.initial_slots(positions, groups[problem])
            initial = self.maker.initial_thoughts(self.table, slots)
            expansion = Expansion(self.table, initial, config.transforms, max_rounds, config.max_candidates)
            numbers = [problem * width + slot for slot in slots]
            self.problems.append(ProblemState(problem, expansion, [*numbers, *constants], [problem]))

    def run(self, max_length: int, num_return_sequences: int) -> SolveOutput:
        """Return the answers of all problems."""
        active = self.problems
        while active:
            # All active problems go through a round together; a problem without new candidates is finished.
            for state in active:
                state.candidates = state.expansion.next_round()
            active = [state for state in active if state.candidates is not None]
            with_candidates = [state for state in active if state.candidates]
            if with_candidates:
                self._take_round(with_candidates)
            active = [state for state in active if not self._is_done(state)]
        answers = [self._answers(state, max_length, num_return_sequences) for state in self.problems]
        finite = [state.finite for state in self.problems]
        capped = [state.capped for state in self.problems]
        result = SolveOutput.of(answers, num_return_sequences, self.device)
        result.finite = torch.tensor(finite, dtype=torch.bool, device=self.device)
        result.capped = torch.tensor(capped, dtype=torch.bool, device=self.device)
        return result

    def _is_done(self, state: ProblemState) -> bool:
        pool = state.expansion.pool
        is_full = 0 < self.config.max_thoughts <= len(pool)
        state.capped |= is_full or state.expansion.was_cut
        is_strong = self.num_beams == 1 and max(state.answering, default=-np.inf) >= _logit(self.config.strength)
        return not pool or is_full or is_strong

    def _take_round(self, states: list[ProblemState]) -> None:
        """Score the candidates of some problems and add the accepted candidates to the pools."""
        embeddings = self._embed(states)
        contexts, logits = self._judge(states, embeddings)
        accepted = []
        first = 0
        for state in states:
            state_logits = logits[first : first + len(state.candidates)]
            state.finite &= all(map(math.isfinite, state_logits))
            accepted += [first + index for index in self._accept(state, state_logits)]
            first += len(state_logits)
        if accepted:
            rows = self._index(accepted)
            self._join(states, embeddings[rows], contexts[rows])

    def _embed(self, states: list[ProblemState]) -> Tensor:
        """Return the embeddings of the candidates, with one call per operation."""
        # Columns of all candidates: operation and rows of both operands.
        columns = []
        for state in states:
            for operation, first, second, _ in state.candidates:
                rows = state.sources if operation < 0 else state.rows
                # The second operand is not read if it is missing (-1).
                columns.append((operation, rows[first], rows[second]))
        operations, left, right = np.array(columns).T
        embeddings = self.initial.new_empty(len(columns), self.initial.shape[1])
        for operation in np.unique(operations):
            indices = np.flatnonzero(operations == operation)
            first = self._index(left[indices])
            if operation < 0:
                results = self.initial.index_select(0, first)
            else:
                second = self._index(right[indices])
                results = self.decoder.embed(OPERATIONS[operation], self.thoughts, self.projected, first, second)
            embeddings = embeddings.index_copy(0, self._index(indices), results.to(embeddings.dtype))
        return embeddings

    def _judge(self, states: list[ProblemState], embeddings: Tensor) -> tuple[Tensor, list[float]]:
        """Return contexts as a tensor and logits as a list."""
        judge = self.decoder.reason
        rows, queries = judge.prepare(embeddings)
        # Pad queries by the number of candidates, keys and values by the number of reference rows.
        num_candidates = np.array([len(state.candidates) for state in states])
        num_references = np.array([len(state.reference) for state in states])
        width = num_candidates.max()
        longest = num_references.max()
        is_candidate = np.arange(width) < num_candidates[:, None]
        is_reference = np.arange(longest) < num_references[:, None]
        reference = np.zeros(is_reference.shape, int)
        reference[is_reference] = np.concatenate([state.reference for state in states])
        places = self._index(np.flatnonzero(is_candidate))
        visible = torch.from_numpy(is_reference).to(self.device)
        padded = scatter_rows(queries, places, (len(states), width))
        keys_values = self.reference.index_select(0, self._index(reference.ravel())).unflatten(0, reference.shape)
        attended = judge.attend(padded, keys_values, visible.unsqueeze(1), places)
        contexts, logits = judge.conclude(rows, attended)
        return contexts, at_least_fp32(logits).tolist()

    def _accept(self, state: ProblemState, logits: list[float]) -> list[int]:
        """Add the accepted candidates to the pool and return their indices in the round."""
        threshold = _logit(self.threshold)
        accepted = [index for index, logit in enumerate(logits) if logit >= threshold]
        if state.expansion.round == 1 and not accepted:
            # Keep all initial thoughts if none passes.
            accepted = list(range(len(logits)))
        if self.config.max_thoughts:
            room = self.config.max_thoughts - len(state.expansion.pool)
            if len(accepted) > room:
                state.capped = True
                best = sorted(accepted, key=lambda index: -logits[index])
                accepted = sorted(best[:room])
        for index in accepted:
            # A thought has the nodes of its operands and itself, whose logits make up its path score.
            candidate = state.candidates[index]
            operands = []
            if candidate.operation >= 0:
                operands.append(state.nodes[candidate.left])
            if candidate.right >= 0:
                operands.append(state.nodes[candidate.right])
            state.nodes.append(frozenset({len(state.nodes)}).union(*operands))
            state.reasoning.append(_log_sigmoid(logits[index]))
        state.expansion.keep(state.candidates[index] for index in accepted)
        return accepted

    def _join(self, states: list[ProblemState], embeddings: Tensor, contexts: Tensor) -> None:
        """Append the rows, reference rows and answering logits of kept thoughts."""
        # The state of each new thought, and the number of the thought within its problem.
        owners = []
        numbers = []
        for state in states:
            num_new = len(state.nodes) - len(state.rows)
            owners += [state] * num_new
            numbers += range(num_new)
        first = len(self.thoughts)
        first_reference = len(self.reference)
        self.thoughts = torch.cat([self.thoughts, embeddings])
        self.reference = torch.cat([self.reference, self.decoder.reason.project_reference(contexts)])
        width = max(numbers) + 1
        problems = self._index([state.problem for state in owners])
        places = problems * width + self._index(numbers)
        logits = self.decoder.answering_logits(embeddings, self.goals, problems, places, width)
        if self.config.chain == "replace":
            for state in owners:
                state.reference = []
        for index, (state, logit) in enumerate(zip(owners, at_least_fp32(logits).tolist(), strict=True)):
            if self.config.chain != "none":
                state.reference.append(first_reference + index)
            state.rows.append(first + index)
            state.answering.append(logit)
            state.finite &= math.isfinite(logit)

    def _index(self, values: np.ndarray | list[int]) -> Tensor:
        return torch.from_numpy(np.asarray(values, np.int64)).to(self.device)

    def _answers(self, state: ProblemState, max_length: int, count: int) -> list[tuple[list[int], float]]:
        """Return prefix ids and log shares of the best thoughts with at most `max_length` symbols."""
        pool = state.expansion.pool
        candidates = [index for index, thought in enumerate(pool) if self.table.prefix_lengths[thought] <= max_length]
        if not candidates or not state.finite:
            return []
        answering = np.array([state.answering[index] for index in candidates])
        scores = answering
        if self.config.ranking == "path":
            scores = np.array([state.path_score(index) for index in candidates])
        # Log softmax over the pool.
        shares = scores - np.logaddexp.reduce(scores)
        order = np.argsort(-scores, kind="stable")
        if self.num_beams == 1:
            # The search of the paper: the thought with the highest answering logit.
            order = [np.argmax(answering)]
        answers = []
        for rank in order[:count]:
            ids = self.table.prefix(pool[candidates[rank]], self.maker.vocabulary)
            answers.append((ids, float(shares[rank])))
        return answers


def _logit(probability: float) -> float:
    if 0 < probability < 1:
        return math.log(probability / (1 - probability))
    return math.inf * (probability - 0.5)


def _log_sigmoid(logit: float) -> float:
    return -float(np.logaddexp(0.0, -logit))
