"""Students made of some layers of their teacher."""

from collections.abc import Sequence

from hf_mwp.compress.distillation.layer_mapping import choose_layers
from hf_mwp.compress.models import MwpStudentModel
from hf_mwp.compress.models.bottlenecks import bottlenecks_apart
from hf_mwp.utils.checked_types import checked
from hf_mwp.utils.provenance import inherit_training_texts

from .mwp_solver import MwpSolver, MwpSolverConfig


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
    student_bottlenecks = {}
    for student_layer, teacher_layer in enumerate(layers, start=1):
        if teacher_layer + 1 in bottlenecks:
            student_bottlenecks[student_layer] = bottlenecks[teacher_layer + 1]
    config = MwpSolverConfig(
        encoder_config=encoder.config,
        decoder_config=decoder_config,
        bottleneck_layers=list(student_bottlenecks),
        bottleneck_size=teacher.config.bottleneck_size if student_bottlenecks else None,
    )
    student = MwpSolver(config, encoder=encoder, decoder=decoder).to(teacher.device, teacher.dtype)
    for layer, bottleneck in student_bottlenecks.items():
        student.bottlenecks[str(layer)].load_state_dict(bottleneck.state_dict())
    inherit_training_texts(student, teacher)
    return student
