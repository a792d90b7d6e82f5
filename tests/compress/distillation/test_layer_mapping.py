import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hf_mwp.compress.distillation import map_layers


PAIRS = [(1, 4), (2, 6), (3, 12)]


@pytest.mark.parametrize(
    ("mapping", "student_layers", "teacher_layers", "expected"),
    [
        # The paper's mapping.
        ("uniform", 3, 12, [(1, 4), (2, 8), (3, 12)]),
        # Layers that do not divide are rounded up; the second as the authors of CKA map BERT to eight layers.
        ("uniform", 2, 3, [(1, 2), (2, 3)]),
        ("uniform", 8, 12, [(1, 2), (2, 3), (3, 5), (4, 6), (5, 8), (6, 9), (7, 11), (8, 12)]),
        ("alternating", 3, 6, [(0, 0), (1, 2), (2, 4), (3, 6)]),
        ("first", 3, 12, [(1, 1), (2, 2), (3, 3)]),
        ("last", 3, 12, [(1, 10), (2, 11), (3, 12)]),
        ([[1, 4], [2, 6], [3, 12]], 3, 12, PAIRS),
        (((1, 4), (2, 6), (3, 12)), 3, 12, PAIRS),
        ("1:4,2:6,3:12", 3, 12, PAIRS),
        # Pairs may leave out layers and name the embeddings.
        ("0:0,3:12", 3, 12, [(0, 0), (3, 12)]),
    ],
)
def test_layers_are_mapped(mapping, student_layers, teacher_layers, expected):
    assert map_layers(mapping, student_layers, teacher_layers) == expected


@settings(max_examples=40)
@given(st.integers(1, 6), st.integers(0, 12), st.sampled_from(["uniform", "first", "last"]))
def test_mappings_rise_and_stay_within_the_teacher(num_student_layers, difference, name):
    num_teacher_layers = num_student_layers + difference
    pairs = map_layers(name, num_student_layers, num_teacher_layers)
    assert [layer for layer, _ in pairs] == list(range(1, num_student_layers + 1))
    teacher_layers = [layer for _, layer in pairs]
    assert teacher_layers == sorted(set(teacher_layers))
    assert 1 <= teacher_layers[0]
    assert teacher_layers[-1] <= num_teacher_layers
    if name != "first":
        assert teacher_layers[-1] == num_teacher_layers


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
