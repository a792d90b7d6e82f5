"""The data sets of the repository as a whole."""

import contextlib
import gzip
import json
from collections import Counter
from pathlib import Path

import pytest

from hf_mwp import ExpressionError, ProblemError
from hf_mwp.solver.data import load_mwp_dataset, problem_from_row


@pytest.fixture(scope="module")
def math23k():
    return load_mwp_dataset("math23k", drop_overlap="test", return_report=True)


def test_math23k(math23k):
    dataset, report = math23k
    assert {split: (part.read, part.kept) for split, part in report.splits.items()} == {
        "train": (21162, 21158),
        "validation": (1000, 1000),
        "test": (1000, 922),
    }
    train, validation, test = report.splits.values()
    assert train.dropped == {"wrong_value": 3, "unreadable_equation": 1}
    assert validation.kept_with == {"wrong_value": 1, "unreadable_equation": 1}
    assert (test.dropped, test.kept_with) == ({"overlap": 78}, {})
    faulty = [example for split in (train, validation) for part in split.examples.values() for example in part]
    assert sorted(example.split("id ")[1].split(":")[0] for example in faulty) == [
        "10431",
        "12495",
        "17520",
        "22085",
        "9718",
        "9761",
    ]
    # To the letter, numbers masked, it would be 63 and 68.
    assert (validation.overlap, test.overlap) == (86, 78)
    assert (train.with_constants, validation.with_constants, test.with_constants) == (5023, 242, 241)
    assert report.damaged == 0


def test_math23k_ids_of_the_other_splits(repository):
    folder = repository / "examples" / "data" / "math23k"
    ids = set()
    for part in ("train", "valid", "test"):
        with gzip.open(folder / f"{part}.jsonl.gz", "rt", encoding="utf-8") as file:
            ids |= {json.loads(line)["id"] for line in file}
    assert ids == {str(number) for number in range(1, 23163)}
    with gzip.open(folder / "five_fold_ids.tsv.gz", "rt") as file:
        folds = dict(line.split() for line in file.read().splitlines()[1:])
    assert ids - set(folds) == {"10004", "17520"} and not set(folds) - ids
    assert sorted(set(folds.values())) == ["0", "1", "2", "3", "4"]
    lists = [set((folder / f"mwptoolkit_split_{part}_ids.txt").read_text().split()) for part in ("valid", "test")]
    assert [len(part) for part in lists] == [2316, 2317]
    assert not lists[0] & lists[1] and lists[0] | lists[1] < ids


@pytest.mark.slow
def test_asdiv_a_folds():
    seen, overlaps, sizes = [], [], []
    for fold in range(5):
        dataset, report = load_mwp_dataset("asdiv_a", fold=fold, return_report=True)
        train, test = report.splits["train"], report.splits["test"]
        assert train.read + test.read == 1218
        assert (train.dropped.get("wrong_value", 0)) + test.kept_with.get("wrong_value", 0) == 29
        assert set(train.dropped) <= {"wrong_value"}
        sizes.append(test.kept)
        overlaps.append(test.overlap)
        seen += dataset["test"]["id"]
    assert sizes == [238, 238, 238, 238, 266]
    assert overlaps[0] == 0
    assert len(set(seen)) == 1218


def test_every_number_of_asdiv_a_is_found():
    dataset = load_mwp_dataset("asdiv_a", keep_unusable=True)
    problems = [problem_from_row(row) for part in dataset.values() for row in part]
    lacking = [problem.id for problem in problems if not all(leaf.is_slot for leaf in problem.expression.leaves())]
    assert len(problems) == 1218 and len(lacking) == 2


def test_vocabulary_is_a_tokenizer(repository):
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(repository / "examples" / "data" / "vocab")
    assert tokenizer.is_fast and len(tokenizer) == 21128
    assert tokenizer.tokenize("小明有ABC个Café") == ["小", "明", "有", "abc", "个", "cafe"]
    assert tokenizer("小明").input_ids == [101, 2207, 3209, 102]
    assert (tokenizer.pad_token_id, tokenizer.mask_token_id, tokenizer.model_max_length) == (0, 103, 512)
    encoded = tokenizer("有4个", return_offsets_mapping=True)
    assert encoded["offset_mapping"] == [(0, 0), (0, 1), (1, 2), (2, 3), (0, 0)]


@pytest.mark.parametrize("folder", ["math23k", "asdiv", "mawps", "gsm8k", "vocab"])
def test_each_folder_states_licence_and_source(repository, folder):
    path = repository / "examples" / "data" / folder
    readme = (path / "README.md").read_text(encoding="utf-8")
    assert "Licence:" in readme and "https://" in readme
    assert folder == "vocab" or (path / "LICENSE").is_file()


def test_no_data_goes_into_the_package():
    import hf_mwp

    package = Path(hf_mwp.__file__).parent
    files = [path for path in package.rglob("*") if path.is_file() and "__pycache__" not in path.parts]
    others = {path.name for path in files if path.suffix not in (".py", ".md", ".typed")}
    words = {"keywords_en.yaml", "keywords_zh.yaml", "words_en.toml", "words_zh.toml", "features.toml"}
    words |= {"english_verbs.toml", "english_comparisons.toml", "english_prices.toml", "units.toml"}
    assert others == words | {"plausibility.json", "page.html", "citations.bib"}


@pytest.mark.parametrize(
    ("name", "sizes", "shares"),
    [
        pytest.param("math23k", (16_213, 2317, 4632), (7, 1, 2), marks=pytest.mark.slow),
        ("asdiv_a", (975, 121, 122), (8, 1, 1)),
    ],
)
def test_stratified_splits_have_each_level_in_the_same_share(name, sizes, shares):
    dataset, report = load_mwp_dataset(name, split_scheme="stratified", keep_unusable=True, return_report=True)
    assert report.split_scheme == "stratified" and tuple(len(part) for part in dataset.values()) == sizes
    ids = [set(part["id"]) for part in dataset.values()]
    assert len(set.union(*ids)) == sum(sizes)
    levels = []
    for part in dataset.values():
        counts = Counter()
        for row in part:
            with contextlib.suppress(ExpressionError, ProblemError, AttributeError):
                counts[problem_from_row(row).expression.complexity()] += 1
        levels.append(counts)
    for level, total in sum(levels, Counter()).items():
        for counts, share in zip(levels, shares, strict=True):
            assert abs(counts[level] - total * share / sum(shares)) <= 1
