"""Tiny encoders of all architectures, alone and with heads, with biases that are not zero."""

import torch
import transformers

from hf_mwp.compress import models


# Beginnings of the names of the classes.
CLASSES = {
    "bert": "Bert",
    "roberta": "Roberta",
    "xlm-roberta": "XLMRoberta",
    "camembert": "Camembert",
    "electra": "Electra",
    "narrow electra": "Electra",
    "distilbert": "DistilBert",
    "mwp_student": "MwpStudent",
}
# Encoders that do not become students; DeBERTa v2 and v3 are of one class.
FOREIGN = {
    "albert": "Albert",
    "deberta-v2": "DebertaV2",
    "deberta-v3": "DebertaV2",
    "modernbert": "ModernBert",
    "mpnet": "MPNet",
}
if hasattr(transformers, "NomicBertConfig"):
    FOREIGN["nomic_bert"] = "NomicBert"
RELATIVE = {"relative_attention": True, "pos_att_type": ["p2c", "c2p"], "position_biased_input": False}
FIELDS = {
    # Each layer has weights of its own, so that those of the tests differ.
    "albert": {"num_hidden_groups": 3, "embedding_size": 8},
    "deberta-v2": RELATIVE | {"type_vocab_size": 2},
    "deberta-v3": RELATIVE | {"share_att_key": True, "position_buckets": 4, "norm_rel_ebd": "layer_norm"},
    "distilbert": {"hidden_dim": 20},
    "electra": {"embedding_size": 24},
    "narrow electra": {"embedding_size": 8},
    # The second layer and the third attend to neighbours.
    "modernbert": {"local_attention": 4, "attention_bias": True, "mlp_bias": True}
    | dict.fromkeys(("pad_token_id", "bos_token_id", "eos_token_id", "cls_token_id", "sep_token_id"), 0),
}
SIZES = {"vocab_size": 40, "hidden_size": 24, "num_hidden_layers": 3, "num_attention_heads": 4, "num_labels": 3}
SIZES |= {"max_position_embeddings": 32, "intermediate_size": 20}
HEADS = ["Model", "ForSequenceClassification", "ForMaskedLM"]
TASK_HEADS = ["ForTokenClassification", "ForQuestionAnswering", "ForMultipleChoice"]


def tiny_encoder(name, head="Model", **fields):
    """Three layers of four heads and twenty neurons."""
    if head == "ForQuestionAnswering":
        # First and last token of an answer.
        fields = {"num_labels": 2} | fields
    prefix = (CLASSES | FOREIGN)[name]
    module = models if name == "mwp_student" else transformers
    config = getattr(module, f"{prefix}Config")(**SIZES | FIELDS.get(name, {}) | fields)
    torch.manual_seed(0)
    model = getattr(module, prefix + head)(config)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn(parameter.shape) * 0.1)
    return model.eval()


def tiny_batch(model, rows=3, length=9):
    """Texts of different length."""
    generator = torch.Generator().manual_seed(1)
    pad = model.config.pad_token_id or 0
    mask = torch.ones(rows, length, dtype=torch.long)
    for row in range(1, rows):
        mask[row, length - 2 * row :] = 0
    ids = torch.randint(5, 40, (rows, length), generator=generator).masked_fill(mask == 0, pad)
    return {"input_ids": ids, "attention_mask": mask}


def head_batch(model, head):
    """Texts of different length, as a model with a head reads them: for multiple choice, three choices of a row."""
    batch = tiny_batch(model)
    if head != "ForMultipleChoice":
        return batch
    return {name: values.unsqueeze(0) for name, values in batch.items()}


def labelled_batches(model):
    """A batch of three texts and one of two, with labels of three classes."""
    batches = [tiny_batch(model, rows=3), tiny_batch(model, rows=2, length=6)]
    for batch in batches:
        batch["labels"] = torch.arange(len(batch["input_ids"])) % 3
    return batches


def rows_of(batches):
    """Each text as a batch of its own."""
    rows = []
    for batch in batches:
        for row in range(len(batch["input_ids"])):
            rows.append({name: values[row : row + 1] for name, values in batch.items()})
    return rows


def examples_of(columns):
    """The rows of a table of columns."""
    examples = []
    for values in zip(*columns.values(), strict=True):
        examples.append(dict(zip(columns, values, strict=True)))
    return examples


def first_output(model, batch):
    with torch.no_grad():
        return model(**batch)[0]


def score_tables(scores):
    """The tables of knowledgeable scores by name."""
    return {
        "expressiveness of heads": scores.expressiveness.heads,
        "expressiveness of neurons": scores.expressiveness.neurons,
        "friendliness of heads": scores.friendliness.heads,
        "friendliness of neurons": scores.friendliness.neurons,
    }


def normal_quantiles(mean, deviation, number):
    """Evenly spaced quantiles of a normal distribution."""
    shares = (torch.arange(number, dtype=torch.float64) + 0.5) / number
    return mean + deviation * torch.special.ndtri(shares)
