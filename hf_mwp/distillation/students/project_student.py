"""Narrower students fitted to an encoder's layers on sample texts."""

import copy
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from transformers import PreTrainedModel

from ...checked_types import checked
from ...data.training_lineage import inherit_training_texts
from ...models import MwpStudentConfig, MwpStudentModel
from ...models.mwp_solver.bottlenecks import bottlenecks_apart


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
    layers = layers if isinstance(layers, int) else list(layers)
    with bottlenecks_apart(encoder.base_model) as found:
        source = MwpStudentModel.from_encoder(encoder, layers=layers, add_pooling_layer=False, **encoder_fields)
    attention = source.config._attn_implementation
    source = source.float().eval()
    after = [found.get(layer + 1) for layer in (range(layers) if isinstance(layers, int) else layers)]
    bottlenecks = [None if each is None else copy.deepcopy(each).float() for each in after]
    sizes = {"hidden_size": hidden_size, "intermediate_size": intermediate_size}
    sizes |= {"num_attention_heads": num_attention_heads}
    limits = (source.config.hidden_size, min(source.config.neurons_per_layer), min(source.config.heads_per_layer))
    for (name, value), most in zip(sizes.items(), limits, strict=True):
        if not 1 <= value <= most:
            raise ValueError(f"A student with {name}={value} cannot be projected from an encoder with {most}.")
    config = MwpStudentConfig(**(source.config.to_dict() | sizes | {"head_dim": None, "cut_heads": None}))
    student = MwpStudentModel(config, add_pooling_layer=False).to(source.device).eval()
    for model in (source, student):
        # The masks below are for eager attention.
        model.set_attn_implementation("eager")
    _Projection(source, student, _read_sample(sample, max_tokens, source.device), bottlenecks, ridge).run()
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
        source, student = self.source, self.student
        self.valid = [batch["attention_mask"].bool() for batch in self.batches]
        lowest, padding = torch.finfo(torch.float32).min, [~valid[:, None, None] for valid in self.valid]
        self.masks = [each.float().masked_fill(each, lowest) for each in padding]
        outputs = [self._source_states(batch, mask) for batch, mask in zip(self.batches, self.masks, strict=True)]
        states = [self._flat(layer) for layer in zip(*outputs, strict=True)]
        self.projection = residual_projection(states, student.config.hidden_size)
        del states
        self.wide = [output[0] for output in outputs]
        self._fit_embeddings()
        self.narrow = [student.embed(batch["input_ids"]) for batch in self.batches]
        for old, bottleneck, new in zip(source.encoder.layer, self.bottlenecks, student.encoder.layer, strict=True):
            self._fit_attention(old.attention, new.attention)
            self._fit_feed_forward(old, new, bottleneck)

    def _fit_embeddings(self) -> None:
        old, new = self.source, self.student
        if old.embeddings_project is not None:
            # No layer norm follows the projection of narrow embeddings, so both projections form one linear map.
            new.embeddings.load_state_dict(old.embeddings.state_dict())
            new.embeddings_project.weight.copy_(self.projection.T @ old.embeddings_project.weight)
            new.embeddings_project.bias.copy_(old.embeddings_project.bias @ self.projection)
            return
        for name in ("word_embeddings", "position_embeddings", "token_type_embeddings"):
            getattr(new.embeddings, name).weight.copy_(getattr(old.embeddings, name).weight @ self.projection)
        norm, summed = new.embeddings.LayerNorm, []
        hook = norm.register_forward_pre_hook(lambda _, args: summed.append(args[0]))
        for batch in self.batches:
            new.embeddings(batch["input_ids"])
        hook.remove()
        self._fit_norm(norm, summed, self.wide)

    def _source_states(self, batch: Mapping[str, Tensor], mask: Tensor) -> list[Tensor]:
        states = [self.source.embed(batch["input_ids"])]
        for layer, bottleneck in zip(self.source.encoder.layer, self.bottlenecks, strict=True):
            output = layer(states[-1], mask)[0]
            states.append(output if bottleneck is None else bottleneck(output))
        return states

    def _flat(self, states: Iterable[Tensor]) -> Tensor:
        return torch.cat([state[valid] for state, valid in zip(states, self.valid, strict=True)])

    def _fit_attention(self, old: nn.Module, new: nn.Module) -> None:
        wide, narrow = self._flat(self.wide), self._flat(self.narrow)
        theirs = [old.self(state, mask)[0] for state, mask in zip(self.wide, self.masks, strict=True)]
        width, dim = old.self.attention_head_size, new.self.attention_head_size
        # The student gets the heads with the largest outputs.
        parts = zip(self._flat(theirs).split(width, 1), old.output.dense.weight.split(width, 1), strict=True)
        written = torch.stack([(part @ weight.T).square().sum() for part, weight in parts])
        heads = sorted(written.argsort(descending=True)[: new.self.query.out_features // dim].tolist())
        kinds = ("query", "key", "value")
        fits = {name: fit_linear(narrow, getattr(old.self, name)(wide), self.ridge) for name in kinds}
        moment = narrow.T @ narrow / len(narrow)
        centred = torch.cov(narrow.T, correction=0)
        augmented = torch.cat([narrow, narrow.new_ones(len(narrow), 1)], dim=1)
        for place, head in enumerate(heads):
            rows, own = slice(head * width, (head + 1) * width), slice(place * dim, (place + 1) * dim)
            # Scores are q·k. Terms that are equal for all keys, such as their bias, do not change attention.
            query = torch.cat([fits["query"][0][rows], fits["query"][1][rows, None]], dim=1)
            scores = query.T @ fits["key"][0][rows] * (dim / width) ** 0.5
            left, right = factorise(scores, augmented.T @ augmented / len(narrow), centred, dim)
            new.self.query.weight[own], new.self.query.bias[own] = left[:, :-1], left[:, -1]
            new.self.key.weight[own], new.self.key.bias[own] = right, 0.0
            output = self.projection.T @ old.output.dense.weight[:, rows]
            new.self.value.weight[own] = factorise(output @ fits["value"][0][rows], None, moment, dim)[1]
            new.self.value.bias[own] = 0.0
        features = [new.self(state, mask)[0] for state, mask in zip(self.narrow, self.masks, strict=True)]
        self._fit_output(old.output, new.output, theirs, features)

    def _fit_feed_forward(self, old: nn.Module, new: nn.Module, bottleneck: nn.Module | None) -> None:
        theirs = [old.intermediate(state) for state in self.wide]
        written = self._flat(theirs).std(0) * (self.projection.T @ old.output.dense.weight).norm(dim=0)
        neurons = written.argsort(descending=True)[: new.intermediate.dense.out_features].sort().values
        weight, bias = (each[neurons] for each in (old.intermediate.dense.weight, old.intermediate.dense.bias))
        before = nn.functional.linear(self._flat(self.wide), weight, bias)
        self._fit_linear(new.intermediate.dense, self._flat(self.narrow), before)
        ours = [new.intermediate(state) for state in self.narrow]
        self._fit_output(old.output, new.output, theirs, ours, bottleneck)

    def _fit_output(self, old: nn.Module, new: nn.Module, theirs: list, ours: list, after: Any = None) -> None:
        """Fit a sublayer's output layer and norm, and advance all states, those of the source through `after`."""
        summed = [old.dense(x) + state for x, state in zip(theirs, self.wide, strict=True)]
        self.wide = [old.LayerNorm(each) for each in summed]
        target = self._flat(summed) @ self.projection - self._flat(self.narrow)
        self._fit_linear(new.dense, self._flat(ours), target)
        narrow = [new.dense(x) + state for x, state in zip(ours, self.narrow, strict=True)]
        self._fit_norm(new.LayerNorm, narrow, self.wide)
        self.narrow = [new.LayerNorm(each) for each in narrow]
        if after is not None:
            self.wide = [after(each) for each in self.wide]

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


def _read_sample(sample: Iterable[Mapping[str, Tensor]], max_tokens: int, device) -> list[dict[str, Tensor]]:
    batches, count = [], 0
    for batch in sample:
        input_ids = torch.as_tensor(batch["input_ids"]).to(device)
        mask = batch.get("attention_mask")
        mask = torch.ones_like(input_ids) if mask is None else torch.as_tensor(mask).to(device)
        batches.append({"input_ids": input_ids, "attention_mask": mask})
        count += int(mask.sum())
        if count >= max_tokens:
            break
    if not count:
        raise ValueError("`sample` has no tokens. Pass batches with `input_ids`.")
    return batches


def residual_projection(states: Sequence[Tensor], width: int) -> Tensor:
    """Return the projection `(m, width)` of hidden states `(tokens, m)` onto their main directions. It has rank
    `width - 1` and commutes with layer normalisation as far as these directions contain the states: the directions
    have entries that sum to zero, are rotated so that each narrow feature mixes all of them, and keep its size."""
    size = states[0].shape[1]
    moment = torch.zeros(size, size, dtype=torch.float64, device=states[0].device)
    for state in states:
        state = state - state.mean(1, keepdim=True)
        second = (state.T @ state).double()
        moment += second / second.trace().clamp(min=1e-12)
    directions = torch.linalg.eigh(moment).eigenvectors.flip(1)[:, : width - 1]
    directions = directions - directions.mean(0)
    generator = torch.Generator().manual_seed(0)
    random = torch.randn(width, width - 1, dtype=torch.float64, generator=generator)
    basis = torch.cat([torch.ones(width, 1, dtype=torch.float64), random], dim=1)
    # All columns but the first are orthogonal to it: their entries sum to zero.
    basis = torch.linalg.qr(basis).Q[:, 1:].to(directions.device)
    return ((width / size) ** 0.5 * directions @ basis.T).to(states[0].dtype)


def fit_linear(inputs: Tensor, outputs: Tensor, ridge: float) -> tuple[Tensor, Tensor]:
    """Return the weight `(b, a)` and bias of a ridge regression of outputs `(tokens, b)` on inputs `(tokens, a)`."""
    means = inputs.mean(0), outputs.mean(0)
    centred = inputs - means[0]
    square = (centred.T @ centred).double()
    square += ridge * square.diagonal().mean().clamp(min=1e-12) * torch.eye(len(square), device=square.device)
    weight = torch.linalg.solve(square, (centred.T @ (outputs - means[1])).double()).T.to(inputs.dtype)
    return weight, means[1] - weight @ means[0]


def factorise(matrix: Tensor, left: Tensor | None, right: Tensor, rank: int) -> tuple[Tensor, Tensor]:
    """Return factors `(A, B)` with `rank` rows for which `xᵀ Aᵀ B y` is closest to `xᵀ matrix y`, for `x` and `y` with
    these second moments (`None`: all directions count the same). Rows beyond the matrix's rank are small, not zero."""
    roots = [None if moment is None else _root(moment) for moment in (left, right)]
    weighted = matrix.double() @ roots[1][0]
    if roots[0] is not None:
        weighted = roots[0][0] @ weighted
    u, s, v = torch.linalg.svd(weighted, full_matrices=False)
    s, u, v = s[:rank].clamp(min=1e-4 * s[0]).sqrt(), u[:, :rank].T, v[:rank]
    a = s[:, None] * u if roots[0] is None else s[:, None] * u @ roots[0][1]
    b = s[:, None] * v @ roots[1][1]
    return a.to(matrix.dtype), b.to(matrix.dtype)


def _root(moment: Tensor) -> tuple[Tensor, Tensor]:
    """Return the square root of a symmetric positive matrix, and the inverse of this root."""
    values, vectors = torch.linalg.eigh(moment.double())
    values = values.clamp(min=values[-1].clamp(min=1e-12) * 1e-6).sqrt()
    return vectors * values @ vectors.T, vectors / values @ vectors.T
