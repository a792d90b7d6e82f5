"""Units of length, weight, time, money and other measures, with their names and sizes."""

import tomllib
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path


@dataclass(frozen=True)
class UnitPair:
    """Two units of the same measure. Each has one or more names; in English, the plural comes first."""

    larger: tuple[str, ...]
    smaller: tuple[str, ...]
    factor: int  # number of smaller units in a larger one


@dataclass(frozen=True)
class Unit:
    """A unit, with the measure that it belongs to and its size in one unit of the measure, the same for all."""

    measure: int
    size: Fraction


@dataclass(frozen=True)
class Quantity:
    """A number with a unit behind it."""

    index: int  # of the mention
    name: str  # of the unit, as written
    end: int  # offset after the unit


def _read_pairs(rows: list[dict]) -> list[UnitPair]:
    pairs = []
    for row in rows:
        pairs.append(UnitPair(tuple(row["larger"]), tuple(row["smaller"]), row["factor"]))
    return pairs


def _find_units(pairs: list[UnitPair]) -> dict[str, Unit]:
    """Return the units by name. A pair without a unit of an earlier pair begins a new measure."""
    units: dict[str, Unit] = {}
    num_measures = 0
    for pair in pairs:
        larger = units.get(pair.larger[0])
        smaller = units.get(pair.smaller[0])
        if larger is None and smaller is None:
            smaller = Unit(num_measures, Fraction(1))
            num_measures += 1
        if larger is None:
            larger = Unit(smaller.measure, smaller.size * pair.factor)
        elif smaller is None:
            smaller = Unit(larger.measure, larger.size / pair.factor)
        units.update(dict.fromkeys(pair.larger, larger))
        units.update(dict.fromkeys(pair.smaller, smaller))
    return units


def _add_unit(language: str, name: str, factor: Fraction | int = 1, smaller: str | None = None) -> None:
    """Add a unit that is read but not written in other texts: of `factor` other units, or of a new measure."""
    units = UNITS[language]
    if smaller is None:
        units[name] = Unit(1 + max(unit.measure for unit in units.values()), Fraction(1))
    else:
        units[name] = Unit(units[smaller].measure, factor * units[smaller].size)


def _read_names(language: str) -> dict[str, str]:
    """Add other names of the units, and return the name that is written for each of them."""
    written = {}
    for name, other_names in _TABLES["names"][language].items():
        for other_name in other_names:
            UNITS[language][other_name] = UNITS[language][name]
            written[other_name] = name
    return written


def unit_names(language: str) -> str:
    """Return a pattern of the names of all units of a language, the longest first."""
    return "|".join(sorted(UNITS[language], key=len, reverse=True))


_TABLES = tomllib.loads(Path(__file__).with_name("units.toml").read_text(encoding="utf-8"))
UNIT_PAIRS = {language: _read_pairs(_TABLES[language]) for language in ("zh", "en")}
UNITS = {language: _find_units(pairs) for language, pairs in UNIT_PAIRS.items()}
_add_unit("en", "ounces")
_add_unit("en", "pounds", 16, "ounces")
_add_unit("en", "decimeters", 10, "centimeters")
_add_unit("en", "millimeters", Fraction(1, 10), "centimeters")
_add_unit("en", "milligrams", Fraction(1, 1000), "grams")
_add_unit("zh", "百米", 100, "米")
_add_unit("zh", "个月")
_add_unit("zh", "岁", 12, "个月")
_add_unit("zh", "斤", 500, "克")
_add_unit("zh", "两", 50, "克")
WRITTEN_NAMES = {language: _read_names(language) for language in UNITS}
