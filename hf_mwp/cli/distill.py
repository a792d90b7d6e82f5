"""`hf-mwp distill`: train a student solver after a teacher solver."""

from __future__ import annotations

from dataclasses import dataclass, field

from .data_arguments import DataArguments
from .errors import CommandError
from .model_arguments import parse_layers
from .model_folder import load_solver
from .parsing import parse
from .problem_data import ProblemData
from .recipe import is_recipe, run_recipe
from .run_arguments import RunArguments
from .training import run_command


@dataclass
class StudentArguments:
    """
    Teacher and student of a distillation.

    Args:
        teacher (`str`):
            Folder or Hub id of a trained solver.
        student (`str`, *optional*):
            Folder or Hub id of a solver to train; by default one is cut from the teacher.
        student_layers (`str`, *optional*, defaults to `"3"`):
            Layers of the teacher's encoder that a cut student starts from: a number, or indices (`"0,2,4"`).
        student_layer_choice (`str`, *optional*, defaults to `"first"`):
            Which, if `student_layers` is a number: see [`~distillation.cut_student`].
        new_decoder (`bool`, *optional*, defaults to `False`):
            Start the cut student's decoder from random weights instead of the teacher's.
        student_dropout (`float`, *optional*):
            Dropout of a cut student; the teacher's by default.
    """

    _argument_group_name = "teacher and student"

    teacher: str | None = field(
        default=None, metadata={"help": "Folder or Hub id of a trained solver (must be given)."}
    )
    student: str | None = field(
        default=None, metadata={"help": "Folder or Hub id of a solver to train; cut from the teacher if not given."}
    )
    student_layers: str = field(
        default="3",
        metadata={"help": "Teacher's encoder layers a cut student starts from: a number, or indices (0,2,4)."},
    )
    student_layer_choice: str = field(
        default="first",
        metadata={
            "help": "Which layers, if student_layers is a number.",
            "choices": ["first", "last", "uniform", "alternate"],
        },
    )
    new_decoder: bool = field(
        default=False, metadata={"help": "Start a cut student's decoder from random weights, not the teacher's."}
    )
    student_dropout: float | None = field(
        default=None, metadata={"help": "Dropout of a cut student; the teacher's if not given."}
    )

    def __post_init__(self):
        if self.teacher is None:
            raise ValueError("a `teacher` must be given: the folder or Hub id of a trained solver.")
        parse_layers(self.student_layers)


def argument_types() -> list[type]:
    """Dataclasses whose fields are the options."""
    from ..trainers import DistillationConfig

    return [DataArguments, StudentArguments, RunArguments, DistillationConfig]


def run(argv: list[str]) -> int:
    """
    Distils a student, or runs a recipe if the configuration file has `stages`; see `hf-mwp distill --help`. Also runs
    under `torchrun` and `accelerate launch`.
    """
    if is_recipe(argv):
        return run_recipe(argv)
    from ..trainers import DistillationTrainer

    (data_args, student_args, run_args, config), values = parse(
        "distill",
        "Train a student solver after a frozen teacher solver: its predictions, hidden states and embeddings. With a "
        "--config that has `stages`, run these one after another (--budget, --dry_run, --variable, --stage.option).",
        argument_types(),
        argv,
    )

    def make_trainer(data: ProblemData) -> DistillationTrainer:
        teacher, processor = load_solver(student_args.teacher)
        return DistillationTrainer(
            model=make_student(student_args, teacher, processor),
            teacher_model=teacher,
            args=config,
            train_dataset=data.train,
            eval_dataset=data.validation,
            processing_class=processor,
        )

    return run_command("distill", "student", values, data_args, run_args, config, make_trainer)


def make_student(args: StudentArguments, teacher, processor):
    """The student that the options describe; `CommandError` if it does not read and answer as the teacher does."""
    from ..distillation import cut_student

    if args.student is None:
        dropout = args.student_dropout
        fields = {} if dropout is None else {"hidden_dropout_prob": dropout, "attention_probs_dropout_prob": dropout}
        return cut_student(
            teacher,
            parse_layers(args.student_layers),
            choice=args.student_layer_choice,
            new_decoder=args.new_decoder,
            decoder_dropout=dropout,
            **fields,
        )
    student, own = load_solver(args.student)
    if own.tokenizer.get_vocab() != processor.tokenizer.get_vocab():
        raise CommandError(f"{args.student} has another tokenizer than {args.teacher}; distillation needs the same.")
    return student
