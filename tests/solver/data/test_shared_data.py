"""The full data sets: what is kept, what is left out and why, what of the test splits is known from training."""

import pytest

from hf_mwp.solver.data import LOADERS, load_mwp_dataset
from hf_mwp.solver.data.file_contents import RecordReader


pytestmark = pytest.mark.shared_data

UNSOLVED = "unsolved_equation"


def load(shared_data, name, **options):
    _, report = load_mwp_dataset(name, shared_data, return_report=True, **options)
    assert report.damaged == 0
    return report.splits


@pytest.mark.parametrize(
    ("name", "folder"),
    [("math23k", "math23k"), ("asdiv_a", "asdiv"), pytest.param("gsm8k", "gsm8k", marks=pytest.mark.slow)],
)
def test_shipped_data_are_the_shared_ones(shared_data, repository, name, folder):
    loader = LOADERS[name]()
    scheme = next(iter(loader.split_schemes))
    ours = loader.read(RecordReader(repository / "examples" / "data" / folder), scheme, 0)
    theirs = loader.read(RecordReader(shared_data / folder), scheme, 0)
    assert ours.keys() == theirs.keys()
    for split, rows in theirs.items():
        plain = [[row | {"file": row["file"].removesuffix(".gz")} for row in each] for each in (ours[split], rows)]
        assert plain[0] == plain[1]


def test_ape210k(shared_data):
    splits = load(shared_data, "ape210k")
    assert {name: (part.read, part.kept, part.kept_with) for name, part in splits.items()} == {
        "validation": (5000, 5000, {"wrong_value": 1}),
        "test": (2500, 2500, {"wrong_value": 2}),
    }


def test_ape_clean(shared_data):
    assert load(shared_data, "ape_clean")["test"].kept_with == {"wrong_value": 2}
    listed = load(shared_data, "ape_clean", split_scheme="listed")["test"]
    assert (listed.read, listed.kept, listed.kept_with) == (1548, 1548, {})


def test_hmwp(shared_data):
    train, validation, test = load(shared_data, "hmwp").values()
    assert (train.read, validation.read, test.read) == (4392, 549, 550)
    assert train.dropped == {UNSOLVED: 3086, "system_of_equations": 1295, "several_unknowns": 10}
    assert (train.kept, validation.kept, test.kept) == (1, 355, 377)
    assert (validation.overlap, test.overlap) == (38, 32)


def test_cm17k(shared_data):
    part = load(shared_data, "cm17k")["validation"]
    assert (part.read, part.kept, part.dropped) == (1703, 1429, {"several_answers": 274})
    # 640 problems are arithmetic; 43 answers are rounded or wrong.
    assert part.kept_with == {UNSOLVED: 787, "wrong_value": 43, "several_unknowns": 1}


@pytest.mark.slow
def test_unbiasedmwp(shared_data):
    train, validation, test = load(shared_data, "unbiasedmwp").values()
    assert (train.read, train.kept, train.dropped) == (6976, 6865, {"no_context": 111})
    assert (validation.read, validation.kept, test.read, test.kept) == (800, 800, 829, 829)
    # The same context twice under two names.
    assert (validation.overlap, test.overlap) == (2, 8)
    options = {"extra_train": ["unbiasedmwp"], "extra_exclude": ["unbiasedmwp"]}
    _, report = load_mwp_dataset("math23k", shared_data, return_report=True, **options)
    assert report.extra["unbiasedmwp"].dropped["held_out_context"] > 100


def test_cmath_distractor(shared_data):
    part = load(shared_data, "cmath_distractor")["test"]
    assert (part.read, part.kept, part.kept_with) == (360, 360, {"no_equation": 360})


@pytest.mark.slow
def test_mawps(shared_data):
    overlaps = []
    for fold in range(5):
        train, test = load(shared_data, "mawps", fold=fold).values()
        assert train.read + test.read == 2372 and test.kept == test.read
        overlaps.append((test.overlap, test.read))
        unsolved = train.dropped[UNSOLVED] + test.kept_with[UNSOLVED]
        wrong = train.dropped["wrong_value"] + test.kept_with["wrong_value"]
        assert (unsolved, wrong) == (351, 17)
    assert overlaps == [(128, 474), (144, 474), (136, 474), (130, 474), (139, 476)]


@pytest.mark.slow
def test_mawps_single(shared_data):
    sizes = []
    for fold in range(5):
        train, test = load(shared_data, "mawps_single", fold=fold).values()
        sizes.append((test.read, test.overlap))
        wrong = train.dropped.get("wrong_value", 0) + test.kept_with.get("wrong_value", 0)
        assert (train.read + test.read, wrong) == (1987, 13)
    assert sizes == [(397, 140), (397, 141), (397, 128), (397, 118), (399, 122)]


@pytest.mark.slow
def test_dropping_overlap(shared_data):
    assert load(shared_data, "mawps", fold=0, drop_overlap="test")["test"].kept == 474 - 128
    splits = load(shared_data, "mawps", fold=0, drop_overlap="train")
    assert splits["test"].kept == 474 and splits["train"].dropped["overlap"] > 128


@pytest.mark.slow
def test_gsm8k(shared_data):
    train, test = load(shared_data, "gsm8k").values()
    assert (train.read, train.kept, test.read, test.kept) == (7473, 5704, 1319, 1319)
    assert train.dropped["unknown_number"] == 675 and train.dropped["ambiguous_steps"] == 414
    assert sum(train.dropped.values()) == 7473 - 5704 and test.overlap == 0
    assert load(shared_data, "gsm8k", split_scheme="expressed")["test"].kept == 1003
