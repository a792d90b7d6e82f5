"""Mapping from student layers to the teacher layers that they learn from."""

from collections.abc import Sequence


STRATEGIES = ("uniform", "alternating", "first", "last")


def map_layers(
    mapping: str | Sequence[Sequence[int]], num_student_layers: int, num_teacher_layers: int
) -> list[tuple[int, int]]:
    """
    Return pairs (student layer, teacher layer) for distilling hidden states.

    Layers are counted as in `output_hidden_states`: 0 is the embedding output, 1 the output of the first layer.

    Args:
        mapping (`str` or sequence of pairs):
            - `"uniform"`: student layer `n` learns from teacher layer `n * (teacher layers / student layers)`, for
              `n = 1, 2, ...`, rounded up. 3 layers from 12 are mapped as (1, 4), (2, 8), (3, 12), and 2 from 3 as (1,
              2), (2, 3).
            - `"alternating"`: the same, preceded by the embedding outputs (0, 0).
            - `"first"`, `"last"`: the student's layers learn from the teacher's first or last layers, in order.
            - explicit: `[[1, 4], [2, 8], [3, 12]]` or, on the command line, `"1:4,2:8,3:12"`. Student layers may be
              left out. 0 is the embedding output.
        num_student_layers (`int`), num_teacher_layers (`int`):
            Numbers of Transformer layers of the two models, without embeddings.

    Returns:
        `list[tuple[int, int]]`: the pairs in the order of the student's layers, or in the given order if explicit.

    Raises:
        ValueError: if the strategy is unknown or does not suit the numbers of layers, a layer does not exist, or a
            student layer occurs twice.

    References:
        A Compact Model for Mathematics Problem Representations Distilled from BERT (AAAI 2025), layer mapping function
        of the intermediate feature distillation (`"uniform"`, for numbers that divide each other); the authors'
        implementation of Improving Language Model Distillation through Hidden State Matching (ICLR 2025)
        (`"alternating"`, and the rounding).
    """
    if num_student_layers < 1 or num_teacher_layers < 1:
        raise ValueError(
            f"A layer mapping needs models with layers, got {num_student_layers} layers of the student and "
            f"{num_teacher_layers} of the teacher."
        )
    if isinstance(mapping, str) and mapping not in STRATEGIES:
        mapping = _parse_pairs(mapping)
    if not isinstance(mapping, str):
        return _check_pairs(mapping, num_student_layers, num_teacher_layers)
    if num_student_layers > num_teacher_layers:
        raise ValueError(
            f'The layer mapping "{mapping}" needs a teacher with at least as many layers as the student, but the '
            f"teacher has {num_teacher_layers} and the student {num_student_layers}. Pass explicit pairs, for "
            "example [[1, 1], [2, 1]]."
        )
    student_layers = range(1, num_student_layers + 1)
    if mapping == "first":
        return [(layer, layer) for layer in student_layers]
    if mapping == "last":
        return [(layer, layer + num_teacher_layers - num_student_layers) for layer in student_layers]
    pairs = [(layer, -(-layer * num_teacher_layers // num_student_layers)) for layer in student_layers]
    return [(0, 0), *pairs] if mapping == "alternating" else pairs


def _parse_pairs(text: str) -> list[list[int]]:
    try:
        return [[int(layer) for layer in pair.split(":")] for pair in text.split(",")]
    except ValueError:
        raise ValueError(
            f"Unknown layer mapping {text!r}. Use one of {list(STRATEGIES)} or pairs student:teacher such as "
            '"1:4,2:8,3:12".'
        ) from None


def _check_pairs(
    pairs: Sequence[Sequence[int]], num_student_layers: int, num_teacher_layers: int
) -> list[tuple[int, int]]:
    checked: dict[int, int] = {}
    for pair in pairs if isinstance(pairs, Sequence) else [pairs]:
        if not isinstance(pair, Sequence) or len(pair) != 2 or not all(isinstance(layer, int) for layer in pair):
            raise ValueError(f"A layer mapping must consist of pairs [student layer, teacher layer], got {pair!r}.")
        for layer, count, who in ((pair[0], num_student_layers, "student"), (pair[1], num_teacher_layers, "teacher")):
            if not 0 <= layer <= count:
                raise ValueError(
                    f"The layer mapping {list(pair)} contains layer {layer} of the {who}, which has only layers 1 to "
                    f"{count} (0 is the embedding output)."
                )
        if pair[0] in checked:
            raise ValueError(f"The layer mapping contains layer {pair[0]} of the student twice.")
        checked[pair[0]] = pair[1]
    if not checked:
        raise ValueError("The layer mapping is empty. Set `hidden_loss=None` to train without hidden states.")
    return list(checked.items())
