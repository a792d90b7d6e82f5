"""Beams of a search that are kept on disk, so that it resumes and processes share it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..models.fingerprints import hash_model, hash_processing
from ..problems import MathWordProblem
from ..runtime.answer import Beam, read_trees
from .beams import find_beams
from .kept_records import join_records


if TYPE_CHECKING:
    from ..data.batches.mwp_processor import MwpProcessor
    from ..models import MwpSolver

# Problems that a kill can lose.
AT_ONCE = 1024


def find_kept_beams(
    folder: str | Path,
    model: MwpSolver,
    processor: MwpProcessor,
    problems: Sequence[MathWordProblem],
    num_beams: int,
    top_k: int,
    max_decode_length: int | None,
    *options: Any,
) -> list[Beam]:
    """
    As [`find_beams`], with beams kept in a folder: a search that was killed resumes, and processes under `accelerate
    launch` each search for a part of the problems.
    """
    facts = {"model": hash_model(model), "processor": hash_processing(processor), "dtype": str(model.dtype)}
    facts |= {"num_beams": num_beams, "top_k": top_k, "max_decode_length": max_decode_length}

    def search(tried: Sequence[MathWordProblem]) -> Iterator[dict[str, Any]]:
        found = find_beams(model, processor, tried, num_beams, top_k, max_decode_length, *options)
        for beam in found:
            trees = [(processor.vocabulary.encode(tree), score) for tree, score in beam.trees]
            yield {name: value for name, value in vars(beam).items() if name != "trees"} | {"trees": trees}

    records = join_records(folder, facts, problems, search, AT_ONCE)
    return [replace(Beam(**record), trees=read_trees(record["trees"], processor.decode)) for record in records]
