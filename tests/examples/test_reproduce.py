"""The script that runs the tables of papers: its options, what it writes, and the tables of the first paper."""

import dataclasses
import json
from collections import defaultdict
from pathlib import Path

import pytest
import yaml

from hf_mwp.commands.recipes import Recipe
from hf_mwp.utils.usage_error import UsageError
from reproduce.reproduction import Reproduction
from reproduce.table import ReportError, Table
from reproduce.table_result import TableResult
from tests.examples.reproduce.grids import states
from tests.examples.scripts import load_script
from tests.slow_parameters import slow_after


SCRIPT = load_script("reproduce.py")
main = SCRIPT.main
NAMES = [*(f"compact-table{number}" for number in range(1, 9)), "lora"]


def load(name):
    return Table.from_file(SCRIPT.TABLES[name])


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "runs"


@pytest.fixture
def argv(problems, folder):
    """Arguments for the first two arms of table 4, on a few problems."""
    options = ["--budget", "quick", "--output_dir", str(folder), "--dataset", str(problems)]
    return ["compact-table4", *options, "--arms", "1", "1-2"]


class StageCommands(dict):
    """Commands that record the option `encoder_config` of a training; an evaluation writes fixed figures."""

    REPORT = {"equation_accuracy": 0.5, "answer_accuracy": 0.75, "num_equations": 8, "num_problems": 9}

    def __init__(self):
        self.trained = []
        super().__init__(train=self.train, evaluate=self.evaluate)

    def train(self, argv):
        options = yaml.safe_load(Path(argv[1]).read_text("utf-8"))
        self.trained.append(options["encoder_config"]["num_hidden_layers"])

    def evaluate(self, argv):
        metrics = {"test": {"reports": {"all problems": self.REPORT}}}
        Path(argv[1]).with_name("metrics.json").write_text(json.dumps(metrics))


@pytest.fixture
def commands(monkeypatch):
    commands = StageCommands()
    monkeypatch.setattr(SCRIPT, "stage_commands", lambda: commands)
    return commands


def test_all_tables_are_listed(capsys):
    assert main(["--list"]) == 0
    output = capsys.readouterr().out
    for name in SCRIPT.TABLES:
        assert name in output


@pytest.mark.parametrize(
    ("argv", "error", "message"),
    [
        (["compact-table9"], ReportError, "^unknown table 'compact-table9'.*'compact-table"),
        ([], UsageError, "--list.*--table_file"),
        (["compact-table4", "--table_file", "x.yaml"], UsageError, "--list.*--table_file"),
        (["--table_file", "no/such/x.yaml"], UsageError, "x.yaml"),
    ],
)
def test_missing_table_is_named(argv, error, message):
    with pytest.raises(error, match=message):
        main(argv)


def test_several_processes_are_refused(monkeypatch):
    monkeypatch.setenv("WORLD_SIZE", "2")
    with pytest.raises(UsageError, match="--launch"):
        main(["compact-table4"])


@pytest.mark.parametrize(
    ("option", "value", "message"),
    slow_after(
        2,
        [
            ("--teacher.learning_rat", "1", "stage teacher: unknown key 'learning_rat'.*'learning_rate'"),
            ("--laiers", "1", "unknown variable.* 'laiers'"),
            ("--budget", "quik", "unknown budget 'quik'.*'quick'"),
            ("--arms", "1-5", "unknown arm '1-5'"),
            ("--layers", None, "'--layers'"),
        ],
    ),
)
def test_wrong_argument_is_named_before_anything_runs(argv, folder, option, value, message):
    argv.append(option)
    if value is not None:
        argv.append(value)
    with pytest.raises(ValueError, match=message):
        main(argv)
    assert not folder.exists()


def test_dry_run_shows_the_plan(argv, folder, capsys):
    assert main([*argv, "--dry_run"]) == 0
    assert "not asked for" in capsys.readouterr().out
    assert not folder.exists()


def test_results_are_shown_and_written(argv, folder, commands, problems, capsys):
    assert main(argv) == 0
    assert commands.trained == [1, 2]
    output = capsys.readouterr().out
    assert "arm 1 of 8: 1, seed 42, stage 1 of 2: teacher" in output
    assert "75.00 (60.52)" in output
    assert "these figures say nothing" in output.partition("(60.52)")[2]
    assert {path.suffix for path in folder.glob("compact-table4-quick.*")} == {".json", ".md", ".png"}
    result = TableResult.load(folder / "compact-table4-quick.json")
    assert states(result) == ["done"] * 2 + ["waiting"] * 6
    run = result.arms[1].runs[0]
    assert run.counts == {"equation": 8, "answer": 9}
    assert run.teacher == f"random weights, 2 x 48, {problems.name}, 1 epoch"
    assert result.environment["libraries"]["torch"]
    page = (folder / "compact-table4-quick.md").read_text(encoding="utf-8")
    assert "only to see it run" in page.splitlines()[0]
    assert "| 1-2 | 50.00 | 57.92 | 75.00 | 67.84 |" in page
    assert str(folder) not in page
    assert str(folder) not in json.dumps(dataclasses.asdict(result))


@pytest.mark.slow
def test_completed_stages_are_not_run_again(argv, folder, commands, capsys):
    main(argv)
    path = folder / "compact-table4-quick.json"
    arms = TableResult.load(path).arms
    capsys.readouterr()
    assert main(argv) == 0
    assert len(commands.trained) == 2
    assert "stage 1 of 2" not in capsys.readouterr().out
    assert TableResult.load(path).arms == arms


@pytest.mark.slow
def test_results_are_drawn_again_and_joined(argv, folder, commands, tmp_path):
    main(argv)
    path = folder / "compact-table4-quick.json"
    redrawn = tmp_path / "redrawn"
    assert main(["--from_results", str(path), "--output_dir", str(redrawn)]) == 0
    for copy in redrawn.iterdir():
        assert copy.read_bytes() == (folder / copy.name).read_bytes()
    several = ["--from_results", str(path), str(redrawn / path.name)]
    with pytest.raises(UsageError, match="--output_dir"):
        main(several)
    assert main([*several, "--output_dir", str(tmp_path / "joined")]) == 0
    joined = TableResult.load(tmp_path / "joined" / path.name)
    assert joined.arms == TableResult.load(path).arms
    assert len(joined.parts) == 2


@pytest.mark.slow
def test_failed_arm_is_named_at_the_end(argv, folder, commands, capsys):
    def train(argv):
        commands.train(argv)
        if commands.trained == [1]:
            raise MemoryError("too small a machine")

    commands["train"] = train
    assert main(argv) == 1
    output = capsys.readouterr().out
    assert "arm 1 of 8: 1, seed 42: failed. stage teacher: too small a machine" in output
    assert "Failed: 1;" in output
    result = TableResult.load(folder / "compact-table4-quick.json")
    assert states(result)[:2] == ["failed", "done"]


@pytest.mark.slow
def test_arm_is_trained_and_evaluated(argv, folder, capsys):
    assert main(argv[:-1]) == 0
    output = capsys.readouterr().out
    # Both stages read the same data.
    assert output.count("split files") == 1
    run = TableResult.load(folder / "compact-table4-quick.json").arms[0].runs[0]
    assert (run.state, run.counts) == ("done", {"equation": 9, "answer": 9})
    assert 0 <= run.figures["answer"] <= 100


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_options_are_valid_at_each_budget(name, tmp_path):
    for budget in ("quick", "cpu", "gpu", "paper"):
        Reproduction(load(name), tmp_path, budget, changes={"use_cpu": True}).check()


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_each_table_runs_at_the_quick_budget(name, tmp_path):
    assert main([name, "--budget", "quick", "--output_dir", str(tmp_path)]) == 0
    result = TableResult.load(tmp_path / f"{name}-quick.json")
    may_be_skipped = name in ("compact-table7", "compact-table8")
    for arm in result.arms:
        for run in arm.runs:
            assert run.state == "done" or may_be_skipped and run.state == "skipped"


@pytest.mark.slow
def test_arms_without_weights_have_an_obstacle(tmp_path):
    reproduction = Reproduction(load("compact-table7"), tmp_path, "quick")
    reproduction.check()
    arms = reproduction.table.arms
    obstacles = {name: reproduction.obstacle(arm, 42) for name, arm in arms.items()}
    assert [name for name, obstacle in obstacles.items() if obstacle is None] == ["teacher", "ours"]
    assert "--minilm" in obstacles["minilm"]
    online = Reproduction(load("compact-table7"), tmp_path, "cpu")
    assert "huawei-noah/TinyBERT_4L_zh cannot be had" in online.obstacle(arms["tinybert"], 42)


@pytest.mark.slow
def test_weights_of_arms_that_are_not_selected_are_not_looked_for(tmp_path, monkeypatch):
    monkeypatch.setattr("reproduce.reproduction.weights_missing", lambda name: pytest.fail(f"looked for {name}"))
    reproduction = Reproduction(load("compact-table7"), tmp_path, "cpu", arms=["ours"])
    reproduction.check()
    SCRIPT.plan_table(reproduction)
    result = reproduction.run({})
    assert states(result) == ["waiting"] * 4 + ["failed"]


@pytest.mark.slow
def test_ablations_share_the_stages_that_they_do_not_change(tmp_path):
    reproduction = Reproduction(load("compact-table8"), tmp_path, "paper")
    arms_by_folder = defaultdict(set)
    for (arm, _), recipe in reproduction.recipes.items():
        for stage in recipe.stages.values():
            arms_by_folder[stage.folder].add(arm)
    complete = reproduction.recipes["complete", 42].stages

    def sharing(stage):
        return arms_by_folder[complete[stage].folder]

    arms = reproduction.table.arms
    assert sharing("teacher") == arms.keys()
    # An arm that is not pretrained needs no stage of its own for it.
    assert sharing("pretrain") == arms.keys() - {"pos", "mlm"}
    # The paper's student is pretrained from random weights anyway.
    assert sharing("distill") == {"teacher", "complete", "mixing", "scratch"}
    for name, arm in arms.items():
        obstacle = reproduction.obstacle(arm, 42)
        if name == "scratch":
            assert obstacle.endswith("it is the same as 'complete'")
        else:
            assert obstacle is None


def test_complete_arm_shares_its_stages_with_the_recipe(tmp_path, repository):
    recipe = Recipe.from_file(repository / "examples" / "compact_math23k.yaml", tmp_path, budget="cpu")
    table = load("compact-table8")
    arm_recipe = table.make_recipe(table.arms["complete"], tmp_path, "cpu")
    for name in ("pretrain", "teacher", "distill", "mix", "finetune", "evaluate"):
        assert arm_recipe.stages[name].folder == recipe.stages[name].folder


@pytest.mark.parametrize(("changes", "seeds"), [({}, [42, 1, 2]), ({"seed": 7}, [7])])
def test_seed_replaces_the_seeds_of_a_table(tmp_path, changes, seeds):
    assert Reproduction(load("cka-math"), tmp_path, "cpu", changes=changes).seeds == seeds


def test_recipe_may_have_no_budgets(tmp_path):
    (tmp_path / "recipe.yaml").write_text("stages: {teacher: {command: train, encoder: someone/bert}}")
    (tmp_path / "table.yaml").write_text(
        "{table: T, paper: none, about: a, recipe: recipe.yaml, arms: {one: {title: One}},"
        " columns: {answer: {title: A, stage: teacher, figure: test/a}}}"
    )
    assert Reproduction(Table.from_file(tmp_path / "table.yaml"), tmp_path).budget == ""


# Rows of the paper: the arm, then its figures. Arms of table 5 are named by their mapping of layers.
PAPER_ROWS = {
    ("compact-table4", "equation", "answer", "share"): """
        1: 51.0 60.52 72.08
        1-2: 57.92 67.84 79.0
        1-3: 59.21 71.04 80.79
        1-4: 62.72 73.55 84.61
        1-6: 66.83 78.36 87.59
        1-8: 67.43 79.46 93.32
        1-10: 69.64 81.06 94.63
        1-12: 84.07 84.33 100
    """,
    ("compact-table5", "equation", "answer"): """
        1-4, 2-8, 3-12: 63.33 74.15
        1-1, 2-8, 3-12: 61.32 73.65
        1-2, 2-8, 3-12: 61.52 73.95
        1-3, 2-8, 3-12: 62.53 73.75
        1-4, 2-5, 3-12: 60.82 71.74
        1-4, 2-6, 3-12: 61.82 72.44
        1-4, 2-7, 3-12: 61.92 74.05
        1-4, 2-8, 3-9: 61.82 71.94
        1-4, 2-8, 3-10: 61.12 72.34
        1-4, 2-8, 3-11: 61.92 72.44
    """,
    ("compact-table8", "math23k", "ape_clean"): """
        teacher: 84.07 84.33
        complete: 80.23 80.46
        w/o pretraining: 77.5 78.4
        w/o POS tagging: 78.1 79.0
        w/o MLM: 78.9 79.6
        w/o hidden distillation: 76.0 77.4
        w/o prediction distillation: 78.6 79.1
        w/o soft labels: 79.2 79.4
        w/o hard labels: 79.3 79.8
        w/o mixing: None None
        pretrained from random weights: None None
        not pretrained, first layers of the teacher projected: None None
    """,
}


@pytest.mark.parametrize("table_and_columns", PAPER_ROWS, ids=lambda names: names[0])
def test_figures_of_the_paper(table_and_columns):
    name, *columns = table_and_columns
    rows = []
    for arm in load(name).arms.values():
        figures = " ".join(str(arm.paper.get(column)) for column in columns)
        rows.append(f"{arm.title}: {figures}")
    assert rows == [line.strip() for line in PAPER_ROWS[table_and_columns].strip().splitlines()]


@pytest.mark.slow
def test_arms_of_table_5_are_named_by_their_mapping_of_layers():
    table = load("compact-table5")
    for arm in table.arms.values():
        mapping = table.make_recipe(arm, "runs", "cpu").stages["distill"].options["layer_mapping"]
        assert arm.title == mapping.replace(":", "-").replace(",", ", ")
