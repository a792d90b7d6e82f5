from dataclasses import dataclass, field

import pytest
import yaml

from hf_mwp.commands.options.parsing import parse
from hf_mwp.utils.option import option, option_values
from hf_mwp.utils.usage_error import UsageError


@dataclass
class ToyArguments:
    name: str = field(default="solver", metadata={"help": "A name."})
    rate: float = field(default=0.5, metadata={"help": "A rate, in %%."})
    count: int = field(default=3, metadata={"help": "A number."})
    limit: int | None = field(default=7, metadata={"help": "A limit, or none."})
    weights: list[float] | None = field(default=None, metadata={"help": "Weights."})
    ratios: list[float] = option([0.2], "Ratios.")
    fields: dict | str | None = field(default=None, metadata={"help": "A mapping."})
    mode: str = field(default="slow", metadata={"help": "A mode.", "choices": ["slow", "fast", "no"]})
    problems: list[str] = option([], "Problems.", positional=True)
    verbose: bool = field(default=False, metadata={"help": "Say more."})

    def __post_init__(self):
        if self.count < 0:
            raise ValueError(f"`count` must not be negative, not {self.count}.")


@dataclass
class OtherArguments:
    size: int = field(default=1, metadata={"help": "A size."})


def read(*argv):
    return parse("toy", "A toy.", [ToyArguments, OtherArguments], argv)


@pytest.fixture
def read_yaml(tmp_path):
    """Function that reads options from a file with this text, and from flags."""

    def read_text(text, *argv, encoding="utf-8"):
        path = tmp_path / "toy.yaml"
        path.write_text(text, encoding=encoding)
        return read("--config", str(path), *argv)

    return read_text


def test_defaults():
    assert read() == [ToyArguments(), OtherArguments()]
    assert option_values(*read()) == vars(ToyArguments()) | vars(OtherArguments())


def test_none_unsets_a_number_that_may_be_none(read_yaml):
    assert read("--limit", "none")[0].limit is None
    assert read_yaml("limit: None")[0].limit is None
    assert read("--name", "none")[0].name == "none"
    for flag in ("--count", "--weights"):
        with pytest.raises(UsageError, match=flag):
            read(flag, "none")


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("mode: no", {"mode": "no"}),
        # A reference in a file of options is text.
        ("name: ${size}", {"name": "${size}"}),
        ("rate: 1e-4\nweights: [1, 0.5]", {"rate": 1e-4, "weights": [1.0, 0.5]}),
        ("fields: {a: 1}\nlimit: null\nverbose: true", {"fields": {"a": 1}, "limit": None, "verbose": True}),
    ],
)
def test_values_of_a_file_are_read(read_yaml, text, values):
    assert read_yaml(text)[0] == ToyArguments(**values)


def test_file_in_utf_16_is_read(read_yaml):
    assert read_yaml("mode: fast\n", encoding="utf-16")[0].mode == "fast"


def test_flags_override_the_file_and_the_file_overrides_defaults(read_yaml):
    toy, other = read_yaml("rate: 0.1\ncount: 5\nsize: 9\n", "--count", "6", "--name=other")
    assert toy == ToyArguments(name="other", rate=0.1, count=6)
    assert other.size == 9


def test_resolved_values_can_be_read_again(read_yaml):
    values = option_values(*read("--rate", "0.25", "--weights", "1", "2", "--verbose"))
    assert option_values(*read_yaml(yaml.safe_dump(values))) == values


def test_switch_does_not_take_the_next_argument_as_its_value():
    toy = read("--verbose", "a problem")[0]
    assert toy.verbose
    assert toy.problems == ["a problem"]
    assert not read("--verbose", "false")[0].verbose


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("ratte: 1\n", "toy.yaml: .*'ratte'.*'rate'"),
        ("count: 1\ncount: 2\n", "toy.yaml(?s:.*)duplicate key count"),
        ("count: many\n", "toy.yaml: .*'count': .*int.*'many'"),
        ("count: 1.5\n", r"'count': .*int.*1\.5"),
        ("count: [1, 2]\n", "'count': .*list"),
        ("count: null\n", "'count': .*value"),
        ("ratios: []\n", "'ratios': .*value"),
        ("mode: [slow, fast]\n", "'mode': .*text.*'slow', 'fast'.*quotes"),
        ("mode: quick\n", "'mode': .*'quick'.*slow.*fast"),
        ("weights: [1, x]\n", "'weights': .*float.*'x'"),
        ("- 1\n", "toy.yaml .*mapping.*list"),
        ("a: [\n", "toy.yaml .*YAML"),
        ("config: x.yaml\n", "toy.yaml: .*'config'"),
        ("recipe: Two stages\nstages: {teacher: {command: train}}\n", "toy.yaml is a recipe.*`hf-mwp run .*toy.yaml`"),
        ("base: other.yaml\n", "toy.yaml is a recipe"),
        ("name: ${oc.env:HOME}\n", r"toy\.yaml, name: .*oc\.env:HOME.*resolver"),
        ("fields: {a: ['${oc.env:HOME}']}\n", r"toy\.yaml, fields\.a\.0: .*resolver"),
    ],
)
def test_mistakes_in_the_file_are_named(read_yaml, text, message):
    with pytest.raises(UsageError, match=message):
        read_yaml(text)


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["--config", "nowhere.yaml"], "nowhere.yaml"),
        (["--cuont", "1"], "'--cuont'.*'--count'"),
        (["--count=-1"], "toy: `count`.*-1"),
    ],
)
def test_mistakes_in_flags_are_named(argv, message):
    with pytest.raises(UsageError, match=message):
        read(*argv)
