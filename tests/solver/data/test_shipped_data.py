"""The datasets of the repository as a whole."""

from collections import Counter
from pathlib import Path

import pytest

from hf_mwp import ExpressionError, ProblemError
from hf_mwp.solver.data import load_mwp_dataset, problem_from_row
from hf_mwp.solver.data.splits import split_by_complexity
from tests.solver.data.problem_files import ids_of
from tests.tiny import tiny_rows


def test_vocabulary_is_a_tokenizer(repository):
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(repository / "examples" / "data" / "vocab")
    assert len(tokenizer) == 21128
    assert tokenizer.tokenize("小明有ABC个Café") == ["小", "明", "有", "abc", "个", "cafe"]
    assert tokenizer("小明").input_ids == [101, 2207, 3209, 102]
    assert (tokenizer.pad_token_id, tokenizer.mask_token_id, tokenizer.model_max_length) == (0, 103, 512)


@pytest.mark.parametrize("folder", ["math23k", "asdiv", "mawps", "gsm8k", "vocab"])
def test_each_folder_states_licence_and_source(repository, folder):
    path = repository / "examples" / "data" / folder
    readme = (path / "README.md").read_text(encoding="utf-8")
    assert "Licence:" in readme
    assert "https://" in readme
    assert folder == "vocab" or (path / "LICENSE").is_file()


def test_no_data_goes_into_the_package():
    import hf_mwp

    package = Path(hf_mwp.__file__).parent
    names = set()
    for path in package.rglob("*.*"):
        if "__pycache__" not in path.parts and path.suffix not in (".py", ".pyi", ".md", ".typed"):
            names.add(path.name)
    words = {"keywords_en.yaml", "keywords_zh.yaml", "words_en.toml", "words_zh.toml", "features.toml"}
    words |= {
        "english_verbs.toml",
        "english_comparisons.toml",
        "english_prices.toml",
        "english_properties.toml",
        "casual_wording.toml",
        "clock_times.toml",
        "remainders.toml",
        "stories_en.toml",
        "stories_zh.toml",
    }
    words |= {"words.toml", "sentences_zh.toml", "units.toml"}
    page = {"page.html", "page.css", "page.js", "favicon.svg"}
    assert names == words | page | {"plausibility.json", "citations.bib"}


def check_levels(splits, shares):
    """Check that the splits have these shares of the equations of each level."""
    levels = []
    for rows in splits.values():
        counts = Counter()
        for row in rows:
            try:
                counts[problem_from_row(row).expression.complexity()] += 1
            except (ExpressionError, ProblemError, AttributeError):
                continue
        levels.append(counts)
    total = sum(levels, Counter())
    for counts, share in zip(levels, shares, strict=True):
        for level in total:
            assert abs(counts[level] - total[level] * share) <= 1


def test_each_level_is_split_in_the_same_shares():
    rows = tiny_rows(66)
    for row in rows[::9]:
        row["equation"] = "?"
    splits = split_by_complexity(rows, {"train": 8, "validation": 1, "test": 1})
    assert sum(map(len, splits.values())) == 66
    check_levels(splits, (0.8, 0.1, 0.1))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "sizes", "shares"),
    [("math23k", (16_213, 2317, 4632), (0.7, 0.1, 0.2)), ("asdiv_a", (975, 121, 122), (0.8, 0.1, 0.1))],
)
def test_stratified_splits(name, sizes, shares):
    dataset = load_mwp_dataset(name, split_scheme="stratified", keep_unusable=True)
    assert tuple(map(len, dataset.values())) == sizes
    ids = ids_of(dataset)
    assert len(set().union(*ids.values())) == sum(sizes)
    check_levels(dataset, shares)
