"""Solver that runs with NumPy and tokenizers only."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from ..plausibility import PlausibilityReranker
from ..problems import MathWordProblem, refusal
from ..usage_error import UsageError
from .answer import Answer, Beam, read_trees
from .answer_records import answer_records, check_confidence_threshold
from .default_search import DefaultSearch
from .encoder import GRAPH, Encoder, load_graph
from .output_vocabulary import OutputVocabulary
from .text_reader import TextReader
from .tree_search import TreeDecoder
from .weights import Weights, read_json


EXPORT_RECORD, EXPORT_VERSION = "export.json", 1
"""Record of an exported folder, and the version of its format."""


class RuntimeSolver:
    """
    Solver that runs without PyTorch and Transformers, one text at a time; [`load_solver`] creates it.

    Args:
        folder (`str` or `Path`): A solver's folder, as `save_pretrained`, `hf-mwp card` or `hf-mwp export` leaves it.
    """

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)
        config = read_json(self.folder / "config.json")
        if config.get("decoder_config", {}).get("model_type") != TreeDecoder.model_type:
            raise UsageError(
                f"{folder} is no solver with a tree decoder, the only one that the runtime searches with. Solve with "
                "PyTorch (`--runtime torch`, or the pipeline)."
            )
        if (self.folder / EXPORT_RECORD).is_file():
            version = read_json(self.folder / EXPORT_RECORD).get("version")
            if version != EXPORT_VERSION:
                raise UsageError(
                    f"{folder} was exported in version {version!r} of the format, and this is version "
                    f"{EXPORT_VERSION}: export the solver again with this hf_mwp."
                )
        self.reader = TextReader(self.folder)
        self._check(config)
        weights = Weights(self.folder)
        graph = self.folder / GRAPH
        bottlenecks = config.get("bottleneck_layers", ())
        self.encoder = (
            load_graph(graph) if graph.is_file() else Encoder(weights, config["encoder_config"], bottlenecks)
        )
        self.decoder = TreeDecoder(weights, config["decoder_config"])
        self.default_search = DefaultSearch.from_pretrained(self.folder)
        self._rerankers: dict[str, PlausibilityReranker] = {}

    def _check(self, config: Mapping[str, Any]) -> None:
        """Raise `UsageError` unless processor and model have the same symbols and tokens."""
        decoder = config["decoder_config"]
        if self.reader.vocabulary != OutputVocabulary(decoder["operators"], decoder["constants"]):
            raise UsageError(
                f"The symbols of {self.folder / 'mwp_processor.json'} are not the decoder's: both must come from "
                "the same folder."
            )
        tokens, rows = self.reader.tokenizer.get_vocab_size(), config["encoder_config"]["vocab_size"]
        if tokens > rows:
            raise UsageError(
                f"The tokenizer of {self.folder} has {tokens} entries, the encoder embeds {rows}: both must come from "
                "the same folder."
            )

    def __call__(
        self,
        problems: str | MathWordProblem | Iterable[str | MathWordProblem],
        *,
        num_beams: int | None = None,
        rerank: bool | str | PlausibilityReranker | None = None,
        top_k: int | None = None,
        max_decode_length: int | None = None,
        confidence_threshold: float | None = None,
    ) -> list[Any]:
        """
        Solve one problem or several, with the arguments and results of the pipeline `math-word-problem`
        ([`MathWordProblemPipeline`]).

        Args:
            problems (`str`, [`MathWordProblem`] or several of them): The problems.
            num_beams (`int`, *optional*), rerank (`bool`, `str` or [`PlausibilityReranker`], *optional*): The search;
                without both, that of the folder's `generation_config.json`, or greedy search.
            top_k (`int`, *optional*): Return lists of so many answers; by default the best one of each problem.
            max_decode_length (`int`, *optional*): Most symbols of an equation.
            confidence_threshold (`float`, *optional*): Probability below which an answer is `"unsure"`.

        Returns:
            `list`: of a dictionary for each problem, or with `top_k` of lists of them; for a single problem a list of
            its dictionary or dictionaries.
        """
        check_confidence_threshold(confidence_threshold)
        single = isinstance(problems, str | MathWordProblem)
        reranker, num_beams = self.search(num_beams, rerank, top_k or 1)
        found = []
        for problem in [problems] if single else problems:
            answer = self.answer(self.reader.problem(problem), num_beams, reranker, max_decode_length)
            records = answer_records(answer, top_k or 1, confidence_threshold)
            found.append(records[0] if top_k is None else records)
        return found[0] if single and top_k is not None else found

    def search(
        self, num_beams: int | None, rerank: bool | str | PlausibilityReranker | None, top_k: int = 1
    ) -> tuple[PlausibilityReranker | None, int]:
        """Return the re-ranker, if any, and the number of beams for these arguments of [`~RuntimeSolver.__call__`]."""
        if num_beams is None and rerank is None:
            num_beams, rerank = self.default_search.num_beams, self.default_search.rerank
        if not rerank:
            return None, max(num_beams or 1, top_k)
        if not isinstance(rerank, PlausibilityReranker):
            place = str(self.folder if rerank is True else rerank)
            if place not in self._rerankers:
                self._rerankers[place] = PlausibilityReranker.from_pretrained(place)
            rerank = self._rerankers[place]
        return rerank, max(rerank.check(self.reader.language, num_beams), top_k)

    def answer(
        self,
        problem: MathWordProblem,
        num_beams: int = 1,
        reranker: PlausibilityReranker | None = None,
        max_decode_length: int | None = None,
    ) -> Answer:
        """Solve one problem; all trees of the beams are kept."""
        beam = self._beam(problem, num_beams, max_decode_length)
        return Answer(problem, beam, None if reranker is None else tuple(reranker.rerank(problem, beam.trees)))

    def _beam(self, problem: MathWordProblem, num_beams: int, max_decode_length: int | None) -> Beam:
        if refusal(problem) is not None:
            return Beam()
        read = self.reader.read(problem)
        num_cut = sum(position < 0 for position in read.number_positions)
        beam = Beam((), self.reader.unknown_share(read.input_ids), num_cut, self.reader.max_length)
        if num_cut == len(read.number_positions):
            return beam
        states = self.encoder(np.array(read.input_ids))
        trees = self.decoder.search(states, read.number_positions, num_beams, num_beams, max_decode_length)
        return replace(beam, trees=read_trees(trees, self.reader.vocabulary.decode))


def can_load(folder: str | Path) -> bool:
    """Return whether a path is a folder that [`load_solver`] takes."""
    try:
        config = read_json(Path(folder) / "config.json")
    except UsageError:
        return False
    models = [config.get(f"{name}_config", {}).get("model_type") for name in ("encoder", "decoder")]
    return models[1] == TreeDecoder.model_type and (models[0] == "mwp_student" or (Path(folder) / GRAPH).is_file())


def load_solver(folder: str | Path) -> RuntimeSolver:
    """
    Load a solver's folder without PyTorch and Transformers.

    Args:
        folder (`str` or `Path`): The folder of a solver whose encoder is a student, or one that `hf-mwp export` made.

    Raises:
        UsageError: the folder is no solver, a file is missing or damaged, or the encoder is of a kind that has to be
            exported first.

    Example:

    ```python
    >>> from hf_mwp.runtime import load_solver
    >>> solver = load_solver("model_cards/mwp-student-3L-gts-math23k")
    >>> solver("小明有4个苹果和2个梨，一共有多少个水果？")[0]["equation"]
    '4+2'
    ```
    """
    name = Path(folder)
    if not name.exists() and not name.is_absolute() and len(name.parts) == 2:
        raise UsageError(
            f"There is no folder {name}, and the runtime downloads nothing. Fetch a model of the Hub with "
            f"`hf download {name} --local-dir {name.name}`, and load {name.name}."
        )
    return RuntimeSolver(folder)
