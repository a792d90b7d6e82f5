"""A processor that reads as that of `tests.tiny`, in other tokens, and a solver that reads them."""

import copy
import json

import torch
from tokenizers import Tokenizer
from transformers import PreTrainedTokenizerFast

from hf_mwp.solver.batches.mwp_processor import MwpProcessor
from tests.tiny import tiny_tokenizer


FIRST = 5  # after the special tokens


def other_processor(processor, **fields):
    """The same characters in reverse order, and one more."""
    state = json.loads(tiny_tokenizer().backend_tokenizer.to_str())
    vocabulary = state["model"]["vocab"]
    tokens = sorted(vocabulary, key=vocabulary.get)
    reordered = [*tokens[:FIRST], "鸡", *reversed(tokens[FIRST:])]
    state["model"]["vocab"] = {token: index for index, token in enumerate(reordered)}
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=Tokenizer.from_str(json.dumps(state)), **tiny_tokenizer().special_tokens_map
    )
    return MwpProcessor(tokenizer, processor.vocabulary, **fields)


def in_other_tokens(solver, processor, other):
    """A copy of a solver that says in the tokens of another processor what the solver says in those of its own."""
    solver = copy.deepcopy(solver)
    indices = other.tokenizer.get_vocab()
    embeddings = solver.get_input_embeddings().weight.detach()
    solver.encoder.resize_token_embeddings(len(indices), mean_resizing=False)
    with torch.no_grad():
        for token, index in processor.tokenizer.get_vocab().items():
            solver.get_input_embeddings().weight[indices[token]] = embeddings[index]
    return solver
