import re
from itertools import chain

import pytest
from hypothesis import given, settings, strategies

from hf_mwp.runtime.numbers.masked_text import _FORMS


FORMS = {form.pattern.pattern: form for form in chain.from_iterable(_FORMS.values()) if form.at_digits}
# Digits with what is before, between and behind them in these forms.
PIECES = strategies.sampled_from(
    "1 7 12 250 2024 , . : ' ’ {,} € $ x10⁵ st nd h am p.m. kg D K -way -Eleven -year-old boy week the bus".split()
    + [" ", " Baker Street ", " euros", "\u2009", "\u200b", "\\,"]
)
TEXTS = strategies.lists(PIECES, max_size=12).map("".join)


@pytest.mark.parametrize("form", FORMS.values(), ids=lambda form: form.name)
@settings(max_examples=20, deadline=None)
@given(text=TEXTS)
def test_pattern_tried_at_digits_equals_pattern_tried_everywhere(form, text):
    digit_starts = [digits.start() for digits in re.finditer(r"\d+", text)]
    candidates = [match.span() for match in form._candidates(text, digit_starts)]
    assert candidates == [match.span() for match in form.pattern.finditer(text)]
