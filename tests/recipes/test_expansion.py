import pytest

from hf_mwp.recipes import Recipe, RecipeError
from hf_mwp.recipes.expansion import expanded_length


def doubling(first: str, reference: str) -> dict[str, str]:
    """Twelve texts, each of which refers to the next one six times."""
    return {f"v{place}": reference.format(f"v{place + 1}") * 6 for place in range(12)} | {"v12": first}


def test_a_text_is_counted_with_what_it_refers_to():
    variables = {"a": "12345", "b": "${a}${a}", "m": {"k": "123", "l": ["1", "${b}"]}, "n": 7}
    assert expanded_length("no reference", variables) == len("no reference")
    assert expanded_length("${a}", variables) == len("${a}") + 5
    assert expanded_length("${b}", variables) == len("${b}") + len("${a}${a}") + 2 * 5
    assert expanded_length(["${m.k}", {"x": "${n}"}], variables) == len("${m.k}") + 3 + len("${n}")
    assert expanded_length("${m.l[0]}", variables) == len("${m.l[0]}") + 1
    # All of a mapping.
    assert expanded_length("${m}", variables) == len("${m}") + 3 + 1 + expanded_length("${b}", variables)


def test_relative_references_and_circles():
    assert expanded_length({"a": "${.b}${.b}", "b": "12345"}, {}) == len("${.b}${.b}") + 3 * 5
    assert expanded_length({"a": {"c": "${..b}"}, "b": "12345"}, {}) == len("${..b}") + 2 * 5
    assert expanded_length("${a}", {"a": "${b}", "b": "${a}"}) == 3 * len("${a}")


@pytest.mark.parametrize("reference", ["${{{}}}", "${{ {} }}", "${{${{name_{}}}}}", "${{oc.select:{}}}"])
def test_a_few_variables_do_not_fill_the_memory(reference, tmp_path):
    """6 to the power of 12 characters, two gigabytes."""
    names = {f"name_v{place}": f"v{place}" for place in range(13)}
    stages = {"one": {"command": "train", "dataset": reference.format("v0")}}
    with pytest.raises(RecipeError, match=r"one\.dataset: .* longer than 1,000,000 characters"):
        Recipe({"variables": doubling("x", reference) | names, "stages": stages}, tmp_path)


def test_neither_do_mappings_within_a_variable_or_an_option(tmp_path):
    for variables, option in (
        ({"m": doubling("x", "${{.{}}}")}, "${m.v0}"),
        ({"m": doubling("x", "${{m.{}}}")}, ["${m}"]),
        ({}, doubling("x", "${{.{}}}")),
    ):
        with pytest.raises(RecipeError, match=r"one\.encoder_config: .* longer than"):
            Recipe(
                {"variables": variables, "stages": {"one": {"command": "train", "encoder_config": option}}}, tmp_path
            )


def test_what_is_long_and_fits_is_filled_in(tmp_path):
    variables = {"a": "x" * 1000, "b": "${a}" * 100, "name": "b"}
    for reference in ("${b}", "${${name}}"):
        recipe = Recipe({"variables": variables, "stages": {"one": {"command": "train", "x": reference}}}, tmp_path)
        assert recipe.stages["one"].options["x"] == "x" * 100_000


def test_a_text_that_is_too_long_for_a_name_is_no_data_set(tmp_path):
    variables = {"a": "x" * 1000}
    recipe = Recipe({"variables": variables, "stages": {"one": {"command": "train", "dataset": "${a}"}}}, tmp_path)
    assert recipe.stages["one"].options["dataset"] == "x" * 1000
