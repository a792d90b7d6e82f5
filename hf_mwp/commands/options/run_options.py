"""Options of a training run's output folder and of its final evaluation."""

from dataclasses import dataclass

from hf_mwp.utils.checks import check_at_least_one, check_options
from hf_mwp.utils.option import option


@dataclass
class FinalArguments:
    """Options of the evaluation at the end of a run, and of its output folder."""

    test: bool = option(True, "Evaluate on the test split at the end.")
    test_num_beams: int | None = option(None, "Number of beams for the test split; num_beams if not given.")
    overwrite: bool = option(False, "Replace checkpoints or the model of an earlier run.", affects_result=False)

    def __post_init__(self):
        check_options(self)
        check_at_least_one(self, "test_num_beams")


@dataclass
class ResumeArguments:
    """Options of a run's output folder."""

    _argument_group_name = "run"

    resume: bool = option(
        False, "Resume from the last checkpoint, made with the same options or a shorter length.", affects_result=False
    )
    overwrite: bool = option(False, "Replace checkpoints or the model of an earlier run.", affects_result=False)


@dataclass
class RunArguments(FinalArguments, ResumeArguments):
    """Options of a run's output folder and of its final evaluation."""
