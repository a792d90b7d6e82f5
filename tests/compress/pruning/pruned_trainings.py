"""Trainings of tiny models whose heads are pruned."""

import json

import torch
from transformers import Trainer, TrainerCallback, TrainingArguments

from hf_mwp import SolverTrainer, SolverTrainingConfig
from hf_mwp.compress.models.architecture import layer_parts
from hf_mwp.compress.pruning import RandomImportance
from tests.compress.pruning.encoders import tiny_encoder
from tests.compress.trainers.distilling import pad
from tests.tiny import tiny_classifier_rows, tiny_processor, tiny_rows, tiny_solver


# Four events of a training of eight steps; of twelve heads six are pruned.
SCHEDULE = {"max_ratio": 0.5, "num_pruning_steps": 4, "calibration_examples": 8}
# Dropout of attention draws numbers for each head, so gated and sliced models draw different ones.
NO_ATTENTION_DROPOUT = {"attention_probs_dropout_prob": 0.0}


def arguments(folder, config_class=TrainingArguments, **fields):
    defaults = {"per_device_train_batch_size": 4, "max_steps": 8, "save_strategy": "no", "logging_steps": 1}
    return config_class(output_dir=str(folder), use_cpu=True, report_to="none", disable_tqdm=True, **defaults | fields)


def trainer_of(model, folder, callback, **fields):
    return Trainer(
        model=model,
        args=arguments(folder, **fields),
        train_dataset=tiny_classifier_rows(32),
        eval_dataset=tiny_classifier_rows(8, seed=1),
        data_collator=pad,
        callbacks=[callback],
    )


def classifier_trainer(folder, callback, name="bert", sizes=NO_ATTENTION_DROPOUT, **fields):
    return trainer_of(tiny_encoder(name, "ForSequenceClassification", **sizes), folder, callback, **fields)


def solver_trainer(folder, callback, **fields):
    processor = tiny_processor(max_length=32)
    return SolverTrainer(
        model=tiny_solver(processor),
        args=arguments(folder, SolverTrainingConfig, **fields),
        train_dataset=tiny_rows(),
        processing_class=processor,
        callbacks=[callback],
    )


def losses(trainer):
    return [entry["loss"] for entry in trainer.state.log_history if "loss" in entry]


def num_closed(callback):
    return sum(len(heads) for heads in callback.closed.values())


def assert_same_weights(model, other_model):
    other_weights = other_model.state_dict()
    for name, weight in model.state_dict().items():
        assert torch.equal(weight, other_weights[name]), name


def assert_code_is_beside(folder):
    """A folder loads where hf_mwp is not installed."""
    for reference in json.loads((folder / "config.json").read_text())["auto_map"].values():
        assert (folder / f"{reference.partition('.')[0]}.py").is_file()


class StopAt(TrainerCallback):
    """Ends a training after some steps, as if it had been killed after its checkpoint."""

    def __init__(self, step):
        self.step = step

    def on_step_end(self, args, state, control, **kwargs):
        control.should_training_stop = state.global_step >= self.step


class LastHeadsFirst(RandomImportance):
    """The later head of a layer matters less."""

    def measure(self, model, batches):
        return [torch.arange(layer.num_heads, 0, -1.0) for layer in layer_parts(model)]
