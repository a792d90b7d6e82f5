"""The full datasets: the problems that are kept, those that are left out and why, and the overlap of the splits."""

import pytest

from hf_mwp.solver.data import LOADERS
from hf_mwp.solver.data.file_contents import RecordReader
from tests.solver.data.problem_files import load


pytestmark = pytest.mark.shared_data


@pytest.mark.parametrize(
    ("name", "folder"),
    [
        ("asdiv_a", "asdiv"),
        pytest.param("math23k", "math23k", marks=pytest.mark.slow),
        pytest.param("gsm8k", "gsm8k", marks=pytest.mark.slow),
    ],
)
def test_shipped_data_are_the_shared_ones(shared_data, repository, name, folder):
    loader = LOADERS[name]()
    scheme = next(iter(loader.split_schemes))
    shipped = loader.read(RecordReader(repository / "examples" / "data" / folder), scheme, 0)
    shared = loader.read(RecordReader(shared_data / folder), scheme, 0)
    for rows in (*shipped.values(), *shared.values()):
        for row in rows:
            row["file"] = row["file"].removesuffix(".gz")
    assert shipped == shared


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "options", "expected"),
    [
        (
            "ape210k",
            {},
            {
                "validation": {"read": 5000, "kept": 5000, "kept_with": {"wrong_value": 1}},
                "test": {"read": 2500, "kept": 2500, "kept_with": {"wrong_value": 2}},
            },
        ),
        ("ape_clean", {}, {"test": {"kept_with": {"wrong_value": 2}}}),
        ("ape_clean", {"split_scheme": "listed"}, {"test": {"read": 1548, "kept": 1548, "kept_with": {}}}),
        (
            "hmwp",
            {},
            {
                "train": {
                    "read": 4392,
                    "kept": 1,
                    "dropped": {"unsolved_equation": 3086, "system_of_equations": 1295, "several_unknowns": 10},
                },
                "validation": {"read": 549, "kept": 355, "overlap": 38},
                "test": {"read": 550, "kept": 377, "overlap": 32},
            },
        ),
        # 640 problems are arithmetic; 43 answers are rounded or wrong.
        (
            "cm17k",
            {},
            {
                "validation": {
                    "read": 1703,
                    "kept": 1429,
                    "dropped": {"several_answers": 274},
                    "kept_with": {"unsolved_equation": 787, "wrong_value": 43, "several_unknowns": 1},
                }
            },
        ),
        ("cmath_distractor", {}, {"test": {"read": 360, "kept": 360, "kept_with": {"no_equation": 360}}}),
        # The same context twice under two names.
        (
            "unbiasedmwp",
            {},
            {
                "train": {"read": 6976, "kept": 6865, "dropped": {"no_context": 111}},
                "validation": {"read": 800, "kept": 800, "overlap": 2},
                "test": {"read": 829, "kept": 829, "overlap": 8},
            },
        ),
        ("gsm8k", {"split_scheme": "expressed"}, {"test": {"kept": 1003}}),
        (
            "gsm8k",
            {},
            {"train": {"read": 7473, "kept": 5704}, "test": {"read": 1319, "kept": 1319, "overlap": 0}},
        ),
        (
            "mawps",
            {"fold": 4},
            {"test": {"read": 476, "overlap": 139, "kept_with": {"unsolved_equation": 63, "wrong_value": 3}}},
        ),
        ("mawps_single", {"fold": 4}, {"test": {"read": 399, "overlap": 122}}),
        ("asdiv_a", {"fold": 4}, {"train": {"kept": 934, "dropped": {"wrong_value": 18}}, "test": {"kept": 266}}),
        # Without the rules for punctuation and numerals, the overlaps would be 63 and 68.
        (
            "math23k",
            {"drop_overlap": "test"},
            {
                "train": {"read": 21162, "dropped": {"wrong_value": 3, "unreadable_equation": 1}},
                "validation": {"kept": 1000, "overlap": 86, "with_constants": 242},
                "test": {"read": 1000, "kept": 922, "overlap": 78, "with_constants": 241, "kept_with": {}},
            },
        ),
    ],
)
def test_reports(shared_data, name, options, expected):
    _, report = load(name, shared_data, **options)
    assert report.damaged == 0
    for split, counts in expected.items():
        for field, value in counts.items():
            assert getattr(report.splits[split], field) == value, field


@pytest.mark.slow
def test_contexts_of_unbiasedmwp_that_begin_a_problem_of_math23k_are_not_added(shared_data):
    options = {"extra_train": ["unbiasedmwp"], "extra_exclude": ["unbiasedmwp"]}
    _, report = load("math23k", shared_data, **options)
    assert report.extra["unbiasedmwp"].dropped["held_out_context"] > 100
