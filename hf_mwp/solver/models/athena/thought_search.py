"""Search of ATHENA: thought expansion for a batch of problems in inference."""

import math
from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Tensor, nn

from hf_mwp.compress.losses.precision import at_least_fp32

from ..solver import SolveOutput
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
        return _log_sigmoid(self.answering[place]) + sum(self.reasoning[node] for node in self.nodes[place])


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
        self.decoder, self.config, self.goals, self.num_beams = decoder, config, goals, num_beams
        self.maker, self.table = PlanMaker(config), ThoughtTable()
        self.threshold = config.threshold if num_beams == 1 else config.beam_threshold
        self.device, size = states.device, states.shape[-1]
        self.initial = decoder.initial_embeddings(states, number_positions)
        self.reference = decoder.reason.project_reference(states[:, 0])
        # Rows of all kept thoughts, and their queries, keys and values for each aggregate.
        self.thoughts = self.initial.new_zeros(0, size)
        self.projected = dict.fromkeys(AGGREGATES, self.initial.new_zeros(0, 3 * size))
        max_rounds = int(decoder.deepest_target) if config.max_depth is None else config.max_depth
        batch, width = number_positions.shape
        groups = [None] * batch if number_groups is None else number_groups.tolist()
        constants = range(batch * width, len(self.initial))
        self.problems = []
        for problem, positions in enumerate(number_positions.tolist()):
            slots = self.maker.initial_slots(positions, groups[problem])
            initial = self.maker.initial_thoughts(self.table, slots)
            expansion = Expansion(self.table, initial, config.transforms, max_rounds, config.max_candidates)
            sources = [*(problem * width + slot for slot in slots), *constants]
            self.problems.append(ProblemState(problem, expansion, sources, [problem]))

    def run(self, max_length: int, num_return_sequences: int) -> SolveOutput:
        """Return the answers of all problems."""
        active = self.problems
        while active:
            # All active problems go through a round together; a problem without new candidates is finished.
            for state in active:
                state.candidates = state.expansion.next_round()
            active = [state for state in active if state.candidates is not None]
            if judged := [state for state in active if state.candidates]:
                self._take_round(judged)
            active = [state for state in active if not self._is_done(state)]
        found = [self._answers(state, max_length, num_return_sequences) for state in self.problems]
        result = SolveOutput.of(found, num_return_sequences, self.device)
        result.finite = torch.tensor([state.finite for state in self.problems], dtype=torch.bool, device=self.device)
        result.capped = torch.tensor([state.capped for state in self.problems], dtype=torch.bool, device=self.device)
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
        chosen, first = [], 0
        for state in states:
            own = logits[first : first + len(state.candidates)]
            state.finite &= all(map(math.isfinite, own))
            chosen += [first + place for place in self._choose(state, own)]
            first += len(own)
        if chosen:
            index = self._index(chosen)
            self._join(states, embeddings[index], contexts[index])

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
            places = np.flatnonzero(operations == operation)
            first, second = self._index(left[places]), self._index(right[places])
            if operation < 0:
                made = self.initial.index_select(0, first)
            else:
                made = self.decoder.embed(OPERATIONS[operation], self.thoughts, self.projected, first, second)
            embeddings = embeddings.index_copy(0, self._index(places), made.to(embeddings.dtype))
        return embeddings

    def _judge(self, states: list[ProblemState], embeddings: Tensor) -> tuple[Tensor, list[float]]:
        """Return contexts as a tensor and logits as a list."""
        judge = self.decoder.reason
        rows, queries = judge.prepare(embeddings)
        # Pad queries by the number of candidates, keys and values by the number of reference rows.
        counts = np.array([len(state.candidates) for state in states])
        lengths = np.array([len(state.reference) for state in states])
        width, longest = counts.max(), lengths.max()
        places = self._index(np.flatnonzero((np.arange(width) < counts[:, None]).ravel()))
        reference = np.array([state.reference + [0] * (longest - len(state.reference)) for state in states])
        visible = torch.from_numpy(np.arange(longest) < lengths[:, None]).to(self.device)
        padded = scatter_rows(queries, places, (len(states), width))
        keys_values = self.reference.index_select(0, self._index(reference.ravel())).unflatten(0, reference.shape)
        attended = judge.attend(padded, keys_values, visible.unsqueeze(1), places)
        contexts, logits = judge.conclude(rows, attended)
        return contexts, at_least_fp32(logits).tolist()

    def _choose(self, state: ProblemState, logits: list[float]) -> list[int]:
        """Add the accepted candidates to the pool and return their indices in the round."""
        passed = [place for place, logit in enumerate(logits) if logit >= _logit(self.threshold)]
        if state.expansion.round == 1:
            # Keep all initial thoughts if none passes.
            passed = passed or list(range(len(logits)))
        if self.config.max_thoughts:
            room = self.config.max_thoughts - len(state.expansion.pool)
            if len(passed) > room:
                state.capped = True
                passed = sorted(sorted(passed, key=lambda place: -logits[place])[:room])
        for place in passed:
            # A thought has the nodes of its operands and itself, whose logits make up its path score.
            candidate, own = state.candidates[place], len(state.nodes)
            operands = () if candidate.operation < 0 else (candidate.left, candidate.right)
            state.nodes.append(frozenset({own}).union(*(state.nodes[each] for each in operands if each >= 0)))
            state.reasoning.append(_log_sigmoid(logits[place]))
        state.expansion.keep(state.candidates[place] for place in passed)
        return passed

    def _join(self, states: list[ProblemState], embeddings: Tensor, contexts: Tensor) -> None:
        """Append the rows, reference rows and answering logits of kept thoughts."""
        counts = [len(state.nodes) - len(state.rows) for state in states]
        owners = [state for state, count in zip(states, counts, strict=True) for _ in range(count)]
        first, first_reference = len(self.thoughts), len(self.reference)
        self.thoughts = torch.cat([self.thoughts, embeddings])
        self.reference = torch.cat([self.reference, self.decoder.reason.project_reference(contexts)])
        # Number the thoughts within each problem; thoughts of a problem are consecutive.
        width = max(counts)
        problems = self._index([state.problem for state in owners])
        places = problems * width + self._index(np.concatenate([np.arange(count) for count in counts]))
        logits = self.decoder.answering_logits(embeddings, self.goals, problems, places, width)
        for state in owners if self.config.chain == "replace" else ():
            state.reference = []
        for number, (state, logit) in enumerate(zip(owners, at_least_fp32(logits).tolist(), strict=True)):
            if self.config.chain != "none":
                state.reference.append(first_reference + number)
            state.rows.append(first + number)
            state.answering.append(logit)
            state.finite &= math.isfinite(logit)

    def _index(self, values: np.ndarray | list[int]) -> Tensor:
        return torch.from_numpy(np.asarray(values, np.int64)).to(self.device)

    def _answers(self, state: ProblemState, max_length: int, count: int) -> list[tuple[list[int], float]]:
        """Return prefix ids and log shares of the best thoughts with at most `max_length` symbols."""
        pool = state.expansion.pool
        places = [place for place in range(len(pool)) if self.table.prefix_lengths[pool[place]] <= max_length]
        if not places or not state.finite:
            return []
        by_path = self.config.ranking == "path"
        scores = np.array([state.path_score(place) if by_path else state.answering[place] for place in places])
        # Log softmax over the pool.
        shares = scores - np.logaddexp.reduce(scores)
        order = np.argsort(-scores, kind="stable")
        if self.num_beams == 1:
            # The search of the paper: the thought with the highest answering logit.
            order = [int(np.argmax([state.answering[place] for place in places]))]
        vocabulary = self.maker.vocabulary
        return [(self.table.prefix(pool[places[each]], vocabulary), float(shares[each])) for each in order[:count]]


def _logit(probability: float) -> float:
    return math.log(probability / (1 - probability)) if 0 < probability < 1 else math.inf * (probability - 0.5)


def _log_sigmoid(logit: float) -> float:
    return -float(np.logaddexp(0.0, -logit))
