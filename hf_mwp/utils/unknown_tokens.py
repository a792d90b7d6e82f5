"""Share of tokens that are not in a vocabulary, and the warning if it is high."""

from collections.abc import Container, Sequence


# Share of unknown tokens of one problem above which there is a warning. Problems in the language of a solver have at
# most 0.17.
PROBLEM_LIMIT = 0.2
# The same for many texts together. Data sets in the language of a vocabulary have at most 0.01.
TRAINING_LIMIT = 0.05


def share_of_unknown(input_ids: Sequence[int], unknown: int | None, aside: Container[int]) -> float:
    """Return the share of unknown tokens among the tokens that are not in `aside`."""
    words = [token for token in input_ids if token not in aside]
    return words.count(unknown) / len(words) if words else 0.0


def unknown_tokens_warning(share: float, limit: float, tokens: str, vocabulary: str, advice: str) -> str | None:
    """Return a warning about a share of unknown tokens, or `None` if it is not above the limit. `tokens` and
    `vocabulary` name what was counted; `advice` is a sentence."""
    if share <= limit:
        return None
    return f"{share:.0%} of {tokens} are not in {vocabulary}. {advice}"
