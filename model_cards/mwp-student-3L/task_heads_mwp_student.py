"""Students for token classification, question answering and multiple choice."""

from torch import nn
from transformers.modeling_outputs import (
    MultipleChoiceModelOutput,
    QuestionAnsweringModelOutput,
    TokenClassifierOutput,
)
from transformers.utils import can_return_tuple

from .layers_mwp_student import mean_cross_entropy
from .modeling_mwp_student import MwpStudentModel, MwpStudentPreTrainedModel, classifier_dropout


def flatten_choices(inputs):
    """Return an input `(batch, choices, ...)` as `(batch * choices, ...)`, or `None` for a missing one."""
    if inputs is None:
        return None
    return inputs.flatten(0, 1)


def position_cross_entropy(logits, positions):
    """
    Compute the mean cross entropy between scores of the tokens `(batch, length)` and the correct positions `(batch,)`.
    As in models of Transformers, negative positions count as 0, and those after the last token are left out.
    """
    length = logits.shape[1]
    positions = positions.view(-1).clamp(0, length)
    return mean_cross_entropy(logits, positions.masked_fill(positions == length, -100))


class MwpStudentForTokenClassification(MwpStudentPreTrainedModel):
    """Student encoder with a classifier for each token, for example for named entities."""

    _keys_to_ignore_on_load_unexpected = [r"(^|\.)pooler\."]

    def __init__(self, config):
        super().__init__(config)
        self.num_labels = config.num_labels
        self.mwp_student = MwpStudentModel(config, add_pooling_layer=False)
        self.dropout = classifier_dropout(config)
        self.classifier = nn.Linear(config.hidden_size, config.num_labels)
        self.post_init()

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
    ) -> TokenClassifierOutput:
        """
        Args:
            input_ids, attention_mask, token_type_ids, position_ids, inputs_embeds, kwargs: See [`MwpStudentModel`].
            labels (`torch.LongTensor` of shape `(batch, length)`, *optional*): Classes of the tokens, -100 for none.
        """
        kwargs["return_dict"] = True
        outputs = self.mwp_student(input_ids, attention_mask, token_type_ids, position_ids, inputs_embeds, **kwargs)
        logits = self.classifier(self.dropout(outputs.last_hidden_state))
        loss = None
        if labels is not None:
            loss = mean_cross_entropy(logits, labels)
        return TokenClassifierOutput(
            loss=loss, logits=logits, hidden_states=outputs.hidden_states, attentions=outputs.attentions
        )


class MwpStudentForQuestionAnswering(MwpStudentPreTrainedModel):
    """Student encoder that scores each token as the first and as the last one of the answer, as for SQuAD."""

    _keys_to_ignore_on_load_unexpected = [r"(^|\.)pooler\."]

    def __init__(self, config):
        super().__init__(config)
        self.mwp_student = MwpStudentModel(config, add_pooling_layer=False)
        self.qa_outputs = nn.Linear(config.hidden_size, 2)
        self.post_init()

    @can_return_tuple
    def forward(
        self,
        input_ids=None,
        attention_mask=None,
        token_type_ids=None,
        start_positions=None,
        end_positions=None,
        position_ids=None,
        inputs_embeds=None,
        **kwargs,
    ) -> QuestionAnsweringModelOutput:
        """
        Args:
            input_ids, attention_mask, token_type_ids, position_ids, inputs_embeds, kwargs: See [`MwpStudentModel`].
            start_positions, end_positions (`torch.LongTensor` of shape `(batch,)`, *optional*):
                First and last token of the answer. Positions after the last token of the batch are left out.
        """
        kwargs["return_dict"] = True
        outputs = self.mwp_student(input_ids, attention_mask, token_type_ids, position_ids, inputs_embeds, **kwargs)
        start_logits, end_logits = self.qa_outputs(outputs.last_hidden_state).unbind(-1)
        loss = None
        if start_positions is not None and end_positions is not None:
            start_loss = position_cross_entropy(start_logits, start_positions)
            end_loss = position_cross_entropy(end_logits, end_positions)
            loss = (start_loss + end_loss) / 2
        return QuestionAnsweringModelOutput(
            loss=loss,
            start_logits=start_logits.contiguous(),
            end_logits=end_logits.contiguous(),
            hidden_states=outputs.hidden_states,
            attentions=outputs.attentions,
        )


class MwpStudentForMultipleChoice(MwpStudentPreTrainedModel):
    """Student encoder that scores each of several texts, the choices of a row, on its pooled first token."""

    def __init__(self, config):
        super().__init__(config)
        self.mwp_student = MwpStudentModel(config)
        self.dropout = classifier_dropout(config)
        self.classifier = nn.Linear(config.hidden_size, 1)
        self.post_init()

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
    ) -> MultipleChoiceModelOutput:
        """
        Args:
            input_ids (`torch.LongTensor` of shape `(batch, choices, length)`, *optional*): Token ids.
            attention_mask, token_type_ids, position_ids, inputs_embeds: As in [`MwpStudentModel`], with the choices as
                the second dimension.
            labels (`torch.LongTensor` of shape `(batch,)`, *optional*): Correct choices, -100 for none.
            kwargs: See [`MwpStudentModel`].

        Returns:
            `MultipleChoiceModelOutput` with `logits` `(batch, choices)`. Hidden states and attentions are those of all
            texts, `(batch * choices, ...)`.
        """
        kwargs["return_dict"] = True
        words = inputs_embeds if input_ids is None else input_ids
        num_choices = words.shape[1]
        outputs = self.mwp_student(
            flatten_choices(input_ids),
            flatten_choices(attention_mask),
            flatten_choices(token_type_ids),
            flatten_choices(position_ids),
            flatten_choices(inputs_embeds),
            **kwargs,
        )
        logits = self.classifier(self.dropout(outputs.pooler_output)).view(-1, num_choices)
        loss = None
        if labels is not None:
            loss = mean_cross_entropy(logits, labels)
        return MultipleChoiceModelOutput(
            loss=loss, logits=logits, hidden_states=outputs.hidden_states, attentions=outputs.attentions
        )
