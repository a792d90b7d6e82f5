"""PyTorch models of the MWP student: a BERT-shaped encoder with its own number of heads and neurons in each layer."""

from dataclasses import dataclass

import torch
from torch import nn
from transformers import PreTrainedModel
from transformers.masking_utils import create_bidirectional_mask
from transformers.modeling_outputs import BaseModelOutputWithPooling, MaskedLMOutput, SequenceClassifierOutput
from transformers.utils import ModelOutput, can_return_tuple, logging

from .configuration_mwp_student import MwpStudentConfig
from .conversion_mwp_student import build_from_encoder
from .layers_mwp_student import (
    MwpStudentBias,
    MwpStudentEmbeddings,
    MwpStudentEncoder,
    MwpStudentPooler,
    MwpStudentPredictions,
    mean_cross_entropy,
)
from .remote_code import share_weights


logger = logging.get_logger(__name__)


@dataclass
class MwpStudentForPreTrainingOutput(ModelOutput):
    """Output of [`MwpStudentForPreTraining`]."""

    loss: torch.FloatTensor | None = None
    mlm_loss: torch.FloatTensor | None = None  # mean cross entropy over the masked tokens
    pos_loss: torch.FloatTensor | None = None  # mean cross entropy over the tagged tokens
    logits: torch.FloatTensor | None = None  # (batch, length, vocab_size), or see `sparse_prediction`
    pos_logits: torch.FloatTensor | None = None  # (batch, length, num_pos_tags)
    hidden_states: tuple[torch.FloatTensor, ...] | None = None
    attentions: tuple[torch.FloatTensor, ...] | None = None


class MwpStudentPreTrainedModel(PreTrainedModel):
    """Base class of students: initialisation, loading, and conversion of other encoders."""

    config_class = MwpStudentConfig
    base_model_prefix = "mwp_student"
    supports_gradient_checkpointing = True
    # Otherwise, `Trainer` concludes from `**kwargs` that `forward` divides the loss by `num_items_in_batch`.
    accepts_loss_kwargs = False
    _supports_sdpa = True
    _supports_flash_attn = True
    _supports_flex_attn = True
    _supports_attention_backend = True
    _no_split_modules = ["MwpStudentEmbeddings", "MwpStudentLayer"]

    @torch.no_grad()
    def _init_weights(self, module):
        super()._init_weights(module)
        if isinstance(module, MwpStudentBias):
            nn.init.zeros_(module.bias)

    def save_pretrained(self, save_directory, *args, **kwargs):
        """Save the model as `PreTrainedModel` does; the umask decides who may read the weights."""
        super().save_pretrained(save_directory, *args, **kwargs)
        share_weights(save_directory)

    @classmethod
    def from_encoder(cls, encoder, layers=None, add_pooling_layer=None, **kwargs):
        """
        Create a student from a BERT, RoBERTa, XLM-RoBERTa, CamemBERT, ELECTRA, DistilBERT or another student, with
        copies of its weights, and its dtype, device and mode (`training`). With all layers, it computes the outputs of
        the source. Pruned heads and neurons stay pruned. Heads for masked language modelling, tagging, classification
        of texts or tokens, question answering and multiple choice are copied if the source has one of the same shape,
        otherwise they are new.

        Args:
            encoder (`PreTrainedModel`): The source, with or without a head.
            layers (`int` or `list[int]`, *optional*):
                Layers to copy: the first ones if a number, those with these indices if a list. Defaults to all.
            add_pooling_layer (`bool`, *optional*):
                Whether an [`MwpStudentModel`] has a pooler. By default, it has one if the source has one.
            kwargs: Fields of [`MwpStudentConfig`] to change (dropouts, `num_labels`, `pos_labels`, ...), except sizes.

        Raises:
            `ValueError`: the source cannot be converted, a layer does not exist, a size is among `kwargs`, or gates
                of the source are closed.
        """
        return build_from_encoder(cls, encoder, layers, add_pooling_layer, **kwargs)


class MwpStudentModel(MwpStudentPreTrainedModel):
    """Student encoder with BERT's architecture and outputs (Ming et al., AAAI 2025), and optionally its pooler."""

    _input_embed_layer = "word_embeddings"

    def __init__(self, config, add_pooling_layer=True):
        super().__init__(config)
        self.embeddings = MwpStudentEmbeddings(config)
        projected = config.embedding_size is not None
        self.embeddings_project = nn.Linear(config.embedding_size, config.hidden_size) if projected else None
        self.encoder = MwpStudentEncoder(config)
        self.pooler = MwpStudentPooler(config) if add_pooling_layer else None
        self.post_init()

    def embed(self, input_ids=None, token_type_ids=None, position_ids=None, inputs_embeds=None):
        """Return the embeddings in the width of the encoder, which the first layer reads."""
        embeddings = self.embeddings(input_ids, token_type_ids, position_ids, inputs_embeds)
        if self.embeddings_project is None:
            return embeddings
        return self.embeddings_project(embeddings)

    @can_return_tuple
    def forward(
        self,
        input_ids: torch.LongTensor | None = None,
        attention_mask: torch.Tensor | None = None,
        token_type_ids: torch.LongTensor | None = None,
        position_ids: torch.LongTensor | None = None,
        inputs_embeds: torch.FloatTensor | None = None,
        output_hidden_states: bool | None = None,
        output_attentions: bool | None = None,
        **kwargs,
    ) -> BaseModelOutputWithPooling:
        """
        Args:
            input_ids (`torch.LongTensor` of shape `(batch, length)`, *optional*): Token ids.
            attention_mask (`torch.Tensor` of shape `(batch, length)`, *optional*): 1 for tokens, 0 for padding.
            token_type_ids (`torch.LongTensor` of shape `(batch, length)`, *optional*): Segments, all 0 by default.
            position_ids (`torch.LongTensor` of shape `(batch, length)`, *optional*):
                Positions; for the default, see `position_offset` of [`MwpStudentConfig`].
            inputs_embeds (`torch.FloatTensor` of shape `(batch, length, embedding_width)`, *optional*):
                Word embeddings instead of `input_ids`.
            output_hidden_states (`bool`, *optional*): Return the embedding output and the output of each layer.
            output_attentions (`bool`, *optional*): Return the attention probabilities `(batch, heads, length, length)`
                of each layer; needs `attn_implementation="eager"`. The number of heads may differ between layers.
            kwargs: Passed to the attention function.
        """
        if (input_ids is None) == (inputs_embeds is None):
            raise ValueError("Pass either `input_ids` or `inputs_embeds`.")
        config = self.config
        if output_hidden_states is None:
            output_hidden_states = config.output_hidden_states
        if output_attentions is None:
            output_attentions = config.output_attentions
        has_maps = config._attn_implementation == "eager"
        if output_attentions and not has_maps:
            logger.warning_once('Attention maps need `model.set_attn_implementation("eager")`; `attentions` is empty.')
        embeddings = self.embed(input_ids, token_type_ids, position_ids, inputs_embeds)
        mask = create_bidirectional_mask(config=config, inputs_embeds=embeddings, attention_mask=attention_mask)
        last_hidden_state, hidden_states, attentions = self.encoder(
            embeddings, mask, output_hidden_states, output_attentions and has_maps, **kwargs
        )
        if output_attentions and not has_maps:
            attentions = ()
        pooler_output = None if self.pooler is None else self.pooler(last_hidden_state)
        return BaseModelOutputWithPooling(
            last_hidden_state=last_hidden_state,
            pooler_output=pooler_output,
            hidden_states=hidden_states,
            attentions=attentions,
        )


class MwpStudentForMaskedLM(MwpStudentPreTrainedModel):
    """Student encoder with a masked-language-modelling head."""

    _tied_weights_keys = {"cls.predictions.decoder.weight": "mwp_student.embeddings.word_embeddings.weight"}
    _keys_to_ignore_on_load_unexpected = [r"cls\.pos_tagger\.", r"(^|\.)pooler\."]
    has_tagger = False

    def __init__(self, config):
        super().__init__(config)
        self.mwp_student = MwpStudentModel(config, add_pooling_layer=False)
        self.cls = nn.ModuleDict({"predictions": MwpStudentPredictions(config)})
        if self.has_tagger:
            self.cls["pos_tagger"] = nn.Linear(config.hidden_size, config.num_pos_tags)
        self.post_init()

    def get_output_embeddings(self):
        return self.cls.predictions.decoder

    def set_output_embeddings(self, new_embeddings):
        self.cls.predictions.decoder = new_embeddings

    @can_return_tuple
    def forward(
        self,
        input_ids=None,
        attention_mask=None,
        token_type_ids=None,
        labels=None,
        masked_positions=None,
        position_ids=None,
        inputs_embeds=None,
        **kwargs,
    ) -> MaskedLMOutput:
        """
        Args:
            input_ids, attention_mask, token_type_ids, position_ids, inputs_embeds, kwargs: See [`MwpStudentModel`].
            labels (`torch.LongTensor` of shape `(batch, length)`, *optional*): Ids of the masked tokens, else -100.
            masked_positions (`torch.LongTensor` of shape `(labelled tokens,)`, *optional*):
                Their indices in the flattened batch. With `sparse_prediction`, finding them waits for the device.
        """
        kwargs["return_dict"] = True
        outputs = self.mwp_student(input_ids, attention_mask, token_type_ids, position_ids, inputs_embeds, **kwargs)
        logits, loss = self.cls.predictions(outputs.last_hidden_state, labels, masked_positions)
        return MaskedLMOutput(
            loss=loss, logits=logits, hidden_states=outputs.hidden_states, attentions=outputs.attentions
        )


class MwpStudentForPreTraining(MwpStudentForMaskedLM):
    """
    Student encoder with both heads of its pretraining, masked language modelling and part-of-speech tagging (Ming et
    al., AAAI 2025): `loss = mlm_loss + pos_loss_weight * pos_loss`.
    """

    _keys_to_ignore_on_load_unexpected = [r"(^|\.)pooler\."]
    has_tagger = True

    def __init__(self, config):
        super().__init__(config)
        if not config.num_pos_tags:
            raise ValueError("MwpStudentForPreTraining needs `num_pos_tags`. Without tags, use MwpStudentForMaskedLM.")

    @can_return_tuple
    def forward(
        self,
        input_ids=None,
        attention_mask=None,
        token_type_ids=None,
        labels=None,
        pos_labels=None,
        masked_positions=None,
        position_ids=None,
        inputs_embeds=None,
        **kwargs,
    ) -> MwpStudentForPreTrainingOutput:
        """
        Args:
            input_ids, attention_mask, token_type_ids, position_ids, inputs_embeds, kwargs: See [`MwpStudentModel`].
            labels, masked_positions: See [`MwpStudentForMaskedLM`].
            pos_labels (`torch.LongTensor` of shape `(batch, length)`, *optional*): Tags, or -100 for none. With only
                one kind of labels, the loss is that part alone.
        """
        kwargs["return_dict"] = True
        outputs = self.mwp_student(input_ids, attention_mask, token_type_ids, position_ids, inputs_embeds, **kwargs)
        logits = mlm_loss = None
        if labels is not None or pos_labels is None or not self.cls.predictions.sparse:
            logits, mlm_loss = self.cls.predictions(outputs.last_hidden_state, labels, masked_positions)
        pos_logits = self.cls.pos_tagger(outputs.last_hidden_state)
        loss = mlm_loss
        pos_loss = None
        if pos_labels is not None:
            pos_loss = mean_cross_entropy(pos_logits, pos_labels)
            loss = self.config.pos_loss_weight * pos_loss
            if mlm_loss is not None:
                loss = mlm_loss + loss
        return MwpStudentForPreTrainingOutput(
            loss=loss,
            mlm_loss=mlm_loss,
            pos_loss=pos_loss,
            logits=logits,
            pos_logits=pos_logits,
            hidden_states=outputs.hidden_states,
            attentions=outputs.attentions,
        )


def classifier_dropout(config):
    """Return the dropout before a classifier."""
    rate = config.classifier_dropout
    if rate is None:
        rate = config.hidden_dropout_prob
    return nn.Dropout(rate)


class MwpStudentForSequenceClassification(MwpStudentPreTrainedModel):
    """Student encoder with a classifier or regressor on the pooled first token, for example for GLUE."""

    def __init__(self, config):
        super().__init__(config)
        self.num_labels = config.num_labels
        self.mwp_student = MwpStudentModel(config)
        self.dropout = classifier_dropout(config)
        self.classifier = nn.Linear(config.hidden_size, config.num_labels)
        self.post_init()

    def _loss(self, logits, labels):
        problem_type = self.config.problem_type
        if problem_type == "regression" or (problem_type is None and self.num_labels == 1):
            return nn.functional.mse_loss(logits.float().view(-1), labels.float().view(-1))
        if problem_type == "multi_label_classification" or (problem_type is None and labels.is_floating_point()):
            return nn.functional.binary_cross_entropy_with_logits(logits.float(), labels.float())
        return nn.functional.cross_entropy(logits.float(), labels.view(-1))

    @can_return_tuple
    def forward(
        self,
        input_ids=None,
        attention_mask=None,
        token_type_ids=None,
        labels=None,
        position_ids=None,
        inputs_embeds=None,
        **kwargs,
    ) -> SequenceClassifierOutput:
        """
        Args:
            input_ids, attention_mask, token_type_ids, position_ids, inputs_embeds, kwargs: See [`MwpStudentModel`].
            labels (`torch.Tensor` of shape `(batch,)` or `(batch, num_labels)`, *optional*): Classes or values to
                predict. The loss is the mean squared error with `num_labels=1`, otherwise cross entropy for integer
                labels and binary cross entropy for float labels, unless `config.problem_type` is set.
        """
        kwargs["return_dict"] = True
        outputs = self.mwp_student(input_ids, attention_mask, token_type_ids, position_ids, inputs_embeds, **kwargs)
        logits = self.classifier(self.dropout(outputs.pooler_output))
        loss = None if labels is None else self._loss(logits, labels)
        return SequenceClassifierOutput(
            loss=loss, logits=logits, hidden_states=outputs.hidden_states, attentions=outputs.attentions
        )
