import pytest

from hf_mwp import DistillationConfig


@pytest.mark.parametrize(
    ("mapping", "message"),
    [
        ("foo;bar", "'uniform', 'alternating', 'first', 'last'.*'foo;bar'"),
        ([[1, 4], [2]], "pairs"),
        ([1, 4], r"`layer_mapping\[0\]` must be a list of whole numbers, got int 1"),
        (None, "`mapping` must be .*, got None"),
        (5, "`layer_mapping` must be .*, got int 5"),
    ],
)
def test_an_impossible_layer_mapping_is_named(mapping, message, tmp_path):
    with pytest.raises((TypeError, ValueError), match=message):
        DistillationConfig(str(tmp_path), layer_mapping=mapping)


@pytest.mark.parametrize("mapping", ["uniform", "first", "last", "1:4,2:8,3:12", [[1, 4], [0, 0]]])
def test_layer_mappings_are_unchanged(mapping, tmp_path):
    assert DistillationConfig(str(tmp_path), layer_mapping=mapping).layer_mapping == mapping


def test_a_folder_of_caches_needs_an_answer_on_caching(tmp_path):
    with pytest.raises(ValueError, match="`teacher_cache_dir`.*`cache_teacher_outputs`"):
        DistillationConfig(str(tmp_path), teacher_cache_dir="cache")
    # A recipe may turn the cache off whose folder it sets elsewhere.
    for cached in (True, False):
        config = DistillationConfig(str(tmp_path), teacher_cache_dir="cache", cache_teacher_outputs=cached)
        assert config.cache_teacher_outputs is cached
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
def test_impossible_weights_of_layers_are_named(weights, message, tmp_path):
    with pytest.raises((TypeError, ValueError), match=message):
        DistillationConfig(str(tmp_path), hidden_weights=weights)


def test_weights_of_layers_may_be_whole_numbers(tmp_path):
    assert DistillationConfig(str(tmp_path), hidden_weights=[1, 0.9, 0]).hidden_weights == [1, 0.9, 0]
