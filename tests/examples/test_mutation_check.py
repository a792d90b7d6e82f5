"""The script that changes the package at random to see whether the tests notice."""

import pytest
from mutation_check import Mutant, apply, find_mutants, select_tests


SOURCE = """def first(values, limit=2):
    if not values or limit < 1:
        return None
    return f"{limit + 1}" + values[0]
"""


@pytest.fixture
def repository(tmp_path):
    folder = tmp_path / "hf_mwp" / "compress" / "losses"
    folder.mkdir(parents=True)
    (folder / "values.py").write_text(SOURCE)
    (tmp_path / "tests" / "compress" / "losses").mkdir(parents=True)
    return tmp_path


def test_changes_of_a_file(repository):
    mutants = find_mutants(repository / "hf_mwp/compress/losses/values.py", repository)
    changes = {(mutant.line, mutant.before, mutant.after) for mutant in mutants}
    assert changes == {
        (1, "2", "(3)"),
        (2, "not values or limit < 1", "(not values and limit < 1)"),
        (2, "not values", "(values)"),
        (2, "limit < 1", "(limit <= 1)"),
        (2, "1", "(2)"),
        (2, "not values or limit < 1", "not (not values or limit < 1)"),
        (4, 'f"{limit + 1}" + values[0]', "(f'{limit + 1}' - values[0])"),
        (4, 'f"{limit + 1}" + values[0]', "None"),
        (4, "0", "(1)"),
    }


def test_a_change_is_made_in_the_line_even_if_it_moved(repository):
    path = repository / "hf_mwp/compress/losses/values.py"
    mutant = Mutant("hf_mwp/compress/losses/values.py", 2, "limit < 1", "(limit <= 1)", 21, SOURCE.splitlines()[1])
    path.write_text("# A new first line.\n" + SOURCE)
    assert apply(mutant, repository)
    assert path.read_text() == "# A new first line.\n" + SOURCE.replace("limit < 1", "(limit <= 1)")
    path.write_text("LIMIT = 1\n")
    assert not apply(mutant, repository)


def test_select_tests_the_file_run_before_those_of_its_box(repository):
    mutant = Mutant("hf_mwp/compress/losses/values.py", 1, "", "", 0, "")
    assert select_tests(mutant, repository) == [["tests/compress/losses"], ["tests/compress"]]
    (repository / "tests/compress/losses/test_values.py").write_text("")
    tests = [["tests/compress/losses/test_values.py"], ["tests/compress/losses"], ["tests/compress"]]
    assert select_tests(mutant, repository) == tests
