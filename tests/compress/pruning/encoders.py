"""Tiny encoders of all architectures, alone and with heads, with biases that are not zero."""

import torch
import transformers
from transformers import (
    AlbertConfig,
    AlbertForMaskedLM,
    AlbertForSequenceClassification,
    AlbertModel,
    BertConfig,
    BertForMaskedLM,
    BertForSequenceClassification,
    BertModel,
    CamembertConfig,
    CamembertForMaskedLM,
    CamembertForSequenceClassification,
    CamembertModel,
    DebertaV2Config,
    DebertaV2ForMaskedLM,
    DebertaV2ForSequenceClassification,
    DebertaV2Model,
    DistilBertConfig,
    DistilBertForMaskedLM,
    DistilBertForSequenceClassification,
    DistilBertModel,
    ElectraConfig,
    ElectraForMaskedLM,
    ElectraForSequenceClassification,
    ElectraModel,
    ModernBertConfig,
    ModernBertForMaskedLM,
    ModernBertForSequenceClassification,
    ModernBertModel,
    MPNetConfig,
    MPNetForMaskedLM,
    MPNetForSequenceClassification,
    MPNetModel,
    RobertaConfig,
    RobertaForMaskedLM,
    RobertaForSequenceClassification,
    RobertaModel,
    XLMRobertaConfig,
    XLMRobertaForMaskedLM,
    XLMRobertaForSequenceClassification,
    XLMRobertaModel,
)

from hf_mwp.compress.models import (
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
# Encoders that do not become students; of DeBERTa v2 and v3.
FOREIGN = {
    "albert": (AlbertConfig, AlbertModel, AlbertForSequenceClassification, AlbertForMaskedLM),
    "deberta-v2": (DebertaV2Config, DebertaV2Model, DebertaV2ForSequenceClassification, DebertaV2ForMaskedLM),
    "deberta-v3": (DebertaV2Config, DebertaV2Model, DebertaV2ForSequenceClassification, DebertaV2ForMaskedLM),
    "modernbert": (
        ModernBertConfig,
        ModernBertModel,
        ModernBertForSequenceClassification,
        ModernBertForMaskedLM,
    ),
    "mpnet": (MPNetConfig, MPNetModel, MPNetForSequenceClassification, MPNetForMaskedLM),
}
if hasattr(transformers, "NomicBertConfig"):
    FOREIGN["nomic_bert"] = (
        transformers.NomicBertConfig,
        transformers.NomicBertModel,
        transformers.NomicBertForSequenceClassification,
        transformers.NomicBertForMaskedLM,
    )
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
HEADS = ["Model", "ForSequenceClassification", "ForMaskedLM"]


def tiny_encoder(name, head="Model", **fields):
    """Three layers of four heads and twenty neurons."""
    config_class, *classes = (CLASSES | FOREIGN)[name]
    sizes = SIZES | {"max_position_embeddings": 32, "intermediate_size": 20} | FIELDS.get(name, {}) | fields
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
