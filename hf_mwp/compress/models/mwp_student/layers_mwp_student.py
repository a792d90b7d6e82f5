"""Layers and heads of the MWP student."""

from collections import OrderedDict

import torch
from torch import nn
from transformers.activations import ACT2FN
from transformers.modeling_layers import GradientCheckpointingLayer
from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS


# Scored tokens are padded to whole blocks, because each new number of rows costs a kernel (bf16 on a CPU) or a graph.
ROWS_PER_BLOCK = 64


def mean_cross_entropy(logits, labels):
    """Compute the mean cross entropy over the labels that are not -100 (0, not NaN, if there are none)."""
    loss = nn.functional.cross_entropy(logits.flatten(0, -2).float(), labels.flatten(), reduction="sum")
    return loss / labels.ne(-100).sum().clamp(min=1)


def score_words(score, hidden_states, labels=None, positions=None, sparse=False):
    """
    Return `score` of the states, and the loss. If `sparse` and there are labels, only labelled tokens are scored; they
    are found if their `positions` in the flattened batch are not given.
    """
    num_scored = None
    if labels is not None and sparse:
        if positions is None:
            positions = labels.flatten().ne(-100).nonzero().squeeze(1)
        labels = labels.flatten().index_select(0, positions)
        hidden_states = hidden_states.flatten(0, 1).index_select(0, positions)
        num_scored = len(labels)
        hidden_states = nn.functional.pad(hidden_states, (0, 0, 0, -num_scored % ROWS_PER_BLOCK))
    logits = score(hidden_states)[:num_scored]
    loss = None if labels is None else mean_cross_entropy(logits, labels)
    return logits, loss


def eager_attention_forward(module, query, key, value, attention_mask, scaling, dropout=0.0, **kwargs):
    """Compute the attention of `(batch, heads, length, head_dim)` tensors, and its probabilities."""
    scores = torch.matmul(query, key.transpose(2, 3)) * scaling
    if attention_mask is not None:
        scores = scores + attention_mask
    probabilities = nn.functional.softmax(scores, dim=-1)
    probabilities = nn.functional.dropout(probabilities, p=dropout, training=module.training)
    return torch.matmul(probabilities, value).transpose(1, 2).contiguous(), probabilities


class MwpStudentEmbeddings(nn.Module):
    """Normalised sum of word, token type and position embeddings."""

    def __init__(self, config):
        super().__init__()
        width = config.embedding_width
        self.word_embeddings = nn.Embedding(config.vocab_size, width, padding_idx=config.pad_token_id)
        self.position_embeddings = nn.Embedding(config.max_position_embeddings, width)
        self.token_type_embeddings = nn.Embedding(config.type_vocab_size, width)
        self.LayerNorm = nn.LayerNorm(width, eps=config.layer_norm_eps)
        self.dropout = nn.Dropout(config.hidden_dropout_prob)
        self.padding_idx = config.pad_token_id
        self.position_offset = config.position_offset
        self.max_length = config.max_position_embeddings - config.position_offset

    def _default_position_ids(self, input_ids, length, device):
        if length > self.max_length:
            raise ValueError(
                f"The input has {length} tokens, but the model has positions for {self.max_length}. Truncate the "
                f"text: tokenizer(..., truncation=True, max_length={self.max_length})."
            )
        if self.position_offset and input_ids is not None:
            is_token = input_ids.ne(self.padding_idx).long()
            return is_token.cumsum(1) * is_token + (self.position_offset - 1)
        return torch.arange(self.position_offset, self.position_offset + length, device=device).unsqueeze(0)

    def forward(self, input_ids=None, token_type_ids=None, position_ids=None, inputs_embeds=None):
        if inputs_embeds is None:
            inputs_embeds = self.word_embeddings(input_ids)
        device = inputs_embeds.device
        if position_ids is None:
            position_ids = self._default_position_ids(input_ids, inputs_embeds.shape[1], device)
        if token_type_ids is None:
            # One row that broadcasts, because a lookup for every token would copy the same row.
            token_type_ids = torch.zeros((1, 1), dtype=torch.long, device=device)
        embeddings = inputs_embeds + self.token_type_embeddings(token_type_ids)
        embeddings = embeddings + self.position_embeddings(position_ids)
        return self.dropout(self.LayerNorm(embeddings))


class MwpStudentSelfAttention(nn.Module):
    """Multi-head self-attention. Linear layers determine the number of heads, so that they can be pruned in place."""

    def __init__(self, config, num_heads, layer_idx):
        super().__init__()
        self.config = config
        self.layer_idx = layer_idx
        self.is_causal = False
        self.attention_head_size = config.head_dim
        self.scaling = config.head_dim**-0.5
        self.query = nn.Linear(config.hidden_size, num_heads * config.head_dim)
        self.key = nn.Linear(config.hidden_size, num_heads * config.head_dim)
        self.value = nn.Linear(config.hidden_size, num_heads * config.head_dim)
        self.dropout = nn.Dropout(config.attention_probs_dropout_prob)

    def forward(self, hidden_states, attention_mask=None, **kwargs):
        batch, length, _ = hidden_states.shape
        shape = (batch, length, -1, self.attention_head_size)
        attention = ALL_ATTENTION_FUNCTIONS.get_interface(self.config._attn_implementation, eager_attention_forward)
        query = self.query(hidden_states).view(shape).transpose(1, 2)
        key = self.key(hidden_states).view(shape).transpose(1, 2)
        value = self.value(hidden_states).view(shape).transpose(1, 2)
        dropout = self.dropout.p if self.training else 0.0
        context, probabilities = attention(
            self, query, key, value, attention_mask, dropout=dropout, scaling=self.scaling, **kwargs
        )
        return context.reshape(batch, length, -1), probabilities


class MwpStudentBias(nn.Module):
    """Bias of a linear layer all of whose inputs were pruned."""

    def __init__(self, size):
        super().__init__()
        self.bias = nn.Parameter(torch.zeros(size))

    def forward(self, features=None):
        return self.bias


class MwpStudentSublayerOutput(nn.Module):
    """`LayerNorm(dropout(dense(x)) + residual)`. Without heads or neurons, `dense` is only its bias."""

    def __init__(self, config, num_features):
        super().__init__()
        size = config.hidden_size
        self.dense = nn.Linear(num_features, size) if num_features else MwpStudentBias(size)
        self.LayerNorm = nn.LayerNorm(size, eps=config.layer_norm_eps)
        self.dropout = nn.Dropout(config.hidden_dropout_prob)

    def forward(self, features, residual):
        return self.LayerNorm(self.dropout(self.dense(features).expand_as(residual)) + residual)


class MwpStudentAttention(nn.Module):
    """Self-attention with output projection, residual connection and layer norm."""

    def __init__(self, config, layer_idx):
        super().__init__()
        num_heads = config.heads_per_layer[layer_idx]
        self.self = MwpStudentSelfAttention(config, num_heads, layer_idx) if num_heads else None
        self.output = MwpStudentSublayerOutput(config, num_heads * config.head_dim)

    def forward(self, hidden_states, attention_mask=None, **kwargs):
        if self.self is None:
            batch, length, _ = hidden_states.shape
            return self.output(None, hidden_states), hidden_states.new_empty(batch, 0, length, length)
        context, probabilities = self.self(hidden_states, attention_mask, **kwargs)
        return self.output(context, hidden_states), probabilities


class MwpStudentLayer(GradientCheckpointingLayer):
    """Encoder layer. Its modules have BERT's names, so that tools for BERT find them."""

    def __init__(self, config, layer_idx):
        super().__init__()
        num_neurons = config.neurons_per_layer[layer_idx]
        self.attention = MwpStudentAttention(config, layer_idx)
        self.intermediate = None
        if num_neurons:
            dense = nn.Linear(config.hidden_size, num_neurons)
            self.intermediate = nn.Sequential(OrderedDict(dense=dense, activation=ACT2FN[config.hidden_act]))
        self.output = MwpStudentSublayerOutput(config, num_neurons)

    def forward(self, hidden_states, attention_mask=None, **kwargs):
        hidden_states, probabilities = self.attention(hidden_states, attention_mask, **kwargs)
        features = None if self.intermediate is None else self.intermediate(hidden_states)
        return self.output(features, hidden_states), probabilities


class MwpStudentEncoder(nn.Module):
    """Stack of layers."""

    def __init__(self, config):
        super().__init__()
        self.layer = nn.ModuleList([MwpStudentLayer(config, index) for index in range(config.num_hidden_layers)])

    def forward(self, hidden_states, attention_mask, output_hidden_states, output_attentions, **kwargs):
        all_hidden_states = (hidden_states,) if output_hidden_states else None
        all_attentions = () if output_attentions else None
        for layer in self.layer:
            hidden_states, probabilities = layer(hidden_states, attention_mask, **kwargs)
            if output_hidden_states:
                all_hidden_states += (hidden_states,)
            if output_attentions:
                all_attentions += (probabilities,)
        return hidden_states, all_hidden_states, all_attentions


class MwpStudentPooler(nn.Module):
    """Linear layer and activation on the first token."""

    def __init__(self, config):
        super().__init__()
        self.dense = nn.Linear(config.hidden_size, config.hidden_size)
        self.activation = ACT2FN[config.classifier_activation]

    def forward(self, hidden_states):
        return self.activation(self.dense(hidden_states[:, 0]))


class MwpStudentPredictions(nn.Module):
    """Masked-language-modelling head: transform, then a linear layer with the word embeddings' matrix."""

    def __init__(self, config):
        super().__init__()
        width = config.embedding_width
        dense = nn.Linear(config.hidden_size, width)
        activation = ACT2FN[config.hidden_act]
        norm = nn.LayerNorm(width, eps=config.layer_norm_eps)
        self.transform = nn.Sequential(OrderedDict(dense=dense, activation=activation, LayerNorm=norm))
        self.decoder = nn.Linear(width, config.vocab_size)
        self.sparse = config.sparse_prediction

    def forward(self, hidden_states, labels=None, positions=None):
        def score(states):
            return self.decoder(self.transform(states))

        return score_words(score, hidden_states, labels, positions, self.sparse)
