"""Files of the package that are not code are in the wheel."""

import configparser
from pathlib import Path


ROOT = Path(__file__).parents[2]


def test_every_file_is_code_or_package_data():
    setup = configparser.ConfigParser()
    setup.read(ROOT / "setup.cfg", encoding="utf-8")
    package = ROOT / "hf_mwp"
    included = set(package.rglob("*.py"))
    for pattern in setup["options.package_data"]["hf_mwp"].split():
        included |= set(package.glob(pattern))
    files = {path for path in package.rglob("*") if path.is_file() and "__pycache__" not in path.parts}
    assert not files - included
