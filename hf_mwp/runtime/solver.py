"""Solver that needs only NumPy and tokenizers."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from hf_mwp.utils.checked_types import checked
from hf_mwp.utils.downloads import missing_folder
from hf_mwp.utils.json_fields import read_mapping
from hf_mwp.utils.usage_error import UsageError

from .answer import Answer, Beam, answer_records, check_search, not_finite, read_trees
from .default_search import FolderSearch, Rerank
from .encoder import GRAPH, STUDENT, Encoder, check_encoder, load_graph
from .output_vocabulary import OutputVocabulary
from .plausibility import PlausibilityReranker
from .problems import MathWordProblem, refusal
from .solver_folder import check_weights, has_tree_decoder, read_config
from .text_reader import TextReader, check_fit, count_cut
from .tree_search import NotFiniteError, TreeDecoder
from .weights import Weights


EXPORT_RECORD = "export.json"
"""Name of the record in an exported folder."""

EXPORT_VERSION = 1
"""Version of the export format."""


class RuntimeSolver(FolderSearch):
    """
    Solver that runs without PyTorch and Transformers, one text at a time. Create it with [`load_solver`].

    Args:
        folder (`str` or `Path`): A solver's folder, written by `save_pretrained`, `hf-mwp card` or `hf-mwp export`.
    """

    @checked
    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)
        config = read_config(self.folder)
        if not has_tree_decoder(config):
            raise UsageError(
                f"{folder} is not a solver with the decoder {TreeDecoder.model_type!r}. Use `--runtime torch`."
            )
        record = self.folder / EXPORT_RECORD
        if record.is_file():
            version = read_mapping(record).get("version")
            if version != EXPORT_VERSION:
                raise UsageError(f"{folder} has version {version!r} of the export format. Export the solver again.")
        encoder = config["encoder_config"]
        decoder = config["decoder_config"]
        graph = self.folder / GRAPH
        if not graph.is_file():
            check_encoder(encoder)
        weights = Weights(self.folder)
        check_weights(weights, config)
        self.reader = TextReader(self.folder)
        symbols = OutputVocabulary(tuple(decoder["operators"]), tuple(decoder["constants"]))
        num_embeddings = encoder.get("vocab_size", 0)
        check_fit(self.folder, self.reader.vocabulary, symbols, self.reader.tokenizer, num_embeddings)
        if encoder.get("model_type") == STUDENT:
            self.reader.limit_length(encoder["max_position_embeddings"] - encoder["position_offset"])
        if graph.is_file():
            self.encoder = load_graph(graph, decoder["encoder_hidden_size"])
        else:
            self.encoder = Encoder(weights, encoder, config["bottleneck_layers"])
        self.decoder = TreeDecoder(weights, decoder)
        super().__init__(folder, self.reader.language)
        # Read now, so that a damaged file is found on loading.
        self.check_files()

    def __call__(
        self,
        problems: str | MathWordProblem | Iterable[str | MathWordProblem],
        *,
        num_beams: int | None = None,
        rerank: Rerank = None,
        top_k: int | None = None,
        max_decode_length: int | None = None,
        confidence_threshold: float | None = None,
        score_margin: float | None = None,
    ) -> list[Any]:
        """
        Solve one or several problems with the search settings of [`MathWordProblemPipeline`]. Returns one of its
        dictionaries per problem or, with `top_k`, one list of dictionaries per problem; for a single problem, always a
        list of dictionaries. Raises `ValueError` if an argument is out of range, and `TypeError` if an input is
        neither a text nor a [`MathWordProblem`].
        """
        counts = {"num_beams": num_beams, "top_k": top_k, "max_decode_length": max_decode_length}
        check_search(confidence_threshold, score_margin, **counts)
        single = isinstance(problems, str | bytes | MathWordProblem | Mapping) or not isinstance(problems, Iterable)
        if single:
            problems = [problems]
        settings = self.search(num_beams, rerank, top_k, score_margin)
        results = []
        for problem in problems:
            answer = self.answer(
                self.reader.problem(problem),
                settings.num_beams,
                settings.reranker,
                max_decode_length,
                settings.score_margin,
            )
            results.append(answer_records(answer, top_k or 1, confidence_threshold))
        if top_k is None:
            return [records[0] for records in results]
        return results[0] if single else results

    def answer(
        self,
        problem: MathWordProblem,
        num_beams: int = 1,
        reranker: PlausibilityReranker | None = None,
        max_decode_length: int | None = None,
        score_margin: float | None = None,
    ) -> Answer:
        """Solve one problem, and keep all trees of the beams."""
        beam = Beam()
        if refusal(problem) is None:
            input_ids, number_positions = self.reader.read(problem)
            num_cut = count_cut(problem, number_positions)
            beam = Beam((), self.reader.unknown_share(input_ids), num_cut, self.reader.max_length)
            if number_positions:
                try:
                    # Weights may be NaN or infinite, which a sentence reports instead of NumPy's warnings.
                    with np.errstate(invalid="ignore", over="ignore"):
                        states = self.encoder(np.array(input_ids))
                        trees = self.decoder.search(
                            states, number_positions, num_beams, num_beams, max_decode_length, score_margin
                        )
                    beam = replace(beam, trees=read_trees(trees, self.reader.vocabulary.decode))
                except NotFiniteError:
                    beam = replace(beam, fault=self._not_finite)
        ranked = None
        if reranker is not None:
            ranked = tuple(reranker.rerank(problem, beam.trees))
        return Answer(problem, beam, ranked)

    @cached_property
    def _not_finite(self) -> str:
        return not_finite(self.folder, Weights(self.folder).not_finite())


def can_load(folder: str | Path) -> bool:
    """Return whether [`load_solver`] supports the solver in a folder."""
    try:
        config = read_config(folder)
        if not (Path(folder) / GRAPH).is_file():
            check_encoder(config["encoder_config"])
    except UsageError:
        return False
    return has_tree_decoder(config)


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
    fault = missing_folder(folder)
    if fault is not None:
        raise UsageError(fault)
    if not name.exists() and len(name.parts) == 2:
        download = f"hf download {name} --local-dir {name.name}"
        raise UsageError(f"The folder {name} does not exist. Run `{download}` and load {name.name}.")
    return RuntimeSolver(folder)
