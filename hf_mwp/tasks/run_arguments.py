"""Options of a training run that are not the trainer's."""

from dataclasses import dataclass

from ..options import option
from ..options.checks import check_at_least_one


@dataclass
class ResumeArguments:
    """Options of a run's output folder."""

    _argument_group_name = "run"

    resume: bool = option(
        False,
        "Resume from the last checkpoint in the output folder, with its options; a longer run has its own schedule.",
        affects_result=False,
    )
    overwrite: bool = option(
        False, "Replace checkpoints or the model of an earlier run in the folder.", affects_result=False
    )


@dataclass
class RunArguments(ResumeArguments):
    """Options of a run's output folder and of its final evaluation."""

    test: bool = option(True, "Solve the test split at the end.")
    test_num_beams: int | None = option(None, "Beams for the test split; num_beams if not given.")

    def __post_init__(self):
        check_at_least_one(self, "test_num_beams")


@dataclass
class DistillRunArguments(RunArguments):
    """[`RunArguments`] of a distillation."""

    estimate: bool = option(
        False,
        "Take 20 steps and print the hours, peak memory and cache size of the whole run, and of a corpus 100 times as "
        "large; nothing is written.",
        affects_result=False,
    )
