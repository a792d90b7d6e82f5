"""Generated English problems about prices: discounts, half price, coupons, taxes, tips, buy two get one free."""

import random
import tomllib
from collections.abc import Iterator
from pathlib import Path

from hf_mwp.runtime.problems.math_word_problem import MathWordProblem
from hf_mwp.utils.checked_types import checked

from .story_names import STORY_NAMES


OFFERS = 0.65
"""Share of problems about an offer for one thing; the others are about taxes, tips and several things."""

_TEXTS = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
_PERCENTAGES = (5, 8, 10, 12, 15, 20, 25, 30, 35, 40, 45, 50, 60, 70, 75, 80, 90)


@checked
def write_prices(count: int, seed: int = 0) -> Iterator[MathWordProblem]:
    """
    Write English problems about discounts and other changes of a price, with exact labels.

    Args:
        count (`int`): Number of problems. Some may be equal.
        seed (`int`, *optional*, defaults to 0): Seed of all choices.

    Yields:
        [`MathWordProblem`]: Problems with equation and answer; their ids are `prices-0`, `prices-1`, ...

    Example:

    ```python
    >>> for problem in write_prices(2):
    ...     print(problem.text, problem.equation, problem.answer)
    ```
    """
    rng = random.Random(f"prices {seed}")
    for index in range(count):
        numbers = _choose_numbers(rng)
        if rng.random() < OFFERS:
            text, equation = _write_offer(rng)
        else:
            template = rng.choice(_TEXTS["others"])
            text = template["text"]
            equation = template["equation"]
        words = {"name": rng.choice(STORY_NAMES["en"]), "thing": rng.choice(_TEXTS["things"])}
        text = text.format(**words, **numbers)
        problem = MathWordProblem(text, equation.format(**numbers), id=f"prices-{index}", language="en")
        answer = float(problem.equation_value)
        yield MathWordProblem(text, problem.equation, f"{answer:.10g}", problem.id, "en")


def _choose_numbers(rng: random.Random) -> dict[str, int | float]:
    """Return distinct numbers for the placeholders of a text; the price is a multiple of 1, 5 or 0.5."""
    step = rng.choice((1, 1, 5, 10, 0.5))
    price = rng.randrange(12, 120) * step
    percent = rng.choice(_PERCENTAGES)
    amount = rng.randrange(2, 10)
    num_tickets = rng.randrange(3, 12)
    if price == int(price):
        price = int(price)
    return {"price": price, "percent": percent, "amount": amount, "count": num_tickets, "sets": 3 * num_tickets}


def _write_offer(rng: random.Random) -> tuple[str, str]:
    """Return a text and an equation, with placeholders, about an offer for one thing."""
    offer = rng.choice(_TEXTS["offers"])
    amount = rng.choice(("paid", "paid", "saved"))  # that the question asks for
    price = rng.choice(_TEXTS["prices"])
    sentence = rng.choice(offer["texts"])
    question = rng.choice(_TEXTS["questions"][amount])
    return f"{price} {sentence} {question}", offer[amount]
