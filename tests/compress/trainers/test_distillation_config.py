import pytest

from hf_mwp import DistillationConfig


@pytest.mark.parametrize(
    ("mapping", "message"),
    [
        ("foo;bar", "'uniform', 'alternating', 'first', 'last'.*'foo;bar'"),
        ("1:4:2,2:8", "pairs"),
        ("1:4,1:8", "layer 1 of the student twice"),
        ([[1, 4], [2]], "pairs"),
        ([], "empty.*`hidden_loss=None`"),
        ([1, 4], r"`layer_mapping\[0\]` must be a list of whole numbers, got int 1"),
        (None, "`mapping` must be .*, got None"),
        (5, "`layer_mapping` must be .*, got int 5"),
    ],
)
def test_a_layer_mapping_that_cannot_be_read(mapping, message, tmp_path):
    with pytest.raises((TypeError, ValueError), match=message):
        DistillationConfig(str(tmp_path), layer_mapping=mapping)


@pytest.mark.parametrize("mapping", ["uniform", "first", "last", "1:4,2:8,3:12", [[1, 4], [0, 0]]])
def test_layer_mappings(mapping, tmp_path):
    assert DistillationConfig(str(tmp_path), layer_mapping=mapping).layer_mapping == mapping


@pytest.mark.parametrize("option", [{"teacher_cache_dir": "cache"}])
def test_options_of_the_cache_need_it(option, tmp_path):
    with pytest.raises(ValueError, match=f"`{next(iter(option))}`.*`cache_teacher_outputs`"):
        DistillationConfig(str(tmp_path), **option)
    assert DistillationConfig(str(tmp_path), **option, cache_teacher_outputs=True).cache_teacher_outputs
    # A recipe may turn the cache off that it gives a place elsewhere.
    assert DistillationConfig(str(tmp_path), **option, cache_teacher_outputs=False).cache_teacher_outputs is False
    assert DistillationConfig(str(tmp_path)).cache_teacher_outputs is False


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ([1.0, -0.5], r"`hidden_weights` must be finite and not negative, got \[1.0, -0.5\]"),
        ("1,2", "`hidden_weights` must be a list of numbers or None, got '1,2'"),
        (5, "`hidden_weights` must be a list of numbers or None, got int 5"),
        ([1.0, "0.9"], r"`hidden_weights\[1\]` must be a number, got '0.9'"),
        ([float("nan")], r"`hidden_weights\[0\]` must be a number, got float nan"),
    ],
)
def test_weights_of_layers_are_a_list_of_numbers(weights, message, tmp_path):
    with pytest.raises((TypeError, ValueError), match=message):
        DistillationConfig(str(tmp_path), hidden_weights=weights)
    assert DistillationConfig(str(tmp_path), hidden_weights=[1, 0.9, 0]).hidden_weights == [1, 0.9, 0]
