import json

import pytest
import torch
from datasets import Dataset
from transformers import AutoModelForSequenceClassification, TrainerCallback

from hf_mwp import MwpSolver, StarkTrainer
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
from hf_mwp.solver.models.cut_student import cut_student
from hf_mwp.utils.usage_error import UsageError
from tests.compress.pruning.encoders import tiny_encoder
from tests.compress.trainers.distilling import copy_of, pad, unchanged
from tests.compress.trainers.processes import launch
from tests.compress.trainers.run_stark import FIELDS, arguments, of_classifier, teacher_and_student, train
from tests.tiny import tiny_athena_solver, tiny_classifier_rows, tiny_processor, tiny_rows, tiny_solver, tiny_tokenizer
from tests.tiny_seq2seq import tiny_pairs, tiny_seq2seq


def batches(size=4):
    rows = tiny_classifier_rows(10, seed=1)
    return [pad(rows[start : start + size]) for start in range(0, len(rows), size)]


def same(model, other):
    return unchanged(model, copy_of(other))


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A trainer of two sparsities that has trained, and the sparsities of the teachers, as they came."""
    trained = []
    folder = tmp_path_factory.mktemp("stark")
    trainer = of_classifier(folder, on_trainer=lambda trainer, sparsity: trained.append(sparsity))
    before = copy_of(trainer.teacher_model)
    trainer.train()
    assert unchanged(trainer.teacher_model, before)
    assert all(each.requires_grad for each in trainer.teacher_model.parameters())
    return trainer, trained


def test_students_of_whole_and_sparse_teachers(whole):
    trainer, trained = whole
    assert trained == [0.0, 0.25, 0.5]
    # Of twelve heads and sixty neurons a quarter and a half are gone.
    students = [trainer.trial, *trainer.students]
    assert [sum(each.heads) for each in students] == [12, 9, 6]
    assert [sum(each.neurons) for each in students] == [60, 45, 30]
    sizes = [each.teacher_parameters for each in students]
    assert sizes[0] == sum(each.numel() for each in trainer.teacher_model.parameters()) > sizes[1] > sizes[2]
    assert (
        trainer.chosen.value == min(each.value for each in trainer.students) and trainer.chosen.metric == "eval_loss"
    )
    assert not [*trainer.stages_dir.glob("*/checkpoint-*")]


def test_a_student_is_what_its_parts_make_of_it(whole, tmp_path):
    trainer, _ = whole
    teacher, student = teacher_and_student()
    scores = measure_scores(teacher, batches(), trainer.trial.load()).combined(0.5)
    for ours, theirs in zip(
        (scores.heads, scores.neurons), (trainer.scores.heads, trainer.scores.neurons), strict=True
    ):
        torch.testing.assert_close(ours, theirs, rtol=1e-5, atol=1e-7)
    sparse = cut_teacher(teacher, RemovedUnits.lowest(scores, 0.5))
    rows = {"train_dataset": tiny_classifier_rows(8), "eval_dataset": tiny_classifier_rows(10, seed=1)}
    alone = DistillationTrainer(student, sparse, arguments(tmp_path), data_collator=pad, **rows)
    alone.train()
    assert same(trainer.students[1].load(), alone.model)


def test_it_evaluates_and_saves_the_chosen_one(whole, tmp_path):
    trainer, _ = whole
    assert same(trainer.model, trainer.chosen.load())
    assert trainer.evaluate()["eval_loss"] == pytest.approx(trainer.chosen.value)
    assert trainer.state.global_step == 4 and any("loss_soft" in entry for entry in trainer.state.log_history)
    trainer.save_model(tmp_path)
    assert same(AutoModelForSequenceClassification.from_pretrained(tmp_path), trainer.model)


def test_what_is_there_is_shared(whole):
    before, _ = whole
    names = {path.name for path in before.stages_dir.iterdir()}
    teacher, _ = teacher_and_student()
    random = UnitScores.random(teacher, seed=1)
    runs = [
        ({}, {}, []),
        ({"sparsities": [0.0, 0.5]}, {}, []),
        ({"expressiveness_weight": 1.0, "sparsities": [0.25]}, {}, [0.25]),
        ({"sparsities": [0.25]}, {"scores": random}, [0.25]),
        ({"auto_sparsity": True}, {}, [ScoreDensity.of(before.scores.heads).sparsity]),
    ]
    for fields, kwargs, expected in runs:
        trained = []
        fields = {"stages_dir": str(before.stages_dir)} | fields
        trainer = of_classifier("nowhere", fields, on_trainer=lambda _, s, t=trained: t.append(s), **kwargs)
        trainer.train()
        assert trained == expected and trainer.trial.folder == before.trial.folder
        assert (trainer.knowledgeable is None) == bool(kwargs)
    added = {path.name.split("-")[0] for path in before.stages_dir.iterdir() if path.name not in names}
    assert added == {"sparse"}


class Kill(TrainerCallback):
    def on_step_begin(self, args, state, control, **kwargs):
        if state.global_step == 3:
            raise InterruptedError


def test_killed_anywhere_it_goes_on_to_the_same_students(whole, tmp_path):
    begun = []

    def kill_at(stage):
        def on_trainer(trainer, sparsity):
            begun.append(sparsity)
            if sparsity == stage:
                trainer.add_callback(Kill())

        return on_trainer

    def no_scores(batches):
        raise InterruptedError

    for options in ({"on_trainer": kill_at(0.0)}, {"on_scores": no_scores}, {"on_trainer": kill_at(0.5)}):
        with pytest.raises(InterruptedError):
            of_classifier(tmp_path, **options).train()
    # It had come to the end of the first of two epochs.
    assert [len([*folder.glob("checkpoint-2")]) for folder in tmp_path.glob("stages/*")].count(1) == 1
    trainer = of_classifier(tmp_path, on_trainer=lambda trainer, sparsity: begun.append(sparsity))
    trainer.train()
    assert begun == [0.0, 0.25, 0.5, 0.5]
    for ours, theirs in zip((trainer.trial, *trainer.students), (whole[0].trial, *whole[0].students), strict=True):
        assert ours.folder.name == theirs.folder.name and ours.value == theirs.value
        assert same(ours.load(), theirs.load())


def test_a_stage_without_optimizer_states_starts_over(whole, tmp_path):
    fields = {"save_only_model": True, "sparsities": [0.5]}
    with pytest.raises(InterruptedError):
        of_classifier(tmp_path, fields, on_trainer=lambda trainer, _: trainer.add_callback(Kill())).train()
    (checkpoint,) = tmp_path.glob("stages/*/checkpoint-2")
    assert not (checkpoint / "optimizer.pt").exists()
    trainer = of_classifier(tmp_path, fields)
    trainer.train()
    for ours, theirs in zip((trainer.trial, *trainer.students), (whole[0].trial, whole[0].students[1]), strict=True):
        assert ours.value == theirs.value and same(ours.load(), theirs.load())


def test_each_sparse_teacher_has_a_cache_of_its_own(whole, tmp_path, monkeypatch):
    fields = {"cache_teacher_outputs": True, "teacher_cache_dir": str(tmp_path / "caches")}

    def cached():
        manifests = (tmp_path / "caches").glob("*/manifest.json")
        return {json.loads(path.read_text())["about"]["made_from"]["teacher"] for path in manifests}

    # Random scores, so that it is known here what goes.
    teacher, _ = teacher_and_student()
    scores = UnitScores.random(teacher, seed=2)
    removed = [RemovedUnits.lowest(scores, each) for each in FIELDS["sparsities"]]
    with monkeypatch.context() as patch:
        patch.setattr("hf_mwp.compress.trainers.stark_trainer._remove_cache", lambda trainer: None)
        of_classifier(tmp_path, fields, scores=scores).train()
    expected = {hash_model(each) for each in (teacher, *(cut_teacher(teacher, each) for each in removed))}
    assert cached() == expected and len(expected) == 3
    # Not kept, that of the whole teacher is left, which other runs learn from.
    other = {**fields, "seed": 1, "teacher_cache_dir": str(tmp_path / "others"), "sparsities": [0.5]}
    of_classifier(tmp_path, other, scores=scores).train()
    assert len([*(tmp_path / "others").glob("*/manifest.json")]) == 1
    # In the student's own folder nothing is left.
    del other["teacher_cache_dir"]
    trainer = of_classifier(tmp_path, {**other, "seed": 2}, scores=scores)
    trainer.train()
    assert not [*trainer.stages_dir.glob("*/teacher_cache")]


def test_single_weights_in_place_of_heads_and_neurons(whole, tmp_path):
    trained = []
    fields = {"unstructured": True, "sparsities": [0.5], "stages_dir": str(whole[0].stages_dir)}
    trainer = of_classifier(tmp_path, fields, on_trainer=lambda trainer, sparsity: trained.append(sparsity))
    student = trainer.train()
    # The trial student is the one of heads and neurons.
    assert trained == [0.5] and trainer.trial.folder == whole[0].trial.folder
    assert (student.heads, student.teacher_parameters) == (trainer.trial.heads, trainer.trial.teacher_parameters)
    assert trainer.knowledgeable.about["weights"]
    sparse = zero_weights(trainer.teacher_model, trainer.knowledgeable.combined(0.5), 0.5)
    query = sparse.base_model.encoder.layer[0].attention.self.query.weight
    assert 0 < (query == 0).sum() < query.numel()
    assert student.folder.name.startswith("sparse-") and student.folder != whole[0].students[1].folder


def test_random_scores_of_single_weights(tmp_path):
    teacher, _ = teacher_and_student()
    scores = WeightSparsifier().random(teacher, 0)
    sparse = WeightSparsifier().sparse(teacher, scores, 0.25)
    parts = [
        part for layer in layer_parts(sparse) for part in (layer.query, layer.key, layer.value, layer.attention_output)
    ]
    total = sum(part.weight.numel() for part in parts)
    assert sum(int((part.weight == 0).sum()) for part in parts) == round(total / 4)
    with pytest.raises(UsageError, match="attention weights"):
        of_classifier(tmp_path, {"unstructured": True}, scores=UnitScores.random(teacher))
    with pytest.raises(UsageError, match=r"sparsity.* 0\.99999 "):
        WeightSparsifier().check(teacher, None, 0.99999)


def test_a_regression(tmp_path):
    rows = [row | {"labels": row["labels"] / 2} for row in tiny_classifier_rows(10)]
    teacher = tiny_encoder("bert", "ForSequenceClassification", num_labels=1)
    student = MwpStudentForSequenceClassification.from_encoder(teacher, layers=1)
    fields = {"prediction_loss": "mse", "sparsities": [0.5], "per_example": True, "round_to": 2}
    # Nothing is so much better: each student stops after its second epoch of five.
    fields |= {"num_train_epochs": 5, "early_stopping_patience": 1, "early_stopping_threshold": 100.0}
    args = arguments(tmp_path, **fields)
    trainer = StarkTrainer(student, teacher, args, pad, rows[:6], rows[6:])
    student = trainer.train()
    assert student.model_class is MwpStudentForSequenceClassification and student.load().num_labels == 1
    assert sum(student.heads) == 6 and all(count % 2 == 0 for count in student.neurons)
    assert trainer.knowledgeable.about["per_example"] and "eval_loss" in student.metrics
    assert [each.load_state().global_step for each in (trainer.trial, student)] == [4, 4]


@pytest.mark.parametrize("name", ["modernbert", "deberta-v3"])
def test_teachers_of_other_types(name, tmp_path):
    teacher = tiny_encoder(name, "ForSequenceClassification")
    student = MwpStudentForSequenceClassification.from_encoder(tiny_encoder("bert", "ForSequenceClassification"), 1)
    rows = tiny_classifier_rows(10)
    for fields, left in (({}, (6, 30)), ({"unstructured": True}, (12, 60))):
        args = arguments(tmp_path / str(left[0]), sparsities=[0.5], num_train_epochs=1, **fields)
        trainer = StarkTrainer(student, teacher, args, pad, rows[:6], rows[6:])
        found = trainer.train()
        assert (sum(found.heads), sum(found.neurons)) == left and found.load().num_labels == 3
        assert trainer.scores.heads.nansum() > 0 and trainer.scores.neurons.nansum() > 0


@pytest.mark.parametrize("make", [tiny_solver, tiny_athena_solver])
def test_a_solver(make, tmp_path):
    processor = tiny_processor()
    rows = tiny_rows(10)
    teacher = make(processor, layers=2)
    trainer = StarkTrainer(
        cut_student(teacher, 1), teacher, arguments(tmp_path, sparsities=[0.5]), None, rows[:8], rows[8:], processor
    )
    student = trainer.train()
    assert student.metric == "eval_answer_accuracy" and student.greater_is_better
    assert sum(student.heads) == 2 and isinstance(trainer.model, MwpSolver)
    trainer.save_model()
    assert same(MwpSolver.from_pretrained(tmp_path), student.load())


def test_a_sequence_to_sequence_model_without_a_collator(tmp_path):
    teacher = tiny_seq2seq(seed=1)
    student = tiny_seq2seq(encoder_layers=1, decoder_layers=1)
    rows = tiny_pairs(10)
    trainer = StarkTrainer(
        student, teacher, arguments(tmp_path, sparsities=[0.5]), None, rows[:8], rows[8:], tiny_tokenizer()
    )
    found = trainer.train()
    # Half of the 12 heads of encoder, decoder and cross attention.
    assert sum(found.heads) == 6 and found.value == trainer.evaluate()["eval_loss"]


def test_split_weights_are_not_scored(tmp_path, monkeypatch):
    monkeypatch.setattr("hf_mwp.compress.trainers.stark_trainer.shards_weights", lambda args: True)
    processor = tiny_processor()
    rows = tiny_rows(10)
    teacher = tiny_solver(processor, layers=2)
    trainer = StarkTrainer(cut_student(teacher, 1), teacher, arguments(tmp_path), None, rows[:8], rows[8:], processor)
    with pytest.raises(ValueError, match="FSDP.*DDP"):
        trainer.train()


def test_two_processes_score_as_one(tmp_path):
    run = {"output_dir": str(tmp_path), "args": {"ddp_backend": "gloo", "sparsities": [0.5]}}
    run["args"]["per_device_train_batch_size"] = 2
    done = launch(train, [run], processes=2)
    assert done.returncode == 0, done.stderr[-3000:]
    ((trial,), (scores,), (_,)) = ([*tmp_path.glob(f"stages/{name}-*")] for name in ("trial", "scores", "sparse"))
    teacher, _ = teacher_and_student()
    found = KnowledgeableScores.load(scores)
    alone = measure_scores(teacher, batches(), MwpStudentForSequenceClassification.from_pretrained(trial))
    for ours, theirs in ((found.expressiveness, alone.expressiveness), (found.friendliness, alone.friendliness)):
        assert torch.equal(ours.heads, theirs.heads) and torch.equal(ours.neurons, theirs.neurons)


def streamed():
    return Dataset.from_list(tiny_classifier_rows(4)).to_iterable_dataset()


def regressors():
    teacher = tiny_encoder("bert", "ForSequenceClassification", num_labels=1)
    student = MwpStudentForSequenceClassification.from_encoder(teacher, layers=1)
    return {"teacher_model": teacher, "model": student}


def gated():
    teacher = teacher_and_student()[0]
    HeadGates(teacher)
    return teacher


@pytest.mark.parametrize(
    ("fields", "changes", "message"),
    [
        ({}, {"eval_dataset": None}, "`eval_dataset`"),
        ({}, {"eval_dataset": {"a": tiny_classifier_rows(2)}}, "`eval_dataset`"),
        ({}, {"train_dataset": None}, "`train_dataset`"),
        ({}, {"score_dataset": []}, "`score_dataset`.*empty"),
        ({}, {"eval_dataset": streamed()}, "`eval_dataset` .*IterableDataset"),
        ({}, {"eval_dataset": "validation"}, "`eval_dataset` .*str"),
        ({}, {"score_dataset": streamed()}, "`score_dataset` .*IterableDataset"),
        ({"sparsities": [0.99]}, {}, r"0\.99 .* 12 heads"),
        ({}, {"scores": UnitScores.random(tiny_encoder("bert", num_hidden_layers=2))}, r"\[4, 4\] heads.*\[4, 4, 4\]"),
        ({}, {"teacher_model": gated()}, "gates"),
        (
            {},
            {
                "teacher_model": tiny_encoder("bert", "ForSequenceClassification", num_labels=2),
                "train_dataset": [row | {"labels": row["labels"] % 2} for row in tiny_classifier_rows(8)],
            },
            r"\(2, 3\).*\(2, 2\).*`num_labels`",
        ),
        ({}, {"teacher_model": tiny_encoder("bert", "ForSequenceClassification", vocab_size=50)}, "40 tokens.* 50"),
        ({"prediction_loss": "dkd"}, regressors(), '`prediction_loss="mse"`'),
    ],
)
def test_what_cannot_be_is_refused_before_any_training(fields, changes, message, tmp_path):
    with pytest.raises(ValueError, match=message):
        of_classifier(tmp_path, fields, **changes)
    assert not any(tmp_path.iterdir())


def test_a_solver_is_scored_on_problems_with_equations(tmp_path):
    processor = tiny_processor()
    rows = tiny_rows(10)
    teacher = tiny_solver(processor, layers=2)
    answers = [row | {"equation": ""} for row in rows[8:]]
    models = cut_student(teacher, 1), teacher
    with pytest.raises(UsageError, match="`score_dataset`"):
        StarkTrainer(*models, arguments(tmp_path), None, rows[:8], answers, processor)
    # Scores that are given need no rows.
    StarkTrainer(*models, arguments(tmp_path), None, rows[:8], answers, processor, scores=UnitScores.random(teacher))
    StarkTrainer(*models, arguments(tmp_path), None, rows[:8], answers, processor, score_dataset=rows[:2])


def test_other_arguments_and_folders_of_other_runs_are_refused(whole, tmp_path):
    trainer, _ = whole
    fields = {"stages_dir": str(tmp_path)}
    record = {"fingerprint": "another", "seconds": 1.0}
    (tmp_path / trainer.trial.folder.name).mkdir()
    (tmp_path / trainer.trial.folder.name / "stage.json").write_text(json.dumps(record))
    with pytest.raises(ValueError, match=f"{trainer.trial.folder.name} .*another"):
        of_classifier(tmp_path, fields)
    assert json.loads((tmp_path / trainer.trial.folder.name / "stage.json").read_text()) == record
