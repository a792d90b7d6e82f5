import json

import pytest
import torch
from datasets import Dataset
from transformers import AutoModelForSequenceClassification, TrainerCallback

from hf_mwp import MwpSolver, StarkTrainer
from hf_mwp.compress.metrics.efficiency import count_parameters
from hf_mwp.compress.models import MwpStudentForSequenceClassification
from hf_mwp.compress.models.architecture import layer_parts
from hf_mwp.compress.models.fingerprints import hash_model
from hf_mwp.compress.pruning import (
    KnowledgeableScores,
    RemovedUnits,
    ScoreDensity,
    UnitScores,
    cut_teacher,
    measure_scores,
    zero_weights,
)
from hf_mwp.compress.pruning.gates import HeadGates
from hf_mwp.compress.pruning.unstructured import WeightSparsifier
from hf_mwp.compress.trainers import DistillationTrainer
from hf_mwp.solver.data import TrainingTexts
from hf_mwp.solver.models.cut_student import cut_student
from hf_mwp.utils.usage_error import UsageError
from tests.compress.pruning.encoders import tiny_encoder
from tests.compress.trainers.distilling import copy_of, pad, same_weights, unchanged
from tests.compress.trainers.processes import launch
from tests.compress.trainers.run_stark import arguments, classifier_trainer, teacher_and_student, train
from tests.slow_parameters import slow_after
from tests.tiny import tiny_athena_solver, tiny_classifier_rows, tiny_processor, tiny_rows, tiny_solver


ONE_SPARSITY = {"sparsities": [0.5], "num_train_epochs": 1}


def evaluation_batches():
    rows = tiny_classifier_rows(10, seed=1)
    return [pad(rows[start : start + 4]) for start in (0, 4, 8)]


class Recorder:
    """Records the sparsities of the teachers whose students are trained."""

    def __init__(self):
        self.sparsities = []

    def __call__(self, trainer, sparsity):
        self.sparsities.append(sparsity)


@pytest.fixture(scope="module")
def stark(tmp_path_factory):
    """A trainer of two sparsities that has trained."""
    recorder = Recorder()
    trainer = classifier_trainer(tmp_path_factory.mktemp("stark"), on_trainer=recorder)
    before = copy_of(trainer.teacher_model)
    trainer.train()
    assert recorder.sparsities == [0.0, 0.25, 0.5]
    assert unchanged(trainer.teacher_model, before)
    assert all(parameter.requires_grad for parameter in trainer.teacher_model.parameters())
    return trainer


def test_a_student_learns_from_the_whole_teacher_and_each_sparse_one(stark):
    # Of twelve heads and sixty neurons a quarter and a half are gone.
    students = [stark.trial, *stark.students]
    assert [sum(student.heads) for student in students] == [12, 9, 6]
    assert [sum(student.neurons) for student in students] == [60, 45, 30]
    sizes = [student.teacher_parameters for student in students]
    assert sizes[0] == count_parameters(stark.teacher_model)
    assert sizes[0] > sizes[1] > sizes[2]
    assert stark.chosen.metric == "eval_loss"
    assert stark.chosen.value == min(student.value for student in stark.students)
    assert not list(stark.stages_dir.glob("*/checkpoint-*"))


def test_scores_and_students_equal_those_of_the_steps_alone(stark, tmp_path):
    teacher, student = teacher_and_student()
    scores = measure_scores(teacher, evaluation_batches(), stark.trial.load()).combined(0.5)
    torch.testing.assert_close(scores.heads, stark.scores.heads, rtol=1e-5, atol=1e-7)
    torch.testing.assert_close(scores.neurons, stark.scores.neurons, rtol=1e-5, atol=1e-7)
    sparse = cut_teacher(teacher, RemovedUnits.lowest(scores, 0.5))
    rows = {"train_dataset": tiny_classifier_rows(8), "eval_dataset": tiny_classifier_rows(10, seed=1)}
    trainer = DistillationTrainer(student, sparse, arguments(tmp_path), data_collator=pad, **rows)
    trainer.train()
    assert same_weights(stark.students[1].load(), trainer.model)


def test_the_best_student_is_evaluated_and_saved(stark, tmp_path):
    assert same_weights(stark.model, stark.chosen.load())
    assert stark.evaluate()["eval_loss"] == pytest.approx(stark.chosen.value)
    assert stark.state.global_step == 4
    assert "loss_soft" in stark.state.log_history[0]
    stark.save_model(tmp_path)
    assert same_weights(AutoModelForSequenceClassification.from_pretrained(tmp_path), stark.model)


@pytest.mark.parametrize(
    ("fields", "has_scores", "trained"),
    slow_after(
        2,
        [
            ({}, False, []),
            ({"sparsities": [0.0, 0.5]}, False, []),
            ({"expressiveness_weight": 1.0, "sparsities": [0.25]}, False, [0.25]),
            ({"sparsities": [0.25]}, True, [0.25]),
            ({"auto_sparsity": True}, False, None),
        ],
    ),
)
def test_completed_stages_are_shared(stark, fields, has_scores, trained, tmp_path):
    scores = UnitScores.random(stark.teacher_model, seed=1) if has_scores else None
    if trained is None:
        trained = [ScoreDensity.of(stark.scores.heads).sparsity]
    recorder = Recorder()
    fields = {"stages_dir": str(stark.stages_dir)} | fields
    trainer = classifier_trainer(tmp_path, fields, scores=scores, on_trainer=recorder)
    trainer.train()
    assert recorder.sparsities == trained
    assert trainer.trial.folder == stark.trial.folder
    assert (trainer.knowledgeable is None) == has_scores


class Kill(TrainerCallback):
    def on_step_begin(self, args, state, control, **kwargs):
        if state.global_step == 3:
            raise InterruptedError


class KillAtSparsity(Recorder):
    """Kills the training of one student."""

    def __init__(self, killed_sparsity):
        super().__init__()
        self.killed_sparsity = killed_sparsity

    def __call__(self, trainer, sparsity):
        super().__call__(trainer, sparsity)
        if sparsity == self.killed_sparsity:
            trainer.add_callback(Kill())


def kill_scoring(batches):
    raise InterruptedError


@pytest.mark.slow
def test_an_interrupted_run_continues_to_the_same_students(stark, tmp_path):
    with pytest.raises(InterruptedError):
        classifier_trainer(tmp_path, on_trainer=KillAtSparsity(0.0)).train()
    with pytest.raises(InterruptedError):
        classifier_trainer(tmp_path, on_scores=kill_scoring).train()
    killed = KillAtSparsity(0.5)
    with pytest.raises(InterruptedError):
        classifier_trainer(tmp_path, on_trainer=killed).train()
    assert killed.sparsities == [0.25, 0.5]
    # It had come to the end of the first of two epochs.
    assert len(list(tmp_path.glob("stages/*/checkpoint-2"))) == 1
    recorder = Recorder()
    trainer = classifier_trainer(tmp_path, on_trainer=recorder)
    trainer.train()
    assert recorder.sparsities == [0.5]
    for student, expected in zip([trainer.trial, *trainer.students], [stark.trial, *stark.students], strict=True):
        assert student.folder.name == expected.folder.name
        assert student.value == expected.value
        assert same_weights(student.load(), expected.load())


@pytest.mark.slow
def test_each_sparse_teacher_has_its_own_cache(tmp_path, monkeypatch):
    # Random scores, so that it is known here which units are removed.
    teacher, _ = teacher_and_student()
    scores = UnitScores.random(teacher, seed=2)
    caches = tmp_path / "caches"
    fields = ONE_SPARSITY | {"cache_teacher_outputs": True, "teacher_cache_dir": str(caches)}
    with monkeypatch.context() as patch:
        patch.setattr("hf_mwp.compress.trainers.stark_trainer._remove_cache", lambda trainer: None)
        classifier_trainer(tmp_path, fields, scores=scores).train()
    cached_teachers = set()
    for path in caches.glob("*/manifest.json"):
        cached_teachers.add(json.loads(path.read_text())["about"]["made_from"]["teacher"])
    sparse = cut_teacher(teacher, RemovedUnits.lowest(scores, 0.5))
    assert cached_teachers == {hash_model(teacher), hash_model(sparse)}
    # Afterwards only the cache of the whole teacher stays, which other runs read.
    fields |= {"seed": 1, "teacher_cache_dir": str(tmp_path / "other caches")}
    classifier_trainer(tmp_path, fields, scores=scores).train()
    assert len(list(tmp_path.glob("other caches/*/manifest.json"))) == 1
    # A cache in the student's own folder does not stay.
    fields |= {"seed": 2, "teacher_cache_dir": None}
    trainer = classifier_trainer(tmp_path, fields, scores=scores)
    trainer.train()
    assert not list(trainer.stages_dir.glob("*/teacher_cache"))


@pytest.mark.slow
def test_single_weights_are_removed_instead_of_heads_and_neurons(stark, tmp_path):
    recorder = Recorder()
    fields = {"unstructured": True, "sparsities": [0.5], "stages_dir": str(stark.stages_dir)}
    trainer = classifier_trainer(tmp_path, fields, on_trainer=recorder)
    trainer.train()
    student = trainer.chosen
    # The trial student is the one of heads and neurons.
    assert recorder.sparsities == [0.5]
    assert trainer.trial.folder == stark.trial.folder
    assert student.heads == trainer.trial.heads
    assert student.teacher_parameters == trainer.trial.teacher_parameters
    assert trainer.knowledgeable.about["weights"]
    sparse = zero_weights(trainer.teacher_model, trainer.knowledgeable.combined(0.5), 0.5)
    query = sparse.base_model.encoder.layer[0].attention.self.query.weight
    assert 0 < (query == 0).sum() < query.numel()
    assert student.folder.name.startswith("sparse-")
    assert student.folder != stark.students[1].folder


def test_random_scores_remove_single_weights():
    teacher, _ = teacher_and_student()
    sparsifier = WeightSparsifier()
    sparse = sparsifier.sparse(teacher, sparsifier.random(teacher, 0), 0.25)
    num_weights = 0
    num_zeros = 0
    for layer in layer_parts(sparse):
        for linear in (layer.query, layer.key, layer.value, layer.attention_output):
            num_weights += linear.weight.numel()
            num_zeros += int((linear.weight == 0).sum())
    assert num_zeros == round(num_weights / 4)


def regression_models():
    teacher = tiny_encoder("bert", "ForSequenceClassification", num_labels=1)
    return {"model": MwpStudentForSequenceClassification.from_encoder(teacher, layers=1), "teacher_model": teacher}


@pytest.mark.slow
def test_a_regression_with_early_stopping(tmp_path):
    rows = [row | {"labels": row["labels"] / 2} for row in tiny_classifier_rows(10)]
    fields = {"prediction_loss": "mse", "sparsities": [0.5], "per_example": True, "round_to": 2}
    # Nothing is so much better: each student stops after its second epoch of five.
    fields |= {"num_train_epochs": 5, "early_stopping_patience": 1, "early_stopping_threshold": 100.0}
    data = {"train_dataset": rows[:6], "eval_dataset": rows[6:]}
    trainer = classifier_trainer(tmp_path, fields, **regression_models(), **data)
    trainer.train()
    student = trainer.chosen
    assert student.model_class is MwpStudentForSequenceClassification
    assert student.load().num_labels == 1
    assert sum(student.heads) == 6
    assert all(num_neurons % 2 == 0 for num_neurons in student.neurons)
    assert trainer.knowledgeable.about["per_example"]
    assert "eval_loss" in student.metrics
    assert trainer.trial.load_state().global_step == student.load_state().global_step == 4


@pytest.mark.parametrize("make_solver", slow_after(1, [tiny_solver, tiny_athena_solver]))
def test_solvers(make_solver, tmp_path):
    processor = tiny_processor()
    rows = tiny_rows(10)
    teacher = make_solver(processor, layers=2)
    args = arguments(tmp_path, **ONE_SPARSITY)
    trainer = StarkTrainer(cut_student(teacher, 1), teacher, args, None, rows[:8], rows[8:], processor)
    trainer.train()
    student = trainer.chosen
    assert student.metric == "eval_answer_accuracy"
    assert student.greater_is_better
    assert sum(student.heads) == 2
    trainer.save_model()
    assert same_weights(MwpSolver.from_pretrained(tmp_path), student.load())
    # Teacher and student were trained on the same texts.
    texts = TrainingTexts.load(tmp_path)
    student_texts = TrainingTexts.load(student.folder)
    assert texts.includes(student_texts) and student_texts.includes(texts)


def test_split_weights_are_not_scored(tmp_path, monkeypatch):
    monkeypatch.setattr("hf_mwp.compress.trainers.stark_trainer.shards_weights", lambda args: True)
    with pytest.raises(ValueError, match="FSDP.*DDP"):
        classifier_trainer(tmp_path).train()


@pytest.mark.slow
def test_two_processes_score_as_one(tmp_path):
    fields = ONE_SPARSITY | {"ddp_backend": "gloo", "per_device_train_batch_size": 2}
    result = launch(train, [{"output_dir": str(tmp_path), "args": fields}], processes=2)
    assert result.returncode == 0, result.stderr[-3000:]
    (trial,) = tmp_path.glob("stages/trial-*")
    (scores_folder,) = tmp_path.glob("stages/scores-*")
    (sparse,) = tmp_path.glob("stages/sparse-*")
    metrics = json.loads((sparse / "metrics.json").read_text())
    evaluated = json.loads((tmp_path / "eval_results.json").read_text())
    assert evaluated["eval_loss"] == pytest.approx(metrics["eval"]["eval_loss"])
    best = MwpStudentForSequenceClassification.from_pretrained(tmp_path)
    assert same_weights(best, MwpStudentForSequenceClassification.from_pretrained(sparse))
    teacher, _ = teacher_and_student()
    scores = KnowledgeableScores.load(scores_folder)
    student = MwpStudentForSequenceClassification.from_pretrained(trial)
    expected = measure_scores(teacher, evaluation_batches(), student)
    assert torch.equal(scores.expressiveness.heads, expected.expressiveness.heads)
    assert torch.equal(scores.expressiveness.neurons, expected.expressiveness.neurons)
    assert torch.equal(scores.friendliness.heads, expected.friendliness.heads)
    assert torch.equal(scores.friendliness.neurons, expected.friendliness.neurons)


def stream():
    return Dataset.from_list(tiny_classifier_rows(4)).to_iterable_dataset()


def teacher_with_gates():
    teacher, _ = teacher_and_student()
    HeadGates(teacher)
    return {"teacher_model": teacher}


def teacher_of_two_classes():
    teacher = tiny_encoder("bert", "ForSequenceClassification", num_labels=2)
    rows = [row | {"labels": row["labels"] % 2} for row in tiny_classifier_rows(8)]
    return {"teacher_model": teacher, "train_dataset": rows}


def teacher_of_more_tokens():
    return {"teacher_model": tiny_encoder("bert", "ForSequenceClassification", vocab_size=50)}


def scores_of_units():
    return {"scores": UnitScores.random(tiny_encoder("bert"))}


def scores_of_two_layers():
    return {"scores": UnitScores.random(tiny_encoder("bert", num_hidden_layers=2))}


@pytest.mark.parametrize(
    ("fields", "make_changes", "message"),
    [
        ({}, lambda: {"eval_dataset": None}, "`eval_dataset`"),
        ({}, lambda: {"eval_dataset": {"a": tiny_classifier_rows(2)}}, "`eval_dataset`"),
        ({}, lambda: {"eval_dataset": stream()}, "`eval_dataset` .*IterableDataset"),
        ({}, lambda: {"eval_dataset": "validation"}, "`eval_dataset` .*str"),
        ({}, lambda: {"train_dataset": None}, "`train_dataset`"),
        ({}, lambda: {"score_dataset": []}, "`score_dataset`.*empty"),
        ({}, lambda: {"score_dataset": stream()}, "`score_dataset` .*IterableDataset"),
        ({"unstructured": True}, scores_of_units, "attention weights"),
        ({}, scores_of_two_layers, r"\[4, 4\] heads.*\[4, 4, 4\]"),
        ({}, teacher_with_gates, "gates"),
        ({}, teacher_of_two_classes, r"\(2, 3\).*\(2, 2\).*`num_labels`"),
        ({}, teacher_of_more_tokens, "40 tokens.* 50"),
        ({"prediction_loss": "dkd"}, regression_models, '`prediction_loss="mse"`'),
        ({"sparsities": [0.99]}, dict, r"0\.99 .* 12 heads"),
    ],
)
def test_impossible_runs_are_refused_before_any_training(fields, make_changes, message, tmp_path):
    with pytest.raises(ValueError, match=message):
        classifier_trainer(tmp_path, fields, **make_changes())
    assert not any(tmp_path.iterdir())


@pytest.mark.slow
def test_a_solver_is_scored_on_problems_with_equations(tmp_path):
    processor = tiny_processor()
    rows = tiny_rows(10)
    answers = [row | {"equation": ""} for row in rows[8:]]
    teacher = tiny_solver(processor, layers=2)
    positions = (cut_student(teacher, 1), teacher, arguments(tmp_path), None, rows[:8], answers, processor)
    with pytest.raises(UsageError, match="`score_dataset`"):
        StarkTrainer(*positions)
    # Scores that are passed need no rows.
    StarkTrainer(*positions, scores=UnitScores.random(teacher))
    StarkTrainer(*positions, score_dataset=rows[:2])


def test_folders_of_other_runs_are_refused(stark, tmp_path):
    folder = tmp_path / stark.trial.folder.name
    folder.mkdir()
    record = {"fingerprint": "another", "seconds": 1.0}
    (folder / "stage.json").write_text(json.dumps(record))
    with pytest.raises(ValueError, match=f"{folder.name} .*another"):
        classifier_trainer(tmp_path, {"stages_dir": str(tmp_path)})
    assert json.loads((folder / "stage.json").read_text()) == record
