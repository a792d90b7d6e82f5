import random
import re
from datetime import date

import pytest

from hf_mwp.runtime.augmentation.story_dates import COUNTED_ENDS, choose_dates


@pytest.mark.parametrize("counted_ends", COUNTED_ENDS)
def test_days_between_chinese_dates(counted_ends):
    rng = random.Random(0)
    for _ in range(100):
        dates = choose_dates(counted_ends, "zh", rng)
        month, day = map(int, re.fullmatch(r"(\d+)月(\d+)[日号]", dates.start).groups())
        last_month, last_day = re.fullmatch(r"(?:(\d+)月)?(\d+)[日号]", dates.end).groups()
        days = date(2025, int(last_month or month), int(last_day)) - date(2025, month, day)
        assert dates.num_days == days.days + COUNTED_ENDS[counted_ends] > 0


def test_english_dates_are_written_in_three_ways():
    rng = random.Random(0)
    patterns = set()
    for _ in range(100):
        start = choose_dates("one", "en", rng).start
        patterns.add(re.sub(r"[A-Z][a-z]+", "M", re.sub(r"\d+", "1", re.sub("st|nd|rd|th", "th", start, count=1))))
    assert {"M 1", "1 M"} <= patterns
    ordinals = [choose_dates("one", "en", rng).start for _ in range(300)]
    ordinals = {start.split()[1] for start in ordinals if start[-1].isalpha() and start[0].isalpha()}
    assert {"1st", "2nd", "3rd", "4th", "11th", "22nd"} <= ordinals
