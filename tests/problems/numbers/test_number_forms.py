"""The tables of the guide "Numbers in texts", and the time that the forms take."""

import html
import re
from fractions import Fraction
from pathlib import Path

import pytest

from hf_mwp.problems import answer_value, mask_numbers


GUIDE = Path(__file__).parents[3] / "docs/pages/guides/numbers.md"


def tables():
    """The rows of each table in the guide, with the heading before it."""
    section, rows = "", []
    for line in GUIDE.read_text(encoding="utf-8").splitlines():
        if line.startswith("#"):
            section = line
        elif line.startswith("|"):
            cells = [html.unescape(cell.strip()) for cell in line.strip().strip("|").split("|")]
            rows.append((section, cells))
    return rows


def texts(section):
    found = [cells[-2:] for name, cells in tables() if name == section]
    return [row for row in found if row[0] not in ("text", "---", "answer")]


def written_plainly(text, language, reading="plain"):
    """The text with each number as its literal."""
    masked = mask_numbers(text, language, number_reading=reading)
    literals = [*(mention.literal for mention in masked.mentions), ""]
    return "".join(part for pair in zip(masked.shown_segments, literals, strict=True) for part in pair)


@pytest.mark.parametrize("section", ["## All languages", "## Chinese", "## English", "### Chinese, with `people`", "## Answers"])
def test_the_guide_has_each_table(section):
    assert len(texts(section)) > 3


@pytest.mark.parametrize("language", ["zh", "en"])
@pytest.mark.parametrize(("text", "plain"), texts("## All languages"))
def test_forms_of_all_languages(text, plain, language):
    if language == "zh" or "千米/秒" not in text:
        assert written_plainly(text, language) == plain


@pytest.mark.parametrize(("text", "plain"), texts("## Chinese"))
def test_chinese_forms(text, plain):
    assert written_plainly(text, "zh") == plain


@pytest.mark.parametrize(("text", "plain"), texts("## English"))
def test_english_forms(text, plain):
    assert written_plainly(text, "en") == plain


@pytest.mark.parametrize(("text", "plain"), texts("### Chinese, with `people`"))
def test_numerals_before_units(text, plain):
    assert written_plainly(text, "zh", "people") == plain


@pytest.mark.parametrize(("answer", "value"), texts("## Answers"))
def test_answers(answer, value):
    assert answer_value(answer) == (None if value == "none" else Fraction(value))
