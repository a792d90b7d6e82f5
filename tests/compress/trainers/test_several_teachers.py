"""Several teachers, and teachers with tokenizers of their own."""

import pytest
import torch

from hf_mwp.compress.distillation import EnsembleTeacher
from hf_mwp.compress.distillation.objectives import HiddenStates, SoftLabels
from hf_mwp.runtime.output_vocabulary import OutputVocabulary
from hf_mwp.solver.batches.mwp_processor import MwpProcessor
from tests.compress.trainers.distilling import copy_of, distinct_rows, pad, training_logs, unchanged
from tests.other_tokens import in_other_tokens, other_processor
from tests.tiny import tiny_classifier, tiny_classifier_rows, tiny_processor, tiny_rows, tiny_solver, tiny_tokenizer


PREDICTIONS = {"hidden_loss": None, "embedding_weight": 0.0}


@pytest.fixture(scope="module")
def other(processor):
    return other_processor(processor)


def first_parts(trainer):
    """The parts of the loss of a training's first step."""
    trainer.train()
    return {name: value for name, value in training_logs(trainer)[0].items() if name.startswith("loss")}


@pytest.mark.parametrize("cached", [False, True])
def test_classifiers_learn_from_the_mean(others, cached):
    rows = tiny_classifier_rows()
    teachers = [tiny_classifier(1, hidden_size=24, initializer_range=0.5), tiny_classifier(2, initializer_range=0.5)]
    before = [copy_of(teacher) for teacher in teachers]
    fields = {"per_device_train_batch_size": 16, "temperature": 1.0, "max_steps": 1}
    parts = first_parts(others(teacher=teachers, cache_teacher_outputs=cached, **fields))
    batch = pad(rows)
    with torch.no_grad():
        p = sum(teacher(**batch).logits.softmax(-1) for teacher in teachers) / 2
        q = tiny_classifier()(**batch).logits.log_softmax(-1)
    assert parts["loss_soft"] == pytest.approx((p * (p.log() - q)).sum(-1).mean().item(), rel=2e-3)
    assert "loss_hidden_2" in parts
    for teacher, weights in zip(teachers, before, strict=True):
        assert unchanged(teacher, weights) and not any(each.requires_grad for each in teacher.parameters())


def test_the_same_solver_twice_is_one(solvers, processor):
    teacher = tiny_solver(processor, layers=4, seed=1)
    runs = [first_parts(solvers(teacher=each, max_steps=1)) for each in (teacher, EnsembleTeacher([teacher] * 2))]
    assert runs[0] == pytest.approx(runs[1], rel=1e-4)


def test_a_cache_is_of_all_teachers(solvers, processor, tmp_path):
    first, second, third = (tiny_solver(processor, seed=seed) for seed in (1, 2, 3))
    folders = []
    for teachers in (first, [first, second], [first, third], [second, first], [first, second]):
        keywords = {"train_dataset": distinct_rows(8), "processing_class": processor}
        trainer = solvers(teacher=teachers, keywords=keywords, cache_teacher_outputs=True, **PREDICTIONS)
        trainer.get_train_dataloader()
        folders.append(trainer.teacher_source.cache.folder)
    assert len({*folders}) == 4 and folders[1] == folders[-1]


@pytest.mark.parametrize("cached", [False, True])
@pytest.mark.parametrize("several", [False, True])
def test_another_tokenizer_says_the_same_of_the_same_texts(solvers, processor, other, several, cached):
    teachers = [tiny_solver(processor, layers=4, seed=1), tiny_solver(processor, layers=4, seed=2)][not several :]
    own = in_other_tokens(teachers[-1], processor, other)
    fields = {"max_steps": 1} if several else {"max_steps": 1} | PREDICTIONS
    rows = {"train_dataset": distinct_rows(8)}
    expected = first_parts(solvers(teacher=teachers, keywords=rows, **fields))
    keywords = rows | {"teacher_processing_class": [None, other] if several else other}
    trainer = solvers(teacher=[*teachers[:-1], own], keywords=keywords, cache_teacher_outputs=cached, **fields)
    assert first_parts(trainer) == pytest.approx(expected, rel=2e-3 if cached else 1e-4)
    assert ("loss_hidden_1" in expected) == several
    # Encoded rows bring the column along; the student is evaluated without it.
    assert trainer.evaluate(trainer.train_dataset)["eval_loss"] > 0


def test_numbers_that_the_student_cannot_see_are_forbidden(solvers, processor, other):
    short = MwpProcessor(tiny_tokenizer(), processor.vocabulary, max_length=20)
    student = tiny_solver(processor)
    teacher = in_other_tokens(tiny_solver(processor, seed=1), processor, other)
    # The third number of a problem lies beyond the student's tokens, and its equation does not need it.
    rows = [row | {"text": row["text"][:-1] + "，路上用了7天？"} for row in tiny_rows(8)[:4]]
    assert short.encode(rows)["number_positions"] != processor.encode(rows)["number_positions"]
    keywords = {"train_dataset": rows, "processing_class": short, "teacher_processing_class": other}
    assert 0 < first_parts(solvers(student, teacher, keywords, max_steps=1, **PREDICTIONS))["loss_soft"] < 100


def test_teachers_that_do_not_fit(solvers, others, processor, other):
    fits = tiny_solver(processor, seed=1)
    vocabulary = OutputVocabulary(constants=("2",))
    strange = tiny_solver(MwpProcessor(tiny_tokenizer(), vocabulary))
    own = in_other_tokens(fits, processor, other)
    with pytest.raises(ValueError, match="Teacher 2 of 2: .*constants.*'1'.*'2'"):
        solvers(teacher=[fits, strange])
    with pytest.raises(ValueError, match="Teacher 2 of 2: .* 31 .* 32.*teacher_processing_class"):
        solvers(teacher=[fits, own])
    with pytest.raises(ValueError, match="vocabulary"):
        keywords = {"teacher_processing_class": MwpProcessor(other.tokenizer, vocabulary)}
        solvers(teacher=own, keywords=keywords, **PREDICTIONS)
    with pytest.raises(ValueError, match="language=zh, .*en"):
        solvers(teacher=fits, keywords={"teacher_processing_class": tiny_processor(language="en")})
    with pytest.raises(ValueError, match="32 .* 31.*`processor.resize_embeddings"):
        solvers(teacher=fits, keywords={"teacher_processing_class": other}, **PREDICTIONS)
    with pytest.raises(ValueError, match="`teacher_processing_class`.* 2 .* 1 "):
        solvers(keywords={"teacher_processing_class": [processor, processor]})
    student = tiny_solver(processor)
    with pytest.raises(ValueError, match="Teacher 2 of 2: .*`copy.deepcopy`"):
        solvers(student, [fits, student])
    with pytest.raises(TypeError, match="`teacher_model`.*`str`"):
        others(teacher=[tiny_classifier(1), "some/model"])
    with pytest.raises(ValueError, match=r"\(2, 3\).*\(2, 4\)"):
        others(teacher=[tiny_classifier(1), tiny_classifier(1, num_labels=4)])


def test_states_of_a_teacher_with_another_tokenizer(solvers, processor, other):
    own = in_other_tokens(tiny_solver(processor, layers=4, seed=1), processor, other)
    keywords = {"teacher_processing_class": other}
    with pytest.raises(ValueError, match="tokenizers.* hidden, embedding .*`hidden_loss=None`"):
        solvers(teacher=own, keywords=keywords)
    with pytest.raises(ValueError, match="tokenizers.* states .*`hidden_loss=None`"):
        solvers(teacher=own, keywords=keywords | {"objectives": [SoftLabels(), HiddenStates(name="states")]})


def test_labels_that_do_not_exclude_each_other_are_averaged_alone(others):
    fields = {"problem_type": "multi_label_classification"}
    teachers = [tiny_classifier(seed, initializer_range=0.5, **fields).eval() for seed in (1, 2)]
    batch = pad(tiny_classifier_rows(4))
    batch["labels"] = torch.nn.functional.one_hot(batch["labels"], 3).float()
    with torch.no_grad():
        found = EnsembleTeacher(teachers)(**batch).logits
        torch.testing.assert_close(found, sum(each(**batch).logits for each in teachers) / 2)
