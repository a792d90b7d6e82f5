"""
Trains tiny models. Not a test; tests kill it in a process of its own, or launch it several times at once.

Fields of a run: `trainer` ("solver", "distillation" or "causal"), `output_dir`, `args` (of the config), `result` (file
for the log and the evaluation), and optionally `rows` (number of training rows), `distinct` (so that no two of them
are alike when their numbers are masked), `dropout`, `resume`, `kill_at_step` (the process kills itself after this
step), `kill_at_cached` (while it caches the teacher's outputs, after this row), `shard_bytes` (size of the cache's
files), `decoder` ("athena" for one that judges candidates), `mix` (share of other weights that are mixed in at the
end), `prune` (arguments of `HeadPruningCallback`).
"""

import os
import signal

from transformers import TrainerCallback

from hf_mwp.compress.pruning import HeadPruningCallback
from hf_mwp.compress.trainers import (
    CausalLMDistillationConfig,
    DistillationConfig,
    DistillationTrainer,
    ParameterMixingCallback,
)
from hf_mwp.solver.training import SolverTrainer, SolverTrainingConfig
from hf_mwp.utils import row_store
from tests.compress.trainers.distilling import QUIET, distinct_rows
from tests.compress.trainers.processes import KillAtStep, train_and_write
from tests.tiny import tiny_athena_solver, tiny_processor, tiny_rows, tiny_solver, tiny_tokenizer
from tests.tiny_causal import tiny_causal


class CountCached(TrainerCallback):
    """How many rows this process has cached; kills it at one of them."""

    rows = 0

    def __init__(self, last):
        self.last = last

    def on_teacher_cache(self, args, state, control, done, total, **kwargs):
        self.rows = done
        if done == self.last:
            os.kill(os.getpid(), signal.SIGKILL)


def callbacks_of(run, processor):
    """The callbacks of a run by their names."""
    callbacks = {"cached": CountCached(run.get("kill_at_cached"))}
    if "kill_at_step" in run:
        callbacks["kill"] = KillAtStep(run["kill_at_step"])
    if "mix" in run:
        callbacks["mix"] = ParameterMixingCallback(tiny_solver(processor, seed=7), run["mix"])
    if "prune" in run:
        callbacks["prune"] = HeadPruningCallback(**run["prune"])
    return callbacks


def causal_trainer(fields, keywords):
    """A trainer of a causal language model on the texts of the problems."""
    keywords |= {"model": tiny_causal(), "processing_class": tiny_tokenizer()}
    # These rows fill the batches of two processes.
    keywords["eval_dataset"] = tiny_rows(16, seed=1)
    args = CausalLMDistillationConfig(hidden_loss="mse", layer_mapping="2:2", **fields)
    return DistillationTrainer(args=args, teacher_model=tiny_causal(seed=1, hidden_size=48), **keywords)


def train(run):
    """One run; returns its log and evaluation, and writes them to `result`."""
    processor = tiny_processor()
    make_solver = tiny_athena_solver if run.get("decoder") == "athena" else tiny_solver
    make_rows = distinct_rows if run.get("distinct") else tiny_rows
    callbacks = callbacks_of(run, processor)
    fields = QUIET | {"output_dir": run["output_dir"], "logging_steps": 1, "learning_rate": 1e-3} | run["args"]
    keywords = {
        "model": make_solver(processor, dropout=run.get("dropout", 0.0)),
        "train_dataset": make_rows(run.get("rows", 40)),
        "eval_dataset": tiny_rows(21, seed=1),
        "processing_class": processor,
        "callbacks": list(callbacks.values()),
    }
    row_store.FILE_BYTES = run.get("shard_bytes", row_store.FILE_BYTES)
    if run["trainer"] == "causal":
        return train_and_write(causal_trainer(fields, keywords), run)
    if run["trainer"] == "solver":
        trainer = SolverTrainer(args=SolverTrainingConfig(**fields), **keywords)
    else:
        teacher = make_solver(processor, layers=4, hidden_size=24, seed=1)
        trainer = DistillationTrainer(args=DistillationConfig(**fields), teacher_model=teacher, **keywords)
    extra = {"cached": lambda: callbacks["cached"].rows}
    if "prune" in run:
        extra["heads"] = lambda: [event["heads"] for event in callbacks["prune"].log]
    return train_and_write(trainer, run, **extra)
