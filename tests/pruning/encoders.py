"""Tiny encoders of all architectures, alone and with heads, with biases that are not zero."""

import torch
from transformers import (
    BertConfig,
    BertForMaskedLM,
    BertForSequenceClassification,
    BertModel,
    CamembertConfig,
    CamembertForMaskedLM,
    CamembertForSequenceClassification,
    CamembertModel,
    DistilBertConfig,
    DistilBertForMaskedLM,
    DistilBertForSequenceClassification,
    DistilBertModel,
    ElectraConfig,
    ElectraForMaskedLM,
    ElectraForSequenceClassification,
    ElectraModel,
    RobertaConfig,
    RobertaForMaskedLM,
    RobertaForSequenceClassification,
    RobertaModel,
    XLMRobertaConfig,
    XLMRobertaForMaskedLM,
    XLMRobertaForSequenceClassification,
    XLMRobertaModel,
)

from hf_mwp.models import (
    MwpStudentConfig,
    MwpStudentForMaskedLM,
    MwpStudentForSequenceClassification,
    MwpStudentModel,
)


CLASSES = {
    "bert": (BertConfig, BertModel, BertForSequenceClassification, BertForMaskedLM),
    "roberta": (RobertaConfig, RobertaModel, RobertaForSequenceClassification, RobertaForMaskedLM),
    "xlm-roberta": (XLMRobertaConfig, XLMRobertaModel, XLMRobertaForSequenceClassification, XLMRobertaForMaskedLM),
    "camembert": (CamembertConfig, CamembertModel, CamembertForSequenceClassification, CamembertForMaskedLM),
    "electra": (ElectraConfig, ElectraModel, ElectraForSequenceClassification, ElectraForMaskedLM),
    "narrow electra": (ElectraConfig, ElectraModel, ElectraForSequenceClassification, ElectraForMaskedLM),
    "distilbert": (DistilBertConfig, DistilBertModel, DistilBertForSequenceClassification, DistilBertForMaskedLM),
    "mwp_student": (MwpStudentConfig, MwpStudentModel, MwpStudentForSequenceClassification, MwpStudentForMaskedLM),
}
SIZES = {"vocab_size": 40, "hidden_size": 24, "num_hidden_layers": 3, "num_attention_heads": 4, "num_labels": 3}
HEADS = ["Model", "ForSequenceClassification", "ForMaskedLM"]


def tiny_encoder(name, head="Model", **fields):
    """Three layers of four heads and twenty neurons."""
    config_class, *classes = CLASSES[name]
    sizes = SIZES | {"max_position_embeddings": 32} | fields
    sizes["hidden_dim" if name == "distilbert" else "intermediate_size"] = 20
    if config_class is ElectraConfig:
        sizes["embedding_size"] = 8 if name == "narrow electra" else 24
    torch.manual_seed(0)
    model = classes[HEADS.index(head)](config_class(**sizes))
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
