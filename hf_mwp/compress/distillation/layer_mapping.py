"""Choice of the teacher layers that student layers start from, and learn from."""

from collections.abc import Iterable, Sequence
from operator import index

from hf_mwp.utils.checked_types import checked


STRATEGIES = ("uniform", "alternating", "first", "last")
LAYER_CHOICES = ("first", "last", "uniform", "alternate")


@checked
def map_layers(
    mapping: str | Sequence[Sequence[int]], num_student_layers: int, num_teacher_layers: int
) -> list[tuple[int, int]]:
    """
    Return pairs (student layer, teacher layer) for distilling hidden states, in the order of the student's layers or
    as given. Layers are counted as in `output_hidden_states`: 0 is the embedding output, 1 that of the first layer.

    - `"uniform"`: student layer `n` learns from teacher layer `n * (teacher layers / student layers)`, rounded up: 3
      layers from 12 as (1, 4), (2, 8), (3, 12), and 2 from 3 as (1, 2), (2, 3). This is the layer mapping function of
      A Compact Model for Mathematics Problem Representations Distilled from BERT (AAAI 2025), for numbers that divide.
    - `"alternating"`: the same, preceded by the embedding outputs (0, 0), as, with the rounding, in the authors'
      implementation of Improving Language Model Distillation through Hidden State Matching (ICLR 2025).
    - `"first"`, `"last"`: the student's layers learn from the teacher's first or last layers, in order.
    - explicit: `[[1, 4], [2, 8], [3, 12]]` or, on the command line, `"1:4,2:8,3:12"`. Layers may be left out.

    Raises `ValueError` if the teacher has too few layers for a strategy, or a mapping is neither a strategy nor pairs
    of existing layers, with each student layer once.
    """
    if not isinstance(mapping, str) or mapping not in STRATEGIES:
        return _explicit_pairs(mapping, {"student": num_student_layers, "teacher": num_teacher_layers})
    if num_student_layers > num_teacher_layers:
        raise ValueError(
            f'The layer mapping "{mapping}" needs a teacher with at least as many layers as the student, but it has '
            f"{num_teacher_layers} and the student {num_student_layers}. Pass pairs, such as [[1, 1], [2, 1]]."
        )
    student_layers = range(1, num_student_layers + 1)
    if mapping == "first":
        return [(layer, layer) for layer in student_layers]
    if mapping == "last":
        return [(layer, layer + num_teacher_layers - num_student_layers) for layer in student_layers]
    pairs = [(layer, -(-layer * num_teacher_layers // num_student_layers)) for layer in student_layers]
    return [(0, 0), *pairs] if mapping == "alternating" else pairs


def _explicit_pairs(mapping: str | Sequence[Sequence[int]], counts: dict[str, int]) -> list[tuple[int, int]]:
    try:
        if isinstance(mapping, str):
            mapping_pairs = [map(int, pair.split(":")) for pair in mapping.split(",")]
        else:
            mapping_pairs = mapping
        pairs = [(index(student), index(teacher)) for student, teacher in mapping_pairs]
    except (TypeError, ValueError):
        raise ValueError(
            f"A layer mapping must be one of {list(STRATEGIES)} or pairs of a student layer and a teacher layer, such "
            f"as [[1, 4], [2, 8]] (on the command line: 1:4,2:8), got {mapping!r}."
        ) from None
    if not pairs:
        raise ValueError("The layer mapping is empty. Set `hidden_loss=None` to train without hidden states.")
    for pair in pairs:
        for layer, (model, num_layers) in zip(pair, counts.items(), strict=True):
            if not 0 <= layer <= num_layers:
                raise ValueError(
                    f"The layer mapping {list(pair)} contains layer {layer} of the {model}, which has only layers 1 "
                    f"to {num_layers} (0 is the embedding output)."
                )
    student_layers = [student_layer for student_layer, _ in pairs]
    for layer in student_layers:
        if student_layers.count(layer) > 1:
            raise ValueError(f"The layer mapping contains layer {layer} of the student twice.")
    return pairs


def choose_layers(layers: int | Iterable[int], num_teacher_layers: int, choice: str = "first") -> list[int]:
    """
    Return the indices, from 0, of the teacher's layers that a student starts from. For 3 layers from 12, `"first"`
    returns 0, 1, 2 (the best in table 4 of the compact model, AAAI 2025), `"last"` 9, 10, 11, `"uniform"` 3, 7, 11 as
    in the uniform mapping, and `"alternate"` 0, 4, 8 as in DistilBERT. If `layers` are indices, return them. Raises
    `TypeError` if `layers` are not whole numbers, `ValueError` for anything else.
    """
    if isinstance(layers, Iterable):
        layers = list(layers)
        if not layers or not {*layers} <= {*range(num_teacher_layers)}:
            raise ValueError(f"`layers` must be indices from 0 to {num_teacher_layers - 1}, got {layers}.")
        return layers
    if choice not in LAYER_CHOICES:
        raise ValueError(f"Unknown choice of layers {choice!r}. Use one of {list(LAYER_CHOICES)}, or layer indices.")
    if not 1 <= layers <= num_teacher_layers:
        raise ValueError(f"A student of {layers} layers cannot be made from a teacher of {num_teacher_layers}.")
    if choice == "alternate":
        return [index * num_teacher_layers // layers for index in range(layers)]
    return [teacher - 1 for _, teacher in map_layers(choice, layers, num_teacher_layers)]
