"""Options of a training run that are not the trainer's."""

from __future__ import annotations

from dataclasses import dataclass, field

from ..option_checks import check_at_least_one


@dataclass
class ResumeArguments:
    """
    How a run treats its output folder.

    Args:
        resume (`bool`, *optional*, defaults to `False`):
            Go on from the last checkpoint in the output folder, with the options that it was made with. Those on which
            no weight depends may be others; more epochs or steps stretch the schedule of the learning rate from there.
        overwrite (`bool`, *optional*, defaults to `False`):
            Start anew in a folder that has checkpoints or the model of an earlier run.
    """

    _argument_group_name = "run"

    resume: bool = field(
        default=False,
        metadata={
            "help": "Go on from the last checkpoint in the output folder, with its options; with more epochs the "
            "schedule of the learning rate is from there on that of a run of the new length."
        },
    )
    overwrite: bool = field(
        default=False, metadata={"help": "Start anew in a folder that has checkpoints or the model of an earlier run."}
    )


@dataclass
class RunArguments(ResumeArguments):
    """
    How a run treats its output folder, and what it does at the end.

    Args:
        resume, overwrite (`bool`, *optional*, defaults to `False`):
            As in [`ResumeArguments`].
        test (`bool`, *optional*, defaults to `True`):
            Solve the test part at the end, once, with the final (or best) model.
        test_num_beams (`int`, *optional*):
            Beams for that; `num_beams` by default.
    """

    test: bool = field(default=True, metadata={"help": "Solve the test part at the end."})
    test_num_beams: int | None = field(
        default=None, metadata={"help": "Beams for the test part; num_beams if not given."}
    )

    def __post_init__(self):
        check_at_least_one(self, "test_num_beams")
