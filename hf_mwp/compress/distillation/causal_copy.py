"""Copy of weights of a causal language model to a smaller one."""

import torch
from torch import Tensor, nn
from transformers import PreTrainedModel

from .causal_features import Features, LinearCopy, NormCopy
from .causal_layouts import CausalLayout, CausalSizes, LayerUnits


class CausalCopy:
    """Copy of weights of a teacher to a smaller student, by the names in a layout."""

    def __init__(
        self,
        teacher: PreTrainedModel,
        student: PreTrainedModel,
        layout: CausalLayout,
        features: Features,
    ) -> None:
        self.teacher = teacher
        self.teacher_base = getattr(teacher, layout.base)
        self.student = student
        self.student_base = getattr(student, layout.base)
        self.layout = layout
        self.features = features
        self.sizes = CausalSizes.of(student.config, layout)
        self.all_units = LayerUnits.all(CausalSizes.of(teacher.config, layout))
        self.rotated = rotated_features(
            self.all_units.sizes.head_dim, self.sizes.head_dim, layout.rotary_fraction(teacher.config)
        )

    def run(self, layers: list[int], by_size: bool) -> None:
        """Copy embeddings, layers and head. `by_size` chooses the heads and neurons with the largest weights."""
        for name in self.layout.embeddings:
            table = getattr(self.teacher_base, name).weight
            getattr(self.student_base, name).weight.copy_(self.features.embed(table))
        student_layers = getattr(self.student_base, self.layout.layers)
        for student_layer, index in zip(student_layers, layers, strict=True):
            teacher_layer = getattr(self.teacher_base, self.layout.layers)[index]
            self._copy_layer(teacher_layer, student_layer, self._choose_units(teacher_layer, by_size))
        norm = self._norm(self.teacher_base, self.student_base, self.layout.final_norm)
        if self.teacher.config.tie_word_embeddings:
            table = getattr(self.teacher_base, self.layout.embeddings[0]).weight
            self.features.read_by_embeddings(norm, table)
            return
        head = LinearCopy.of(self.teacher.get_output_embeddings(), self.student.get_output_embeddings())
        self.features.read(norm, [head])

    def _norm(self, teacher_module: nn.Module, student_module: nn.Module, name: str) -> NormCopy:
        source = teacher_module.get_submodule(name)
        return NormCopy.of(source, student_module.get_submodule(name), self.layout.gain_offset)

    def _copy_layer(self, teacher_layer: nn.Module, student_layer: nn.Module, units: LayerUnits) -> None:
        for norm_name, readers in self.layout.readers.items():
            copies = []
            for name, rows in readers.items():
                source = teacher_layer.get_submodule(name)
                copies.append(LinearCopy.of(source, student_layer.get_submodule(name), rows=rows(units)))
            self.features.read(self._norm(teacher_layer, student_layer, norm_name), copies)
        for name, (columns, norm_name) in self.layout.writers.items():
            source = teacher_layer.get_submodule(name)
            writer = LinearCopy.of(source, student_layer.get_submodule(name), columns=columns(units))
            norm = None
            if norm_name is not None:
                norm = self._norm(teacher_layer, student_layer, norm_name)
            self.features.write(writer, norm)
        for name, features in self.layout.head_norms.items():
            weight = teacher_layer.get_submodule(name).weight
            indices = features(units).to(weight.device)
            student_layer.get_submodule(name).weight.copy_(weight[indices])

    def _choose_units(self, layer: nn.Module, by_size: bool) -> LayerUnits:
        """Return the heads and neurons of a layer of the teacher that the student copies."""
        teacher = self.all_units.sizes
        if by_size:
            head_scores = self._head_scores(layer)
            neuron_scores = self._neuron_scores(layer)
        else:
            head_scores = -torch.arange(teacher.num_attention_heads)
            neuron_scores = -torch.arange(teacher.intermediate_size)
        queries_per_group = teacher.num_attention_heads // teacher.num_key_value_heads
        scores_of_group = head_scores.view(-1, queries_per_group)
        groups = _largest(scores_of_group.sum(1), self.sizes.num_key_value_heads)
        num_queries = self.sizes.num_attention_heads // self.sizes.num_key_value_heads
        heads = []
        for group in groups.tolist():
            heads.append(group * queries_per_group + _largest(scores_of_group[group], num_queries))
        neurons = _largest(neuron_scores, self.sizes.intermediate_size)
        features = torch.arange(self.sizes.head_dim)
        return LayerUnits(teacher, groups, torch.cat(heads), neurons, features, self.rotated)

    def _head_scores(self, layer: nn.Module) -> Tensor:
        """Return for each head the norm `(heads,)` of the product of its value and output weights."""
        sizes = self.all_units.sizes
        name, rows = self.layout.values
        values = LinearCopy.of(layer.get_submodule(name), None, rows=rows(self.all_units)).weight.float()
        values = values.view(sizes.num_key_value_heads, sizes.head_dim, -1)
        values = values.repeat_interleave(sizes.num_attention_heads // sizes.num_key_value_heads, dim=0)
        outputs = LinearCopy.of(layer.get_submodule(self.layout.contexts), None).weight.float()
        outputs = outputs.T.reshape(sizes.num_attention_heads, sizes.head_dim, -1)
        # The squared norm of A B is the trace of (A^T A)(B B^T).
        products = (outputs @ outputs.mT) * (values @ values.mT)
        return products.sum((1, 2)).clamp(min=0).sqrt()

    def _neuron_scores(self, layer: nn.Module) -> Tensor:
        """Return for each neuron the norm `(neurons,)` of the product of its weights before and after it."""
        name, rows = self.layout.neurons
        before = LinearCopy.of(layer.get_submodule(name), None, rows=rows(self.all_units)).weight.float()
        after = LinearCopy.of(layer.get_submodule(self.layout.down), None).weight.float()
        return before.norm(dim=1) * after.norm(dim=0)


def _largest(scores: Tensor, count: int) -> Tensor:
    """Return the indices of the `count` largest scores, in increasing order."""
    order = scores.argsort(descending=True, stable=True)
    return order[:count].sort().values.cpu()


def rotated_features(teacher_size: int, student_size: int, rotary_fraction: float) -> Tensor:
    """Return the features `(student_size,)` of the teacher's queries and keys that a smaller head has.

    They are pairs of rotated features at equal distances, so that they keep their frequencies if the student's size
    divides the teacher's, and the first of the features that are not rotated.
    """
    teacher_pairs = int(teacher_size * rotary_fraction) // 2
    student_pairs = int(student_size * rotary_fraction) // 2
    pairs = torch.arange(student_pairs) * teacher_pairs // max(student_pairs, 1)
    others = torch.arange(student_size - 2 * student_pairs)
    return torch.cat([pairs, teacher_pairs + pairs, 2 * teacher_pairs + others])
