"""What the tests of distillation share besides their fixtures."""

import torch

from tests.tiny import TEMPLATES, tiny_rows


def pad(rows):
    longest = max(len(row["input_ids"]) for row in rows)

    def column(name, padding):
        return torch.tensor([row[name] + [padding] * (longest - len(row[name])) for row in rows])

    batch = {"input_ids": column("input_ids", 0), "attention_mask": column("attention_mask", 0)}
    if "labels" in rows[0]:
        labels = [row["labels"] for row in rows]
        batch["labels"] = column("labels", -100) if isinstance(labels[0], list) else torch.tensor(labels)
    return batch


def copy_of(module):
    return {name: value.detach().clone() for name, value in module.state_dict().items()}


def unchanged(module, before):
    return all(torch.equal(value, before[name]) for name, value in module.state_dict().items())


def training_logs(trainer):
    return [entry for entry in trainer.state.log_history if "loss" in entry]


def distinct_rows(count=24, seed=0):
    """Rows of problems that stay different from each other when their numbers are masked."""
    rows = enumerate(tiny_rows(count, seed))
    return [{**row, "text": row["text"] + "？" * (index // len(TEMPLATES))} for index, row in rows]
