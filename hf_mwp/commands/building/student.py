"""Options of a distillation's teacher and student, and functions that create the student."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import islice
from typing import TYPE_CHECKING, Any

from hf_mwp.utils.checked_types import checked
from hf_mwp.utils.checks import check_at_least_one, check_options, check_share
from hf_mwp.utils.option import option
from hf_mwp.utils.usage_error import UsageError

from .encoder import SAMPLE_BATCH, SAMPLE_SIZE, load_encoder, parse_layers, project_on_problems
from .model_sources import check_same_tokens, load_tokenizer, locate_encoder, locate_solver, resolve_encoder
from .solver import load_solver
from .student_shape import ShapeTargets, StudentShape, apply_size_targets


if TYPE_CHECKING:
    from transformers import PreTrainedConfig, PreTrainedModel, PreTrainedTokenizerBase

    from hf_mwp.compress.models import MwpStudentConfig
    from hf_mwp.solver.batches.mwp_processor import MwpProcessor
    from hf_mwp.solver.models import MwpSolver

# Option -> field of the student's config, whose defaults are those of Ming et al. (AAAI 2025).
SIZES = {
    "student_hidden_size": "hidden_size",
    "student_intermediate_size": "intermediate_size",
    "student_heads": "num_attention_heads",
}
# Start of the student -> options that do not apply to such a student.
TARGETS = ("target_ms", "target_mb")
LAYERS = ("student_layers", "student_layer_choice")
UNUSED = {
    "student": (*SIZES, *TARGETS, "student_sparsity", *LAYERS, "student_dropout"),
    "student_encoder": (*SIZES, *TARGETS, "student_sparsity", *LAYERS),
    "student_init=cut": (*SIZES, *TARGETS, "student_sparsity"),
    "student_init=project": ("student_sparsity",),
    "student_init=random": ("student_sparsity", "student_layer_choice"),
    "student_init=prune": (*SIZES, *TARGETS, *LAYERS, "student_dropout"),
}
# Default share of heads and neurons removed from a pruned student (Yang et al., EMNLP 2022).
SPARSITY = 0.7


@dataclass
class TeacherArguments:
    """Options of the teacher."""

    _argument_group_name = "teacher"

    teacher: list[str] | None = option(
        None,
        "Folder or Hub id of a trained solver. Probabilities of several teachers are averaged; hidden states and the "
        "student's initial weights come from the first teacher.",
        required=True,
        common=True,
        locate=locate_solver,
    )

    def __post_init__(self):
        check_options(self)


@dataclass
class StudentArguments(ShapeTargets):
    """Options that define the student. Options that do not apply to the chosen kind of student are refused."""

    _argument_group_name = "student"

    student: str | None = option(
        None,
        "Folder or Hub id of a solver to train; a student is made from the teacher if not given.",
        common=True,
        locate=locate_solver,
    )
    student_encoder: str | None = option(
        None,
        "Folder or Hub id of a pretrained encoder for the student, such as `hf-mwp pretrain` writes; its decoder "
        "starts from random weights.",
        common=True,
        locate=locate_encoder,
    )
    student_init: str = option(
        "cut",
        "Initial weights of the student. cut: copies of the teacher's decoder and of some encoder layers; project: "
        "narrower layers fitted to the teacher's on training problems, and a new decoder; random: random weights; "
        "prune: the teacher without the heads and neurons that its loss on training problems needs least.",
        common=True,
        choices=("cut", "project", "random", "prune"),
    )
    student_sparsity: float | None = option(
        None, f"Share of heads and neurons to remove for a pruned student; {SPARSITY} if not given."
    )
    student_hidden_size: int | None = option(None, "Width of a projected or random student; 312 if not given.")
    student_intermediate_size: int | None = option(
        None, "Feed-forward neurons of a projected or random student; 1200 if not given."
    )
    student_heads: int | None = option(None, "Attention heads of a projected or random student; 12 if not given.")
    student_layers: int | str | list[int] | None = option(
        None,
        "Encoder layers of the teacher to start from: a number, or indices (0,2,4). For a random student, the number "
        "of layers. 3 if not given. For a sequence-to-sequence student, numbers of encoder and decoder layers (6,3).",
        common=True,
    )
    student_layer_choice: str | None = option(
        None,
        "Position of the layers in the teacher, if student_layers is a number; the first if not given.",
        choices=("first", "last", "uniform", "alternate"),
    )
    student_dropout: float | None = option(
        None, "Dropout of the student; if not given, the dropout of its source, or 0.1 with random weights."
    )

    def __post_init__(self):
        super().__post_init__()
        check_at_least_one(self, *SIZES)
        check_share(self, "student_dropout", "student_sparsity")
        self.student_encoder = resolve_encoder(self.student_encoder)
        for name in (*SIZES, "student_layers"):
            if self.targets and getattr(self, name) is not None:
                raise ValueError(f"`{name}` is chosen to meet the target. Remove one of the two.")
        sources = [name for name in ("student", "student_encoder") if getattr(self, name) is not None]
        if self.student_init != "cut" or not sources:
            sources.append(f"student_init={self.student_init}")
        if len(sources) > 1:
            raise ValueError("`student`, `student_encoder` and `student_init` exclude each other. Set only one.")
        source = sources[0]
        for name in UNUSED[source]:
            if getattr(self, name) is not None:
                raise ValueError(f"`{name}` has no effect with `{source}`. Remove one of the two.")
        layers = parse_layers(self.student_layers, "student_layers")
        if isinstance(layers, list) and self.student_layer_choice is not None:
            raise ValueError("`student_layer_choice` has no effect with indices in `student_layers`. Remove it.")

    @property
    def sizes(self) -> dict[str, int]:
        """Given sizes of a projected or random student, by the names of [`MwpStudentConfig`]."""
        return {field: getattr(self, name) for name, field in SIZES.items() if getattr(self, name) is not None}

    @property
    def dropouts(self) -> dict[str, float]:
        """Dropout fields of [`MwpStudentConfig`], empty if `student_dropout` is not given."""
        if self.student_dropout is None:
            return {}
        return dict.fromkeys(("hidden_dropout_prob", "attention_probs_dropout_prob"), self.student_dropout)

    def use_shape(self, shape: StudentShape, teacher: PreTrainedConfig) -> None:
        """Set the size options to a shape that was chosen for a target."""
        for name, field in SIZES.items():
            setattr(self, name, getattr(shape, field))
        self.student_layers = str(shape.num_hidden_layers)

    def layers_of(self, teacher: PreTrainedModel) -> list[int]:
        """Return the indices (from 0) of the teacher's layers from which the student starts."""
        from hf_mwp.compress.distillation.layer_mapping import choose_layers

        layers = parse_layers(self.student_layers or "3")
        return choose_layers(layers, teacher.config.num_hidden_layers, self.student_layer_choice or "first")

    def random_config(
        self, teacher: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, **fields
    ) -> MwpStudentConfig:
        """Return the configuration of a random student with the teacher encoder's number of positions, or 512."""
        from hf_mwp.compress.models import MwpStudentConfig
        from hf_mwp.compress.models.architecture import count_positions

        layers = parse_layers(self.student_layers or "3")
        num_layers = layers if isinstance(layers, int) else len(layers)
        return MwpStudentConfig(
            vocab_size=teacher.config.vocab_size,
            num_hidden_layers=num_layers,
            pad_token_id=tokenizer.pad_token_id or 0,
            max_position_embeddings=count_positions(teacher.config) or 512,
            **(fields | self.sizes | self.dropouts),
        )


@checked
def make_student(
    teacher: PreTrainedModel,
    processor: MwpProcessor | PreTrainedTokenizerBase,
    rows: Iterable[Mapping[str, Any]] = (),
    options: StudentArguments | None = None,
    **fields,
) -> MwpSolver:
    """
    Create the student of a distillation.

    Args:
        teacher ([`MwpSolver`]), processor ([`MwpProcessor`]):
            The teacher, whose tokens and symbols are the student's. Neither is changed.
        rows (`Iterable[Mapping]`, *optional*):
            Training rows of [`load_mwp_dataset`]; a projected student is fitted to the teacher on the first thousand.
        options ([`StudentArguments`], *optional*): Options, which `fields` override.
        fields:
            Options of `hf-mwp distill` that describe the student; by default it is the first three layers of the
            teacher with its decoder.

    Raises:
        TypeError: The teacher is not a solver; for sequence-to-sequence models use [`make_seq2seq_student`],
            for causal language models [`make_causal_student`].
        UsageError: The student cannot be loaded, or its tokenizer differs from the teacher's.
        ValueError: Options contradict each other, or the teacher does not have the sizes or layers.

    Example:

    ```python
    >>> student = hf_mwp.make_student(teacher, processor, student_layers="3,7,11")
    >>> narrow = hf_mwp.make_student(teacher, processor, data["train"], student_init="project", student_layers=3)
    ```
    """
    from hf_mwp.compress.models.model_kind import CAUSAL, kind_of

    model_kind = kind_of(teacher)
    if not model_kind.is_solver:
        function = "compress.distillation.project_student"
        if model_kind.has_decoder:
            function = "make_seq2seq_student"
        if model_kind is CAUSAL:
            function = "make_causal_student"
        raise TypeError(f"Expected a `Solver`, got `{type(teacher).__name__}`. Use `hf_mwp.{function}`.")
    options = StudentArguments(**fields) if options is None else replace(options, **fields)
    student, student_processor = make_student_and_processor(teacher, processor, rows, options)
    if student_processor is not processor:
        raise UsageError(
            f"The tokenizer of {options.student} differs from its teacher's. Load it with `load_solver`, which also "
            "returns its processor."
        )
    return student


def make_student_and_processor(
    teacher: MwpSolver, processor: MwpProcessor, rows: Iterable[Mapping[str, Any]], options: StudentArguments
) -> tuple[MwpSolver, MwpProcessor]:
    """Create a student ([`make_student`]) and return its processor too: the teacher's if the tokens are the same."""
    from hf_mwp.compress.models import MwpStudentModel
    from hf_mwp.solver.models import MwpSolver
    from hf_mwp.solver.models.cut_student import cut_student

    apply_size_targets(options, teacher, processor)
    if options.student is not None:
        student, student_processor = load_solver(options.student)
        if student_processor.tokenizer.get_vocab() == processor.tokenizer.get_vocab():
            return student, processor
        return student, student_processor
    dropout = options.student_dropout
    start = options.student_init
    if options.student_encoder is not None:
        start = "encoder"
    sample: list[Mapping[str, Any]] = []
    if start in ("project", "prune"):
        sample = list(islice(rows, SAMPLE_SIZE))
        if not sample:
            raise UsageError(f"`student_init={start}` needs training problems. Pass `rows`.")
    # Students that consist of parts of the teacher.
    if start == "cut":
        layers = options.layers_of(teacher)
        return cut_student(teacher, layers, decoder_dropout=dropout, **options.dropouts), processor
    if start == "prune":
        batches = _labelled_batches(teacher, processor, sample)
        return prune_student(teacher, batches, options.student_sparsity), processor
    # Students with a new decoder of their encoder's sizes, otherwise configured like the teacher's.
    if start == "encoder":
        encoder = load_encoder(options.student_encoder, dropout)
        tokenizer = load_tokenizer(options.student_encoder)
        remedy = "Use a student with the teacher's tokenizer."
        check_same_tokens(options.student_encoder, tokenizer, processor.tokenizer, remedy, subset=True)
    elif start == "random":
        config = options.random_config(teacher.encoder, processor.tokenizer)
        encoder = MwpStudentModel(config, add_pooling_layer=False)
    else:
        problems = processor.problems(sample)
        layers = options.layers_of(teacher)
        fields = options.sizes | options.dropouts
        encoder = project_on_problems(teacher.encoder, processor, problems, layers, **fields)
    config = teacher.decoder.new_config(encoder.config, dropout)
    return MwpSolver.from_encoder_decoder_pretrained(encoder, processor, decoder=config), processor


def _labelled_batches(
    teacher: MwpSolver, processor: MwpProcessor, rows: Iterable[Mapping[str, Any]]
) -> Iterator[Mapping[str, Any]]:
    """Yield batches of the rows that have labels, as inputs of the teacher."""
    columns = processor.encode(rows, with_labels=True, skipped=[])
    labelled = []
    for values in zip(*columns.values(), strict=True):
        encoded = dict(zip(columns, values, strict=True))
        if encoded["labels"]:
            labelled.append(encoded)
    collate = teacher.make_collator(processor)
    for start in range(0, len(labelled), SAMPLE_BATCH):
        yield collate(labelled[start : start + SAMPLE_BATCH])


def prune_student(teacher: PreTrainedModel, batches: Iterable[Mapping], sparsity: float | None) -> PreTrainedModel:
    """Copy a teacher without the heads and neurons least important to its loss (Yang et al., EMNLP 2022)."""
    from hf_mwp.compress.pruning import RemovedUnits, cut_teacher, measure_scores

    if sparsity is None:
        sparsity = SPARSITY
    scores = measure_scores(teacher, batches).combined(1.0)
    return cut_teacher(teacher, RemovedUnits.lowest(scores, sparsity))
