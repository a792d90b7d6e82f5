"""Search settings of a solver and its re-rankers, found in its folder."""

import json
from dataclasses import asdict, dataclass
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple, Self

from hf_mwp.utils.downloads import download_options, find_beside
from hf_mwp.utils.files import write_atomically
from hf_mwp.utils.json_fields import Field, check_fields, integer, number, optional, read_mapping

from .plausibility import PlausibilityReranker
from .plausibility.plausibility_reranker import MAX_BEAMS, PlausibilityError


Rerank = bool | str | PathLike | PlausibilityReranker | None
MAX_MARGIN = 1000
"""Maximum `score_margin`: the ratio of probabilities is e^1000. A larger one switches the margin off."""

# Fields of the file; others are ignored.
SEARCH = {
    "num_beams": optional(integer(1, MAX_BEAMS), default=1),
    "rerank": optional(Field((bool, str)), default=False),
    "score_margin": optional(number(1e-6, MAX_MARGIN)),
}


@dataclass(frozen=True)
class DefaultSearch:
    """Default search settings of a solver, for calls that set neither `num_beams` nor `rerank`."""

    num_beams: int = 1  # 1 without re-ranking: greedy search
    rerank: bool | str = False  # `True`: with `plausibility.json` in the folder; or another re-ranker, such as "en"
    score_margin: float | None = None  # see [`~tree_search.TreeDecoder.search`]; `None`: off

    file_name = "generation_config.json"

    @classmethod
    def from_pretrained(cls, name_or_path: str | PathLike, **kwargs) -> Self:
        """Read the settings of a folder or repository, greedy search without a file. `kwargs` (`revision`, `token`,
        ...) are passed to the download. Raises `UsageError` if the file is damaged."""
        path = find_beside(name_or_path, cls.file_name, **kwargs)
        if path is None:
            return cls()
        return cls(**check_fields(read_mapping(path), SEARCH, path))

    def save_pretrained(self, save_directory: str | PathLike) -> None:
        """Write `generation_config.json` to a folder, usually the folder of the model."""
        fields = asdict(self)
        if self.score_margin is None or self.score_margin > MAX_MARGIN:
            fields.pop("score_margin")
        write_atomically(Path(save_directory) / self.file_name, json.dumps(fields, indent=2) + "\n")


class SearchSettings(NamedTuple):
    """Search settings of a call."""

    reranker: PlausibilityReranker | None  # `None`: no re-ranking
    num_beams: int
    score_margin: float | None  # `None`: off


class FolderSearch:
    """Base class of solvers with search settings and re-rankers in their folder or repository `source`, each read
    once. `model` has the download options of a repository, see [`~downloads.download_options`]."""

    def __init__(self, source: str | PathLike, language: str, model: Any = None) -> None:
        self._source = str(source)
        self._language = language
        self._model = model
        self._rerankers: dict[str, PlausibilityReranker] = {}

    @cached_property
    def default_search(self) -> DefaultSearch:
        """Search settings of calls without `num_beams` and `rerank`."""
        if not self._source:
            return DefaultSearch()
        return DefaultSearch.from_pretrained(self._source, **download_options(self._model, self._source))

    def check_files(self) -> None:
        """Read the default search and its re-ranker. Raises `UsageError` if a file is missing or damaged, or if the
        re-ranker does not support the language or the number of beams."""
        default = self.default_search
        reranker = self.find_reranker(default.rerank)
        if reranker is not None:
            try:
                reranker.check(self._language, default.num_beams)
            except PlausibilityError as error:
                raise PlausibilityError(f"{self._source}: {error}") from error

    def find_reranker(self, rerank: Rerank) -> PlausibilityReranker | None:
        """Return the re-ranker for a value of `rerank`; `True` is that of the solver's own folder or repository."""
        if not rerank or isinstance(rerank, PlausibilityReranker):
            return rerank or None
        source = self._source if rerank is True else str(rerank)
        if source not in self._rerankers:
            options = download_options(self._model, source)
            self._rerankers[source] = PlausibilityReranker.from_pretrained(source, **options)
        return self._rerankers[source]

    def search(
        self,
        num_beams: int | None = None,
        rerank: Rerank = None,
        top_k: int | None = None,
        score_margin: float | None = None,
    ) -> SearchSettings:
        """Return the search settings for the options of a call. Raises `PlausibilityError` if the re-ranker cannot be
        loaded, or does not support the language or number of beams."""
        if num_beams is None and rerank is None:
            default = self.default_search
            num_beams = default.num_beams
            rerank = default.rerank
            if score_margin is None:
                score_margin = default.score_margin
        reranker = self.find_reranker(rerank)
        num_beams = count_beams(num_beams, top_k, reranker, self._language)
        return SearchSettings(reranker, num_beams, score_margin)


def count_beams(num_beams: int | None, top_k: int | None, reranker: PlausibilityReranker | None, language: str) -> int:
    """Return the number of beams to search: `num_beams` (default: that of the re-ranker, or 1), but at least `top_k`.
    Raises `PlausibilityError` if the re-ranker does not support the language or number of beams."""
    top_k = top_k or 1
    if num_beams:
        num_beams = max(num_beams, top_k)
    if reranker is not None:
        num_beams = reranker.check(language, num_beams)
    return max(num_beams or 1, top_k)
