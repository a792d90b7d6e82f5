import json
import os
import shutil
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace

import pytest
import yaml

from hf_mwp.commands.recipes import Recipe, RecipeError, read_recipe
from hf_mwp.commands.recipes.stage import stage_inputs
from hf_mwp.utils import job


FIXTURES = Path(__file__).parents[2] / "fixtures"
CONTENT = {
    "recipe": "Two models",
    "budget": "large",
    "variables": {"seed": 42, "data": "numbers", "layers": None},
    "stages": {
        "teacher": {"command": "train", "seed": "${seed}", "dataset": "${data}", "epochs": 3, "layers": "${layers}"},
        "student": {"command": "distill", "teacher": "${teacher}", "seed": "${seed}", "lists": ["${teacher}/x", 1]},
        "unused": {"command": "train", "epochs": 1},
    },
    "budgets": {"large": {}, "small": {"variables": {"data": "few"}, "teacher": {"epochs": 1}}},
    "targets": ["student"],
}


def recipe(folder, **kwargs):
    return Recipe(CONTENT, folder, **kwargs)


class Commands(dict):
    """Commands that write what they were given, and count their calls."""

    def __init__(self, fail=()):
        self.calls = []
        for name in ("train", "distill"):
            self[name] = lambda argv, name=name: self.called(name, argv, fail)

    def called(self, name, argv, fail):
        self.calls.append((name, argv))
        if name in fail:
            raise ValueError("out of luck")
        options = yaml.safe_load(Path(argv[1]).read_text())
        (Path(options["output_dir"]) / "metrics.json").write_text(json.dumps({"command": name}))
        return 0


def test_references_become_values_and_folders(tmp_path):
    stages = recipe(tmp_path).stages
    teacher = stages["teacher"]
    student = stages["student"]
    assert teacher.options == {"seed": 42, "dataset": "numbers", "epochs": 3}
    assert student.options == {"teacher": str(teacher.folder), "seed": 42, "lists": [f"{teacher.folder}/x", 1]}
    assert student.needs == ("teacher",)
    assert teacher.folder == tmp_path / f"teacher-{teacher.fingerprint[:8]}"


def test_only_what_the_targets_need_is_run_and_only_once(tmp_path):
    commands = Commands()
    results = recipe(tmp_path).run(commands)
    assert [result.stage.name for result in results] == ["teacher", "student"]
    assert [name for name, _ in commands.calls] == ["train", "distill"]
    assert [result.metrics for result in results] == [{"command": "train"}, {"command": "distill"}]
    again = recipe(tmp_path).run(commands)
    assert all(result.skipped for result in again)
    assert len(commands.calls) == 2
    assert again[0].metrics == {"command": "train"}


def test_a_stage_that_failed_is_run_again_and_goes_on_from_its_checkpoint(tmp_path):
    with pytest.raises(ValueError, match="out of luck"):
        recipe(tmp_path).run(Commands(fail=["distill"]))
    student = recipe(tmp_path).stages["student"]
    assert not student.is_done
    (student.folder / "checkpoint-5").mkdir()
    (student.folder / "checkpoint-5" / "trainer_state.json").write_text("{}")
    commands = Commands()
    recipe(tmp_path).run(commands)
    assert commands.calls == [("distill", ["--config", str(student.folder / "stage.yaml"), "--resume"])]


def test_a_changed_option_changes_the_stage_and_those_that_build_on_it(tmp_path):
    before = recipe(tmp_path).stages
    after = recipe(tmp_path, changes={"teacher.epochs": 4}).stages
    assert before["teacher"].fingerprint != after["teacher"].fingerprint
    assert before["student"].fingerprint != after["student"].fingerprint
    assert before["unused"].fingerprint == after["unused"].fingerprint
    only_student = recipe(tmp_path, changes={"student": {"seed": 1}}).stages
    assert only_student["teacher"] == before["teacher"]
    assert only_student["student"].fingerprint != before["student"].fingerprint


def test_the_folder_of_the_recipe_does_not_matter_and_file_contents_do(tmp_path):
    assert recipe(tmp_path).stages["student"].fingerprint == recipe(tmp_path / "b").stages["student"].fingerprint
    file = tmp_path / "texts.txt"
    digests = []
    for text in ("one", "two"):
        file.write_text(text)
        digests.append(recipe(tmp_path, changes={"data": str(file)}).stages["teacher"].fingerprint)
    assert digests[0] != digests[1]


def test_a_file_with_the_name_of_a_choice_does_not_matter(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    before = recipe(tmp_path, changes={"teacher.task": "rte"}).stages["teacher"].fingerprint
    (tmp_path / "rte").mkdir()
    (tmp_path / "rte" / "file").write_text("no option")
    assert recipe(tmp_path, changes={"teacher.task": "rte"}).stages["teacher"].fingerprint == before


def test_names_with_hyphens_may_be_written_with_underscores(tmp_path):
    content = {
        "variables": {"a-seed": 1},
        "stages": {"a-stage": {"command": "train", "seed": "${a-seed}", "epochs": 1}},
    }
    for changes in ({"a_stage.epochs": 2, "a_seed": 3}, {"a-stage": {"epochs": 2}, "a-seed": 3}):
        assert Recipe(content, tmp_path, changes=changes).stages["a-stage"].options == {"seed": 3, "epochs": 2}


def test_the_contents_of_a_file_after_a_prefix_matter(tmp_path):
    folder = tmp_path / "tagger"
    folder.mkdir()
    prints = []
    for kind, text in (("ltp", "one"), ("ltp", "two"), ("other", "two")):
        (folder / "config.json").write_text(text)
        prints.append(recipe(tmp_path, changes={"data": f"{kind}:{folder}"}).stages["teacher"].fingerprint)
    assert len(set(prints)) == 3
    elsewhere = folder.rename(tmp_path / "elsewhere")
    assert recipe(tmp_path, changes={"data": f"other:{elsewhere}"}).stages["teacher"].fingerprint == prints[2]


def test_the_contents_of_a_data_set_matter_and_what_lies_beside_it_does_not(tmp_path):
    shutil.copytree(FIXTURES / "math23k", tmp_path / "data" / "math23k")
    changes = {"data": "math23k", "teacher.data_dir": str(tmp_path / "data")}

    def teacher(**more):
        return recipe(tmp_path, changes={**changes, **more}).stages["teacher"].fingerprint

    before = teacher()
    (tmp_path / "data" / "NOTES.txt").write_text("of no set")
    assert teacher() == before
    shutil.copytree(tmp_path / "data", tmp_path / "elsewhere")
    assert teacher(**{"teacher.data_dir": str(tmp_path / "elsewhere")}) == before
    extra = {"teacher.extra_train": ["mawps:all"]}
    with_extra = teacher(**extra)
    assert with_extra not in (before, teacher(**{"teacher.extra_train": ["mawps"]}))
    shutil.copytree(FIXTURES / "mawps", tmp_path / "data" / "mawps")
    assert teacher(**extra) != with_extra and teacher() == before
    with (tmp_path / "data" / "math23k" / "train.jsonl").open("a") as file:
        file.write("\n")
    assert teacher() != before
    # The sets of the repository have contents as well, and are found without a folder.
    (own,) = [teacher(**{"teacher.data_dir": None})]
    assert own != teacher(data="asdiv_a", **{"teacher.data_dir": None}) != before


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        ({"teacher.learning_rate": "2e-4"}, {"teacher.learning_rate": 0.0002}),
        ({"teacher.layers": "3"}, {"teacher.layers": 3}),
        ({"teacher.run_name": "one"}, {"teacher.report_to": "none"}),
    ],
)
def test_what_means_the_same_is_the_same_stage(tmp_path, ours, theirs):
    first, second = (recipe(tmp_path, changes=each).stages["teacher"].fingerprint for each in (ours, theirs))
    assert first == second
    assert first != recipe(tmp_path, changes={"teacher.learning_rate": True}).stages["teacher"].fingerprint


@pytest.mark.parametrize(
    "options",
    [
        {"dataset": "labelled.jsonl", "data_dir": "${teacher}"},
        {"dataset": "${teacher}/labelled.jsonl", "extra_train": ["mawps"]},
        {"dataset": "svamp", "extra_train": ["mawps", "${teacher}/labelled.jsonl"], "data_dir": str(FIXTURES)},
    ],
)
def test_what_a_stage_will_make_does_not_change_the_name_of_the_next(tmp_path, options):
    changes = {f"student.{name}": value for name, value in options.items()}
    before = recipe(tmp_path, changes=changes).stages
    before["teacher"].folder.mkdir()
    (before["teacher"].folder / "labelled.jsonl").write_text("{}")
    assert recipe(tmp_path, changes=changes).stages == before


def test_the_data_set_that_is_taken_by_default_is_known_by_its_contents(tmp_path):
    changes = {"teacher.dataset": None}
    named = recipe(tmp_path, changes={"data": "math23k"}).stages["teacher"]
    assert recipe(tmp_path, changes=changes).stages["teacher"].fingerprint == named.fingerprint


def test_where_a_folder_of_problems_lies_does_not_matter(tmp_path):
    (tmp_path / "one").mkdir()
    (tmp_path / "one" / "train.jsonl").write_text("{}")
    first = recipe(tmp_path, changes={"data": str(tmp_path / "one")}).stages["teacher"].fingerprint
    (tmp_path / "one").rename(tmp_path / "two")
    assert recipe(tmp_path, changes={"data": str(tmp_path / "two")}).stages["teacher"].fingerprint == first


def test_what_starts_the_training_matters(tmp_path):
    alone, two = (recipe(tmp_path, launch=each).stages for each in (None, "torchrun --nproc_per_node 2"))
    assert all(alone[name].fingerprint != two[name].fingerprint for name in ("teacher", "student"))
    inputs = {"command": "evaluate", "options": {"beams": 5}, "made": {}}
    assert stage_inputs(**inputs) == stage_inputs(**inputs, launch="torchrun")


def test_where_a_cache_lies_does_not_matter(tmp_path):
    before = recipe(tmp_path).stages["student"]
    (tmp_path / "cache").mkdir()
    for place in (str(tmp_path / "cache"), "${teacher}/outputs"):
        student = recipe(tmp_path, changes={"student.teacher_cache_dir": place}).stages["student"]
        assert student.fingerprint == before.fingerprint and student.options["teacher_cache_dir"].startswith("/")


def test_a_place_in_the_folder_of_a_stage_does_not_need_that_stage(tmp_path):
    changes = {"student.teacher": "elsewhere", "student.lists": None}
    changes["student.teacher_cache_dir"] = "${teacher}/outputs"
    changed = recipe(tmp_path, changes=changes)
    student = changed.stages["student"]
    assert student.options["teacher_cache_dir"] == f"{changed.stages['teacher'].folder}/outputs"
    assert student.needs == () and changed.wanted() == [student]


def test_a_checkpoint_to_start_from_is_an_input(tmp_path):
    changes = {"student.teacher": "elsewhere", "student.lists": None}
    stages = [
        recipe(tmp_path, changes=changes | {"student.resume_from_checkpoint": f"${{teacher}}/checkpoint-{step}"})
        for step in (5, 9)
    ]
    assert [stage.name for stage in stages[0].wanted()] == ["teacher", "student"]
    assert stages[0].stages["student"].fingerprint != stages[1].stages["student"].fingerprint


def test_a_hyphen_in_an_option_is_an_underscore(tmp_path):
    changes = {"teacher.max-steps": 9}
    assert recipe(tmp_path, changes=changes).stages["teacher"].options["max_steps"] == 9
    removed = recipe(tmp_path, changes=[changes, {"teacher.max_steps": None}])
    assert not {"max-steps", "max_steps"} & removed.stages["teacher"].options.keys()
    with pytest.raises(RecipeError, match="output_dir"):
        recipe(tmp_path, changes={"teacher.output-dir": "mine"})


def test_stages_are_in_the_folder_of_the_user(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    assert recipe("~/runs").stages["teacher"].folder.parent == tmp_path / "runs"


def test_budgets_and_changes(tmp_path):
    small = recipe(tmp_path, budget="small").stages["teacher"].options
    assert small == {"seed": 42, "dataset": "few", "epochs": 1}
    changed = recipe(tmp_path, budget="small", changes={"data": "mine", "teacher.epochs": None, "layers": 2})
    assert changed.stages["teacher"].options == {"seed": 42, "dataset": "mine", "layers": 2}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"sed": 1}, "'sed'.*'seed'"),
        ({"techer.epochs": 1}, "'techer'.*'teacher'"),
        ({"teacher.dataset": "${dat}"}, "teacher.dataset: .*'dat'.*'data'"),
        ({"teacher.dataset": "${student}"}, "teacher -> student -> teacher"),
        ({"teacher.command": None}, "'teacher'.*`command`"),
        ({"student.output_dir": "mine"}, "stage student: .*'output_dir'.*--output_dir"),
    ],
)
def test_wrong_recipes_name_the_place(tmp_path, changes, message):
    with pytest.raises(RecipeError, match=message):
        recipe(tmp_path, changes=changes)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ({"stages": {"teacher": None}}, r"stages\.teacher: .*mapping.* None"),
        ({"stages": {"teacher": "train"}}, r"stages\.teacher: .*mapping.* 'train'"),
        ({"stages": {1: {"command": "train"}}}, "stages: .* 1 .*quotes"),
        ({"budgets": ["large"]}, r"budgets: .*mapping.* \['large'\]"),
        ({"budgets": {"large": 5}}, r"budgets\.large: .*mapping.* 5"),
        ({"budgets": {"large": {"teacher": [1]}}}, r"budgets\.large\.teacher: .*mapping.* \[1\]"),
        ({"budgets": {"large": {"teacher": None}}}, r"budgets\.large\.teacher: .*mapping.* None"),
        ({"budgets": {"large": {"variables": "a"}}}, r"budgets\.large\.variables: .*mapping.* 'a'"),
        ({"budgets": {"large": {"techer": {"epochs": 1}}}}, r"budgets\.large: .*'techer'.*'teacher'"),
        ({"budgets": {"large": {"variables": {"sed": 1}}}}, r"budgets\.large: .*'sed'.*'seed'"),
        ({"variables": ["seed"]}, r"variables: .*mapping.* \['seed'\]"),
        ({"targets": "student"}, r"targets: .*list.* 'student'"),
        ({"targets": {"student": 1}}, r"targets: .*list.* \{'student': 1\}"),
        ({"targets": [["student"]]}, r"targets: .*list.* \[\['student'\]\]"),
    ],
)
def test_values_of_the_wrong_kind_name_the_place(tmp_path, content, message):
    with pytest.raises(RecipeError, match=f"some.yaml, {message}"):
        Recipe({**CONTENT, **content}, tmp_path, source="some.yaml")


def test_options_of_one_command_are_not_a_recipe(tmp_path):
    with pytest.raises(RecipeError, match="some.yaml: not a recipe.*`stages`.* --config FILE"):
        Recipe({"dataset": "asdiv_a", "fold": 0}, tmp_path, source="some.yaml")


def test_a_change_of_a_stage_is_a_mapping(tmp_path):
    for value in (None, 5):
        with pytest.raises(RecipeError, match=f"teacher: .*mapping.*{value}"):
            recipe(tmp_path, changes={"teacher": value})
    empty = {**CONTENT, "variables": None, "budgets": {"large": None}, "stages": {"one": {"command": "train"}}}
    assert Recipe({**empty, "targets": None}, tmp_path).targets == ["one"]


def test_variables_that_refer_to_each_other_are_named(tmp_path):
    changes = {"data": "${seed}", "seed": ["x${layers}"], "layers": "${seed}"}
    with pytest.raises(RecipeError, match=r"teacher.seed: '\${seed}'"):
        recipe(tmp_path, changes=changes)
    with pytest.raises(RecipeError, match=r"teacher.dataset: '\${data}'.*(?i:recursive)"):
        recipe(tmp_path, changes={"data": "${data}/more"})
    twice = recipe(tmp_path, changes={"layers": ["${data}", "${data}"]}).stages["teacher"]
    assert twice.options["layers"] == ["numbers", "numbers"]


@pytest.mark.parametrize(
    "name", ["../../evil", "/evil", "a/b", "..", ".", "", "a b", "a.b", "a:b", "-a", "a\0b", "${seed}", "x" * 61]
)
def test_a_stage_has_a_name_that_a_folder_can_have(name, tmp_path):
    with pytest.raises(RecipeError, match="the recipe, stages: .* 60 letters"):
        Recipe({"stages": {name: {"command": "train"}}}, tmp_path)
    assert not any(tmp_path.iterdir())


def test_the_longest_names_of_stages_can_be_run(tmp_path):
    for name in ("teacher_2-b", "教师", "\U00020000" * 60):
        (result,) = Recipe({"stages": {name: {"command": "train"}}}, tmp_path).run({"train": lambda argv: None})
        assert result.stage.folder.parent == tmp_path and result.stage.is_done


def test_numbers_in_mappings_are_numbers(tmp_path):
    path = tmp_path / "r.yaml"
    path.write_text("stages: {one: {command: train, encoder_config: {layer_norm_eps: 1e-12}, rates: [2e-4, 1E3, 5]}}")
    options = Recipe.from_file(path, tmp_path).stages["one"].options
    assert options == {"encoder_config": {"layer_norm_eps": 1e-12}, "rates": [2e-4, 1000.0, 5]}
    # The command reads them from the stage's own file.
    Recipe.from_file(path, tmp_path).run({"train": lambda argv: None})
    (file,) = tmp_path.glob("one-*/stage.yaml")
    assert yaml.safe_load(file.read_text())["encoder_config"] == {"layer_norm_eps": 1e-12}


@pytest.mark.parametrize(
    ("text", "key", "line"),
    [
        ("stages:\n  one: {command: train}\n  two: {command: train}\n  one: {command: mix}", "one", 4),
        ("stages:\n  one:\n    seed: 1\n    command: train\n    seed: 2", "seed", 5),
        ("stages:\n  one:\n    command: train\n    encoder_config:\n      a: [{b: 1, c: 2, b: 3}]", "b", 5),
        ("stages: {}\nvariables: {}\nstages: {}", "stages", 3),
    ],
)
def test_a_key_that_stands_twice_is_refused_with_its_place(tmp_path, text, key, line):
    path = tmp_path / "r.yaml"
    path.write_text(text)
    with pytest.raises(RecipeError, match=rf"r.yaml(?s:.*)duplicate key {key}\n.*line {line},"):
        read_recipe(path)


def test_several_changes_win_one_after_another(tmp_path):
    changes = [{"teacher": {"epochs": 4, "x": 1}}, {"teacher.epochs": 5, "seed": 1}, {"variables": {"seed": 2}}]
    options = recipe(tmp_path, changes=changes).stages["teacher"].options
    assert options == {"seed": 2, "dataset": "numbers", "epochs": 5, "x": 1}


def test_an_option_that_is_a_mapping_is_replaced_as_a_whole(tmp_path):
    changes = [{"teacher.config": {"a": 1, "b": 2}}, {"teacher.config": {"a": 3}}]
    assert recipe(tmp_path, changes=changes).stages["teacher"].options["config"] == {"a": 3}


def test_a_file_holds_what_differs_from_its_base(tmp_path):
    (tmp_path / "base.yaml").write_text(yaml.safe_dump(CONTENT))
    (tmp_path / "files").mkdir()
    path = tmp_path / "files" / "more.yaml"
    more = {
        "base": "../base.yaml",
        "variables": {"seed": 1, "labels": "${teacher}/labels"},
        "stages": {"student": {"lists": ["${labels}"]}, "last": {"command": "train", "solver": "${student}"}},
        "budgets": {"small": {"teacher": {"layers": 2}}, "none": {}},
        "targets": ["last"],
    }
    path.write_text(yaml.safe_dump(more))
    merged = Recipe.from_file(path, tmp_path / "runs", budget="small")
    assert (merged.title, [stage.name for stage in merged.wanted()]) == ("Two models", ["teacher", "student", "last"])
    teacher = merged.stages["teacher"]
    student = merged.stages["student"]
    assert teacher.options == {"seed": 1, "dataset": "few", "epochs": 1, "layers": 2}
    assert student.options == {"teacher": str(teacher.folder), "seed": 1, "lists": [f"{teacher.folder}/labels"]}
    assert Recipe.from_file(path, tmp_path / "runs").stages["teacher"].options["dataset"] == "numbers"
    # What does not differ is not done again.
    assert merged.stages["unused"].fingerprint == recipe(tmp_path).stages["unused"].fingerprint

    path.write_text("base: ../base.yaml\nstages: {teacher: {epochs: 9}}")
    (tmp_path / "base.yaml").write_text("base: files/more.yaml")
    with pytest.raises(RecipeError, match="more.yaml: .*`base`.*more.yaml"):
        Recipe.from_file(path, tmp_path)
    for stages in ("[teacher]", "{teacher: [9]}"):
        (tmp_path / "wrong.yaml").write_text(f"base: base.yaml\nstages: {stages}")
        (tmp_path / "base.yaml").write_text(yaml.safe_dump(CONTENT))
        with pytest.raises(RecipeError, match="wrong.yaml: .*list.*mapping"):
            Recipe.from_file(tmp_path / "wrong.yaml", tmp_path)
    (tmp_path / "base.yaml").write_text("a text")
    with pytest.raises(RecipeError, match=r"more.yaml: .*`base`.*\.\./base.yaml"):
        Recipe.from_file(path, tmp_path)


def test_another_base_takes_the_place_of_the_one_that_a_file_names(tmp_path):
    (tmp_path / "one.yaml").write_text("variables: {a: 1, b: 1}\nstages: {s: {command: train, seed: '${a}${b}'}}")
    (tmp_path / "two.yaml").write_text("base: one.yaml\nvariables: {a: 2}")
    (tmp_path / "own.yaml").write_text("base: one.yaml\nvariables: {b: 3}")
    options = [
        Recipe.from_file(tmp_path / "own.yaml", tmp_path, base).stages["s"].options
        for base in (None, tmp_path / "two.yaml")
    ]
    assert options == [{"seed": "13"}, {"seed": "23"}]
    with pytest.raises(RecipeError, match="one.yaml .*`base`.*two.yaml"):
        Recipe.from_file(tmp_path / "one.yaml", tmp_path, tmp_path / "two.yaml")
    with pytest.raises(RecipeError, match="own.yaml: .*`base`.*own.yaml"):
        Recipe.from_file(tmp_path / "own.yaml", tmp_path, tmp_path / "own.yaml")
    (tmp_path / "none.yaml").write_text("seed: 4")
    with pytest.raises(RecipeError, match="own.yaml: .*none.yaml is not a valid recipe"):
        Recipe.from_file(tmp_path / "own.yaml", tmp_path, tmp_path / "none.yaml")


def test_a_file_may_ask_for_a_value_that_its_base_has(tmp_path):
    (tmp_path / "base.yaml").write_text(yaml.safe_dump(CONTENT))
    (tmp_path / "more.yaml").write_text("base: base.yaml\nvariables: {data: '???'}")
    more = Recipe.from_file(tmp_path / "more.yaml", tmp_path)
    with pytest.raises(RecipeError, match="stage teacher.*--data"):
        more.wanted()
    given = Recipe.from_file(tmp_path / "more.yaml", tmp_path, changes={"data": "few"})
    assert given.stages["teacher"].options == {"seed": 42, "dataset": "few", "epochs": 3}


def test_a_base_is_read_from_a_file_only(tmp_path):
    (tmp_path / "base.yaml").write_text(yaml.safe_dump(CONTENT))
    path = tmp_path / "more.yaml"
    path.write_text("{base: base.yaml, stages: {teacher: {epochs: 9}}}")
    content = read_recipe(path)
    assert "base" not in content
    assert Recipe(content, tmp_path).stages["teacher"].options["epochs"] == 9
    with pytest.raises(RecipeError, match="unknown key 'base'"):
        Recipe(yaml.safe_load(path.read_text()), tmp_path)


RESOLVERS = [
    "${oc.env:SECRET}",
    "Made on ${ oc.env : SECRET }.",
    "${oc.env:NOTHING,${oc.env:SECRET}}",
    "${oc.${part}:SECRET}",
    "${oc.decode:'1'}",
    "${oc.create:{a: 1}}",
    r"\\${oc.env:SECRET}",
    r"\${oc.env:SECRET}",  # a backslash does not help, since the command reads the value from a file of options
    {"deep": ["x", "${oc.env:SECRET}"]},
]


@pytest.mark.parametrize("value", RESOLVERS)
@pytest.mark.parametrize("place", ["stages.card.notes", "variables.part"])
def test_resolvers_are_refused_with_file_and_key(tmp_path, monkeypatch, value, place):
    monkeypatch.setenv("SECRET", "hush")
    is_stage = place == "stages.card.notes"
    content = {
        "variables": {"part": "env" if is_stage else value},
        "stages": {"card": {"command": "card", "notes": value if is_stage else "${part}"}},
    }
    path = tmp_path / "some.yaml"
    path.write_text(yaml.safe_dump(content))
    for make in (Recipe, lambda content, folder, source: Recipe.from_file(path, folder)):
        with pytest.raises(RecipeError, match=r"some\.yaml, .*(notes|part).*resolver") as raised:
            make(content, tmp_path, source="some.yaml")
        assert "hush" not in str(raised.value)


def test_a_resolver_in_a_change_or_a_base_is_refused(tmp_path, monkeypatch):
    monkeypatch.setenv("SECRET", "hush")
    for changes in ({"data": "${oc.env:SECRET}"}, {"teacher.dataset": "${oc.env:SECRET}"}):
        with pytest.raises(RecipeError, match="(variables.data|teacher.dataset): .*resolver"):
            recipe(tmp_path, changes=changes)
    (tmp_path / "base.yaml").write_text("variables: {a: '${oc.env:SECRET}'}\nstages: {s: {command: train}}")
    (tmp_path / "own.yaml").write_text("base: base.yaml\nvariables: {a: 1}")
    with pytest.raises(RecipeError, match=r"base\.yaml, variables\.a: .*resolver"):
        Recipe.from_file(tmp_path / "own.yaml", tmp_path)


def test_a_backslash_keeps_the_text_of_a_reference(tmp_path):
    content = {"variables": {"a": 1}, "stages": {"card": {"command": "card", "notes": r"\${a} is ${a}: yes"}}}
    assert Recipe(content, tmp_path).stages["card"].options == {"notes": "${a} is 1: yes"}


def test_unknown_budget_key_target_and_file(tmp_path):
    with pytest.raises(RecipeError, match="'huge'.*large, small"):
        recipe(tmp_path, budget="huge")
    with pytest.raises(RecipeError, match="'stage'.*'stages'"):
        Recipe({**CONTENT, "stage": {}}, tmp_path)
    with pytest.raises(RecipeError, match="'studnt'.*'student'"):
        recipe(tmp_path).wanted(["studnt"])
    with pytest.raises(RecipeError, match="none.yaml"):
        Recipe.from_file(tmp_path / "none.yaml", tmp_path)
    with pytest.raises(RecipeError, match="`stages`"):
        Recipe({"variables": {}}, tmp_path)
    broken = tmp_path / "broken.yaml"
    broken.write_text("stages: [")
    with pytest.raises(RecipeError, match="broken.yaml.*YAML"):
        Recipe.from_file(broken, tmp_path)


@pytest.mark.parametrize(("state", "flag"), [('{"global_step": 5}', "--resume"), ('{"glob', "--overwrite")])
def test_an_interrupted_stage_goes_on_from_a_complete_checkpoint_only(tmp_path, state, flag):
    stage = recipe(tmp_path).stages["teacher"]
    commands = Commands()
    (stage.folder / "checkpoint-5").mkdir(parents=True)
    (stage.folder / "checkpoint-5" / "trainer_state.json").write_text(state)
    stage.run(commands)
    assert commands.calls[0][1][2:] == [flag]


def test_what_an_interrupted_stage_without_checkpoints_has_written_is_replaced(tmp_path):
    stage = recipe(tmp_path).stages["teacher"]
    commands = Commands(fail=["train"])
    with pytest.raises(ValueError, match="out of luck"):
        stage.run(commands)
    (stage.folder / "model.safetensors").touch()
    commands = Commands()
    stage.run(commands)
    assert commands.calls[0][1][2:] == ["--overwrite"]


def test_seconds_count_earlier_starts_up_to_the_checkpoint_that_was_gone_on_from(tmp_path, monkeypatch):
    teacher = recipe(tmp_path).stages["teacher"]
    now = 1000.0
    monkeypatch.setattr(job, "time", SimpleNamespace(time=lambda: now))

    def start(seconds, saved_after=None, killed=True):
        def train(argv):
            nonlocal now
            if saved_after is not None:
                state = teacher.folder / f"checkpoint-{now:.0f}" / "trainer_state.json"
                state.parent.mkdir()
                state.write_text("{}")
                os.utime(state, (now + saved_after,) * 2)
            now += seconds
            if killed:
                raise KeyboardInterrupt

        nonlocal now
        now += 500
        return teacher.run({"train": train})

    for seconds, saved_after in ((50, None), (45, 30), (20, None), (25, 10)):
        with pytest.raises(KeyboardInterrupt):
            start(seconds, saved_after)
    assert start(7, killed=False).seconds == 30 + 10 + 7
    assert start(9).seconds == teacher.job.record["seconds"] == 47


def test_a_stage_that_another_run_is_busy_with_is_waited_for(tmp_path, caplog):
    begun = threading.Event()
    go_on = threading.Event()

    class Slow(Commands):
        def called(self, name, argv, fail):
            begun.set()
            assert go_on.wait(30)
            return super().called(name, argv, fail)

    first = Slow()
    second = Commands()
    with ThreadPoolExecutor(2) as pool:
        one = pool.submit(recipe(tmp_path).stages["teacher"].run, first)
        assert begun.wait(30)
        other = pool.submit(recipe(tmp_path).stages["teacher"].run, second)
        time.sleep(0.2)
        assert not other.done()
        go_on.set()
        results = one.result(30), other.result(30)
    assert [result.skipped for result in results] == [False, True]
    assert len(first.calls) == 1 and not second.calls
    assert recipe(tmp_path).stages["teacher"].folder.name in caplog.text
