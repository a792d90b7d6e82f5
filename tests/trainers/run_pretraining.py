"""
Pretrains a tiny student, in a process of its own by `python run_pretraining.py JSON`, a list of runs. Not a test;
tests kill it, or launch it several times at once. Fields of a run are those of `run_training.py`.
"""

import json
import sys

import torch

from hf_mwp.trainers import PreTrainingConfig, PreTrainingTrainer
from tests.pretraining import text_processor, tiny_pairs, tiny_student
from tests.trainers.run_training import KillAtStep


def pretrain(run):
    """One run; returns its log and evaluation, and writes them to `result`."""
    processor = text_processor(indexed_numbers=True)
    dropout = run.get("dropout", 0.0)
    fields = {
        "output_dir": run["output_dir"],
        "use_cpu": True,
        "report_to": "none",
        "disable_tqdm": True,
        "logging_steps": 1,
        "learning_rate": 1e-3,
        **run["args"],
    }
    trainer = PreTrainingTrainer(
        model=tiny_student(processor, hidden_dropout_prob=dropout, attention_probs_dropout_prob=dropout),
        args=PreTrainingConfig(**fields),
        train_dataset=tiny_pairs(run.get("rows", 48)),
        eval_dataset=tiny_pairs(21, seed=1),
        processing_class=processor,
        callbacks=[KillAtStep(run["kill_at_step"])] if run.get("kill_at_step") else None,
    )
    trainer.train(resume_from_checkpoint=run.get("resume", False))
    trainer.save_model()
    metrics = trainer.evaluate()
    result = {"log": trainer.state.log_history, "metrics": metrics}
    if trainer.is_world_process_zero():
        with open(run["result"], "w", encoding="utf-8") as file:
            json.dump(result, file)
    return result


if __name__ == "__main__":
    torch.set_num_threads(1)
    for each in json.loads(sys.argv[1]):
        pretrain(each)
    if torch.distributed.is_initialized():
        torch.distributed.destroy_process_group()
