"""A decoder that is not a tree decoder, and a solver that is not an `MwpSolver`: symbols depend on their index."""

import torch
from torch import nn
from transformers import AutoConfig, AutoModel, PreTrainedConfig, PreTrainedModel
from transformers.modeling_outputs import TokenClassifierOutput

from hf_mwp.compress.models import MwpStudentConfig, MwpStudentModel
from hf_mwp.runtime.output_vocabulary import OutputVocabulary
from hf_mwp.solver.batches.mwp_collator import MwpCollator
from hf_mwp.solver.models import MwpSolver, MwpSolverConfig, SolveOutput, Solver
from hf_mwp.solver.models.decoder import Decoder


class FlatConfig(PreTrainedConfig):
    model_type = "toy_flat"

    def __init__(self, encoder_hidden_size=16, operators=("+",), constants=(), max_length=9, dropout=0.0, **kwargs):
        self.encoder_hidden_size = encoder_hidden_size
        self.max_length = max_length
        self.dropout = dropout
        self.operators = list(operators)
        self.constants = list(constants)
        super().__init__(**kwargs)


class FlatDecoder(PreTrainedModel, Decoder):
    config_class = FlatConfig
    title = "flat decoder"
    _supports_sdpa = True

    def __init__(self, config):
        super().__init__(config)
        size = config.encoder_hidden_size
        self.index_embedding = nn.Embedding(config.max_length, size)
        self.state = nn.Linear(2 * size, size)
        self.symbols = nn.Linear(size, len(config.operators) + len(config.constants))
        self.post_init()

    def make_collator(self, processor):
        return MwpCollator(processor, trees=False)

    def set_constants(self, constants, used=()):
        raise ValueError("its symbols are fixed")

    def scores(self, states, number_positions, length):
        """`(batch, length, symbols + numbers)`."""
        indices = self.index_embedding.weight[:length].expand(len(states), -1, -1)
        queries = self.state(torch.cat([states[:, :1].expand_as(indices), indices], -1)).tanh()
        positions = number_positions.clamp_min(0).unsqueeze(-1).expand(-1, -1, states.shape[-1])
        numbers = queries @ states.gather(1, positions).transpose(1, 2)
        numbers = numbers.masked_fill((number_positions < 0).unsqueeze(1), torch.finfo(numbers.dtype).min)
        return torch.cat([self.symbols(queries), numbers], -1)

    def forward(self, states, attention_mask, number_positions, number_groups=None, labels=None):
        logits = self.scores(states, number_positions, labels.shape[1])
        loss = nn.functional.cross_entropy(logits.transpose(1, 2), labels, reduction="sum") / len(states)
        return TokenClassifierOutput(loss=loss, logits=logits)

    @torch.no_grad()
    def generate(
        self, states, attention_mask, number_positions, num_beams=1, max_length=None, num_return_sequences=1
    ) -> SolveOutput:
        # Only expressions of a single symbol.
        num_operators = len(self.config.operators)
        log_probs = self.scores(states, number_positions, 1).log_softmax(-1)[:, 0, num_operators:]
        best = log_probs.topk(num_return_sequences)
        sequences = (best.indices + num_operators).unsqueeze(-1)
        return SolveOutput(sequences=sequences, scores=best.values, finished=best.values > -1e30)


class FlatSolverConfig(PreTrainedConfig):
    model_type = "toy_flat_solver"
    sub_configs = {"reader": AutoConfig, "writer": FlatConfig}

    def __init__(self, reader=None, writer=None, **kwargs):
        self.reader = MwpStudentConfig(**reader) if isinstance(reader, dict) else reader
        self.writer = FlatConfig(**writer) if isinstance(writer, dict) else writer
        super().__init__(**kwargs)


class FlatSolver(PreTrainedModel, Solver):
    config_class = FlatSolverConfig
    main_input_name = "input_ids"
    accepts_loss_kwargs = False
    _supports_sdpa = True

    def __init__(self, config):
        super().__init__(config)
        self.encoder = MwpStudentModel(config.reader, add_pooling_layer=False)
        self.writer = FlatDecoder(config.writer)
        self.post_init()

    @property
    def vocabulary(self):
        return OutputVocabulary(self.config.writer.operators, self.config.writer.constants)

    @property
    def decoding_modules(self):
        return [self.writer]

    def get_input_embeddings(self):
        return self.encoder.get_input_embeddings()

    def forward(
        self, input_ids, attention_mask=None, number_positions=None, number_groups=None, labels=None, **options
    ):
        encoded = self.encoder(input_ids, attention_mask, **options)
        output = TokenClassifierOutput()
        if labels is not None:
            output = self.writer(encoded.last_hidden_state, attention_mask, number_positions, labels=labels)
        output.hidden_states = encoded.hidden_states
        output.attentions = encoded.attentions
        return output

    @torch.inference_mode()
    def solve(self, input_ids, attention_mask=None, number_positions=None, **options):
        states = self.encoder(input_ids, attention_mask).last_hidden_state
        return self.writer.generate(states, attention_mask, number_positions, **options)


def register():
    """As the code in a model's folder would; once in a process."""
    if FlatConfig not in AutoModel._model_mapping:
        for model_class in (FlatDecoder, FlatSolver):
            config_class = model_class.config_class
            AutoConfig.register(config_class.model_type, config_class)
            AutoModel.register(config_class, model_class)


def build_configs(processor, num_layers, hidden_size):
    register()
    encoder = MwpStudentConfig(
        vocab_size=len(processor.tokenizer),
        num_hidden_layers=num_layers,
        hidden_size=hidden_size,
        num_attention_heads=2,
        intermediate_size=24,
        max_position_embeddings=64,
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
    )
    vocabulary = processor.vocabulary
    return encoder, FlatConfig(hidden_size, vocabulary.operators, vocabulary.constants)


def with_flat_decoder(processor, num_layers=2, hidden_size=16, seed=0):
    """A `MwpSolver` with the flat decoder."""
    encoder, decoder = build_configs(processor, num_layers, hidden_size)
    torch.manual_seed(seed)
    return MwpSolver(MwpSolverConfig(encoder_config=encoder, decoder_config=decoder))


def flat_solver(processor, num_layers=2, hidden_size=16, seed=0):
    """A solver of its own class."""
    encoder, decoder = build_configs(processor, num_layers, hidden_size)
    torch.manual_seed(seed)
    return FlatSolver(FlatSolverConfig(encoder, decoder))
