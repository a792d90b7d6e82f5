"""Thought-expansion decoder ATHENA, batched over the candidates of all problems."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from transformers import PreTrainedConfig
from transformers import initialization as init
from transformers.utils import ModelOutput

from hf_mwp.compress.losses.precision import at_least_fp32
from hf_mwp.compress.models.prediction_kind import CANDIDATES
from hf_mwp.runtime.expressions import ExpressionError
from hf_mwp.runtime.output_vocabulary import OutputVocabulary
from hf_mwp.solver.batches.mwp_processor import MwpProcessor

from ..decoder import Decoder, DecoderPreTrainedModel
from ..solve_output import SolveOutput
from .configuration_athena import AthenaConfig
from .gold_plan import InitialConstants, PlanMaker
from .layers_athena import Aggregate, ConstantEmbedding, FeedForward, Judge, scatter_rows
from .plan_batch import AthenaCollator, AttentionLayout, PlanBatch
from .thought_search import ThoughtSearch
from .thoughts import AGGREGATES, OPERATIONS, ThoughtTable


@dataclass
class AthenaOutput(ModelOutput):
    """Output of [`AthenaModel`]."""

    loss: torch.FloatTensor | None = None  # of all candidates and of the pool, see `config.loss_normalization`
    # Reasoning logits `(batch, judged)` in the order of expansion, and answering logits `(batch, pool)` in the order
    # of the pool; the smallest finite number where padded.
    logits: torch.FloatTensor | None = None
    answer_logits: torch.FloatTensor | None = None
    # Embeddings and contexts `(candidates, hidden_size)` of all problems, packed as in [`PlanBatch`].
    embeddings: torch.FloatTensor | None = None
    contexts: torch.FloatTensor | None = None
    # On request, embeddings and contexts `(batch, judged, hidden_size)` in the order of expansion, zero where padded.
    hidden_states: tuple[torch.FloatTensor, ...] | None = None


class AthenaModel(DecoderPreTrainedModel, Decoder):
    """
    Batched thought-expansion decoder of Kim et al., "ATHENA: Mathematical Reasoning with Thought Expansion" (EMNLP
    2023).

    Thoughts are expressions with an embedding. The initial thoughts are numbers and constants. Each round makes
    candidates from the thoughts of the pool; the reasoning layer predicts which candidates join the pool, and
    the answering layer predicts which thought of the pool is the answer. In training, the target's nodes join the
    pool, so that all candidates are known beforehand (see [`PlanBatch`]).
    """

    config_class = AthenaConfig
    prediction = CANDIDATES
    prediction_fields = ("initial_constants", "transforms", "gold")
    prediction_fields += ("merge_numbers", "strict_exponents", "reciprocal_constants")
    extra_columns = ("question_positions", "number_values")
    extra_inputs = ("number_groups", "question_positions")

    def __init__(self, config: AthenaConfig) -> None:
        super().__init__(config)
        size = config.hidden_size
        self.input_projection: nn.Module = nn.Identity()
        if config.encoder_hidden_size != size:
            norm = nn.LayerNorm(size, eps=config.layer_norm_eps)
            self.input_projection = nn.Sequential(nn.Linear(config.encoder_hidden_size, size), nn.GELU(), norm)
        self.constants = ConstantEmbedding(config)
        self.transforms = nn.ModuleDict({name: FeedForward(config) for name in config.transforms})
        self.aggregates = nn.ModuleDict({name: Aggregate(config) for name in AGGREGATES})
        self.reason = Judge(config)
        self.answer = Judge(config)
        # Rounds of the deepest training target: the limit in inference if the config has none.
        self.register_buffer("deepest_target", torch.zeros((), dtype=torch.long))
        self.post_init()

    @torch.no_grad()
    def _init_weights(self, module: nn.Module) -> None:
        super()._init_weights(module)
        if isinstance(module, nn.LayerNorm):
            init.ones_(module.weight)
            init.zeros_(module.bias)
        elif isinstance(module, ConstantEmbedding):
            init.normal_(module.weight)
        elif isinstance(module, AthenaModel):
            init.zeros_(module.deepest_target)

    @property
    def title(self) -> str:
        return f"thought-expansion decoder (ATHENA) of width {self.config.hidden_size}"

    def make_collator(self, processor: MwpProcessor) -> AthenaCollator:
        return AthenaCollator(processor, self.config)

    @classmethod
    def sizes_for(cls, encoder_config: PreTrainedConfig) -> dict[str, Any]:
        """Return the encoder's sizes. If layers differ, the feed-forward width is four times the hidden size."""
        width = encoder_config.hidden_size
        num_heads = getattr(encoder_config, "num_attention_heads", None)
        if not isinstance(num_heads, int) or width % num_heads:
            num_heads = max(divisor for divisor in range(1, 13) if width % divisor == 0)
        inner_size = getattr(encoder_config, "intermediate_size", None)
        if not isinstance(inner_size, int):
            inner_size = 4 * width
        sizes = super().sizes_for(encoder_config)
        return sizes | {"num_attention_heads": num_heads, "intermediate_size": inner_size}

    @classmethod
    def make_config(
        cls, vocabulary: OutputVocabulary, encoder_config: PreTrainedConfig, **fields: Any
    ) -> AthenaConfig:
        """Return the default config; see [`Decoder`]. Constants in `vocabulary.written` are not initial thoughts."""
        initial = [constant for constant in vocabulary.constants if constant not in vocabulary.written]
        if "constants" not in fields:
            fields = {"initial_constants": initial} | fields
        return super().make_config(vocabulary, encoder_config, **fields)

    def target_error(self, row: Mapping[str, Any]) -> str | None:
        """Return why the target of an encoded row cannot be written as a thought, or `None`."""
        maker = PlanMaker(self.config)
        try:
            expression = maker.vocabulary.decode(row["labels"])
            maker.read_target(ThoughtTable(), expression, row.get("number_groups"), row.get("number_values"))
        except ExpressionError as error:
            return str(error)
        return None

    @torch.no_grad()
    def set_constants(self, constants: Sequence[str], used: Sequence[str] = ()) -> None:
        """Add constants. They and those in `used` become initial thoughts; see [`Decoder`]."""
        initial = self.config.initial_constants
        new_constants = self.added_constants(constants)
        used_constants = [constant for constant in used if constant not in (*initial, *new_constants)]
        added = used_constants + new_constants
        self.constants.weight = self.extend_embeddings(self.constants.weight, len(added))
        self.config.constants = list(constants)
        self.config.initial_constants = initial + added

    def initial_embeddings(self, states: Tensor, number_positions: Tensor) -> Tensor:
        """Return embeddings `(B * N + C, H)` of the numbers of all problems, then of the initial constants."""
        index = number_positions.clamp_min(0).unsqueeze(-1).expand(-1, -1, states.shape[-1])
        initial = InitialConstants(self.config).initial
        constants = [self.config.constants[place] for place in initial]
        rows = [self.config.initial_constants.index(constant) for constant in constants]
        return torch.cat([states.gather(1, index).flatten(0, 1), self.constants(rows).to(states.dtype)])

    def goals(
        self, states: Tensor, attention_mask: Tensor | None, question_positions: Tensor | None
    ) -> tuple[Tensor, Tensor | None]:
        """Return keys and values `(B, Q, 2 H)` of the question's tokens, and their mask, `None` for a single token."""
        if question_positions is None or not question_positions.shape[1]:
            # Without question positions, use the last token.
            if attention_mask is None:
                attention_mask = states.new_ones(states.shape[:2])
            question_positions = attention_mask.sum(1, keepdim=True).long() - 1
        mask = None
        if self.config.goal == "last":
            question_positions = question_positions.amax(1, keepdim=True)
        else:
            mask = question_positions >= 0
        index = question_positions.clamp_min(0).unsqueeze(-1).expand(-1, -1, states.shape[-1])
        projected = self.answer.project_reference(states.gather(1, index))
        return projected, mask

    def answering_logits(
        self, thoughts: Tensor, goals: tuple[Tensor, Tensor | None], problems: Tensor, places: Tensor, width: int
    ) -> Tensor:
        """Return answering logits `(n,)` of thoughts `(n, H)`; `places` are indices in the padded `B * width`."""
        judge = self.answer
        reference, mask = goals
        if mask is None:
            # A single goal has all the attention weight. Distributed training still needs a gradient of the queries.
            rows = judge.feed_forward(thoughts)
            _, values = reference[:, 0].chunk(2, -1)
            attended = torch.cat([values.index_select(0, problems), judge.project_query(rows[:0])])
        else:
            # Queries are padded by problem, attend to the question, and are packed again.
            rows, queries = judge.prepare(thoughts)
            padded = scatter_rows(queries, places, (len(reference), width))
            # A problem without a question sees all goals, so that its softmax is finite.
            visible = mask.unsqueeze(1) | ~mask.any(1).view(-1, 1, 1)
            attended = judge.attend(padded, reference, visible, places)
        _, logits = judge.conclude(rows, attended)
        return logits

    def embed(self, operation: str, pool: Tensor, projected: dict[str, Tensor], left: Tensor, right: Tensor) -> Tensor:
        """Return embeddings `(n, H)` of an operation on the rows `left` and `right` `(n,)` of a pool. `projected` has
        the queries, keys and values of earlier thoughts by operation; those of new thoughts are added."""
        if operation in self.transforms:
            return self.transforms[operation](pool.index_select(0, left))
        aggregate = self.aggregates[operation]
        earlier = projected[operation]
        projected[operation] = torch.cat([earlier, aggregate.project(pool[len(earlier) :])])
        return aggregate(pool, projected[operation], left, right)

    def forward(
        self,
        encoder_hidden_states: Tensor,
        attention_mask: Tensor | None = None,
        number_positions: Tensor | None = None,
        number_groups: Tensor | None = None,
        question_positions: Tensor | None = None,
        labels: Tensor | None = None,
        plans: PlanBatch | None = None,
        output_hidden_states: bool | None = None,
    ) -> AthenaOutput:
        """
        Score the candidates of gold plans.

        Args:
            encoder_hidden_states, attention_mask, number_positions: See [`Decoder`].
            question_positions (`torch.LongTensor` of shape `(B, Q)`, *optional*):
                Tokens of the question in their order, -1 where padded. Defaults to the last token.
            number_groups, labels (*optional*): Not used, because `plans` contain their information.
            plans ([`PlanBatch`]): Gold plans from the decoder's collator.
            output_hidden_states (`bool`, *optional*): Whether to return padded embeddings and contexts.

        Raises:
            `ValueError`: plans are missing, or belong to a different batch.
        """
        states = self.input_projection(encoder_hidden_states)
        number_positions = self.positions_or_empty(states, number_positions)
        if plans is None or plans.shape != tuple(number_positions.shape):
            shape = tuple(number_positions.shape)
            raise ValueError(f"`plans` must have the shape {shape} of the batch. Use the collator of `make_collator`.")
        plans = plans.to(states.device)
        if self.training:
            self.deepest_target.clamp_(min=plans.rounds)
            if torch.distributed.is_available() and torch.distributed.is_initialized():
                # `DistributedDataParallel` would keep the value of the first process.
                torch.distributed.all_reduce(self.deepest_target, torch.distributed.ReduceOp.MAX)
        # Embed and judge all candidates; then the pool, the candidates that the plans keep, is scored as answers.
        embeddings = self._embed_candidates(self.initial_embeddings(states, number_positions), plans)
        contexts, logits = self._judge_candidates(states[:, 0], embeddings, plans)
        pool = embeddings.index_select(0, plans.kept)
        problems = plans.problems.index_select(0, plans.kept)
        goals = self.goals(states, attention_mask, question_positions)
        answers = self.answering_logits(pool, goals, problems, plans.pooled, plans.num_pooled)
        # Padding has the smallest number of fp32, also under autocast, whose outputs Accelerate converts to fp32.
        logits = at_least_fp32(logits)
        answers = at_least_fp32(answers)
        judged = (len(states), plans.num_judged)
        pooled = (len(states), plans.num_pooled)
        output = AthenaOutput(
            loss=self._loss(logits, answers, plans),
            logits=scatter_rows(logits, plans.judged, judged, torch.finfo(logits.dtype).min),
            answer_logits=scatter_rows(answers, plans.pooled, pooled, torch.finfo(answers.dtype).min),
            embeddings=embeddings,
            contexts=contexts,
        )
        if output_hidden_states:
            output.hidden_states = (
                scatter_rows(embeddings, plans.judged, judged),
                scatter_rows(contexts, plans.judged, judged),
            )
        return output

    def _embed_candidates(self, initial: Tensor, plans: PlanBatch) -> Tensor:
        embeddings = initial[:0]
        done = 0
        projected = dict.fromkeys(AGGREGATES, initial.new_zeros(0, 3 * initial.shape[1]))
        # Step by step, because thoughts may be operands of later ones; then all other candidates at once.
        for step, counts in enumerate((*plans.steps, plans.others)):
            # Unused layers run on zero rows, because distributed training needs a gradient of each parameter.
            is_last = step == len(plans.steps)
            new_embeddings = []
            for operation, num_candidates in zip((None, *OPERATIONS), counts, strict=True):
                left = plans.left[done : done + num_candidates]
                right = plans.right[done : done + num_candidates]
                done += num_candidates
                if operation is None:
                    new_embeddings.append(initial.index_select(0, left))
                elif operation in (*self.transforms, *AGGREGATES) and (num_candidates or is_last):
                    new_embeddings.append(self.embed(operation, embeddings, projected, left, right))
            embeddings = torch.cat([embeddings, *new_embeddings])
        return embeddings

    def _judge_candidates(self, start: Tensor, embeddings: Tensor, plans: PlanBatch) -> tuple[Tensor, Tensor]:
        """Return contexts `(n, H)` and reasoning logits `(n,)`; `start` `(B, H)` is the first reference row."""
        rows, queries = self.reason.prepare(embeddings)
        reference = self.reason.project_reference(start)
        sizes = [*map(sum, plans.steps), sum(plans.others)]
        contexts = []
        logits = []
        # Step by step, because candidates attend to the contexts of earlier steps; then all others at once.
        for step, (step_rows, step_queries) in enumerate(zip(rows.split(sizes), queries.split(sizes), strict=True)):
            attended = self._attend(step_queries, reference, plans.layout(step))
            step_contexts, step_logits = self.reason.conclude(step_rows, attended)
            contexts.append(step_contexts)
            logits.append(step_logits)
            if step < len(plans.steps) and self.config.chain != "none":
                reference = torch.cat([reference, self.reason.project_reference(step_contexts)])
        return torch.cat(contexts), torch.cat(logits)

    def _attend(self, queries: Tensor, reference: Tensor, layout: AttentionLayout) -> Tensor:
        # Without a chain, only the first reference row of each problem is visible.
        num_references = 1 if self.config.chain == "none" else None
        indices = layout.references[:, :num_references]
        keys_values = reference.index_select(0, indices.flatten()).unflatten(0, indices.shape)
        padded = queries.index_select(0, layout.queries.flatten()).unflatten(0, layout.queries.shape)
        visible = layout.visible(self.config.chain)[..., :num_references]
        return self.reason.attend(padded, keys_values, visible, layout.places)

    def _loss(self, logits: Tensor, answers: Tensor, plans: PlanBatch) -> Tensor:
        is_kept = torch.zeros_like(logits).index_fill(0, plans.kept, 1)
        is_target = plans.targets.to(answers.dtype)
        loss = F.binary_cross_entropy_with_logits(logits, is_kept, reduction="sum")
        loss = loss + F.binary_cross_entropy_with_logits(answers, is_target, reduction="sum")
        divisor = plans.shape[0]
        if self.config.loss_normalization == "thoughts":
            divisor = len(logits) + len(answers)
        return loss / max(divisor, 1)

    @torch.no_grad()
    def generate(
        self,
        encoder_hidden_states: Tensor,
        attention_mask: Tensor | None = None,
        number_positions: Tensor | None = None,
        num_beams: int = 1,
        max_length: int | None = None,
        num_return_sequences: int = 1,
        number_groups: Tensor | None = None,
        question_positions: Tensor | None = None,
    ) -> SolveOutput:
        """Expand thoughts and return the best ones as prefix ids; see [`Decoder`] and [`ThoughtSearch`]."""
        length = self.length_limit(max_length, num_beams, num_return_sequences)
        states = self.input_projection(encoder_hidden_states)
        number_positions = self.positions_or_empty(states, number_positions)
        goals = self.goals(states, attention_mask, question_positions)
        search = ThoughtSearch(self, states, number_positions, number_groups, goals, num_beams)
        return search.run(length, num_return_sequences)
