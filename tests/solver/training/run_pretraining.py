"""
Pretrains a tiny student. Not a test; tests kill it in a process of its own, or launch several at once. Fields
of a run are those of `run_training.py`.
"""

from hf_mwp.solver.training import PreTrainingConfig, PreTrainingTrainer
from tests.compress.trainers.processes import KillAtStep, train_and_write
from tests.pretraining import text_processor, tiny_pairs, tiny_student
from tests.solver.training.conftest import QUIET


def pretrain(run):
    """One run; returns its log and evaluation, and writes them to `result`."""
    processor = text_processor(indexed_numbers=True)
    dropout = run.get("dropout", 0.0)
    fields = {"output_dir": run["output_dir"], "logging_steps": 1, "learning_rate": 1e-3, **QUIET, **run["args"]}
    callbacks = []
    if run.get("kill_at_step"):
        callbacks.append(KillAtStep(run["kill_at_step"]))
    trainer = PreTrainingTrainer(
        model=tiny_student(processor, hidden_dropout_prob=dropout, attention_probs_dropout_prob=dropout),
        args=PreTrainingConfig(**fields),
        train_dataset=tiny_pairs(24),
        eval_dataset=tiny_pairs(21, seed=1),
        processing_class=processor,
        callbacks=callbacks,
    )
    return train_and_write(trainer, run)
