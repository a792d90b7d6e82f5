"""Several teachers, and teachers with tokenizers of their own."""

import pytest
import torch

from hf_mwp.compress.distillation.objectives import HiddenStates, SoftLabels
from hf_mwp.runtime.output_vocabulary import OutputVocabulary
from hf_mwp.solver.batches.mwp_processor import MwpProcessor
from tests.compress.trainers.distilling import distinct_rows, first_losses, pad
from tests.other_tokens import in_other_tokens, other_processor
from tests.slow_parameters import slow_after
from tests.tiny import tiny_classifier, tiny_classifier_rows, tiny_processor, tiny_solver, tiny_tokenizer


PREDICTIONS = {"hidden_loss": None, "embedding_weight": 0.0}


@pytest.fixture(scope="module")
def teacher_processor(processor):
    return other_processor(processor)


@pytest.fixture(scope="module")
def teacher_in_other_tokens(processor, teacher_processor):
    return in_other_tokens(tiny_solver(processor, layers=4, seed=1), processor, teacher_processor)


@pytest.mark.parametrize("cached", slow_after(1, [False, True]))
def test_classifiers_learn_from_the_mean(model_trainer, cached):
    teachers = [tiny_classifier(1, hidden_size=24, initializer_range=0.5), tiny_classifier(2, initializer_range=0.5)]
    fields = {"per_device_train_batch_size": 16, "temperature": 1.0, "max_steps": 1, "cache_teacher_outputs": cached}
    losses = first_losses(model_trainer(teacher=teachers, **fields))
    batch = pad(tiny_classifier_rows())
    with torch.no_grad():
        p = (teachers[0](**batch).logits.softmax(-1) + teachers[1](**batch).logits.softmax(-1)) / 2
        log_q = tiny_classifier()(**batch).logits.log_softmax(-1)
    assert losses["loss_soft"] == pytest.approx((p * (p.log() - log_q)).sum(-1).mean().item(), rel=2e-3)
    assert "loss_hidden_2" in losses
    for teacher in teachers:
        assert not any(parameter.requires_grad for parameter in teacher.parameters())


@pytest.mark.slow
def test_a_cache_is_of_all_teachers(solver_trainer, processor):
    first = tiny_solver(processor, seed=1)
    second = tiny_solver(processor, seed=2)
    folders = []
    for teachers in (first, [first, second], [second, first], [first, second]):
        keywords = {"train_dataset": distinct_rows(8)}
        trainer = solver_trainer(teacher=teachers, keywords=keywords, cache_teacher_outputs=True, **PREDICTIONS)
        trainer.get_train_dataloader()
        folders.append(trainer.teacher_source.cache.folder)
    assert len(set(folders)) == 3
    assert folders[1] == folders[-1]


@pytest.mark.slow
@pytest.mark.parametrize("cached", [False, True])
def test_a_second_teacher_with_another_tokenizer_teaches_the_same(
    solver_trainer, processor, teacher_processor, teacher_in_other_tokens, cached
):
    rows = {"train_dataset": distinct_rows(8)}
    first = tiny_solver(processor, layers=4, seed=2)
    second = tiny_solver(processor, layers=4, seed=1)
    expected = first_losses(solver_trainer(teacher=[first, second], keywords=rows, max_steps=1))
    keywords = rows | {"teacher_processing_class": [None, teacher_processor]}
    teachers = [first, teacher_in_other_tokens]
    trainer = solver_trainer(teacher=teachers, keywords=keywords, cache_teacher_outputs=cached, max_steps=1)
    assert first_losses(trainer) == pytest.approx(expected, rel=2e-3 if cached else 1e-4)
    assert "loss_hidden_1" in expected
    # Encoded rows bring the column along; the student is evaluated without it.
    assert trainer.evaluate(trainer.train_dataset)["eval_loss"] > 0


def test_teachers_that_do_not_fit_are_named(
    solver_trainer, model_trainer, processor, teacher_processor, teacher_in_other_tokens
):
    teacher = tiny_solver(processor, seed=1)
    other_symbols = tiny_solver(MwpProcessor(tiny_tokenizer(), OutputVocabulary(constants=("2",))))
    with pytest.raises(ValueError, match="Teacher 2 of 2: .*constants.*'1'.*'2'"):
        solver_trainer(teacher=[teacher, other_symbols])
    with pytest.raises(ValueError, match="Teacher 2 of 2: .* 31 .* 32.*teacher_processing_class"):
        solver_trainer(teacher=[teacher, teacher_in_other_tokens])
    with pytest.raises(ValueError, match="language=zh, .*en"):
        solver_trainer(teacher=teacher, keywords={"teacher_processing_class": tiny_processor(language="en")})
    with pytest.raises(ValueError, match="32 .* 31.*`processor.resize_embeddings"):
        solver_trainer(teacher=teacher, keywords={"teacher_processing_class": teacher_processor}, **PREDICTIONS)
    with pytest.raises(ValueError, match="`teacher_processing_class`.* 2 .* 1 "):
        solver_trainer(keywords={"teacher_processing_class": [processor, processor]})
    student = tiny_solver(processor)
    with pytest.raises(ValueError, match="Teacher 2 of 2: .*`copy.deepcopy`"):
        solver_trainer(student, [teacher, student])
    with pytest.raises(TypeError, match="`teacher_model`.*`str`"):
        model_trainer(teacher=[tiny_classifier(1), "some/model"])


def test_states_of_a_teacher_with_another_tokenizer_are_not_compared(
    solver_trainer, teacher_processor, teacher_in_other_tokens
):
    keywords = {"teacher_processing_class": teacher_processor}
    with pytest.raises(ValueError, match="tokenizers.* hidden, embedding .*`hidden_loss=None`"):
        solver_trainer(teacher=teacher_in_other_tokens, keywords=keywords)
    keywords["objectives"] = [SoftLabels(), HiddenStates(name="states")]
    with pytest.raises(ValueError, match="tokenizers.* states .*`hidden_loss=None`"):
        solver_trainer(teacher=teacher_in_other_tokens, keywords=keywords)
