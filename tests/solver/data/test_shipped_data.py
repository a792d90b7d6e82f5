"""The datasets of the repository as a whole."""

from collections import Counter
from pathlib import Path

import pytest

from hf_mwp import ExpressionError, ProblemError
from hf_mwp.solver.data import load_mwp_dataset, problem_from_row
from tests.solver.data.problem_files import ids_of


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
        if "__pycache__" not in path.parts and path.suffix not in (".py", ".md", ".typed"):
            names.add(path.name)
    words = {"keywords_en.yaml", "keywords_zh.yaml", "words_en.toml", "words_zh.toml", "features.toml"}
    words |= {"english_verbs.toml", "english_comparisons.toml", "english_prices.toml", "unit_conversion.toml"}
    assert names == words | {"plausibility.json", "page.html", "citations.bib"}


@pytest.mark.parametrize(
    ("name", "sizes", "shares"),
    [
        pytest.param("math23k", (16_213, 2317, 4632), (0.7, 0.1, 0.2), marks=pytest.mark.slow),
        ("asdiv_a", (975, 121, 122), (0.8, 0.1, 0.1)),
    ],
)
def test_stratified_splits_have_each_level_in_the_same_share(name, sizes, shares):
    dataset = load_mwp_dataset(name, split_scheme="stratified", keep_unusable=True)
    assert tuple(map(len, dataset.values())) == sizes
    ids = ids_of(dataset)
    assert len(set().union(*ids.values())) == sum(sizes)
    levels = []
    num_incomplete = 0
    for rows in dataset.values():
        counts = Counter()
        for row in rows:
            try:
                expression = problem_from_row(row).expression
                counts[expression.complexity()] += 1
            except (ExpressionError, ProblemError, AttributeError):
                continue
            num_incomplete += not all(leaf.is_slot for leaf in expression.leaves())
        levels.append(counts)
    # Nearly all numbers of the equations are found in the texts of ASDiv-A.
    assert name == "math23k" or num_incomplete == 2
    total = sum(levels, Counter())
    for counts, share in zip(levels, shares, strict=True):
        for level in total:
            assert abs(counts[level] - total[level] * share) <= 1
