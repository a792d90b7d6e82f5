"""Sparse teachers and generations of pruned heads of causal language models."""

import pytest

from hf_mwp import RecursiveDistillationConfig, StarkConfig, StarkTrainer, recursive_distillation
from hf_mwp.compress.pruning import export_dense
from tests.compress.pruning.encoders import examples_of
from tests.tiny import tiny_tokenizer
from tests.tiny_causal import tiny_causal, tiny_causal_batch


OPTIONS = {"max_steps": 1, "use_cpu": True, "report_to": "none", "eval_strategy": "no", "save_strategy": "no"}


def rows():
    columns = {name: values.tolist() for name, values in tiny_causal_batch(6).items()}
    return examples_of(columns)


@pytest.mark.slow
def test_student_of_an_evenly_sparse_teacher(tmp_path):
    stages = {"load_best_model_at_end": False, "early_stopping_patience": None}
    args = StarkConfig(str(tmp_path), sparsities=[0.5], unit="query", uniform=True, **OPTIONS, **stages)
    trainer = StarkTrainer(
        model=tiny_causal(seed=1, num_hidden_layers=1),
        teacher_model=tiny_causal(),
        args=args,
        train_dataset=rows(),
        eval_dataset=rows(),
        processing_class=tiny_tokenizer(),
    )
    trainer.train()
    (student,) = trainer.students
    assert student.heads == (2, 2) and student.neurons == (24, 24)


@pytest.mark.slow
@pytest.mark.parametrize("options", [{}, {"unit": "query", "uniform": True}])
def test_generations_lose_heads_that_go_together(options, tmp_path):
    # Of 8 heads, 2, 2 and 5 are to be pruned: with bundles of two heads, 2, 2 and 4. Even layers lose 0, 0 and 4.
    ratios = [0.25, 0.3, 0.7]
    if options:
        ratios = [0.5, 0.6]
    args = RecursiveDistillationConfig(
        str(tmp_path), ratios=ratios, num_pruning_steps=1, calibration_examples=4, **OPTIONS, **options
    )
    generations = recursive_distillation(tiny_causal(), args, rows(), rows(), tiny_tokenizer())
    numbers = [sum(generation.heads) for generation in generations]
    assert numbers == ([4, 4] if options else [6, 6, 4])
    if options:
        assert export_dense(generations[-1].load()).config.num_attention_heads == 2


def test_ratio_that_groups_cannot_give_raises_before_training(tmp_path):
    args = RecursiveDistillationConfig(str(tmp_path), ratios=[0.1], **OPTIONS)
    with pytest.raises(ValueError, match=r"0\.1 is less than 2 of the 8 heads"):
        recursive_distillation(tiny_causal(), args, rows(), rows(), tiny_tokenizer())
    assert not list(tmp_path.iterdir())
