"""Options that say who learns from whom."""

from __future__ import annotations

from dataclasses import dataclass, field

from ..option_checks import check_at_least_one, check_share
from .encoder_names import find_encoder
from .solver_options import parse_layers


STARTS = ("cut", "project", "random")

# Option -> field of the student's config and its default, the sizes of Ming et al.
SIZES = {
    "student_hidden_size": ("hidden_size", 312),
    "student_intermediate_size": ("intermediate_size", 1200),
    "student_heads": ("num_attention_heads", 12),
}

# Where the student comes from -> options that say nothing about such a student.
UNUSED = {
    "student": ("student_layers", "student_layer_choice", "new_decoder", "student_dropout"),
    "student_encoder": ("student_layers", "student_layer_choice", "new_decoder"),
    "student_start=project": ("new_decoder",),
    "student_start=random": ("student_layer_choice", "new_decoder"),
}


@dataclass
class StudentArguments:
    """
    Teacher and student of a distillation.

    Args:
        teacher (`str`):
            Folder or Hub id of a trained solver.
        student (`str`, *optional*):
            Folder or Hub id of a solver to train.
        student_encoder (`str`, *optional*):
            Folder or Hub id of a pretrained encoder for the student, such as `hf-mwp pretrain` writes; its decoder is
            new. Without this and `student`, `student_start` says where the student comes from.
        student_start (`str`, *optional*, defaults to `"cut"`):
            `"cut"`: layers of the teacher's encoder, and its decoder, as they are
            ([`~distillation.cut_student`]); `"project"`: such layers in other widths, fitted to the teacher's on
            training problems ([`~distillation.project_student`]), and a new decoder; `"random"`: random weights.
        student_hidden_size (`int`, *optional*), student_intermediate_size (`int`, *optional*),
        student_heads (`int`, *optional*):
            Sizes of a projected or random student: 312, 1200 and 12 by default.
        student_layers (`str`, *optional*, defaults to `"3"`):
            Layers of the teacher's encoder that a cut or projected student starts from: a number, or indices
            (`"0,2,4"`). Of a random student how many it has.
        student_layer_choice (`str`, *optional*, defaults to `"first"`):
            Which, if `student_layers` is a number: see [`~distillation.cut_student`].
        new_decoder (`bool`, *optional*, defaults to `False`):
            Start the cut student's decoder from random weights instead of the teacher's.
        student_dropout (`float`, *optional*):
            Dropout of the student; by default that of what it is made of, 0.1 from random weights.

    Options that say nothing about a student of its kind are refused.
    """

    _argument_group_name = "teacher and student"

    teacher: str | None = field(
        default=None, metadata={"help": "Folder or Hub id of a trained solver (must be given)."}
    )
    student: str | None = field(
        default=None, metadata={"help": "Folder or Hub id of a solver to train; cut from the teacher if not given."}
    )
    student_encoder: str | None = field(
        default=None,
        metadata={"help": "Folder or Hub id of a pretrained encoder for the student; its decoder is new."},
    )
    student_start: str = field(
        default="cut",
        metadata={
            "help": "Where else it comes from: the teacher's layers as they are, or in other widths, or nowhere.",
            "choices": list(STARTS),
        },
    )
    student_hidden_size: int | None = field(
        default=None, metadata={"help": "Width of a projected or random student; 312 if not given."}
    )
    student_intermediate_size: int | None = field(
        default=None, metadata={"help": "Its feed-forward neurons; 1200 if not given."}
    )
    student_heads: int | None = field(default=None, metadata={"help": "Its attention heads; 12 if not given."})
    student_layers: str | None = field(
        default=None,
        metadata={
            "help": "Teacher's encoder layers the student starts from: a number, or indices (0,2,4); 3 if not given."
        },
    )
    student_layer_choice: str | None = field(
        default=None,
        metadata={
            "help": "Which layers, if student_layers is a number; the first if not given.",
            "choices": ["first", "last", "uniform", "alternate"],
        },
    )
    new_decoder: bool = field(
        default=False, metadata={"help": "Start a cut student's decoder from random weights, not the teacher's."}
    )
    student_dropout: float | None = field(
        default=None, metadata={"help": "Dropout of the student; that of what it is made of if not given."}
    )

    def __post_init__(self):
        if self.teacher is None:
            raise ValueError("a `teacher` must be given: the folder or Hub id of a trained solver.")
        check_at_least_one(self, *SIZES)
        check_share(self, "student_dropout")
        self.student_encoder = find_encoder(self.student_encoder)
        layers = parse_layers(self.student_layers, "student_layers")
        if self.student is not None and self.student_encoder is not None:
            raise ValueError("`student` is a whole solver and `student_encoder` an encoder: give one of them.")
        if self.student_start not in STARTS:
            raise ValueError(f"`student_start` is one of {', '.join(STARTS)}, not {self.student_start!r}.")
        given = [name for name in SIZES if getattr(self, name) is not None]
        if given and (self.student_start == "cut" or self.student is not None or self.student_encoder is not None):
            raise ValueError(
                f"`{given[0]}` is for a projected or random student (`student_start`); other students have sizes of "
                "their own."
            )
        if self.student_start != "cut" and (self.student is not None or self.student_encoder is not None):
            raise ValueError(
                "`student` and `student_encoder` say where the student starts: leave out `student_start`."
            )
        given = [name for name in ("student", "student_encoder") if getattr(self, name) is not None]
        start = given[0] if given else f"student_start={self.student_start}"
        for name in UNUSED.get(start, ()):
            # A dropout of 0 is given, a `False` is not.
            if getattr(self, name) is not None and getattr(self, name) is not False:
                raise ValueError(f"`{name}` does nothing with `{start}`: leave one of them out.")
        if isinstance(layers, list) and self.student_layer_choice is not None:
            raise ValueError("`student_layer_choice` does nothing with indices in `student_layers`.")
        self.student_layers = self.student_layers or "3"
        self.student_layer_choice = self.student_layer_choice or "first"

    @property
    def sizes(self) -> dict[str, int]:
        """Sizes of a projected or random student, by the names of [`MwpStudentConfig`]."""
        return {SIZES[name][0]: getattr(self, name) or SIZES[name][1] for name in SIZES}
