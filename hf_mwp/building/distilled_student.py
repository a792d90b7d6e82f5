"""From options to the student of a distillation."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any

from ..usage_error import UsageError
from .solver_building import load_encoder
from .solver_loading import load_solver
from .solver_options import parse_layers
from .student_options import StudentArguments


if TYPE_CHECKING:
    from transformers import PreTrainedModel

    from ..data.batches.mwp_processor import MwpProcessor
    from ..models import MwpSolver
    from ..problems import MathWordProblem

SAMPLE_SIZE = 1000
SAMPLE_BATCH = 64


def make_student(
    args: StudentArguments, teacher: MwpSolver, processor: MwpProcessor, rows: Iterable[Mapping[str, Any]]
) -> MwpSolver:
    """
    The student that the options describe.

    Args:
        args ([`StudentArguments`]): The options.
        teacher ([`MwpSolver`]), processor ([`MwpProcessor`]): The teacher, whose tokens and symbols are the student's.
        rows (`Iterable[Mapping]`): Training rows; a projected student is fitted to the teacher on some of them.

    Raises:
        UsageError: a student that does not read and answer as the teacher does, or that cannot be loaded.
        ValueError: sizes or layers that the teacher does not have.
    """
    from ..distillation import cut_student

    dropout = args.student_dropout
    fields = {} if dropout is None else {"hidden_dropout_prob": dropout, "attention_probs_dropout_prob": dropout}
    if args.student is not None:
        student, own = load_solver(args.student)
        if own.tokenizer.get_vocab() != processor.tokenizer.get_vocab():
            raise UsageError(f"{args.student} has another tokenizer than {args.teacher}; distillation needs the same.")
        return student
    if args.student_encoder is not None:
        return _on_encoder(_load_encoder(args.student_encoder, processor, dropout), teacher, processor, dropout)
    layers = parse_layers(args.student_layers)
    if args.student_start == "cut":
        return cut_student(
            teacher,
            layers,
            choice=args.student_layer_choice,
            new_decoder=args.new_decoder,
            decoder_dropout=dropout,
            **fields,
        )
    make = _projected if args.student_start == "project" else _random
    encoder = make(args, teacher, processor, rows, layers, fields)
    return _on_encoder(encoder, teacher, processor, dropout)


def _projected(args, teacher, processor, rows, layers, fields) -> PreTrainedModel:
    from ..data import problem_from_row
    from ..distillation.student_initialization import choose_layers

    if isinstance(layers, int):
        layers = choose_layers(layers, teacher.config.num_hidden_layers, args.student_layer_choice)
    problems = [problem_from_row(row, numerals=processor.numerals) for row in islice(rows, SAMPLE_SIZE)]
    return project_on_problems(teacher.encoder, processor, problems, layers, args.sizes | fields)


def project_on_problems(
    encoder: PreTrainedModel,
    processor: MwpProcessor,
    problems: Iterable[MathWordProblem],
    layers: int | Sequence[int],
    fields: Mapping[str, Any],
) -> PreTrainedModel:
    """
    A student of other widths, fitted to the encoder's layers on a sample of problems.

    Args:
        encoder (`PreTrainedModel`): The encoder; it embeds the processor's tokens.
        processor ([`MwpProcessor`]): Encodes the problems.
        problems (`Iterable[MathWordProblem]`): Some hundred are enough.
        layers (`int` or `Sequence[int]`), fields (`Mapping`): See [`~distillation.project_student`].
    """
    from ..distillation import project_student

    # Problems of like length together, so that little is padding.
    problems = sorted(problems, key=lambda problem: len(problem.text))
    sample = [processor(problems[start : start + SAMPLE_BATCH]) for start in range(0, len(problems), SAMPLE_BATCH)]
    return project_student(encoder, layers=layers, sample=sample, **fields)


def _random(args, teacher, processor, rows, layers, fields) -> PreTrainedModel:
    from ..models import MwpStudentConfig, MwpStudentModel
    from ..models.positions import count_positions

    count = layers if isinstance(layers, int) else len(layers)
    config = MwpStudentConfig(
        vocab_size=teacher.config.vocab_size,
        num_hidden_layers=count,
        pad_token_id=processor.tokenizer.pad_token_id or 0,
        max_position_embeddings=count_positions(teacher.encoder.config),
        **args.sizes,
        **fields,
    )
    return MwpStudentModel(config, add_pooling_layer=False)


def _load_encoder(source: str, processor: MwpProcessor, dropout: float | None) -> PreTrainedModel:
    from transformers import AutoTokenizer

    try:
        encoder = load_encoder(source, dropout)
        own = AutoTokenizer.from_pretrained(source).get_vocab()
    except (OSError, KeyError) as error:
        raise UsageError(f"The encoder {source} cannot be loaded with its tokenizer: {error}") from error
    ours = processor.tokenizer.get_vocab()
    different = [token for token, index in own.items() if ours.get(token) != index]
    if different:
        raise UsageError(
            f"{source} has another tokenizer than the teacher ({len(different)} tokens differ, for example "
            f"{different[0]!r}): the same ids would be different words to them."
        )
    return encoder


def _on_encoder(
    encoder: PreTrainedModel, teacher: MwpSolver, processor: MwpProcessor, dropout: float | None
) -> MwpSolver:
    """A new decoder of the encoder's width, otherwise like the teacher's."""
    from ..models import MwpSolver

    config = copy.deepcopy(teacher.decoder.config)
    config.hidden_size = config.encoder_hidden_size = encoder.config.hidden_size
    if dropout is not None:
        config.dropout = dropout
    return MwpSolver.from_encoder_decoder_pretrained(encoder, processor, decoder=config)
