"""Students made of some layers of their teacher."""

from collections.abc import Iterable, Sequence

from hf_mwp.compress.models import MwpStudentModel
from hf_mwp.solver.data.training_lineage import inherit_training_texts
from hf_mwp.solver.models import MwpSolver, MwpSolverConfig
from hf_mwp.solver.models.mwp_solver.bottlenecks import bottlenecks_apart
from hf_mwp.utils.checked_types import checked

from .layer_mapping import map_layers


LAYER_CHOICES = ("first", "last", "uniform", "alternate")


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


@checked
def cut_student(
    teacher: MwpSolver,
    layers: int | Sequence[int],
    choice: str = "first",
    new_decoder: bool = False,
    decoder_dropout: float | None = None,
    **encoder_fields,
) -> MwpSolver:
    """
    Create a student from some encoder layers of the teacher (their number, or indices from 0), as in DistilBERT
    (https://huggingface.co/papers/1910.01108). Copies the weights of embeddings, layers, bottleneck networks of these
    layers, and decoder. With `new_decoder` the decoder starts from random weights. `encoder_fields` are fields of
    [`MwpStudentConfig`] other than sizes. Raises `ValueError` if the teacher does not have the layers, or its encoder
    is not a BERT or RoBERTa.
    """
    layers = choose_layers(layers, teacher.config.num_hidden_layers, choice)
    with bottlenecks_apart(teacher.encoder) as bottlenecks:
        encoder = MwpStudentModel.from_encoder(teacher.encoder, layers, add_pooling_layer=False, **encoder_fields)
    decoder_config = teacher.decoder.new_config(dropout=decoder_dropout)
    decoder = type(teacher.decoder)(decoder_config).to(teacher.device, teacher.dtype)
    if not new_decoder:
        decoder.load_state_dict(teacher.decoder.state_dict())
    taken = {new: bottlenecks[old + 1] for new, old in enumerate(layers, start=1) if old + 1 in bottlenecks}
    config = MwpSolverConfig(
        encoder_config=encoder.config,
        decoder_config=decoder_config,
        bottleneck_layers=list(taken),
        bottleneck_size=teacher.config.bottleneck_size if taken else None,
    )
    student = MwpSolver(config, encoder=encoder, decoder=decoder).to(teacher.device, teacher.dtype)
    for layer, bottleneck in taken.items():
        student.bottlenecks[str(layer)].load_state_dict(bottleneck.state_dict())
    inherit_training_texts(student, teacher)
    return student
