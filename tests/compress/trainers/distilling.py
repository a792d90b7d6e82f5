"""What the tests of distillation share besides their fixtures."""

import pytest
import torch
from torch.nn.utils.rnn import pad_sequence
from transformers import BartConfig, BartForConditionalGeneration, GPT2Config, GPT2LMHeadModel

from hf_mwp.compress.distillation.features import Features
from hf_mwp.compress.models.model_outputs import set_attention
from hf_mwp.solver.batches.mwp_collator import MwpCollator
from hf_mwp.solver.models import MwpSolver, MwpSolverConfig
from tests.tiny import TEMPLATES, tiny_classifier_rows, tiny_problems, tiny_rows, tiny_solver


QUIET = {"use_cpu": True, "report_to": "none", "disable_tqdm": True}
# Plain gradient descent, whose steps are sums of gradients.
PLAIN_SGD = QUIET | {
    "save_strategy": "no",
    "logging_steps": 1,
    "warmup_steps": 0,
    "max_grad_norm": 0.0,
    "optim": "sgd",
    "learning_rate": 0.1,
}
ONE_STEP = QUIET | {"save_strategy": "no", "logging_steps": 1, "max_steps": 1, "warmup_steps": 0}


def pad(rows):
    batch = {}
    for name, padding in (("input_ids", 0), ("attention_mask", 0), ("labels", -100)):
        if name not in rows[0]:
            continue
        values = [torch.tensor(row[name]) for row in rows]
        if values[0].dim():
            batch[name] = pad_sequence(values, batch_first=True, padding_value=padding)
        else:
            batch[name] = torch.stack(values)
    return batch


def without_labels(rows):
    return [{"input_ids": row["input_ids"], "attention_mask": row["attention_mask"]} for row in rows]


def masked_lm_rows(count=16, unlabelled=()):
    """Rows with one to four labels, and those of the indices `unlabelled` with none."""
    rows = tiny_classifier_rows(count)
    for index, row in enumerate(rows):
        num_labels = 0 if index in unlabelled else 1 + index % 4
        row["labels"] = row["input_ids"][:num_labels] + [-100] * (len(row["input_ids"]) - num_labels)
    return rows


def distinct_rows(count=24, seed=0):
    """Rows of problems that stay different from each other when their numbers are masked."""
    rows = tiny_rows(count, seed)
    for index, row in enumerate(rows):
        row["text"] += "？" * (index // len(TEMPLATES))
    return rows


def encoded_rows(processor, rows):
    """Rows of problems with labels, as a collator takes them."""
    columns = processor.encode(rows, with_labels=True, skipped=[])
    return [dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)]


def encoded_batch(processor, count=24):
    """A batch of problems with labels."""
    return MwpCollator(processor)(encoded_rows(processor, tiny_problems(count)))


def bart(width, seed):
    torch.manual_seed(seed)
    sizes = {"d_model": width, "encoder_layers": 2, "decoder_layers": 1, "vocab_size": 40}
    heads = {"encoder_attention_heads": 2, "decoder_attention_heads": 2, "max_position_embeddings": 32}
    feed_forward = {"encoder_ffn_dim": 24, "decoder_ffn_dim": 24, "pad_token_id": 0, "dropout": 0.0}
    return BartForConditionalGeneration(BartConfig(**sizes, **heads, **feed_forward))


def gpt2(width, seed):
    torch.manual_seed(seed)
    dropouts = {"resid_pdrop": 0.0, "embd_pdrop": 0.0, "attn_pdrop": 0.0}
    sizes = {"n_embd": width, "n_layer": 2, "n_head": 2, "n_positions": 32, "n_inner": 24, "vocab_size": 40}
    return GPT2LMHeadModel(GPT2Config(**sizes, **dropouts, initializer_range=0.5))


def solver_with_bottlenecks(processor, layers=(2, 4), size=16):
    """A solver of four layers with narrow states in some of them."""
    solver = tiny_solver(processor, layers=4, hidden_size=24, seed=1)
    config = MwpSolverConfig(
        encoder_config=solver.encoder.config,
        decoder_config=solver.decoder.config,
        bottleneck_layers=list(layers),
        bottleneck_size=size,
    )
    torch.manual_seed(2)
    return MwpSolver(config, encoder=solver.encoder, decoder=solver.decoder)


def eager(model):
    set_attention(model, "eager")
    return model


def set_up(objective, student, teacher, inputs):
    """Sets up an objective for two models, and returns what both say to a batch."""
    features = []
    for model in (student, teacher):
        with torch.no_grad():
            output = model.eval()(**inputs, **objective.options)
        features.append(Features(output, model=model))
    objective.setup(*features, inputs)
    return features


def copy_of(module):
    return {name: value.detach().clone() for name, value in module.state_dict().items()}


def unchanged(module, before):
    return all(torch.equal(value, before[name]) for name, value in module.state_dict().items())


def same_weights(model, other_model):
    return unchanged(model, other_model.state_dict())


def training_logs(trainer):
    return [entry for entry in trainer.state.log_history if "loss" in entry]


def losses_of(entry):
    """The loss and its parts in an entry of the log."""
    return {name: value for name, value in entry.items() if name.startswith("loss")}


def first_losses(trainer):
    """The loss and its parts in a training's first step."""
    trainer.train()
    return losses_of(training_logs(trainer)[0])


def assert_same_training(runs, abs):
    """Whether two trainings, each its logs and its weights, are the same but for rounding, losses up to `abs`."""
    (logs, weights), (other_logs, other_weights) = runs
    for entry, other_entry in zip(logs, other_logs, strict=True):
        assert entry == pytest.approx(other_entry, rel=1e-4, abs=abs)
    for name, value in weights.items():
        torch.testing.assert_close(value, other_weights[name], rtol=1e-4, atol=1e-5)
