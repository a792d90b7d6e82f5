import json
import math
from pathlib import Path

import pytest
import yaml

from reproduce.markdown import to_markdown
from reproduce.reproduction import Reproduction
from reproduce.table import ReportError, Table
from reproduce.table_result import TableResult
from tests.examples.reproduce.grids import RECIPE, TABLE, Commands, write_table


def reproduce(tmp_path, commands, changes=None, table=None, **kwargs):
    path = write_table(tmp_path, **(table or {}))
    reproduction = Reproduction(Table.from_file(path), tmp_path / "runs", changes=changes, **kwargs)
    return reproduction.run(commands)


def figures(result, column="answer"):
    return {arm.name: arm.mean(column) for arm in result.arms}


def test_figures_shares_and_counts(tmp_path):
    commands = Commands()
    result = reproduce(tmp_path, commands)
    assert figures(result) == {"one": 6.25, "three": 18.75, "all": 75.0}
    assert figures(result, "share") == {"one": 8.3333, "three": 25.0, "all": 100.0}
    assert figures(result, "average") == pytest.approx({"one": 7.2917, "three": 21.875, "all": 87.5}, abs=1e-3)
    assert result.arms[0].runs[0].counts == {"answer": 40}
    assert result.arms[0].paper == {"answer": 60.5}
    assert [run.state for arm in result.arms for run in arm.runs] == ["done"] * 3
    # The stage that the arms share was run once, and that of the empty column not at all.
    assert commands.ran == ["base", "teacher", "evaluate", "teacher", "evaluate", "teacher", "evaluate"]
    assert [column.get("missing") for column in result.columns][1] == "`extra` is not given (--extra)"


def test_what_was_run_is_recorded(tmp_path):
    result = reproduce(tmp_path, Commands(), budget="quick", changes={"dataset": "pears"}, environment={"a": 1})
    run = result.arms[1].runs[0]
    assert [stage["stage"] for stage in run.stages] == ["base", "teacher", "evaluate"]
    assert all(stage["folder"].startswith(stage["stage"] + "-") for stage in run.stages)
    assert all(len(stage["fingerprint"]) == 32 for stage in run.stages)
    assert run.seconds == pytest.approx(sum(stage["seconds"] for stage in run.stages))
    assert run.teacher == "None, after stage base, layers 3, pears, 2 steps"
    assert (result.data, result.changes) == ("pears, 5 training problems", {"dataset": "pears"})
    assert (result.budget, result.seeds, result.environment) == ("quick", [42], {"a": 1})
    assert str(tmp_path) not in json.dumps(run.stages)


def test_how_much_each_stage_learns_from_is_said(tmp_path):
    table = Table.from_file(write_table(tmp_path))
    said = [
        Reproduction(table, tmp_path, changes=changes).run(Commands()).data
        for changes in ({}, {"teacher.max_train_samples": 6000}, {"max_train_samples": 1200})
    ]
    assert said == [
        "apples, all training problems",
        "apples, training problems: all (base); 6,000 (teacher)",
        "apples, 1,200 training problems",
    ]
    # Arms that train count although the first one does not, and what is added is named.
    recipe = RECIPE["stages"] | {"evaluate": {**RECIPE["stages"]["evaluate"], "model": "nothing"}}
    (tmp_path / "small.yaml").write_text(yaml.safe_dump({**RECIPE, "stages": recipe}))
    for extra in (["pears:all"], "pears:all"):
        arms = {"one": {}, "two": {"changes": {"evaluate.model": "${teacher}", "teacher.extra_train": extra}}}
        table = write_table(tmp_path, arms=arms, columns={"answer": TABLE["columns"]["answer"]}, recipe_too=False)
        assert Reproduction(Table.from_file(table), tmp_path, arms=["two"]).run(Commands()).data == (
            "apples, training problems: all (base); all and those of pears:all (teacher)"
        )


def test_a_column_whose_data_is_given(tmp_path):
    result = reproduce(tmp_path, Commands(), changes={"extra": "here"})
    assert figures(result, "extra") == {"one": 6.25, "three": 18.75, "all": 75.0}
    assert all("missing" not in column for column in result.columns)


def test_seeds_give_mean_and_deviation(tmp_path):
    commands = Commands()
    result = reproduce(tmp_path, commands, seeds=[42, 43, 44])
    one = result.arms[0]
    assert one.values("answer") == [6.25, 7.25, 8.25]
    assert (one.mean("answer"), one.deviation("answer")) == (7.25, 1.0)
    assert commands.ran.count("base") == 3 and commands.ran.count("teacher") == 9
    # A share is taken within a seed.
    assert one.values("share") == [round(100 * a / b, 4) for a, b in ((6.25, 75), (7.25, 76), (8.25, 77))]
    assert reproduce(tmp_path, commands, seeds=[42]).arms[0].deviation("answer") is None


def test_columns_are_changes_of_the_recipe(tmp_path):
    figure = {"stage": "evaluate", "figure": "test/accuracy"}
    columns = {
        "answer": figure,
        "pears": {**figure, "changes": {"dataset": "pears", "seed": 43}},
        "plums": {**figure, "changes": {"dataset": "plums", "teacher": {"encoder_layers": 4}}},
        "share": {"share_of": {"column": "pears", "arm": "all"}},
    }
    commands = Commands()
    result = reproduce(tmp_path, commands, table={"columns": columns})
    assert [arm.state for arm in (arm.runs[0] for arm in result.arms)] == ["done"] * 3
    assert figures(result) == {"one": 6.25, "three": 18.75, "all": 75.0}
    assert figures(result, "pears") == {"one": 7.25, "three": 19.75, "all": 76.0}
    # An arm wins over a column; where it says nothing, the column does.
    assert figures(result, "plums") == {"one": 25.0, "three": 25.0, "all": 25.0}
    assert figures(result, "share")["all"] == 100.0
    teacher = "None, after stage base, layers {}, {}, 9 steps"
    told = [teacher.format(*each) for each in ((1, "apples"), (1, "pears"), (4, "plums"))]
    assert result.arms[0].runs[0].teacher == "; ".join(told)
    # Each arm has an evaluation for each column, and columns share what they do not change.
    assert commands.ran.count("base") == 2
    assert len(result.arms[0].runs[0].stages) == len({stage["folder"] for stage in result.arms[0].runs[0].stages})
    again = Commands()
    assert figures(reproduce(tmp_path, again, table={"columns": columns}), "plums")["one"] == 25.0 and not again.ran


def test_a_sweep_knows_where_its_arms_stand(tmp_path):
    result = reproduce(tmp_path, Commands(), table={"x": "layers"})
    assert (result.x, [arm.x for arm in result.arms]) == ("layers", [1.0, 3.0, 12.0])
    with pytest.raises(ReportError, match="arm 'one': the variable 'dataset' is no number: 'apples'"):
        reproduce(tmp_path, Commands(), table={"x": "dataset"})


def test_what_is_done_is_not_run_again(tmp_path):
    first = reproduce(tmp_path, Commands())
    again = Commands()
    second = reproduce(tmp_path, again)
    assert again.ran == [] and figures(second) == figures(first)
    assert second.arms[0].runs[0].seconds == first.arms[0].runs[0].seconds


def test_arms_not_asked_for_are_read_if_they_are_there(tmp_path):
    result = reproduce(tmp_path, Commands(), arms=["three"])
    assert [arm.runs[0].state for arm in result.arms] == ["waiting", "done", "waiting"]
    assert figures(result) == {"one": None, "three": 18.75, "all": None} and figures(result, "share")["three"] is None
    result = reproduce(tmp_path, Commands(), arms=["all"])
    assert figures(result, "share") == {"one": None, "three": 25.0, "all": 100.0}


def test_an_arm_that_fails_does_not_stop_the_others_and_is_tried_again(tmp_path):
    result = reproduce(tmp_path, Commands(broken="teacher"))
    assert [arm.runs[0].state for arm in result.arms] == ["done", "failed", "done"]
    assert result.failed == ["three"] and result.arms[1].runs[0].reason == "stage teacher: no memory"
    commands = Commands()
    assert reproduce(tmp_path, commands).failed == [] and commands.ran == ["teacher", "evaluate"]


def test_an_arm_that_fails_late_keeps_the_figures_that_it_has(tmp_path):
    class Broken(Commands):
        def evaluate(self, argv):
            if "evaluate_extra" in argv[1]:
                raise OSError("there is no such data set")
            return super().evaluate(argv)

    run = reproduce(tmp_path, Broken(), changes={"extra": "here"}).arms[0].runs[0]
    assert (run.state, run.reason) == ("failed", "stage evaluate_extra: there is no such data set")
    assert run.figures["answer"] == 6.25 and run.counts == {"answer": 40} and "extra" not in run.figures
    assert [stage["stage"] for stage in run.stages] == ["base", "teacher", "evaluate"] and run.teacher


def test_a_broken_record_of_an_arm_does_not_stop_the_others(tmp_path):
    class Broken(Commands):
        def evaluate(self, argv):
            super().evaluate(argv)
            if self.ran.count("evaluate") == 1:
                Path(argv[1]).with_name("metrics.json").write_text("{")

    result = reproduce(tmp_path, Broken())
    assert [arm.runs[0].state for arm in result.arms] == ["failed", "done", "done"]
    assert result.arms[0].seconds is None and result.arms[1].seconds is not None


def test_a_shared_stage_that_fails_is_tried_once(tmp_path):
    class Broken(Commands):
        def train(self, argv):
            _, folder = self.options(argv)
            raise OSError(f"disk full: {folder.name.partition('-')[0]}")

    commands = Broken()
    result = reproduce(tmp_path, commands)
    assert commands.ran == ["base"] and result.failed == ["one", "three", "all"]
    assert {arm.runs[0].reason for arm in result.arms} == {"stage base: disk full: base"}


def test_a_figure_that_is_missing_is_a_failure(tmp_path):
    columns = {"answer": {"stage": "evaluate", "figure": ["test/acuracy", "test/other"]}}
    result = reproduce(tmp_path, Commands(), table={"columns": columns})
    assert result.failed == ["one", "three", "all"]
    assert "no 'test/acuracy' and no 'test/other'" in result.arms[0].runs[0].reason
    columns["answer"]["figure"].append("test/accuracy")
    assert figures(reproduce(tmp_path, Commands(), table={"columns": columns}))["one"] == 6.25


def test_arms_without_weights_or_layers_are_left_out(tmp_path):
    tiny = {"teacher.encoder": None, "teacher.encoder_config": {"num_hidden_layers": 4}}
    arms = {
        "no weights": {"weights": "weights"},
        "deep": {"layers": 6, "changes": tiny},
        "all": {"layers": 4, "changes": {**tiny, "teacher.max_steps": 3}},
    }
    commands = Commands()
    result = reproduce(tmp_path, commands, table={"arms": arms})
    assert [arm.runs[0].state for arm in result.arms] == ["skipped", "skipped", "done"]
    assert result.arms[0].runs[0].reason == "no weights are named; --weights names a folder or Hub id"
    assert result.arms[1].runs[0].reason == "the encoder has 4 layers, 6 are needed"
    assert result.failed == []


def test_layers_are_those_before_the_arm_cuts_them(tmp_path):
    arms = {"deep": {"layers": 6}, "all": {"layers": 3, "changes": {"teacher.max_steps": 3}}}
    changes = {"base.encoder_config": {"num_hidden_layers": 5}}
    result = reproduce(tmp_path, Commands(), changes=changes, table={"arms": arms})
    assert [arm.runs[0].state for arm in result.arms] == ["skipped", "done"]


def test_an_arm_whose_changes_are_not_used_is_not_run_twice(tmp_path):
    arms = {**TABLE["arms"], "other": {"changes": {"weights": "not used"}}}
    commands = Commands()
    result = reproduce(tmp_path, commands, table={"arms": arms})
    assert result.arms[3].runs[0].state == "skipped" and commands.ran.count("evaluate") == 3
    assert result.arms[3].runs[0].reason == "what it changes is not used, so that it is the same as 'all'"


def test_a_teacher_that_is_given_is_described_and_counted(tmp_path):
    folder = tmp_path / "mine"
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps({"model_type": "bert", "num_hidden_layers": 6}))
    (folder / "run_config.yaml").write_text("{dataset: plums, num_train_epochs: 8}")
    distill = {"command": "train", "teacher": "${teacher}", "encoder_layers": 4, "seed": "${seed}", "at": "${at}"}
    table = {
        "stages": {"distill": distill},
        "variables": {"at": 1, "extra": None},
        "changes": {"evaluate.model": "${distill}"},
        "columns": {"answer": TABLE["columns"]["answer"]},
        "arms": {"six": {"layers": 6}, "seven": {"layers": 7, "changes": {"at": 2}}},
    }
    commands = Commands()
    result = reproduce(tmp_path, commands, changes={"distill.teacher": str(folder)}, table=table)
    assert commands.ran == ["distill", "evaluate"]
    assert result.arms[0].runs[0].teacher == "mine, 6 layers, plums, 8 epochs"
    assert result.arms[1].runs[0].reason == "the encoder has 6 layers, 7 are needed"


def test_parameters_and_operations_need_no_weights(tmp_path):
    columns = {
        **TABLE["columns"],
        "parameters": {"unit": "M", "measure": "parameters"},
        "flops": {"unit": "B", "measure": "flops"},
    }
    arms = {**TABLE["arms"], "one": {"weights": "weights", "shape": {}}}
    result = reproduce(tmp_path, Commands(), table={"columns": columns, "arms": arms})
    run = result.arms[0].runs[0]
    assert run.state == "skipped" and math.isclose(run.figures["parameters"], 10.277136)
    assert math.isclose(run.figures["flops"], 0.935655552) and "answer" not in run.figures


def test_unknown_arms_are_named(tmp_path):
    with pytest.raises(ReportError, match="unknown arm 'tree'. Did you mean 'three'"):
        reproduce(tmp_path, Commands(), arms=["tree"])


def test_arms_that_read_different_figures_of_one_stage(tmp_path):
    class Chains(Commands):
        """An evaluation has three models, and fold 1 twice as many problems as fold 0."""

        def evaluate(self, argv):
            super().evaluate(argv)
            options = yaml.safe_load(Path(argv[1]).read_text())
            fold, path = options["fold"], Path(options["output_dir"]) / "metrics.json"
            outcomes = ["0101" if fold else "10", "0111" if fold else "10", "1111" if fold else "11"]
            models = [{"right": each.count("1") / len(each), "n": len(each), "outcomes": each} for each in outcomes]
            path.write_text(json.dumps({"models": models}))

    folds = {
        f"fold{fold}": {
            "stage": "evaluate",
            "figure": "models/${generation}/right",
            "count": "models/${generation}/n",
            "outcomes": "models/${generation}/outcomes",
            "changes": {"fold": fold},
        }
        for fold in (0, 1)
    }
    table = {
        "variables": {"generation": 0, "fold": 0},
        "changes": {"evaluate": {"fold": "${fold}"}},
        "stages": {},
        "columns": folds | {"all": {"pooled_of": ["fold0", "fold1"]}},
        "arms": {
            "dense": {},
            "last": {"changes": {"generation": 2}},
            "other": {"missing": "not here", "paper": {"all": 9}},
        },
        "compare_with": "dense",
    }
    commands = Chains()
    result = reproduce(tmp_path, commands, table=table)
    assert figures(result, "fold1") == {"dense": 50.0, "last": 100.0, "other": None}
    # Three of six, not the mean of 50 and 50 %; all six.
    assert figures(result, "all") == {"dense": 50.0, "last": 100.0, "other": None}
    run = result.arms[1].runs[0]
    assert (run.counts["all"], run.outcomes["all"], result.arms[0].runs[0].outcomes["all"]) == (6, "111111", "100101")
    # Each fold's stage was run once for both arms.
    assert commands.ran.count("evaluate") == 2
    assert (result.arms[2].runs[0].state, result.arms[2].runs[0].reason) == ("skipped", "not here")
    told = to_markdown(result)
    assert "| difference, 95 % interval | all, % |" in told.splitlines()
    assert "| last minus dense | **+50.00 (" in told and "Bootstrap over pairs: 6 problems." in told


def test_arms_read_stages_and_figures_of_their_own(tmp_path):
    column = {
        "stage": "${reads}",
        "figure": "${student}accuracy",
        "examples": "${student}examples",
        "metric": "f1",
    }
    table = {
        "variables": {"reads": "evaluate", "student": "test/", "extra": None},
        "columns": {
            "answer": column,
            "share": {"stage": "${reads}", "figure": "test/share", "optional": True},
            "hours": {"stage": "${reads}", "figure": "stage_seconds", "unit": "h"},
        },
        "arms": {"far": {}, "near": {"changes": {"reads": "teacher", "student": ""}, "compare_with": "far"}},
    }

    class Both(Commands):
        def train(self, argv):
            options, folder = self.options(argv)
            examples = {"predictions": "1 0 1 1", "labels": "1 0 0 1"}
            (folder / "metrics.json").write_text(json.dumps({"accuracy": 0.25, "examples": examples}))

        def evaluate(self, argv):
            options, folder = self.options(argv)
            examples = {"predictions": "1 0 0 1", "labels": "1 0 0 1"}
            found = {"accuracy": 0.5, "share": 0.1, "examples": examples}
            (folder / "metrics.json").write_text(json.dumps({"test": found}))

    commands = Both()
    result = reproduce(tmp_path, commands, table=table)
    assert figures(result) == {"far": 50.0, "near": 25.0}
    assert figures(result, "share") == {"far": 10.0, "near": None}
    seconds = result.arms[0].runs[0].stages[-1]["seconds"]
    assert figures(result, "hours")["far"] == round(seconds / 3600, 4)
    assert commands.ran == ["base", "teacher", "evaluate"]
    result.save(tmp_path / "r.json")
    # F1 of three found of which two are right, and of all: 80 % and 100 %.
    told = to_markdown(TableResult.load(tmp_path / "r.json"))
    assert "| difference, 95 % interval | answer, % |" in told.splitlines()
    assert "| near minus far | -20.00 (" in told and "Bootstrap over pairs: 4 examples." in told


def test_a_stage_that_there_is_not_is_named(tmp_path):
    columns = {"answer": {"stage": "${reads}", "figure": "a"}}
    with pytest.raises(ReportError, match="column 'answer': unknown stage 'evalute'. Did you mean 'evaluate'"):
        reproduce(tmp_path, Commands(), table={"columns": columns, "variables": {"reads": "evalute", "extra": None}})


def test_a_table_may_have_seeds_and_arms_fewer_of_them(tmp_path):
    table = {
        "seeds": {"normal": [42, 43]},
        "arms": {**TABLE["arms"], "one": {"changes": {"layers": 1}, "seeds": {"normal": 1}}},
    }
    result = reproduce(tmp_path, Commands(), table=table)
    assert result.seeds == [42, 43] and [len(arm.runs) for arm in result.arms] == [1, 2, 2]
    assert [len(arm.runs) for arm in reproduce(tmp_path, Commands(), table=table, budget="quick").arms] == [1, 1, 1]
    assert [len(arm.runs) for arm in reproduce(tmp_path, Commands(), table=table, seeds=[1, 2]).arms] == [2, 2, 2]
