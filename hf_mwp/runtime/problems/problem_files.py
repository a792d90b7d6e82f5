"""Files of problems."""

from collections.abc import Iterable
from pathlib import Path

from hf_mwp.utils.checked_types import checked
from hf_mwp.utils.files import write_json_lines

from .math_word_problem import MathWordProblem


_FIELDS = ("id", "language", "text", "equation", "answer")


@checked
def write_problems(path: str | Path, problems: Iterable[MathWordProblem]) -> int:
    """
    Write problems to a JSON Lines file, which can be a dataset or extra training data.

    Args:
        path (`str` or `Path`): File to write. An existing file is replaced.
        problems (iterable of [`MathWordProblem`]): Problems, of which id, language, text, equation and answer are
            written.

    Returns:
        `int`: The number of problems.

    Example:

    ```python
    >>> write_problems("generated.jsonl", write_stories(1000, language="zh"))
    1000
    ```
    """
    rows = []
    for problem in problems:
        rows.append({name: getattr(problem, name) for name in _FIELDS})
    write_json_lines(path, rows)
    return len(rows)
