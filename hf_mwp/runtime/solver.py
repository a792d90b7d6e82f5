"""Solver that needs only NumPy and tokenizers."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from ..checked_types import checked
from ..downloads import missing_folder
from ..plausibility import PlausibilityReranker
from ..problems import MathWordProblem, refusal
from ..usage_error import UsageError
from .answer import Answer, Beam, answer_records, check_search, read_trees
from .default_search import FolderSearch, Rerank
from .encoder import GRAPH, Encoder, check_encoder, load_graph
from .output_vocabulary import OutputVocabulary
from .text_reader import TextReader
from .tree_search import TreeDecoder
from .weights import Weights, read_json


EXPORT_RECORD, EXPORT_VERSION = "export.json", 1
"""Name of the record in an exported folder, and the version of the export format."""


class RuntimeSolver(FolderSearch):
    """
    Solver that runs without PyTorch and Transformers, one text at a time. Create it with [`load_solver`].

    Args:
        folder (`str` or `Path`): A solver's folder, written by `save_pretrained`, `hf-mwp card` or `hf-mwp export`.
    """

    @checked
    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)
        config = read_json(self.folder / "config.json")
        if config.get("decoder_config", {}).get("model_type") != TreeDecoder.model_type:
            kind = TreeDecoder.model_type
            raise UsageError(f"{folder} is not a solver with the decoder {kind!r}. Use `--runtime torch`.")
        if (self.folder / EXPORT_RECORD).is_file():
            version = read_json(self.folder / EXPORT_RECORD).get("version")
            if version != EXPORT_VERSION:
                raise UsageError(f"{folder} has version {version!r} of the export format. Export the solver again.")
        self.reader = TextReader(self.folder)
        encoder, decoder = config["encoder_config"], config["decoder_config"]
        if self.reader.vocabulary != OutputVocabulary(decoder["operators"], decoder["constants"]):
            raise UsageError(f"{folder}: mwp_processor.json and config.json have different symbols. Save both again.")
        tokens, rows = self.reader.tokenizer.get_vocab_size(), encoder["vocab_size"]
        if tokens > rows:
            raise UsageError(f"{folder}: the tokenizer has {tokens} tokens, the encoder {rows}. Save both again.")
        weights, graph = Weights(self.folder), self.folder / GRAPH
        bottlenecks = config.get("bottleneck_layers", ())
        self.encoder = load_graph(graph) if graph.is_file() else Encoder(weights, encoder, bottlenecks)
        self.decoder = TreeDecoder(weights, decoder)
        super().__init__(folder, self.reader.language)
        # Read now, so that a damaged file is found on loading.
        _ = self.default_search

    def __call__(
        self,
        problems: str | MathWordProblem | Iterable[str | MathWordProblem],
        *,
        num_beams: int | None = None,
        rerank: Rerank = None,
        top_k: int | None = None,
        max_decode_length: int | None = None,
        confidence_threshold: float | None = None,
    ) -> list[Any]:
        """
        Solve one or several problems with the search settings of [`MathWordProblemPipeline`]. Returns one of its
        dictionaries per problem or, with `top_k`, one list of dictionaries per problem; for a single problem, always a
        list of dictionaries. Raises `ValueError` if an argument is out of range, and `TypeError` if an input is
        neither a text nor a [`MathWordProblem`].
        """
        check_search(confidence_threshold, num_beams=num_beams, top_k=top_k, max_decode_length=max_decode_length)
        single = isinstance(problems, str | bytes | MathWordProblem | Mapping) or not isinstance(problems, Iterable)
        reranker, num_beams = self.search(num_beams, rerank, top_k)
        found = []
        for problem in [problems] if single else problems:
            answer = self.answer(self.reader.problem(problem), num_beams, reranker, max_decode_length)
            records = answer_records(answer, top_k or 1, confidence_threshold)
            found.append(records[0] if top_k is None else records)
        return found[0] if single and top_k is not None else found

    def answer(
        self,
        problem: MathWordProblem,
        num_beams: int = 1,
        reranker: PlausibilityReranker | None = None,
        max_decode_length: int | None = None,
    ) -> Answer:
        """Solve one problem, and keep all trees of the beams."""
        beam = Beam()
        if refusal(problem) is None:
            input_ids, number_positions = self.reader.read(problem)
            num_cut = sum(position < 0 for position in number_positions)
            beam = Beam((), self.reader.unknown_share(input_ids), num_cut, self.reader.max_length)
            if num_cut < len(number_positions):
                states = self.encoder(np.array(input_ids))
                trees = self.decoder.search(states, number_positions, num_beams, num_beams, max_decode_length)
                beam = replace(beam, trees=read_trees(trees, self.reader.vocabulary.decode))
        return Answer(problem, beam, None if reranker is None else tuple(reranker.rerank(problem, beam.trees)))


def can_load(folder: str | Path) -> bool:
    """Return whether [`load_solver`] supports the solver in a folder."""
    try:
        config = read_json(Path(folder) / "config.json")
        if not (Path(folder) / GRAPH).is_file():
            check_encoder(config.get("encoder_config", {}))
    except UsageError:
        return False
    return config.get("decoder_config", {}).get("model_type") == TreeDecoder.model_type


@checked
def load_solver(folder: str | Path) -> RuntimeSolver:
    """
    Load a solver without PyTorch and Transformers.

    Args:
        folder (`str` or `Path`): Folder of a solver with a student as its encoder, or written by `hf-mwp export`.

    Raises:
        UsageError: The folder contains no solver, a file is missing or damaged, or the solver must be exported first
            because its encoder is not a student.

    Example:

    ```python
    >>> from hf_mwp.runtime import load_solver
    >>> solver = load_solver("model_cards/mwp-student-3L-gts-math23k")
    >>> solver("小明有4个苹果和2个梨，一共有多少个水果？")[0]["equation"]
    '4+2'
    ```
    """
    name = Path(folder)
    if fault := missing_folder(folder):
        raise UsageError(fault)
    if not name.exists() and len(name.parts) == 2:
        download = f"hf download {name} --local-dir {name.name}"
        raise UsageError(f"The folder {name} does not exist. Run `{download}` and load {name.name}.")
    return RuntimeSolver(folder)
