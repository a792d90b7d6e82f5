import random
from pathlib import Path

import pytest

from hf_mwp.runtime.augmentation import story_kinds
from hf_mwp.runtime.augmentation.story_kinds import load_story_kinds
from hf_mwp.runtime.problems import write_stories
from tests.slow_parameters import slow_after


LANGUAGES = ["en", "zh"]
OWN_KINDS = """
[[kinds]]
name = "rows"
texts = ["{name} plants {rows} rows of {count} {plants}."]
questions = ["How many {plants} does {name} plant?"]
equation = "{rows}*{count}"
numbers.rows = "2..9"
numbers.count = [10, 12]
words.plants = ["tulips"]
"""


def kinds_of(language):
    return load_story_kinds(Path(story_kinds.__file__).with_name(f"stories_{language}.toml"))


@pytest.mark.parametrize("count", slow_after(1, [1, 3]))
@pytest.mark.parametrize("language", LANGUAGES)
def test_every_kind_has_problems(language, count):
    rng = random.Random(0)
    for kind in kinds_of(language):
        num_problems = 0
        for _ in range(100):
            problem = kind.try_to_write("", language, rng)
            if problem is not None:
                num_problems += 1
                assert "{" not in problem.text
                assert problem.agrees(1e-9)
            if num_problems == count:
                break
        assert num_problems > 0, kind.name


@pytest.mark.parametrize("language", LANGUAGES)
def test_names_of_kinds_differ(language):
    names = [kind.name for kind in kinds_of(language)]
    assert len(names) > 200
    assert len(set(names)) == len(names)


def test_own_kinds(tmp_path):
    file = tmp_path / "kinds.toml"
    file.write_text(OWN_KINDS)
    for problem in write_stories(5, kinds_file=file):
        rows, count = problem.values
        assert "rows of" in problem.text
        assert problem.answer == str(rows * count)


def test_kind_without_problems(tmp_path):
    file = tmp_path / "kinds.toml"
    file.write_text(OWN_KINDS.replace("{rows}*{count}", "{rows}-{count}"))
    with pytest.raises(ValueError, match="kinds.toml: Kind 'rows' gave no problem in 1,000 tries"):
        list(write_stories(1, kinds_file=file))


def test_seed_decides():
    first = list(write_stories(20, 0))
    assert first == list(write_stories(20, 0))
    assert first != list(write_stories(20, 1))


def test_other_languages_are_refused():
    with pytest.raises(ValueError, match="`language` must be one of en, zh, not 'fr'"):
        list(write_stories(1, language="fr"))
