import json
import math
from pathlib import Path

import pytest

from reproduce.reproduction import Reproduction
from reproduce.table import ReportError, Table
from tests.examples.reproduce.grids import TABLE, Commands, states, write_table
from tests.slow_parameters import slow_after


ANSWER = TABLE["columns"]["answer"]


@pytest.fixture
def reproduce(tmp_path):
    """Runs the small table with fields replaced, in a folder that later runs share."""

    def reproduce(commands=None, table=None, **options):
        path = write_table(tmp_path, **(table or {}))
        reproduction = Reproduction(Table.from_file(path), tmp_path / "runs", **options)
        return reproduction.run(Commands() if commands is None else commands)

    return reproduce


def figures(result, column="answer"):
    return {arm.name: arm.mean(column) for arm in result.arms}


def test_figures_of_all_columns(reproduce):
    commands = Commands()
    result = reproduce(commands)
    assert figures(result) == {"one": 6.25, "three": 18.75, "all": 75.0}
    assert figures(result, "share") == {"one": 8.3333, "three": 25.0, "all": 100.0}
    assert result.arms[1].mean("average") == pytest.approx(21.875, abs=1e-3)
    assert result.arms[0].runs[0].counts == {"answer": 40}
    assert result.arms[0].paper == {"answer": 60.5}
    assert states(result) == ["done"] * 3
    # The stage that the arms share was run once, and that of the empty column not at all.
    assert commands.ran == ["base", "teacher", "evaluate", "teacher", "evaluate", "teacher", "evaluate"]
    assert result.columns[1]["missing"] == "`extra` is not given (--extra)"


def test_run_is_recorded(reproduce, tmp_path):
    result = reproduce(budget="quick", changes={"dataset": "pears"}, environment={"a": 1})
    run = result.arms[1].runs[0]
    assert [stage["stage"] for stage in run.stages] == ["base", "teacher", "evaluate"]
    for stage in run.stages:
        assert stage["folder"].startswith(stage["stage"] + "-")
        assert len(stage["fingerprint"]) == 32
    assert run.teacher == "None, after stage base, layers 3, pears, 2 steps"
    assert (result.data, result.changes) == ("pears, 5 training problems", {"dataset": "pears"})
    assert (result.budget, result.seeds, result.environment) == ("quick", [42], {"a": 1})
    assert str(tmp_path) not in json.dumps(run.stages)


@pytest.mark.parametrize(
    ("changes", "data"),
    slow_after(
        2,
        [
            ({}, "apples, all training problems"),
            ({"teacher.max_train_samples": 6000}, "apples, training problems: all (base); 6,000 (teacher)"),
            ({"max_train_samples": 1200}, "apples, 1,200 training problems"),
        ],
    ),
)
def test_number_of_training_problems_is_described(reproduce, changes, data):
    assert reproduce(changes=changes).data == data


def test_added_training_problems_are_described(reproduce):
    changes = {"teacher.extra_train": "pears:all"}
    data = "apples, training problems: all (base); all and those of pears:all (teacher)"
    assert reproduce(changes=changes).data == data


def test_seeds_give_mean_and_deviation(reproduce):
    commands = Commands()
    first_arm = reproduce(commands, seeds=[42, 43, 44]).arms[0]
    assert first_arm.values("answer") == [6.25, 7.25, 8.25]
    assert (first_arm.mean("answer"), first_arm.deviation("answer")) == (7.25, 1.0)
    assert commands.ran.count("base") == 3
    # A share is of the same seed: 6.25 of 75, 7.25 of 76 and 8.25 of 77.
    assert first_arm.values("share") == [8.3333, 9.5395, 10.7143]
    assert reproduce(seeds=[42]).arms[0].deviation("answer") is None


def test_columns_change_the_recipe(reproduce):
    figure = {"stage": "evaluate", "figure": "test/accuracy"}
    columns = {
        "answer": figure,
        "pears": {**figure, "changes": {"dataset": "pears", "seed": 43}},
        "plums": {**figure, "changes": {"dataset": "plums", "teacher": {"encoder_layers": 4}}},
        "share": {"share_of": {"column": "pears", "arm": "all"}},
    }
    commands = Commands()
    result = reproduce(commands, table={"columns": columns})
    assert states(result) == ["done"] * 3
    assert figures(result) == {"one": 6.25, "three": 18.75, "all": 75.0}
    assert figures(result, "pears") == {"one": 7.25, "three": 19.75, "all": 76.0}
    # An arm wins over a column, and a column over the table.
    assert figures(result, "plums") == {"one": 25.0, "three": 25.0, "all": 25.0}
    assert figures(result, "share")["all"] == 100.0
    # Columns share the stages that they do not change.
    assert commands.ran.count("base") == 2
    folders = [stage["folder"] for stage in result.arms[0].runs[0].stages]
    assert len(folders) == len(set(folders))


@pytest.mark.slow
def test_sweep_has_a_position_for_each_arm(reproduce):
    result = reproduce(table={"x": "layers"})
    assert (result.x, [arm.x for arm in result.arms]) == ("layers", [1.0, 3.0, 12.0])
    with pytest.raises(ReportError, match="arm 'one': the variable 'dataset'.*'apples'"):
        reproduce(table={"x": "dataset"})


def test_completed_stages_are_not_run_again(reproduce):
    first = reproduce()
    commands = Commands()
    second = reproduce(commands)
    assert commands.ran == []
    assert figures(second) == figures(first)
    assert second.arms[0].runs[0].seconds == first.arms[0].runs[0].seconds


@pytest.mark.slow
def test_completed_arms_are_read_without_being_selected(reproduce):
    result = reproduce(arms=["three"])
    assert states(result) == ["waiting", "done", "waiting"]
    assert figures(result) == {"one": None, "three": 18.75, "all": None}
    assert figures(result, "share")["three"] is None
    assert figures(reproduce(arms=["all"]), "share") == {"one": None, "three": 25.0, "all": 100.0}


def test_failed_arm_does_not_stop_the_others_and_is_tried_again(reproduce):
    result = reproduce(Commands(broken="teacher"))
    assert states(result) == ["done", "failed", "done"]
    assert result.failed == ["three"]
    assert result.arms[1].runs[0].reason == "stage teacher: no memory"
    commands = Commands()
    assert reproduce(commands).failed == []
    assert commands.ran == ["teacher", "evaluate"]


@pytest.mark.slow
def test_arm_that_fails_late_has_the_figures_of_its_completed_stages(reproduce):
    class Broken(Commands):
        def evaluate(self, argv):
            if "evaluate_extra" in argv[1]:
                raise OSError("there is no such data set")
            super().evaluate(argv)

    run = reproduce(Broken(), changes={"extra": "here"}).arms[0].runs[0]
    assert (run.state, run.reason) == ("failed", "stage evaluate_extra: there is no such data set")
    assert run.figures["answer"] == 6.25
    assert "extra" not in run.figures
    assert run.counts == {"answer": 40}
    assert [stage["stage"] for stage in run.stages] == ["base", "teacher", "evaluate"]
    assert run.teacher


def test_broken_record_of_an_arm_does_not_stop_the_others(reproduce):
    class Broken(Commands):
        def evaluate(self, argv):
            super().evaluate(argv)
            if self.ran.count("evaluate") == 1:
                Path(argv[1]).with_name("metrics.json").write_text("{")

    result = reproduce(Broken())
    assert states(result) == ["failed", "done", "done"]
    assert result.arms[0].seconds is None
    assert result.arms[1].seconds is not None


def test_shared_stage_that_fails_is_tried_once(reproduce):
    class Broken(Commands):
        def train(self, argv):
            self.options(argv)
            raise OSError("disk full")

    commands = Broken()
    result = reproduce(commands)
    assert commands.ran == ["base"]
    assert result.failed == ["one", "three", "all"]
    assert {arm.runs[0].reason for arm in result.arms} == {"stage base: disk full"}


@pytest.mark.slow
def test_missing_figure_is_a_failure(reproduce):
    columns = {"answer": {"stage": "evaluate", "figure": ["test/acuracy", "test/other"]}}
    result = reproduce(table={"columns": columns})
    assert result.failed == ["one", "three", "all"]
    assert "no 'test/acuracy' and no 'test/other'" in result.arms[0].runs[0].reason
    columns["answer"]["figure"].append("test/accuracy")
    assert figures(reproduce(table={"columns": columns}))["one"] == 6.25


def test_arms_without_weights_or_layers_are_skipped(reproduce):
    tiny = {"teacher.encoder": None, "teacher.encoder_config": {"num_hidden_layers": 4}}
    arms = {
        "no weights": {"weights": "weights"},
        "deep": {"layers": 6, "changes": tiny},
        "all": {"layers": 4, "changes": {**tiny, "teacher.max_steps": 3}},
    }
    result = reproduce(table={"arms": arms})
    assert states(result) == ["skipped", "skipped", "done"]
    assert result.arms[0].runs[0].reason == "no weights are named; --weights names a folder or Hub id"
    assert result.arms[1].runs[0].reason == "the encoder has 4 layers, 6 are needed"
    assert result.failed == []


def test_layers_are_counted_before_the_arm_cuts_them(reproduce):
    arms = {"deep": {"layers": 6}, "all": {"layers": 5, "changes": {"layers": 3}}}
    changes = {"base.encoder_config": {"num_hidden_layers": 5}}
    assert states(reproduce(changes=changes, table={"arms": arms})) == ["skipped", "done"]


def test_arm_whose_changes_are_not_used_is_not_run_twice(reproduce):
    arms = {**TABLE["arms"], "other": {"changes": {"weights": "not used"}}}
    commands = Commands()
    run = reproduce(commands, table={"arms": arms}).arms[3].runs[0]
    assert commands.ran.count("evaluate") == 3
    assert run.state == "skipped"
    assert run.reason.endswith("the same as 'all'")


@pytest.mark.slow
def test_parameters_and_operations_need_no_weights(reproduce):
    columns = {
        "answer": ANSWER,
        "parameters": {"unit": "M", "measure": "parameters"},
        "flops": {"unit": "B", "measure": "flops"},
    }
    arms = {"one": {"weights": "weights", "shape": {}}}
    run = reproduce(table={"columns": columns, "arms": arms}).arms[0].runs[0]
    assert run.state == "skipped"
    assert run.figures.keys() == {"parameters", "flops"}
    assert math.isclose(run.figures["parameters"], 10.277136)
    assert math.isclose(run.figures["flops"], 0.935655552)


def test_unknown_arm_is_named(reproduce):
    with pytest.raises(ReportError, match="'tree'.*'three'"):
        reproduce(arms=["tree"])


def test_unknown_stage_of_a_column_is_named(reproduce):
    columns = {"answer": {"stage": "${reads}", "figure": "a"}}
    with pytest.raises(ReportError, match="column 'answer'.*'evalute'.*'evaluate'"):
        reproduce(table={"columns": columns, "variables": {"reads": "evalute", "extra": None}})


class Folds(Commands):
    """An evaluation has the outcomes of three models, and fold 1 twice as many problems as fold 0."""

    OUTCOMES = [["10", "10", "11"], ["0101", "0111", "1111"]]

    def evaluate(self, argv):
        options, folder = self.options(argv)
        models = []
        for outcomes in self.OUTCOMES[options["fold"]]:
            right = outcomes.count("1") / len(outcomes)
            models.append({"right": right, "n": len(outcomes), "outcomes": outcomes})
        (folder / "metrics.json").write_text(json.dumps({"models": models}))


def fold_column(fold):
    model = "models/${generation}"
    figure = {"figure": f"{model}/right", "count": f"{model}/n", "outcomes": f"{model}/outcomes"}
    return {"stage": "evaluate", "changes": {"fold": fold}, **figure}


def test_arms_read_different_figures_of_shared_stages(reproduce):
    table = {
        "variables": {"generation": 0, "fold": 0},
        "changes": {"evaluate": {"fold": "${fold}"}},
        "stages": {},
        "columns": {
            "fold0": fold_column(0),
            "fold1": fold_column(1),
            "all": {"pooled_of": ["fold0", "fold1"]},
        },
        "arms": {
            "dense": {},
            "last": {"changes": {"generation": 2}},
            "other": {"missing": "not here", "paper": {"all": 9}},
        },
    }
    commands = Folds()
    result = reproduce(commands, table=table)
    assert figures(result, "fold1") == {"dense": 50.0, "last": 100.0, "other": None}
    # Three of six, not the mean of 50 and 50 %; all six.
    assert figures(result, "all") == {"dense": 50.0, "last": 100.0, "other": None}
    assert result.arms[0].runs[0].outcomes["all"] == "100101"
    assert result.arms[1].runs[0].counts["all"] == 6
    # Each fold's stage was run once for both arms.
    assert commands.ran.count("evaluate") == 2
    assert (result.arms[2].runs[0].state, result.arms[2].runs[0].reason) == ("skipped", "not here")


def test_arms_read_figures_of_different_stages(reproduce):
    examples = {"predictions": "1 0", "labels": "1 1"}

    class Trainings(Commands):
        def train(self, argv):
            _, folder = self.options(argv)
            (folder / "metrics.json").write_text(json.dumps({"accuracy": 0.25, "examples": examples}))

        def evaluate(self, argv):
            _, folder = self.options(argv)
            metrics = {"accuracy": 0.5, "share": 0.1, "examples": examples}
            (folder / "metrics.json").write_text(json.dumps({"test": metrics}))

    table = {
        "variables": {"reads": "evaluate", "split": "test/", "extra": None},
        "columns": {
            "answer": {
                "stage": "${reads}",
                "figure": "${split}accuracy",
                "examples": "${split}examples",
                "metric": "f1",
            },
            "share": {"stage": "${reads}", "figure": "test/share", "optional": True},
            "hours": {"stage": "${reads}", "figure": "stage_seconds", "unit": "h"},
        },
        "arms": {"far": {}, "near": {"changes": {"reads": "teacher", "split": ""}}},
    }
    commands = Trainings()
    result = reproduce(commands, table=table)
    assert figures(result) == {"far": 50.0, "near": 25.0}
    assert figures(result, "share") == {"far": 10.0, "near": None}
    for arm in result.arms:
        assert arm.runs[0].examples == {"answer": examples}
    seconds = result.arms[0].runs[0].stages[-1]["seconds"]
    assert figures(result, "hours")["far"] == round(seconds / 3600, 4)
    assert commands.ran == ["base", "teacher", "evaluate"]


@pytest.mark.parametrize(
    ("options", "num_runs"),
    slow_after(1, [({}, [1, 2, 2]), ({"budget": "quick"}, [1, 1, 1]), ({"seeds": [1, 2]}, [2, 2, 2])]),
)
def test_seeds_of_a_table_and_of_an_arm(reproduce, options, num_runs):
    arms = {**TABLE["arms"], "one": {"changes": {"layers": 1}, "seeds": {"normal": 1}}}
    result = reproduce(table={"seeds": {"normal": [42, 43]}, "arms": arms}, **options)
    assert [len(arm.runs) for arm in result.arms] == num_runs
