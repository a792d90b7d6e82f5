"""CONTRIBUTING.md says of the package what is so."""

import re
from pathlib import Path

from tests.test_imports import LAYOUT, PACKAGE


def test_the_table_has_all_folders_in_the_order_of_imports():
    text = (Path(__file__).parents[1] / "CONTRIBUTING.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (`[^|]*) \|", text, re.MULTILINE)
    folders = [folder for row in rows for folder in re.findall(r"`(\w+)/`", row)]
    assert folders == [name for name in LAYOUT if (PACKAGE / name).is_dir()]
