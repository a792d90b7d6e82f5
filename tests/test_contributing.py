"""CONTRIBUTING.md says of the package what is so."""

import re
from pathlib import Path

from tests.test_imports import BOXES


def test_the_table_has_all_boxes():
    text = (Path(__file__).parents[1] / "CONTRIBUTING.md").read_text(encoding="utf-8")
    boxes = re.findall(r"^\| `(\w+)/` \|", text, re.MULTILINE)
    assert sorted(boxes) == sorted(BOXES)
