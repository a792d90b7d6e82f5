"""Goal-driven tree decoder (GTS), batched over the nodes of all problems."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from transformers import initialization as init
from transformers.utils import ModelOutput

from hf_mwp.compress.losses.precision import at_least_fp32
from hf_mwp.compress.models.prediction_kind import symbol_groups
from hf_mwp.runtime.tree_search import NotFiniteError, TreeDecoder
from hf_mwp.solver.batches.mwp_collator import MwpCollator
from hf_mwp.solver.batches.mwp_processor import MwpProcessor
from hf_mwp.solver.batches.tree_batch import TreeBatch

from ..decoder import Decoder, DecoderPreTrainedModel
from ..solve_output import SolveOutput
from .configuration_gts import GTSConfig
from .fixed_tree_search import FixedTreeSearch, uses_fixed_shapes
from .tree_search import DecoderMemory, LiveWeights, TreeSearch, uses_numpy


@dataclass
class GTSOutput(ModelOutput):
    """Output of [`GTSDecoder`]."""

    loss: torch.FloatTensor | None = None  # sum of the nodes' cross entropies divided by the number of problems
    # Scores `(batch, target length, symbols)` of operators, constants and numbers at each node, in prefix order.
    logits: torch.FloatTensor | None = None


class GatedTanh(nn.Module):
    """`tanh(W x + b) * sigmoid(W_g x + b_g)`, with both linear layers in one."""

    def __init__(self, input_size: int, output_size: int) -> None:
        super().__init__()
        self.linear = nn.Linear(input_size, 2 * output_size)

    def forward(self, inputs: Tensor) -> Tensor:
        value, gate = self.linear(inputs).chunk(2, -1)
        return value.tanh() * gate.sigmoid()


class AdditiveScorer(nn.Module):
    """Additive (Bahdanau) scores `v . tanh(W_q query + W_k key)` of GTS (Xie and Sun 2019, equations 4 and 5). The
    paper's `W [query ; key]` is split to project keys once per problem. A softmax would ignore a bias of `v`."""

    def __init__(self, query_size: int, size: int) -> None:
        super().__init__()
        self.query = nn.Linear(query_size, size)
        self.key = nn.Linear(size, size, bias=False)
        self.score = nn.Linear(size, 1, bias=False)

    def forward(self, query: Tensor, projected_keys: Tensor) -> Tensor:
        """Return scores `(..., keys)` of queries `(..., query_size)` with projected keys `(..., keys, size)`."""
        return self._score(projected_keys + self.query(query).unsqueeze(-2))

    def score_rows(self, query: Tensor, projected_keys: Tensor, problems: Tensor) -> Tensor:
        """Return scores `(n, keys)` of queries `(n, query_size)` with the keys `(B, keys, size)` of their problems."""
        return self._score(projected_keys.index_select(0, problems).add_(self.query(query).unsqueeze(-2)))

    def _score(self, hidden: Tensor) -> Tensor:
        return self.score(hidden.tanh_()).squeeze(-1)


class GTSDecoder(DecoderPreTrainedModel, Decoder):
    """
    Goal-driven tree-structured decoder of Xie and Sun, "A Goal-Driven Tree-Structured Neural Model for Math Word
    Problems" (IJCAI 2019), batched.

    With targets, all nodes of all problems are scored in two sweeps (see [`TreeBatch`]): subtrees bottom-up, goals
    top-down. Without targets, [`~GTSDecoder.generate`] builds trees for all problems and beams at once.
    """

    config_class = GTSConfig
    runs_in_numpy = True
    has_score_margin = True

    def __init__(self, config: GTSConfig) -> None:
        super().__init__(config)
        size = config.hidden_size
        operator_size = config.operator_embedding_size
        self.input_projection: nn.Module = nn.Identity()
        if config.encoder_hidden_size != size:
            self.input_projection = nn.Linear(config.encoder_hidden_size, size)
        self.operator_embedding = nn.Embedding(len(config.operators), operator_size)
        self.constant_embedding = nn.Parameter(torch.empty(len(config.constants), size))
        self.goal_left = GatedTanh(size, size)
        self.goal_right = GatedTanh(2 * size, size)
        self.generate_children = GatedTanh(2 * size + operator_size, 2 * size)
        self.merge = GatedTanh(2 * size + operator_size, size)
        self.attention = AdditiveScorer(size, size)
        self.operator_scorer = nn.Linear(2 * size, len(config.operators))
        self.candidate_scorer = AdditiveScorer(2 * size, size)
        self.dropout = nn.Dropout(config.dropout)
        self.post_init()

    @torch.no_grad()
    def _init_weights(self, module: nn.Module) -> None:
        super()._init_weights(module)
        if isinstance(module, nn.Embedding):
            init.normal_(module.weight)
        elif isinstance(module, GTSDecoder):
            init.normal_(module.constant_embedding)

    @property
    def title(self) -> str:
        return f"goal-driven tree decoder (GTS) of width {self.config.hidden_size}"

    def make_collator(self, processor: MwpProcessor) -> MwpCollator:
        return MwpCollator(processor)

    @property
    def num_operators(self) -> int:
        return len(self.config.operators)

    @property
    def num_symbols(self) -> int:
        """Number of operators and constants; numbers have the ids that follow."""
        return len(self.config.operators) + len(self.config.constants)

    @torch.no_grad()
    def set_constants(self, constants: Sequence[str], used: Sequence[str] = ()) -> None:
        """Add constants, at the end; see [`Decoder`]."""
        self.constant_embedding = self.extend_embeddings(self.constant_embedding, len(self.added_constants(constants)))
        self.config.constants = list(constants)

    def encode(
        self, encoder_hidden_states: Tensor, attention_mask: Tensor | None, number_positions: Tensor | None
    ) -> DecoderMemory:
        """Return the tensors that all decoding steps of a batch read."""
        states = self.input_projection(encoder_hidden_states)
        batch, _, size = states.shape
        if attention_mask is None:
            attention_mask = states.new_ones(states.shape[:2])
        valid = attention_mask.bool()
        number_positions = self.positions_or_empty(states, number_positions)
        if self.config.root_goal == "cls":
            root = states[:, 0]
        else:
            weights = valid.to(states.dtype)
            root = (weights.unsqueeze(1) @ states).squeeze(1) / weights.sum(1, keepdim=True).clamp_min(1)
        index = number_positions.clamp_min(0).unsqueeze(-1).expand(-1, -1, size)
        constants = self.constant_embedding.unsqueeze(0).expand(batch, -1, -1).to(states.dtype)
        candidates = torch.cat([constants, states.gather(1, index)], 1)
        return DecoderMemory(
            states=states,
            padding=~valid,
            keys=self.attention.key(states),
            candidates=candidates,
            candidate_keys=self.candidate_scorer.key(self.dropout(candidates)),
            missing=torch.cat([valid.new_zeros(batch, constants.shape[1]), number_positions < 0], 1),
            root=root,
        )

    def context(self, goal: Tensor, memory: DecoderMemory, rows: Tensor) -> Tensor:
        """Return contexts `(B, n, H)` of goals `(B, n, H)` (equation 4), computed only for the indices `rows` of the
        flattened `B * n` goals; all other contexts are zero."""
        batch, num_goals, _ = goal.shape
        problems = rows // num_goals
        scores = self.attention.score_rows(self.dropout(goal.flatten(0, 1)[rows]), memory.keys, problems)
        weights = _masked_softmax(scores, memory.padding.index_select(0, problems))
        weights = weights.new_zeros(batch * num_goals, weights.shape[-1]).index_copy(0, rows, weights)
        return weights.view(batch, num_goals, -1) @ memory.states

    def all_contexts(self, goal: Tensor, memory: DecoderMemory) -> Tensor:
        """Return the contexts `(B, n, H)` of all goals `(B, n, H)`."""
        scores = self.attention(self.dropout(goal), memory.keys.unsqueeze(1))
        return _masked_softmax(scores, memory.padding.unsqueeze(1)) @ memory.states

    def symbol_scores(self, state: Tensor, candidate_keys: Tensor, missing: Tensor) -> Tensor:
        """Return scores `(..., symbols)` of `state = [goal ; context]` `(..., 2 H)` with `candidate_keys`
        `(..., C, H)`, in at least fp32. Numbers that are `missing` `(..., C)` in the problem get the smallest finite
        number."""
        state = self.dropout(state)
        candidates = at_least_fp32(self.candidate_scorer(state, candidate_keys))
        candidates = candidates.masked_fill(missing, torch.finfo(candidates.dtype).min)
        return torch.cat([self.operator_scorer(state), candidates], -1)

    def embed_operators(self, operators: Tensor) -> Tensor:
        """Return the embeddings `(n, operator_embedding_size)` of operator ids `(n,)`, in the dtype of the layers."""
        return self.operator_embedding(operators).to(self.merge.linear.weight.dtype)

    def expand(self, state: Tensor, operators: Tensor) -> tuple[Tensor, Tensor]:
        """Return the goals `(n, H)` of the left and right children of operator nodes, from the nodes' states
        `[goal ; context]` `(n, 2 H)` and embedded operators, before [`left_goal`] or [`right_goal`]."""
        inputs = torch.cat([state, operators], -1)
        return self.generate_children(self.dropout(inputs)).chunk(2, -1)

    def combine(self, operators: Tensor, children: Tensor) -> Tensor:
        """Return the embeddings `(n, H)` of subtrees, from their embedded operators and their children's embeddings
        `[left ; right]` `(n, 2 H)`."""
        return self.merge(self.dropout(torch.cat([operators, children], -1)))

    def left_goal(self, goal: Tensor) -> Tensor:
        """Transform the goal of a node without a left sibling."""
        return self.goal_left(self.dropout(goal))

    def right_goal(self, goal: Tensor, sibling: Tensor) -> Tensor:
        """Transform the goal of a node whose left sibling's subtree is complete."""
        return self.goal_right(self.dropout(torch.cat([sibling, goal], -1)))

    def forward(
        self,
        encoder_hidden_states: Tensor,
        attention_mask: Tensor | None = None,
        number_positions: Tensor | None = None,
        number_groups: Tensor | None = None,
        labels: Tensor | None = None,
        trees: TreeBatch | None = None,
    ) -> GTSOutput:
        """
        Score the nodes of target trees.

        Args:
            encoder_hidden_states, attention_mask, number_positions: See [`Decoder`].
            number_groups (`torch.LongTensor` of shape `(B, N)`, *optional*):
                Index of the first number with the same value, for each number. If the target occurs more than once in
                the text, each occurrence is correct: the loss is `-log` of their summed probability.
            labels (`torch.LongTensor` of shape `(B, T)`, *optional*): Prefix ids of the targets, -100 where padded.
            trees ([`TreeBatch`], *optional*): Index tensors of the target trees. Created from `labels` by default.

        Raises:
            `ValueError`: targets are missing, are not complete trees, or contain symbols out of range.
        """
        batch = encoder_hidden_states.shape[0]
        if trees is None or trees.shape[0] != batch:
            if labels is None:
                raise ValueError(f"The {batch} problems have no targets. Pass `labels`, or `trees` of this batch.")
            trees = TreeBatch.from_labels(labels, self.num_operators)
        trees = trees.to(encoder_hidden_states.device)
        memory = self.encode(encoder_hidden_states, attention_mask, number_positions)
        # Goals of right children need the embeddings of their left siblings, so subtrees come first.
        state = self._sweep_down(memory, trees, self._sweep_up(memory, trees))
        # Select the candidates of each node's problem.
        keys = memory.candidate_keys.index_select(0, trees.rows)
        scores = self.symbol_scores(state, keys, memory.missing.index_select(0, trees.rows))
        loss = self.tree_loss(scores, trees, number_groups) / batch
        # Nodes that pad a level are written to a row behind those of the problems.
        logits = scores.new_zeros(trees.num_positions + 1, scores.shape[-1])
        logits = logits.index_copy(0, trees.positions, scores)[: trees.num_positions]
        return GTSOutput(loss=loss, logits=logits.view(*trees.shape, -1))

    def _sweep_up(self, memory: DecoderMemory, trees: TreeBatch) -> Tensor:
        """Return the embeddings `(subtrees, H)` of all left siblings' subtrees, by height."""
        # Leaves: the embeddings of their constants and numbers.
        num_candidates = memory.candidates.shape[1]
        leaves = trees.leaf_rows * num_candidates + trees.leaf_symbols - self.num_operators
        subtrees = memory.candidates.flatten(0, 1).index_select(0, leaves)
        # Then height by height: all operators whose children are complete are merged with them at once. Unused layers
        # run on zero rows, because distributed training needs a gradient of each parameter.
        sizes = trees.up_sizes[1:] or (0,)
        operators = self.embed_operators(trees.merge_operators).split(sizes)
        children = trees.merge_children.split([2 * size for size in sizes])
        for level, size in enumerate(sizes):
            pairs = subtrees.index_select(0, children[level]).view(size, 2 * self.config.hidden_size)
            subtrees = torch.cat([subtrees, self.combine(operators[level], pairs)])
        return subtrees

    def _sweep_down(self, memory: DecoderMemory, trees: TreeBatch, subtrees: Tensor) -> Tensor:
        """Return the states `[goal ; context]` `(nodes, 2 H)` by depth, with transformed goals."""
        # Inputs of attention for each node, split into the levels of the trees.
        sizes = trees.down_sizes
        if len(sizes) < 2:
            # Run the unused layers on zero rows, see `_sweep_up`.
            sizes = (*sizes, 0)
        keys = memory.keys.index_select(0, trees.rows).split(sizes)
        tokens = memory.states.index_select(0, trees.rows).split(sizes)
        padding = memory.padding.index_select(0, trees.rows).split(sizes)
        # Inputs of the goals of each level below the first: one row for each operator of the level above.
        pairs = [size // 2 for size in sizes[1:]]
        parents = trees.parents.split(pairs)
        operators = self.embed_operators(trees.parent_operators).split(pairs)
        siblings = subtrees.index_select(0, trees.siblings).split(pairs)
        states = []
        goal = self.left_goal(memory.root)
        for level in range(len(sizes)):
            if level:
                # Create the goals of this level from the operators above: all left children, then all right children.
                above = level - 1
                parent_states = states[above].index_select(0, parents[above])
                left, right = self.expand(parent_states, operators[above])
                goal = torch.cat([self.left_goal(left), self.right_goal(right, siblings[above])])
            # The context of a goal: attention over the text of its problem.
            weights = _masked_softmax(self.attention(self.dropout(goal), keys[level]), padding[level])
            context = torch.bmm(weights.unsqueeze(1), tokens[level]).squeeze(1)
            states.append(torch.cat([goal, context], -1))
        return torch.cat(states)

    def tree_loss(self, scores: Tensor, trees: TreeBatch, number_groups: Tensor | None) -> Tensor:
        """Return the sum of `-log p(target)` over nodes, in fp32. Equal numbers of the text count as one symbol."""
        log_probs = scores.float().log_softmax(-1)
        targets = trees.targets.unsqueeze(1)
        if number_groups is None or number_groups.shape[1] == 0:
            target_log_probs = log_probs.gather(1, targets).squeeze(1)
        else:
            groups = symbol_groups(number_groups, self.num_symbols).index_select(0, trees.rows)
            # Sum the probabilities of all symbols in the group of the target.
            is_outside = groups != groups.gather(1, targets)
            target_log_probs = log_probs.masked_fill(is_outside, torch.finfo(log_probs.dtype).min).logsumexp(-1)
        if trees.is_padded:
            target_log_probs = target_log_probs.masked_fill(trees.positions == trees.num_positions, 0.0)
        return -target_log_probs.sum()

    @torch.no_grad()
    def generate(
        self,
        encoder_hidden_states: Tensor,
        attention_mask: Tensor | None = None,
        number_positions: Tensor | None = None,
        num_beams: int = 1,
        max_length: int | None = None,
        num_return_sequences: int = 1,
        score_margin: float | None = None,
    ) -> SolveOutput:
        """Return the most probable trees of a beam search; see [`Decoder`] and [`TreeSearch`]."""
        length = self.length_limit(max_length, num_beams, num_return_sequences)
        search = (num_beams, length, num_return_sequences, score_margin)
        if uses_numpy(self, encoder_hidden_states):
            return self._generate_in_numpy(encoder_hidden_states[0], attention_mask, number_positions, *search)
        memory = self.encode(encoder_hidden_states, attention_mask, number_positions)
        search_class = FixedTreeSearch if uses_fixed_shapes(memory.states) else TreeSearch
        return search_class(self, memory, *search).run()

    def _generate_in_numpy(
        self,
        states: Tensor,
        attention_mask: Tensor | None,
        number_positions: Tensor | None,
        num_beams: int,
        max_length: int,
        num_return_sequences: int,
        score_margin: float | None,
    ) -> SolveOutput:
        """Search for the trees of one problem, with states `(S, H)`, in the NumPy runtime, which needs a tenth of the
        operator calls."""
        positions = []
        if number_positions is not None:
            positions = number_positions[0].tolist()
        if attention_mask is not None:
            # Remove the padding, and number the tokens again.
            is_token = attention_mask[0].bool()
            states = states[is_token]
            token_indices = (is_token.cumsum(0) - 1).tolist()
            positions = [token_indices[position] if position >= 0 else position for position in positions]
        decoder = TreeDecoder(LiveWeights(self), vars(self.config))
        trees = []
        is_finite = True
        try:
            trees = decoder.search(
                states.numpy(), positions, num_beams, num_return_sequences, max_length, score_margin
            )
        except NotFiniteError:
            is_finite = False
        result = SolveOutput.of([trees], num_return_sequences, "cpu")
        result.finite = torch.tensor([is_finite])
        return result


def _masked_softmax(scores: Tensor, padding: Tensor) -> Tensor:
    """Softmax over valid positions, in fp32."""
    return scores.float().masked_fill(padding, torch.finfo(torch.float32).min).softmax(-1).to(scores.dtype)
