import pytest
from hypothesis import given
from hypothesis import strategies as st

from hf_mwp.compress.distillation import map_layers


def test_the_papers_mapping():
    assert map_layers("uniform", 3, 12) == [(1, 4), (2, 8), (3, 12)]


def test_layers_that_do_not_divide_are_rounded_up():
    assert map_layers("uniform", 2, 3) == [(1, 2), (2, 3)]
    # As the authors of CKA map BERT to eight layers.
    eight = [(1, 2), (2, 3), (3, 5), (4, 6), (5, 8), (6, 9), (7, 11), (8, 12)]
    assert map_layers("uniform", 8, 12) == eight


def test_alternating_layers_have_the_embeddings_before_them():
    assert map_layers("alternating", 3, 6) == [(0, 0), (1, 2), (2, 4), (3, 6)]


def test_first_and_last():
    assert map_layers("first", 3, 12) == [(1, 1), (2, 2), (3, 3)]
    assert map_layers("last", 3, 12) == [(1, 10), (2, 11), (3, 12)]


@pytest.mark.parametrize("pairs", [[[1, 4], [2, 6], [3, 12]], "1:4,2:6,3:12", ((1, 4), (2, 6), (3, 12))])
def test_explicit_pairs(pairs):
    assert map_layers(pairs, 3, 12) == [(1, 4), (2, 6), (3, 12)]


def test_pairs_may_leave_out_layers_and_name_the_embeddings():
    assert map_layers("0:0,3:12", 3, 12) == [(0, 0), (3, 12)]


@given(st.integers(1, 6), st.integers(0, 12), st.sampled_from(["uniform", "first", "last"]))
def test_mappings_rise_and_stay_within_the_teacher(student, more, name):
    pairs = map_layers(name, student, student + more)
    assert [layer for layer, _ in pairs] == list(range(1, student + 1))
    teacher = [layer for _, layer in pairs]
    assert teacher == sorted(set(teacher)) and 1 <= teacher[0] and teacher[-1] <= student + more
    if name != "first":
        assert teacher[-1] == student + more


@pytest.mark.parametrize(
    ("mapping", "student", "teacher", "message"),
    [
        ("alternating", 4, 3, r'"alternating".*\b3 .*\b4\b'),
        ("uniform", 6, 3, r'"uniform".*\b3 .*\b6\b'),
        ("last", 6, 3, r'"last".*\b3 .*\b6\b'),
        ("every", 3, 12, "'uniform', 'alternating', 'first', 'last'.*'every'"),
        ("1:a", 3, 12, "'1:a'"),
        ([[1, 13]], 3, 12, r"layer 13 of the teacher.* 1 to 12"),
        ([[4, 12]], 3, 12, "layer 4 of the student"),
        ([[-1, 12]], 3, 12, "layer -1 of the student"),
        ([[1, 4], [1, 8]], 3, 12, "layer 1 of the student twice"),
        ([[1, 4, 5]], 3, 12, r"pairs.*\[1, 4, 5\]"),
        ([], 3, 12, "empty.*`hidden_loss=None`"),
    ],
)
def test_wrong_mappings_are_named(mapping, student, teacher, message):
    with pytest.raises(ValueError, match=message):
        map_layers(mapping, student, teacher)
