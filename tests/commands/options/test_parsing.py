from dataclasses import dataclass, field

import pytest

from hf_mwp.commands.options.parsing import OptionParser, parse
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
    toy, other = parse("toy", "A toy.", [ToyArguments, OtherArguments], argv)
    return toy, other, option_values(toy, other)


@pytest.fixture
def yaml_file(tmp_path):
    def write(text):
        path = tmp_path / "toy.yaml"
        path.write_text(text, encoding="utf-8")
        return str(path)

    return write


def test_defaults():
    toy, other, values = read()
    assert (toy, other) == (ToyArguments(), OtherArguments())
    assert values == vars(ToyArguments()) | vars(OtherArguments())


def test_none_unsets_a_number_that_may_be_none(yaml_file):
    assert read("--limit", "none")[0].limit is None
    assert read("--config", yaml_file("limit: None"))[0].limit is None
    assert read("--name", "none")[0].name == "none"
    for flag in ("--count", "--weights"):
        with pytest.raises(UsageError, match=flag):
            read(flag, "none")


def test_no_without_quotes_is_a_choice(yaml_file):
    assert read("--config", yaml_file("mode: no"))[0].mode == "no"


def test_a_file_in_utf16(tmp_path):
    path = tmp_path / "toy.yaml"
    path.write_text("mode: fast\n", encoding="utf-16")
    assert read("--config", str(path))[0].mode == "fast"


def test_flags_win_over_the_file_and_the_file_over_defaults(yaml_file):
    path = yaml_file("rate: 1e-4\ncount: 5\nsize: 9\nweights: [1, 0.5]\nfields: {a: 1}\nlimit: null\nverbose: true\n")
    toy, other, _ = read("--config", path, "--count", "6", "--name=other")
    expected = ToyArguments(
        name="other", rate=1e-4, count=6, limit=None, weights=[1.0, 0.5], fields={"a": 1}, verbose=True
    )
    assert toy == expected
    assert other.size == 9


def test_every_field_is_a_flag_and_a_key(yaml_file):
    assert read("--config", yaml_file("mode: fast\n"))[0].mode == "fast"
    help_text = OptionParser("toy", "", [ToyArguments]).format_help()
    assert all(f"--{name}" in help_text for name in vars(ToyArguments()) if name != "problems")


def test_resolved_values_read_back(yaml_file, tmp_path):
    import yaml

    _, _, values = read("--rate", "0.25", "--weights", "1", "2", "--verbose")
    again = tmp_path / "again.yaml"
    again.write_text(yaml.safe_dump(values))
    assert read("--config", str(again))[2] == values


def test_a_switch_does_not_swallow_the_next_argument():
    toy = read("--verbose", "a problem")[0]
    assert toy.verbose and toy.problems == ["a problem"]
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
def test_mistakes_in_the_file_are_named(yaml_file, text, message):
    with pytest.raises(UsageError, match=message):
        read("--config", yaml_file(text))


def test_a_reference_in_a_file_of_options_is_text(yaml_file):
    assert read("--config", yaml_file("name: ${size}\n"))[0].name == "${size}"


def test_a_missing_file_is_named():
    with pytest.raises(UsageError, match="nowhere.yaml"):
        read("--config", "nowhere.yaml")


def test_unknown_flags_are_named():
    with pytest.raises(UsageError, match="'--cuont'.*'--count'"):
        read("--cuont", "1")


def test_what_a_dataclass_refuses_is_told():
    with pytest.raises(UsageError, match="toy: `count`.*-1"):
        read("--count=-1")
