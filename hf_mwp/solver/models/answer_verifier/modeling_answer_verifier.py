"""The answer verifier: a small network that reads the text and an equation together."""

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from transformers import PreTrainedModel
from transformers import initialization as init
from transformers.utils import ModelOutput

from hf_mwp.runtime.plausibility.equation_nodes import MAX_DEPTH, MAX_NODES, VALUE_SIZE

from .configuration_answer_verifier import AnswerVerifierConfig


EMBEDDING_STD = 0.05
PADDING = -1
"""Symbol of positions after an equation."""


@dataclass
class AnswerVerifierOutput(ModelOutput):
    """Output of [`AnswerVerifierModel`]."""

    # Mean over problems of `-log p(right equations)`, with a softmax over the equations of a problem.
    loss: torch.FloatTensor | None = None
    # Scores `(batch, equations)` of the network, without those of features.
    logits: torch.FloatTensor | None = None


class AnswerVerifierModel(PreTrainedModel):
    """
    Network that scores equations for a text; see [`AnswerVerifier`], the same network in NumPy.

    Each node of an equation's tree has an embedding of its symbol, its position, its depth and its value; the symbol
    of a number is the hidden state of its token. In each layer, the nodes attend to each other and to the hidden
    states of the text. The state of the start symbol gives the score.

    Args:
        config ([`AnswerVerifierConfig`]): Configuration.
    """

    config_class = AnswerVerifierConfig
    base_model_prefix = "verifier"
    main_input_name = "encoder_hidden_states"
    accepts_loss_kwargs = False

    def __init__(self, config: AnswerVerifierConfig) -> None:
        super().__init__(config)
        width = config.hidden_size
        self.symbol_embeddings = nn.Embedding(len(config.symbols) + 1, width)
        self.position_embeddings = nn.Embedding(MAX_NODES + 1, width)
        self.depth_embeddings = nn.Embedding(MAX_DEPTH + 1, width)
        self.number_projection = nn.Linear(config.encoder_hidden_size, width)
        self.value_projection = nn.Linear(VALUE_SIZE, width)
        self.layers = nn.ModuleList(VerifierLayer(config) for _ in range(config.num_hidden_layers))
        self.norm = nn.LayerNorm(width, config.layer_norm_eps)
        self.hidden = nn.Linear(width, width)
        self.score = nn.Linear(width, 1)
        self.dropout = nn.Dropout(config.dropout)
        num_features = len(config.features)
        self.feature_hidden = nn.Linear(num_features, width)
        self.feature_projection = nn.Linear(width, width)
        # Only for training: the re-ranker has weights of its own for the features.
        self.feature_scores = nn.Linear(num_features, 1, bias=False)
        self.register_buffer("feature_scale", torch.ones(num_features))
        self.post_init()

    @torch.no_grad()
    def _init_weights(self, module: nn.Module) -> None:
        if isinstance(module, nn.Embedding):
            init.normal_(module.weight, std=EMBEDDING_STD)
        elif isinstance(module, nn.LayerNorm):
            init.ones_(module.weight)
            init.zeros_(module.bias)
        elif isinstance(module, AnswerVerifierModel):
            init.ones_(module.feature_scale)
        elif isinstance(module, nn.Linear) and module.in_features:
            bound = module.in_features**-0.5
            init.uniform_(module.weight, -bound, bound)
            if module.bias is None:
                # The scores of features.
                init.zeros_(module.weight)
            else:
                init.uniform_(module.bias, -bound, bound)

    def forward(
        self,
        encoder_hidden_states: Tensor,
        attention_mask: Tensor,
        number_positions: Tensor,
        symbols: Tensor,
        depths: Tensor,
        values: Tensor,
        features: Tensor,
        labels: Tensor | None = None,
    ) -> AnswerVerifierOutput:
        """
        Score equations.

        Args:
            encoder_hidden_states (`torch.FloatTensor` of shape `(B, S, H)`): The solver's hidden states of the texts.
            attention_mask (`torch.LongTensor` of shape `(B, S)`): 0 for padding, otherwise 1.
            number_positions (`torch.LongTensor` of shape `(B, N)`): Index of the token of each number, -1 for padding.
            symbols (`torch.LongTensor` of shape `(B, C, T)`):
                Symbols of the nodes of each equation, see [`EquationNodes`]; -1 for padding.
            depths (`torch.LongTensor` of shape `(B, C, T)`), values (`torch.FloatTensor` of shape `(B, C, T, 7)`):
                Their depths and the features of their values.
            features (`torch.FloatTensor` of shape `(B, C, features)`): Features of the equations' answers.
            labels (`torch.BoolTensor` of shape `(B, C)`, *optional*): Whether an equation has the right value.
        """
        features = features / self.feature_scale
        hidden = self._embed(encoder_hidden_states, number_positions, symbols, depths, values, features)
        scores = self._scores(hidden, encoder_hidden_states, attention_mask, symbols)
        loss = None
        if labels is not None:
            totals = scores + self.feature_scores(features).squeeze(-1)
            lowest = torch.finfo(totals.dtype).min
            totals = totals.masked_fill(symbols[..., 0] == PADDING, lowest)
            right = totals.masked_fill(~labels, lowest)
            loss = (totals.logsumexp(1) - right.logsumexp(1)).mean()
        return AnswerVerifierOutput(loss=loss, logits=scores)

    def _scores(self, hidden: Tensor, states: Tensor, attention_mask: Tensor, symbols: Tensor) -> Tensor:
        """Return the scores `(B, C)` of equations from the embeddings `(B, C, T, width)` of their nodes."""
        batch, num_equations, length = symbols.shape
        hidden = self.dropout(hidden).flatten(0, 1)
        node_mask = symbols.flatten(0, 1) != PADDING
        # Attention needs a key for equations that pad a problem, too.
        node_mask = node_mask | (torch.arange(length, device=symbols.device) == 0)
        text_mask = attention_mask.bool()
        for layer in self.layers:
            hidden = layer(hidden, node_mask, states, text_mask)
        summary = self.norm(hidden[:, 0])
        scores = self.score(self.dropout(F.gelu(self.hidden(summary))))
        return scores.view(batch, num_equations)

    def _embed(
        self,
        states: Tensor,
        number_positions: Tensor,
        symbols: Tensor,
        depths: Tensor,
        values: Tensor,
        features: Tensor,
    ) -> Tensor:
        """Return the embeddings `(B, C, T, width)` of all nodes. The start symbol gets the features."""
        batch, num_equations, length = symbols.shape
        index = number_positions.clamp_min(0).unsqueeze(-1).expand(-1, -1, states.shape[-1])
        number_states = self.number_projection(states.gather(1, index))
        constants = self.symbol_embeddings.weight.expand(batch, -1, -1)
        table = torch.cat([constants, number_states.to(constants.dtype)], 1)
        rows = symbols.clamp_min(0).view(batch, num_equations * length, 1).expand(-1, -1, table.shape[-1])
        embeddings = table.gather(1, rows).view(batch, num_equations, length, -1)
        positions = self.position_embeddings.weight[:length]
        embeddings = embeddings + positions + self.depth_embeddings(depths)
        embeddings = embeddings + self.value_projection(values.to(embeddings.dtype))
        described = self.feature_projection(F.gelu(self.feature_hidden(features.to(embeddings.dtype))))
        start = embeddings[:, :, :1] + described.unsqueeze(2)
        return torch.cat([start, embeddings[:, :, 1:]], 2)


class VerifierLayer(nn.Module):
    """Attention to the nodes of the equation, attention to the text, and a feed-forward network, each with a
    normalisation before it (Xiong et al., 2020)."""

    def __init__(self, config: AnswerVerifierConfig) -> None:
        super().__init__()
        width = config.hidden_size
        self.num_heads = config.num_attention_heads
        self.attention_norm = nn.LayerNorm(width, config.layer_norm_eps)
        self.query_key_value = nn.Linear(width, 3 * width)
        self.attention_output = nn.Linear(width, width)
        self.text_norm = nn.LayerNorm(width, config.layer_norm_eps)
        self.text_query = nn.Linear(width, width)
        self.text_key_value = nn.Linear(config.encoder_hidden_size, 2 * width)
        self.text_output = nn.Linear(width, width)
        self.output_norm = nn.LayerNorm(width, config.layer_norm_eps)
        self.intermediate = nn.Linear(width, config.intermediate_size)
        self.output = nn.Linear(config.intermediate_size, width)
        self.dropout = nn.Dropout(config.dropout)

    def forward(self, hidden: Tensor, node_mask: Tensor, states: Tensor, text_mask: Tensor) -> Tensor:
        """Return the next states of nodes `(B * C, T, width)`. The masks `(B * C, T)` and `(B, S)` are true for keys
        to attend to."""
        query, key, value = self.query_key_value(self.attention_norm(hidden)).chunk(3, -1)
        context = self._attend(query, key, value, node_mask)
        hidden = hidden + self.dropout(self.attention_output(context))
        # All equations of a problem read the same text.
        query = self.text_query(self.text_norm(hidden)).view(len(states), -1, hidden.shape[-1])
        key, value = self.text_key_value(states).chunk(2, -1)
        context = self._attend(query, key, value, text_mask)
        hidden = hidden + self.dropout(self.text_output(context)).view_as(hidden)
        inner = F.gelu(self.intermediate(self.output_norm(hidden)))
        return hidden + self.dropout(self.output(inner))

    def _attend(self, query: Tensor, key: Tensor, value: Tensor, mask: Tensor) -> Tensor:
        heads = [states.unflatten(-1, (self.num_heads, -1)).transpose(1, 2) for states in (query, key, value)]
        context = F.scaled_dot_product_attention(*heads, attn_mask=mask[:, None, None])
        return context.transpose(1, 2).flatten(2)
