"""Generated problems of the kinds that textbooks and people ask: change, fares, averages, ages, trees along a road."""

import random
from collections.abc import Iterator
from pathlib import Path

from hf_mwp.runtime.problems.math_word_problem import MathWordProblem
from hf_mwp.utils.checked_types import checked

from .story_kinds import StoryKind, check_story_language, load_story_kinds


_MAX_TRIES = 1000  # for one problem


@checked
def write_stories(
    count: int, seed: int = 0, language: str = "en", kinds_file: str | Path | None = None
) -> Iterator[MathWordProblem]:
    """
    Write problems of many kinds, whose texts are read with the reading `"people"`.

    Args:
        count (`int`): Number of problems. Some may be equal.
        seed (`int`, *optional*, defaults to 0): Seed of all choices.
        language (`str`, *optional*, defaults to `"en"`): `"en"` or `"zh"`.
        kinds_file (`str` or `Path`, *optional*): TOML file with your own kinds, one table `[[kinds]]` for each, whose
            fields are those of [`StoryKind`]. By default, one of the files of this package, which have
            more than 500 kinds each.

    Yields:
        [`MathWordProblem`]: Problems with equation and answer; their `kind` is the name of the kind, and their ids are
            `stories-0`, `stories-1`, ...

    Raises:
        ValueError: If the file has an invalid kind, or a kind without a possible problem. The message names file, kind
            and field.

    Example:

    ```python
    >>> for problem in write_stories(2):
    ...     print(problem.text, problem.equation, problem.answer)
    ```
    """
    check_story_language(language)
    path = Path(kinds_file or Path(__file__).with_name(f"stories_{language}.toml"))
    kinds = load_story_kinds(path)
    rng = random.Random(f"stories {language} {seed}")
    for index in range(count):
        kind = rng.choice(kinds)
        yield _write(kind, path, f"stories-{index}", language, rng)


def _write(kind: StoryKind, path: Path, problem_id: str, language: str, rng: random.Random) -> MathWordProblem:
    """Return a problem of a kind: the first that is possible."""
    for _ in range(_MAX_TRIES):
        problem = kind.try_to_write(problem_id, language, rng)
        if problem is not None:
            return problem
    raise ValueError(
        f"{path}: Kind {kind.name!r} gave no problem in {_MAX_TRIES:,} tries. Its answers must be possible, and the "
        "numbers of its texts must be read as they are in `numbers`."
    )
