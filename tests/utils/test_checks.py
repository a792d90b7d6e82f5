"""Options are validated, also when their dataclasses are used in Python."""

from types import SimpleNamespace

import pytest

from hf_mwp.commands.app import AppArguments
from hf_mwp.commands.building.solver import SolverArguments
from hf_mwp.commands.building.student import StudentArguments, TeacherArguments
from hf_mwp.commands.evaluate import EvaluateArguments
from hf_mwp.commands.export import ExportArguments
from hf_mwp.commands.heads import HeadsArguments
from hf_mwp.commands.hub.card_arguments import CardArguments
from hf_mwp.commands.mix import MixArguments
from hf_mwp.commands.options.label_options import LabelArguments
from hf_mwp.commands.pretrain import CorpusArguments
from hf_mwp.commands.prune import PruneArguments
from hf_mwp.commands.publish import PublishArguments
from hf_mwp.commands.stark import StarkArguments
from hf_mwp.commands.tasks.data_options import TaskArguments
from hf_mwp.solver.training import SolverTrainingConfig
from hf_mwp.utils.checks import check_at_least_one, check_not_negative, check_share


@pytest.mark.parametrize(
    ("check", "accepted", "refused"),
    [
        (check_at_least_one, (None, 1, 7), (0, -1)),
        (check_not_negative, (None, 0, 0.5, 7), (-0.1, float("inf"), float("nan"))),
        (check_share, (None, 0, 0.5), (1, -0.1, float("nan"))),
    ],
)
def test_ranges_are_checked(check, accepted, refused):
    for value in accepted:
        check(SimpleNamespace(option=value), "option")
    for value in refused:
        with pytest.raises(ValueError, match="`option` must"):
            check(SimpleNamespace(option=value), "option")


@pytest.mark.parametrize(
    ("options_class", "fields", "name"),
    [
        (TaskArguments, {"drop_overlap": "nonsense"}, "drop_overlap"),
        (TaskArguments, {"task": "seq2seq", "text_metrics": ["bleu", "nonsense"]}, "text_metrics"),
        (PruneArguments, {"model": "a", "importance": "nonsense"}, "importance"),
        (HeadsArguments, {"model": "a", "importance": "nonsense"}, "importance"),
        (StarkArguments, {"teacher": "a", "scores": "nonsense"}, "scores"),
        (StudentArguments, {"student_layer_choice": "nonsense"}, "student_layer_choice"),
        (SolverArguments, {"encoder": "a", "decoder": "nonsense"}, "decoder"),
        (LabelArguments, {"model": "a", "problems": ["b"], "output_dir": "c", "task": "nonsense"}, "task"),
        (SolverTrainingConfig, {"output_dir": "a", "answer_match": "nonsense"}, "answer_match"),
    ],
)
def test_other_choices_raise(options_class, fields, name):
    with pytest.raises(ValueError, match=f"`{name}` must be one of .*'nonsense'"):
        options_class(**fields)


@pytest.mark.parametrize(
    ("options_class", "fields", "name"),
    [
        (PruneArguments, {"importance": "norm"}, "model"),
        (HeadsArguments, {}, "model"),
        (StarkArguments, {"test": False}, "teacher"),
        (TeacherArguments, {"teacher": []}, "teacher"),
        (CorpusArguments, {}, "corpus"),
        (EvaluateArguments, {"num_beams": 5}, "model"),
        (LabelArguments, {"model": "a", "output_dir": "c"}, "problems"),
        (LabelArguments, {"model": "a", "problems": ["b"]}, "output_dir"),
        (CardArguments, {"model": "a"}, "output_dir"),
        (ExportArguments, {"output_dir": "c"}, "model"),
        (MixArguments, {"solvers": ["a", "b"]}, "output_dir"),
        (PublishArguments, {"folder": "a"}, "repo_id"),
        (AppArguments, {}, "model"),
    ],
)
def test_missing_required_options_raise(options_class, fields, name):
    with pytest.raises(ValueError, match=f"`{name}` must be given"):
        options_class(**fields)
