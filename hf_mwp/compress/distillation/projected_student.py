"""Narrower students fitted to an encoder's layers on sample texts."""

import copy
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from transformers import PreTrainedModel

from hf_mwp.compress.models import MwpStudentConfig, MwpStudentModel
from hf_mwp.compress.models.bottlenecks import bottlenecks_apart
from hf_mwp.utils.checked_types import checked
from hf_mwp.utils.provenance import inherit_training_texts


@checked
@torch.no_grad()
def project_student(
    encoder: PreTrainedModel,
    hidden_size: int = 312,
    intermediate_size: int = 1200,
    num_attention_heads: int = 12,
    layers: int | Sequence[int] = 3,
    *,
    sample: Iterable[Mapping[str, Tensor]],
    max_tokens: int = 30_000,
    ridge: float = 1e-4,
    **encoder_fields,
) -> MwpStudentModel:
    """
    Create a narrower student, without pooler, from some layers of an encoder, as a starting point for training.

    The residual stream is projected onto the main directions of the encoder's states, in a basis in which layer
    normalisation commutes with the projection. Then, layer by layer, each linear map of the student is fitted to the
    encoder's outputs on the sample, given the student's own states before this map. Products of query and key weights,
    and of value and output weights, become the best low-rank factors. The most active feed-forward neurons are kept.

    `encoder` is BERT- or RoBERTa-like, with or without a head; the bottleneck networks of a solver's encoder are also
    fitted. `layers` is a number of first layers, or their indices from 0. `sample` are encoded batches of a few
    hundred typical texts, `max_tokens` the tokens to read, about 20 KB each. `ridge` is relative to the mean variance
    of the inputs. `encoder_fields` are other fields of [`MwpStudentConfig`]. Raises `ValueError` if a size exceeds the
    encoder's, a layer does not exist, the encoder is not supported, or the sample has no tokens.
    """
    indices = list(range(layers)) if isinstance(layers, int) else list(layers)
    chosen_layers = layers if isinstance(layers, int) else indices
    with bottlenecks_apart(encoder.base_model) as bottleneck_of_layer:
        source = MwpStudentModel.from_encoder(encoder, layers=chosen_layers, add_pooling_layer=False, **encoder_fields)
    attention = source.config._attn_implementation
    source = source.float().eval()
    bottlenecks = []
    for index in indices:
        bottleneck = bottleneck_of_layer.get(index + 1)
        if bottleneck is not None:
            bottleneck = copy.deepcopy(bottleneck).float()
        bottlenecks.append(bottleneck)
    sizes = {
        "hidden_size": hidden_size,
        "intermediate_size": intermediate_size,
        "num_attention_heads": num_attention_heads,
    }
    limits = {
        "hidden_size": source.config.hidden_size,
        "intermediate_size": min(source.config.neurons_per_layer),
        "num_attention_heads": min(source.config.heads_per_layer),
    }
    for name, size in sizes.items():
        if not 1 <= size <= limits[name]:
            raise ValueError(f"A student with {name}={size} cannot be projected from an encoder with {limits[name]}.")
    config = MwpStudentConfig(**(source.config.to_dict() | sizes | {"head_dim": None, "cut_heads": None}))
    student = MwpStudentModel(config, add_pooling_layer=False).to(source.device).eval()
    for model in (source, student):
        # The masks below are for eager attention.
        model.set_attn_implementation("eager")
    _Projection(source, student, read_sample(sample, max_tokens, source.device), bottlenecks, ridge).run()
    student.set_attn_implementation(attention)
    inherit_training_texts(student, encoder)
    return student.to(encoder.dtype).train(encoder.training)


@dataclass
class _Projection:
    """Fit of the student, module by module. Stores the states of both models at the current layer, batch by batch."""

    source: MwpStudentModel
    student: MwpStudentModel
    batches: list[dict[str, Tensor]]
    bottlenecks: list[nn.Module | None]
    ridge: float

    def run(self) -> None:
        self.valid = []
        self.masks = []
        for batch in self.batches:
            valid = batch["attention_mask"].bool()
            padding = ~valid[:, None, None]
            self.valid.append(valid)
            self.masks.append(padding.float().masked_fill(padding, torch.finfo(torch.float32).min))
        outputs = list(map(self._source_states, self.batches, self.masks))
        states = list(map(self._flat, zip(*outputs, strict=True)))
        self.projection = residual_projection(states, self.student.config.hidden_size)
        del states
        self.wide = [output[0] for output in outputs]
        self._fit_embeddings()
        self.narrow = [self.student.embed(batch["input_ids"]) for batch in self.batches]
        source_layers = self.source.encoder.layer
        student_layers = self.student.encoder.layer
        for old, new, bottleneck in zip(source_layers, student_layers, self.bottlenecks, strict=True):
            self._fit_attention(old.attention, new.attention)
            self._fit_feed_forward(old, new, bottleneck)

    def _fit_embeddings(self) -> None:
        old = self.source
        new = self.student
        if old.embeddings_project is not None:
            # No layer norm follows the projection of narrow embeddings, so both projections form one linear map.
            new.embeddings.load_state_dict(old.embeddings.state_dict())
            new.embeddings_project.weight.copy_(self.projection.T @ old.embeddings_project.weight)
            new.embeddings_project.bias.copy_(old.embeddings_project.bias @ self.projection)
            return
        for name in ("word_embeddings", "position_embeddings", "token_type_embeddings"):
            getattr(new.embeddings, name).weight.copy_(getattr(old.embeddings, name).weight @ self.projection)
        norm = new.embeddings.LayerNorm
        summed = []
        hook = norm.register_forward_pre_hook(lambda _, args: summed.append(args[0]))
        for batch in self.batches:
            new.embeddings(batch["input_ids"])
        hook.remove()
        self._fit_norm(norm, summed, self.wide)

    def _source_states(self, batch: Mapping[str, Tensor], mask: Tensor) -> list[Tensor]:
        states = [self.source.embed(batch["input_ids"])]
        for layer, bottleneck in zip(self.source.encoder.layer, self.bottlenecks, strict=True):
            state, _ = layer(states[-1], mask)
            if bottleneck is not None:
                state = bottleneck(state)
            states.append(state)
        return states

    def _flat(self, states: Iterable[Tensor]) -> Tensor:
        """Return the states of all tokens that are not padding."""
        return torch.cat([state[valid] for state, valid in zip(states, self.valid, strict=True)])

    def _contexts(self, attention: nn.Module, states: list[Tensor]) -> list[Tensor]:
        """Return the outputs of an attention module."""
        contexts = []
        for state, mask in zip(states, self.masks, strict=True):
            context, _ = attention(state, mask)
            contexts.append(context)
        return contexts

    def _fit_attention(self, old: nn.Module, new: nn.Module) -> None:
        wide = self._flat(self.wide)
        narrow = self._flat(self.narrow)
        old_contexts = self._contexts(old.self, self.wide)
        old_dim = old.self.attention_head_size
        new_dim = new.self.attention_head_size
        num_heads = new.self.query.out_features // new_dim
        # Fit the old queries, keys and values to the student's states.
        query_weight, query_bias = fit_linear(narrow, old.self.query(wide), self.ridge)
        key_weight, _ = fit_linear(narrow, old.self.key(wide), self.ridge)
        value_weight, _ = fit_linear(narrow, old.self.value(wide), self.ridge)
        moment = narrow.T @ narrow / len(narrow)
        centred = torch.cov(narrow.T, correction=0)
        augmented = torch.cat([narrow, narrow.new_ones(len(narrow), 1)], dim=1)
        augmented_moment = augmented.T @ augmented / len(narrow)
        for new_head, old_head in enumerate(self._largest_heads(old, old_contexts, num_heads)):
            old_rows = slice(old_head * old_dim, (old_head + 1) * old_dim)
            new_rows = slice(new_head * new_dim, (new_head + 1) * new_dim)
            # Scores are q·k. Terms that are equal for all keys, such as their bias, do not change attention.
            query = torch.cat([query_weight[old_rows], query_bias[old_rows, None]], dim=1)
            scores = query.T @ key_weight[old_rows] * (new_dim / old_dim) ** 0.5
            new_query, new_key = factorise(scores, augmented_moment, centred, new_dim)
            new.self.query.weight[new_rows] = new_query[:, :-1]
            new.self.query.bias[new_rows] = new_query[:, -1]
            new.self.key.weight[new_rows] = new_key
            new.self.key.bias[new_rows] = 0.0
            output = self.projection.T @ old.output.dense.weight[:, old_rows]
            _, new_value = factorise(output @ value_weight[old_rows], None, moment, new_dim)
            new.self.value.weight[new_rows] = new_value
            new.self.value.bias[new_rows] = 0.0
        new_contexts = self._contexts(new.self, self.narrow)
        self._fit_output(old.output, new.output, old_contexts, new_contexts)

    def _largest_heads(self, attention: nn.Module, contexts: list[Tensor], num_heads: int) -> list[int]:
        """Return the `num_heads` heads with the largest outputs, in their order."""
        dim = attention.self.attention_head_size
        context_of_head = self._flat(contexts).split(dim, 1)
        weight_of_head = attention.output.dense.weight.split(dim, 1)
        sizes = []
        for context, weight in zip(context_of_head, weight_of_head, strict=True):
            sizes.append((context @ weight.T).square().sum())
        largest = torch.stack(sizes).argsort(descending=True)[:num_heads]
        return sorted(largest.tolist())

    def _fit_feed_forward(self, old: nn.Module, new: nn.Module, bottleneck: nn.Module | None) -> None:
        old_features = list(map(old.intermediate, self.wide))
        # The student gets the neurons with the most variable outputs.
        sizes = self._flat(old_features).std(0) * (self.projection.T @ old.output.dense.weight).norm(dim=0)
        neurons = sizes.argsort(descending=True)[: new.intermediate.dense.out_features].sort().values
        weight = old.intermediate.dense.weight[neurons]
        bias = old.intermediate.dense.bias[neurons]
        before_activation = nn.functional.linear(self._flat(self.wide), weight, bias)
        self._fit_linear(new.intermediate.dense, self._flat(self.narrow), before_activation)
        new_features = list(map(new.intermediate, self.narrow))
        self._fit_output(old.output, new.output, old_features, new_features, bottleneck)

    def _fit_output(
        self,
        old: nn.Module,
        new: nn.Module,
        old_features: list[Tensor],
        new_features: list[Tensor],
        bottleneck: nn.Module | None = None,
    ) -> None:
        """Fit a sublayer's output layer and norm, and advance all states, those of the source through `bottleneck`."""
        summed = _residual_sums(old.dense, old_features, self.wide)
        self.wide = list(map(old.LayerNorm, summed))
        target = self._flat(summed) @ self.projection - self._flat(self.narrow)
        self._fit_linear(new.dense, self._flat(new_features), target)
        narrow = _residual_sums(new.dense, new_features, self.narrow)
        self._fit_norm(new.LayerNorm, narrow, self.wide)
        self.narrow = list(map(new.LayerNorm, narrow))
        if bottleneck is not None:
            self.wide = list(map(bottleneck, self.wide))

    def _fit_linear(self, linear: nn.Linear, inputs: Tensor, outputs: Tensor) -> None:
        weight, bias = fit_linear(inputs, outputs, self.ridge)
        linear.weight.copy_(weight)
        linear.bias.copy_(bias)

    def _fit_norm(self, norm: nn.LayerNorm, summed: list[Tensor], wide: list[Tensor]) -> None:
        """Fit the weight and the bias of a layer norm, so that its output is close to the projected states."""
        target = self._flat(wide) @ self.projection
        unit = nn.functional.layer_norm(self._flat(summed), norm.normalized_shape, eps=norm.eps)
        centred = unit - unit.mean(0)
        gain = (centred * (target - target.mean(0))).sum(0) / centred.square().sum(0).clamp(min=1e-12)
        norm.weight.copy_(gain)
        norm.bias.copy_(target.mean(0) - gain * unit.mean(0))


def _residual_sums(dense: nn.Module, features: list[Tensor], states: list[Tensor]) -> list[Tensor]:
    """Return the sums of a sublayer's output and its input states, batch by batch."""
    sums = []
    for batch_features, batch_states in zip(features, states, strict=True):
        sums.append(dense(batch_features) + batch_states)
    return sums


def read_sample(sample: Iterable[Mapping[str, Tensor]], max_tokens: int, device) -> list[dict[str, Tensor]]:
    """Return batches of `input_ids` and `attention_mask` with at least `max_tokens` tokens, if there are so many."""
    batches = []
    num_tokens = 0
    for batch in sample:
        input_ids = torch.as_tensor(batch["input_ids"]).to(device)
        mask = torch.ones_like(input_ids)
        if batch.get("attention_mask") is not None:
            mask = torch.as_tensor(batch["attention_mask"]).to(device)
        batches.append({"input_ids": input_ids, "attention_mask": mask})
        num_tokens += int(mask.sum())
        if num_tokens >= max_tokens:
            break
    if not num_tokens:
        raise ValueError("`sample` has no tokens. Pass batches with `input_ids`.")
    return batches


def residual_projection(states: Sequence[Tensor], width: int) -> Tensor:
    """Return the projection `(m, width)` of hidden states `(tokens, m)` onto their main directions, see
    [`centred_projection`]."""
    size = states[0].shape[1]
    moment = torch.zeros(size, size, dtype=torch.float64, device=states[0].device)
    for state in states:
        moment += relative_moment(state - state.mean(1, keepdim=True))
    return centred_projection(moment, width).to(states[0].dtype)


def relative_moment(states: Tensor) -> Tensor:
    """Return the second moment `(m, m)` of vectors `(n, m)`, divided by its trace, in double precision."""
    moment = (states.T @ states).double()
    return moment / moment.trace().clamp(min=1e-12)


def centred_projection(moment: Tensor, width: int) -> Tensor:
    """Return the projection `(m, width)` onto the main directions of a centred second moment `(m, m)`. It has rank
    `width - 1` and commutes with layer normalisation as far as these directions contain the states: the directions
    have entries that sum to zero, are rotated so that each narrow feature mixes all of them, and keep its size."""
    size = len(moment)
    directions = torch.linalg.eigh(moment).eigenvectors.flip(1)[:, : width - 1]
    directions = directions - directions.mean(0)
    generator = torch.Generator().manual_seed(0)
    random = torch.randn(width, width - 1, dtype=torch.float64, generator=generator)
    basis = torch.cat([torch.ones(width, 1, dtype=torch.float64), random], dim=1)
    # All columns but the first are orthogonal to it: their entries sum to zero.
    basis = torch.linalg.qr(basis).Q[:, 1:].to(directions.device)
    return (width / size) ** 0.5 * directions @ basis.T


def fit_linear(inputs: Tensor, outputs: Tensor, ridge: float) -> tuple[Tensor, Tensor]:
    """Return the weight `(b, a)` and bias of a ridge regression of outputs `(tokens, b)` on inputs `(tokens, a)`."""
    input_mean = inputs.mean(0)
    output_mean = outputs.mean(0)
    centred = inputs - input_mean
    square = (centred.T @ centred).double()
    square += ridge * square.diagonal().mean().clamp(min=1e-12) * torch.eye(len(square), device=square.device)
    products = (centred.T @ (outputs - output_mean)).double()
    weight = torch.linalg.solve(square, products).T.to(inputs.dtype)
    return weight, output_mean - weight @ input_mean


def factorise(matrix: Tensor, left: Tensor | None, right: Tensor, rank: int) -> tuple[Tensor, Tensor]:
    """Return factors `(A, B)` with `rank` rows for which `xᵀ Aᵀ B y` is closest to `xᵀ matrix y`, for `x` and `y` with
    these second moments (`None`: all directions count the same). Rows beyond the matrix's rank are small, not zero."""
    right_root, right_inverse = _root(right)
    weighted = matrix.double() @ right_root
    if left is not None:
        left_root, left_inverse = _root(left)
        weighted = left_root @ weighted
    u, singular_values, v = torch.linalg.svd(weighted, full_matrices=False)
    # Each factor gets the square roots of the singular values.
    scales = singular_values[:rank].clamp(min=1e-4 * singular_values[0]).sqrt()[:, None]
    left_factor = scales * u[:, :rank].T
    if left is not None:
        left_factor = left_factor @ left_inverse
    right_factor = scales * v[:rank] @ right_inverse
    return left_factor.to(matrix.dtype), right_factor.to(matrix.dtype)


def _root(moment: Tensor) -> tuple[Tensor, Tensor]:
    """Return the square root of a symmetric positive matrix, and the inverse of this root."""
    values, vectors = torch.linalg.eigh(moment.double())
    values = values.clamp(min=values[-1].clamp(min=1e-12) * 1e-6).sqrt()
    return vectors * values @ vectors.T, vectors / values @ vectors.T
