"""Values of options that cannot be, named before they are used."""

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
from hf_mwp.compress.distillation import mix_parameters
from hf_mwp.compress.distillation.objectives import SoftLabels
from hf_mwp.compress.pruning import CombinedImportance
from hf_mwp.compress.trainers import RecursiveDistillationConfig, StarkConfig
from hf_mwp.solver.training import SolverTrainingConfig
from hf_mwp.utils.checks import check_at_least_one, check_not_negative, check_share
from tests.tiny import tiny_classifier


@pytest.mark.parametrize(
    ("check", "right", "wrong"),
    [
        (check_at_least_one, (None, 1, 7), (0, -1)),
        (check_not_negative, (None, 0, 0.5, 7), (-0.1, float("inf"), float("nan"))),
        (check_share, (None, 0, 0.5), (1, -0.1, float("nan"))),
    ],
)
def test_options_are_checked(check, right, wrong):
    for value in right:
        check(SimpleNamespace(option=value), "option")
    for value in wrong:
        with pytest.raises(ValueError, match="`option` must"):
            check(SimpleNamespace(option=value), "option")


@pytest.mark.parametrize(
    ("make", "name"),
    [
        (lambda: TaskArguments(task="nonsense"), "task"),
        (lambda: TaskArguments(drop_overlap="nonsense"), "drop_overlap"),
        (lambda: TaskArguments(task="seq2seq", text_metrics=["bleu", "nonsense"]), "text_metrics"),
        (lambda: PruneArguments(model="a", importance="nonsense"), "importance"),
        (lambda: HeadsArguments(model="a", importance="nonsense"), "importance"),
        (lambda: StarkArguments(teacher="a", scores="nonsense"), "scores"),
        (lambda: StudentArguments(student_layer_choice="nonsense"), "student_layer_choice"),
        (lambda: SolverArguments(encoder="a", decoder="nonsense"), "decoder"),
        (lambda: LabelArguments(model="a", problems=["b"], output_dir="c", task="nonsense"), "task"),
        (lambda: SolverTrainingConfig("a", answer_match="nonsense"), "answer_match"),
    ],
)
def test_choices_are_checked_in_python_too(make, name):
    with pytest.raises(ValueError, match=f"`{name}` must be one of .*'nonsense'"):
        make()


@pytest.mark.parametrize(
    ("make", "name"),
    [
        (lambda: PruneArguments(importance="norm"), "model"),
        (lambda: HeadsArguments(), "model"),
        (lambda: StarkArguments(test=False), "teacher"),
        (lambda: TeacherArguments(teacher=[]), "teacher"),
        (lambda: CorpusArguments(), "corpus"),
        (lambda: EvaluateArguments(num_beams=5), "model"),
        (lambda: LabelArguments(model="a", output_dir="c"), "problems"),
        (lambda: LabelArguments(model="a", problems=["b"]), "output_dir"),
        (lambda: CardArguments(model="a"), "output_dir"),
        (lambda: ExportArguments(output_dir="c"), "model"),
        (lambda: MixArguments(solvers=["a", "b"]), "output_dir"),
        (lambda: PublishArguments(folder="a"), "repo_id"),
        (lambda: AppArguments(), "model"),
    ],
)
def test_what_must_be_given_is_checked_in_python_too(make, name):
    with pytest.raises(ValueError, match=f"`{name}` must be given"):
        make()


@pytest.mark.parametrize(
    ("use", "name"),
    [
        (lambda: CombinedImportance(alpha="0.5"), "alpha"),
        (lambda: SoftLabels(weight="1"), "weight"),
        (lambda: mix_parameters(tiny_classifier(), tiny_classifier(), pretrained_weight="0.2"), "pretrained_weight"),
        (lambda: StarkConfig("out", sparsities=["0.3"]), "sparsities\\[0\\]"),
        (lambda: RecursiveDistillationConfig("out", ratios=["0.3"]), "ratios\\[0\\]"),
    ],
)
def test_what_is_no_number_is_named(use, name):
    with pytest.raises(TypeError, match=f"`{name}` must be a (whole )?number, got "):
        use()
