import dataclasses
import json
import runpy
import sys

import pytest
import yaml

from hf_mwp.commands.main import stage_commands
from hf_mwp.commands.options.stages import options_of
from hf_mwp.commands.recipes import RecipeError
from hf_mwp.utils.usage_error import UsageError
from reproduce.reproduction import Reproduction
from reproduce.table import ReportError, Table
from reproduce.table_result import TableResult
from tests.examples.scripts import load_script


SCRIPT = load_script("reproduce.py")
main = SCRIPT.main
NAMES = [*(f"compact-table{number}" for number in range(1, 9)), "lora"]
BUDGETS = ["quick", "cpu", "gpu", "paper"]


def load(name):
    return Table.from_file(SCRIPT.TABLES[name])


def paper(name, column):
    return {arm.title: arm.paper.get(column) for arm in load(name).arms.values()}


@pytest.fixture
def quick(problems, tmp_path):
    """Arguments for the first two arms of table 4, on a few problems."""
    folder = tmp_path / "runs"
    argv = ["compact-table4", "--budget", "quick", "--output_dir", str(folder), "--arms", "1", "1-2"]
    return [*argv, "--dataset", str(problems)], folder


def test_all_tables_are_listed(capsys):
    assert main(["--list"]) == 0
    shown = capsys.readouterr().out
    assert all(name in shown for name in NAMES) and "BERT" in shown


def test_tables_that_there_are_not(tmp_path):
    with pytest.raises(ReportError, match="^unknown table 'compact-table9'.*'compact-table"):
        main(["compact-table9"])
    for argv in ([], ["compact-table4", "--table_file", "x.yaml"]):
        with pytest.raises(UsageError, match="--list.*--table_file"):
            main(argv)
    with pytest.raises(UsageError, match="x.yaml"):
        main(["--table_file", str(tmp_path / "x.yaml")])


def test_errors_are_one_line_and_name_the_script(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "argv", [SCRIPT.__file__, "--from_results", str(tmp_path / "x.json")])
    with pytest.raises(SystemExit) as stopped:
        runpy.run_path(SCRIPT.__file__, run_name="__main__")
    # Python writes a text to standard error, and ends with status 1.
    assert stopped.value.code == f"reproduce.py: There is no file {tmp_path / 'x.json'}."


def test_an_output_folder_that_is_a_file(quick):
    argv, folder = quick
    folder.write_text("mine")
    with pytest.raises(UsageError, match="is a file"):
        main(argv)
    assert folder.read_text() == "mine"


def test_several_processes_are_sent_to_launch(monkeypatch):
    monkeypatch.setenv("WORLD_SIZE", "2")
    with pytest.raises(UsageError, match="--launch"):
        main(["compact-table4"])


def test_wrong_arguments_are_named_before_anything_runs(quick):
    argv, folder = quick
    for extra, message in (
        (["--teacher.learning_rat", "1"], "stage teacher: unknown key 'learning_rat'. Did you mean 'learning_rate'"),
        (["--laiers", "1"], "unknown variable or stage 'laiers'"),
        (["--budget", "quik"], "unknown budget 'quik'. Did you mean 'quick'"),
        (["--arms", "1-5"], "unknown arm '1-5'"),
        (["--layers"], "'--layers'"),
    ):
        with pytest.raises(ValueError) as raised:
            main([*argv, *extra])
        error = str(raised.value)
        assert message in error or message.replace("variable or stage", "variable") in error, error
    assert not folder.exists()


def test_a_table_from_its_file_to_its_picture(quick, capsys):
    argv, folder = quick
    assert main([*argv, "--dry_run"]) == 0
    assert "not asked for" in capsys.readouterr().out and not folder.exists()
    assert main(argv) == 0
    shown = capsys.readouterr().out
    assert "arm 1 of 8: 1, seed 42, stage 1 of 2: teacher" in shown and "(60.52)" in shown
    assert "these figures say nothing" in shown.partition("(60.52)")[2]
    # Two arms of two stages read the same data.
    assert shown.count("split files") == 1

    files = {path.suffix: path for path in folder.glob("compact-table4-quick.*")}
    assert sorted(files) == [".json", ".md", ".png"]
    result = TableResult.load(files[".json"])
    assert [arm.runs[0].state for arm in result.arms] == ["done"] * 2 + ["waiting"] * 6
    assert result.arms[1].runs[0].counts == {"equation": 9, "answer": 9} and result.environment["libraries"]["torch"]
    teacher = result.arms[1].runs[0].teacher
    assert teacher.startswith("random weights, 2 x 48, problems") and teacher.endswith(", 1 epoch")
    text = files[".md"].read_text(encoding="utf-8")
    assert "only to see it run" in text.splitlines()[0] and "| 1-2 |" in text and "| 67.84 |" in text
    assert str(folder) not in text and str(folder) not in json.dumps(dataclasses.asdict(result))

    before = {suffix: path.read_bytes() for suffix, path in files.items()}
    redrawn = folder / "again"
    assert main(["--from_results", str(files[".json"]), "--output_dir", str(redrawn)]) == 0
    assert {path.suffix: path.read_bytes() for path in redrawn.iterdir()} == before

    both = ["--from_results", str(files[".json"]), str(redrawn / files[".json"].name)]
    with pytest.raises(UsageError, match="--output_dir"):
        main(both)
    assert main([*both, "--output_dir", str(folder / "joined")]) == 0
    joined = TableResult.load(folder / "joined" / "compact-table4-quick.json")
    assert joined.arms == result.arms and len(joined.parts) == 2

    capsys.readouterr()
    assert main(argv) == 0
    assert "stage 1 of 2" not in capsys.readouterr().out
    assert TableResult.load(files[".json"]).arms == result.arms


def test_an_arm_that_fails_is_named_at_the_end(quick, capsys, monkeypatch):
    argv, folder = quick

    def train(arguments):
        options = yaml.safe_load(open(arguments[1], encoding="utf-8"))
        if options["encoder_config"]["num_hidden_layers"] == 1:
            raise MemoryError("too small a machine")
        return stage_commands()["train"](arguments)

    monkeypatch.setattr(SCRIPT, "stage_commands", lambda: {**stage_commands(), "train": train})
    assert main(argv) == 1
    shown = capsys.readouterr().out
    assert "Failed: 1;" in shown and "arm 1 of 8: 1, seed 42: failed. stage teacher: too small a machine" in shown
    result = TableResult.load(folder / "compact-table4-quick.json")
    assert [arm.runs[0].state for arm in result.arms[:2]] == ["failed", "done"]


# `test_all_options_are_read` has the other budgets.
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("budget", ["quick", "gpu"])
def test_options_of_all_stages_are_options_of_their_commands(name, budget, tmp_path):
    reproduction = Reproduction(load(name), tmp_path, budget, changes={})
    for (arm, seed), recipe in reproduction.recipes.items():
        for stage in reproduction.stages(arm, seed):
            unknown = set(stage.options) - set(options_of(stage.command))
            assert not unknown, f"arm {arm}, stage {stage.name}: {unknown}"
        assert recipe.budget == budget


def test_arms_whose_weights_are_not_at_hand_are_not_checked(tmp_path):
    reproduction = Reproduction(load("compact-table7"), tmp_path, "quick")
    reproduction.check()
    obstacles = {name: reproduction.obstacle(arm, 42) for name, arm in reproduction.table.arms.items()}
    assert [name for name, obstacle in obstacles.items() if obstacle is None] == ["teacher", "ours"]
    assert obstacles["minilm"] == "no weights are named; --minilm names a folder or Hub id"
    online = Reproduction(load("compact-table7"), tmp_path, "cpu")
    assert "huawei-noah/TinyBERT_4L_zh cannot be had" in online.obstacle(online.table.arms["tinybert"], 42)


def test_weights_of_arms_that_are_not_asked_for_are_not_looked_for(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("reproduce.reproduction.weights_missing", lambda name: pytest.fail(f"asked for {name}"))
    reproduction = Reproduction(load("compact-table7"), tmp_path, "cpu", arms=["ours"])
    reproduction.check()
    SCRIPT.plan_table(reproduction)
    shown = [arm.runs[0].state for arm in reproduction.run({}).arms]
    assert shown == ["waiting", "waiting", "waiting", "waiting", "failed"]


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_all_options_are_read(name, tmp_path):
    for budget in BUDGETS:
        Reproduction(load(name), tmp_path, budget, changes={"use_cpu": True}).check()


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_each_table_runs_quickly(name, tmp_path):
    assert main([name, "--budget", "quick", "--output_dir", str(tmp_path)]) == 0
    result = TableResult.load(tmp_path / f"{name}-quick.json")
    states = {run.state for arm in result.arms for run in arm.runs}
    assert states <= ({"done", "skipped"} if name in ("compact-table7", "compact-table8") else {"done"})


def test_arms_share_what_they_can(tmp_path):
    reproduction = Reproduction(load("compact-table8"), tmp_path, "paper")

    def folders(stage):
        made = {arm: recipe.stages[stage].folder for (arm, _), recipe in reproduction.recipes.items()}
        return made, {arm for arm, folder in made.items() if folder == made["complete"]}

    arms = set(reproduction.table.arms)
    # What is not pretrained itself needs no stage for it.
    own = {"pos", "mlm"}
    assert len(set(folders("teacher")[0].values())) == 1
    assert folders("pretrain")[1] == arms - own and len(set(folders("pretrain")[0].values())) == 3
    # The paper's student is pretrained from random weights anyway.
    assert folders("distill")[1] == {"teacher", "complete", "mixing", "scratch"}
    assert len(set(folders("finetune")[0].values())) == len(arms) - 2
    assert reproduction.obstacle(reproduction.table.arms["scratch"], 42).endswith("it is the same as 'complete'")
    assert all(reproduction.obstacle(reproduction.table.arms[arm], 42) is None for arm in arms - {"scratch"})


def test_tables_share_stages_with_the_recipe(tmp_path, repository):
    from hf_mwp.commands.recipes import Recipe

    recipe = Recipe.from_file(repository / "examples" / "compact_math23k.yaml", tmp_path, budget="cpu")
    table = load("compact-table8")
    own = table.make_recipe(table.arms["complete"], tmp_path, "cpu")
    for name in ("pretrain", "teacher", "distill", "mix", "finetune", "evaluate"):
        assert own.stages[name].folder == recipe.stages[name].folder


def test_a_seed_replaces_the_seeds_of_a_table(tmp_path):
    table = load("cka-math")
    for changes, seeds in (({}, [42, 1, 2]), ({"seed": 7}, [7])):
        assert Reproduction(table, tmp_path, "cpu", changes=changes).seeds == seeds


def test_the_recipe_of_a_table_may_lack_a_budget(tmp_path):
    with pytest.raises(RecipeError, match="unknown budget 'tiny'"):
        Reproduction(load("compact-table1"), tmp_path, "tiny")


def test_a_recipe_may_have_no_budgets(tmp_path):
    (tmp_path / "recipe.yaml").write_text("stages: {teacher: {command: train, encoder: someone/bert}}")
    (tmp_path / "table.yaml").write_text(
        "{table: T, paper: none, about: a, recipe: recipe.yaml, arms: {one: {title: One}},"
        " columns: {answer: {title: A, stage: teacher, figure: test/a}}}"
    )
    assert Reproduction(Table.from_file(tmp_path / "table.yaml"), tmp_path).budget == ""


def test_figures_of_the_papers_table_4():
    assert paper("compact-table4", "answer") == {
        "1": 60.52,
        "1-2": 67.84,
        "1-3": 71.04,
        "1-4": 73.55,
        "1-6": 78.36,
        "1-8": 79.46,
        "1-10": 81.06,
        "1-12": 84.33,
    }
    assert list(paper("compact-table4", "equation").values()) == [
        51.00, 57.92, 59.21, 62.72, 66.83, 67.43, 69.64, 84.07,
    ]  # fmt: skip
    assert list(paper("compact-table4", "share").values()) == [
        72.08, 79.00, 80.79, 84.61, 87.59, 93.32, 94.63, 100,
    ]  # fmt: skip


def test_figures_of_the_papers_table_5():
    table = load("compact-table5")
    figures = {arm.title: (arm.paper["equation"], arm.paper["answer"]) for arm in table.arms.values()}
    assert figures == {
        "1-4, 2-8, 3-12": (63.33, 74.15),
        "1-1, 2-8, 3-12": (61.32, 73.65),
        "1-2, 2-8, 3-12": (61.52, 73.95),
        "1-3, 2-8, 3-12": (62.53, 73.75),
        "1-4, 2-5, 3-12": (60.82, 71.74),
        "1-4, 2-6, 3-12": (61.82, 72.44),
        "1-4, 2-7, 3-12": (61.92, 74.05),
        "1-4, 2-8, 3-9": (61.82, 71.94),
        "1-4, 2-8, 3-10": (61.12, 72.34),
        "1-4, 2-8, 3-11": (61.92, 72.44),
    }
    for arm in table.arms.values():
        mapping = table.make_recipe(arm, "runs", "cpu").stages["distill"].options["layer_mapping"]
        assert arm.title == mapping.replace(":", "-").replace(",", ", ")


def test_figures_of_the_papers_table_8():
    figures = {
        arm: (each.paper.get("math23k"), each.paper.get("ape_clean")) for arm, each in load(NAMES[7]).arms.items()
    }
    assert figures == {
        "teacher": (84.07, 84.33),
        "complete": (80.23, 80.46),
        "pretraining": (77.5, 78.4),
        "pos": (78.1, 79.0),
        "mlm": (78.9, 79.6),
        "hidden": (76.0, 77.4),
        "prediction": (78.6, 79.1),
        "soft": (79.2, 79.4),
        "hard": (79.3, 79.8),
        "mixing": (None, None),
        "scratch": (None, None),
        "projected": (None, None),
    }
