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
    known = state["model"]["vocab"]
    characters = [token for token, index in known.items() if index >= FIRST]
    ordered = ["鸡", *sorted(characters, key=known.get, reverse=True)]
    special = {token: index for token, index in known.items() if index < FIRST}
    state["model"]["vocab"] = special | {token: FIRST + place for place, token in enumerate(ordered)}
    names = ("pad_token", "unk_token", "cls_token", "sep_token", "mask_token")
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=Tokenizer.from_str(json.dumps(state)), **{name: f"[{name[:-6].upper()}]" for name in names}
    )
    return MwpProcessor(tokenizer, processor.vocabulary, **fields)


def in_other_tokens(solver, processor, other):
    """A copy of a solver that says in the tokens of another processor what the solver says in those of its own."""
    solver = copy.deepcopy(solver)
    old, new = processor.tokenizer.get_vocab(), other.tokenizer.get_vocab()
    words = solver.get_input_embeddings().weight.detach()
    solver.encoder.resize_token_embeddings(len(new), mean_resizing=False)
    with torch.no_grad():
        for token, index in old.items():
            solver.get_input_embeddings().weight[new[token]] = words[index]
    return solver
