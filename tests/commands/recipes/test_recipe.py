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


def fingerprint(folder, changes, stage="teacher"):
    return recipe(folder, changes=changes).stages[stage].fingerprint


@pytest.fixture
def write(tmp_path):
    """Function that writes a YAML file to the test's folder and returns its path."""

    def write(name, content):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(content if isinstance(content, str) else yaml.safe_dump(content))
        return path

    return write


class Commands(dict):
    """Commands that record their calls and write their name to `metrics.json`, or fail."""

    def __init__(self, fail=()):
        self.calls = []
        self.fail = fail
        for name in ("train", "distill"):
            self[name] = lambda argv, name=name: self.call(name, argv)

    def call(self, name, argv):
        self.calls.append((name, argv))
        if name in self.fail:
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


def test_only_stages_that_the_targets_need_run_and_only_once(tmp_path):
    commands = Commands()
    results = recipe(tmp_path).run(commands)
    assert [result.stage.name for result in results] == ["teacher", "student"]
    assert [name for name, _ in commands.calls] == ["train", "distill"]
    assert [result.metrics for result in results] == [{"command": "train"}, {"command": "distill"}]
    results = recipe(tmp_path).run(commands)
    assert all(result.skipped for result in results)
    assert len(commands.calls) == 2
    assert results[0].metrics == {"command": "train"}


@pytest.mark.parametrize(
    ("file", "text", "flag"),
    [
        ("checkpoint-5/trainer_state.json", '{"global_step": 5}', "--resume"),
        ("checkpoint-5/trainer_state.json", '{"glob', "--overwrite"),
        ("model.safetensors", "", "--overwrite"),
    ],
)
def test_interrupted_stage_resumes_only_from_a_complete_checkpoint(tmp_path, file, text, flag):
    stage = recipe(tmp_path).stages["teacher"]
    with pytest.raises(ValueError, match="out of luck"):
        stage.run(Commands(fail=["train"]))
    assert not stage.is_done
    path = stage.folder / file
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)
    commands = Commands()
    stage.run(commands)
    assert commands.calls == [("train", ["--config", str(stage.folder / "stage.yaml"), flag])]


def test_changed_option_changes_the_stage_and_those_that_build_on_it(tmp_path):
    before = recipe(tmp_path).stages
    after = recipe(tmp_path, changes={"teacher.epochs": 4}).stages
    assert before["teacher"].fingerprint != after["teacher"].fingerprint
    assert before["student"].fingerprint != after["student"].fingerprint
    assert before["unused"].fingerprint == after["unused"].fingerprint
    only_student = recipe(tmp_path, changes={"student": {"seed": 1}}).stages
    assert only_student["teacher"] == before["teacher"]
    assert only_student["student"].fingerprint != before["student"].fingerprint


@pytest.mark.parametrize(
    ("file", "option"),
    [("texts.txt", "{folder}/texts.txt"), ("config.json", "ltp:{folder}"), ("train.jsonl", "{folder}")],
)
def test_fingerprint_depends_on_contents_and_not_on_paths(tmp_path, file, option):
    folder = tmp_path / "one"
    folder.mkdir()
    fingerprints = []
    for text in ("one", "two"):
        (folder / file).write_text(text)
        fingerprints.append(fingerprint(tmp_path, {"data": option.format(folder=folder)}))
    assert fingerprints[0] != fingerprints[1]
    folder = folder.rename(tmp_path / "two")
    assert fingerprint(tmp_path / "runs", {"data": option.format(folder=folder)}) == fingerprints[1]


def test_prefix_of_a_path_changes_the_fingerprint(tmp_path):
    fingerprints = {fingerprint(tmp_path, {"data": f"{prefix}:{tmp_path}"}) for prefix in ("ltp", "other")}
    assert len(fingerprints) == 2


def test_file_with_the_name_of_a_choice_does_not_change_the_fingerprint(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    before = fingerprint(tmp_path, {"teacher.task": "rte"})
    (tmp_path / "rte").mkdir()
    (tmp_path / "rte" / "file").write_text("no option")
    assert fingerprint(tmp_path, {"teacher.task": "rte"}) == before


def test_names_with_hyphens_may_be_written_with_underscores(tmp_path):
    stage = {"command": "train", "seed": "${a-seed}", "epochs": 1}
    content = {"variables": {"a-seed": 1}, "stages": {"a-stage": stage}}
    for changes in ({"a_stage.epochs": 2, "a_seed": 3}, {"a-stage": {"epochs": 2}, "a-seed": 3}):
        assert Recipe(content, tmp_path, changes=changes).stages["a-stage"].options == {"seed": 3, "epochs": 2}


def test_fingerprint_depends_on_the_files_of_the_dataset_alone(tmp_path):
    data = tmp_path / "data"
    shutil.copytree(FIXTURES / "math23k", data / "math23k")

    def teacher(**changes):
        options = {"data": "math23k", "teacher.data_dir": str(data)}
        return fingerprint(tmp_path, options | changes)

    before = teacher()
    (data / "NOTES.txt").write_text("of no set")
    assert teacher() == before
    shutil.copytree(data, tmp_path / "elsewhere")
    assert teacher(**{"teacher.data_dir": str(tmp_path / "elsewhere")}) == before
    extra = {"teacher.extra_train": ["mawps:all"]}
    with_extra = teacher(**extra)
    assert with_extra not in (before, teacher(**{"teacher.extra_train": ["mawps"]}))
    shutil.copytree(FIXTURES / "mawps", data / "mawps")
    assert teacher(**extra) != with_extra
    assert teacher() == before
    with (data / "math23k" / "train.jsonl").open("a") as file:
        file.write("\n")
    assert teacher() != before
    # The datasets of the repository have contents as well, and are found without a folder.
    assert teacher(**{"teacher.data_dir": None}) not in (before, teacher(data="asdiv_a", **{"teacher.data_dir": None}))


@pytest.mark.parametrize(
    ("changes", "same_changes"),
    [
        ({"teacher.learning_rate": "2e-4"}, {"teacher.learning_rate": 0.0002}),
        ({"teacher.layers": "3"}, {"teacher.layers": 3}),
        ({"teacher.run_name": "one"}, {"teacher.report_to": "none"}),
        # The default dataset is known by its contents, like a given one.
        ({"teacher.dataset": None}, {"data": "math23k"}),
    ],
)
def test_equivalent_options_give_the_same_fingerprint(tmp_path, changes, same_changes):
    assert fingerprint(tmp_path, changes) == fingerprint(tmp_path, same_changes)
    assert fingerprint(tmp_path, changes) != fingerprint(tmp_path, {"teacher.learning_rate": True})


@pytest.mark.parametrize(
    "options",
    [
        {"dataset": "labelled.jsonl", "data_dir": "${teacher}"},
        {"dataset": "${teacher}/labelled.jsonl", "extra_train": ["mawps"]},
        {"dataset": "svamp", "extra_train": ["mawps", "${teacher}/labelled.jsonl"], "data_dir": str(FIXTURES)},
    ],
)
def test_files_that_a_stage_makes_do_not_change_the_name_of_the_next(tmp_path, options):
    changes = {f"student.{name}": value for name, value in options.items()}
    before = recipe(tmp_path, changes=changes).stages
    before["teacher"].folder.mkdir()
    (before["teacher"].folder / "labelled.jsonl").write_text("{}")
    assert recipe(tmp_path, changes=changes).stages == before


def test_launcher_changes_training_stages_alone(tmp_path):
    alone = recipe(tmp_path).stages
    launched = recipe(tmp_path, launch="torchrun --nproc_per_node 2").stages
    for name in ("teacher", "student"):
        assert alone[name].fingerprint != launched[name].fingerprint
    inputs = {"command": "evaluate", "options": {"beams": 5}, "made": {}}
    assert stage_inputs(**inputs) == stage_inputs(**inputs, launch="torchrun")


def test_place_of_a_cache_changes_no_fingerprint_and_needs_no_stage(tmp_path):
    before = recipe(tmp_path).stages["student"]
    (tmp_path / "cache").mkdir()
    for cache in (str(tmp_path / "cache"), "${teacher}/outputs"):
        student = recipe(tmp_path, changes={"student.teacher_cache_dir": cache}).stages["student"]
        assert student.fingerprint == before.fingerprint
        assert student.options["teacher_cache_dir"].startswith("/")
    changes = {"student.teacher": "elsewhere", "student.lists": None, "student.teacher_cache_dir": cache}
    changed = recipe(tmp_path, changes=changes)
    student = changed.stages["student"]
    assert student.options["teacher_cache_dir"] == f"{changed.stages['teacher'].folder}/outputs"
    assert student.needs == ()
    assert changed.wanted() == [student]


def test_checkpoint_to_start_from_is_an_input(tmp_path):
    fingerprints = set()
    for step in (5, 9):
        changes = {"student.teacher": "elsewhere", "student.lists": None}
        changes["student.resume_from_checkpoint"] = f"${{teacher}}/checkpoint-{step}"
        changed = recipe(tmp_path, changes=changes)
        assert [stage.name for stage in changed.wanted()] == ["teacher", "student"]
        fingerprints.add(changed.stages["student"].fingerprint)
    assert len(fingerprints) == 2


def test_hyphen_in_an_option_is_an_underscore(tmp_path):
    changes = {"teacher.max-steps": 9}
    assert recipe(tmp_path, changes=changes).stages["teacher"].options["max_steps"] == 9
    options = recipe(tmp_path, changes=[changes, {"teacher.max_steps": None}]).stages["teacher"].options
    assert not {"max-steps", "max_steps"} & options.keys()
    with pytest.raises(RecipeError, match="output_dir"):
        recipe(tmp_path, changes={"teacher.output-dir": "mine"})


def test_tilde_is_the_home_folder(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    assert recipe("~/runs").stages["teacher"].folder.parent == tmp_path / "runs"


def test_budgets_and_changes_set_options(tmp_path):
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
        ({"teacher": None}, "teacher: .*mapping.*None"),
        ({"teacher": 5}, "teacher: .*mapping.*5"),
        ({"data": "${seed}", "seed": ["x${layers}"], "layers": "${seed}"}, r"teacher.seed: '\${seed}'"),
        ({"data": "${data}/more"}, r"teacher.dataset: '\${data}'.*(?i:recursive)"),
        ({"data": "${oc.env:SECRET}"}, "variables.data: .*resolver"),
        ({"teacher.dataset": "${oc.env:SECRET}"}, "teacher.dataset: .*resolver"),
    ],
)
def test_wrong_changes_are_named_with_their_place(tmp_path, changes, message):
    with pytest.raises(RecipeError, match=message):
        recipe(tmp_path, changes=changes)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ({"stages": {"teacher": None}}, r"stages\.teacher: .*mapping.* None"),
        ({"stages": {1: {"command": "train"}}}, "stages: .* 1 .*quotes"),
        ({"budgets": ["large"]}, r"budgets: .*mapping.* \['large'\]"),
        ({"budgets": {"large": 5}}, r"budgets\.large: .*mapping.* 5"),
        ({"budgets": {"large": {"teacher": [1]}}}, r"budgets\.large\.teacher: .*mapping.* \[1\]"),
        ({"budgets": {"large": {"variables": "a"}}}, r"budgets\.large\.variables: .*mapping.* 'a'"),
        ({"budgets": {"large": {"techer": {"epochs": 1}}}}, r"budgets\.large: .*'techer'.*'teacher'"),
        ({"budgets": {"large": {"variables": {"sed": 1}}}}, r"budgets\.large: .*'sed'.*'seed'"),
        ({"variables": ["seed"]}, r"variables: .*mapping.* \['seed'\]"),
        ({"targets": "student"}, r"targets: .*list.* 'student'"),
        ({"targets": [["student"]]}, r"targets: .*list.* \[\['student'\]\]"),
        ({"budget": "huge"}, "'huge'.*large, small"),
        ({"stage": {}}, "'stage'.*'stages'"),
        ({"base": "base.yaml"}, "unknown key 'base'"),
    ],
)
def test_wrong_keys_and_values_are_named_with_their_place(tmp_path, content, message):
    with pytest.raises(RecipeError, match=f"some.yaml.*{message}"):
        Recipe({**CONTENT, **content}, tmp_path, source="some.yaml")


def test_content_without_stages_is_no_recipe(tmp_path):
    with pytest.raises(RecipeError, match="some.yaml: not a recipe.*`stages`.* --config FILE"):
        Recipe({"dataset": "asdiv_a", "fold": 0}, tmp_path, source="some.yaml")


def test_empty_sections_are_allowed(tmp_path):
    stages = {"one": {"command": "train"}}
    content = {**CONTENT, "variables": None, "budgets": {"large": None}, "stages": stages, "targets": None}
    assert Recipe(content, tmp_path).targets == ["one"]


def test_variable_may_be_used_twice(tmp_path):
    teacher = recipe(tmp_path, changes={"layers": ["${data}", "${data}"]}).stages["teacher"]
    assert teacher.options["layers"] == ["numbers", "numbers"]


@pytest.mark.parametrize("name", ["../../evil", "a/b", "..", "", "a b", "a:b", "-a", "a\0b", "${seed}", "x" * 61])
def test_stage_has_a_name_that_a_folder_can_have(name, tmp_path):
    with pytest.raises(RecipeError, match="the recipe, stages: .* 60 letters"):
        Recipe({"stages": {name: {"command": "train"}}}, tmp_path)


@pytest.mark.parametrize("name", ["teacher_2-b", "教师", "\U00020000" * 60])
def test_longest_names_of_stages_can_be_run(name, tmp_path):
    (result,) = Recipe({"stages": {name: {"command": "train"}}}, tmp_path).run({"train": lambda argv: None})
    assert result.stage.folder.parent == tmp_path
    assert result.stage.is_done


def test_numbers_in_mappings_are_numbers(tmp_path, write):
    mapping = "{command: train, encoder_config: {layer_norm_eps: 1e-12}, rates: [2e-4, 1E3, 5]}"
    written = Recipe.from_file(write("r.yaml", f"stages: {{one: {mapping}}}"), tmp_path)
    options = written.stages["one"].options
    assert options == {"encoder_config": {"layer_norm_eps": 1e-12}, "rates": [2e-4, 1000.0, 5]}
    # The command reads them from the stage's own file.
    written.run({"train": lambda argv: None})
    (file,) = tmp_path.glob("one-*/stage.yaml")
    assert yaml.safe_load(file.read_text())["encoder_config"] == {"layer_norm_eps": 1e-12}


@pytest.mark.parametrize(
    ("text", "key", "line"),
    [
        ("stages:\n  one: {command: train}\n  two: {command: train}\n  one: {command: mix}", "one", 4),
        ("stages:\n  one:\n    command: train\n    encoder_config:\n      a: [{b: 1, c: 2, b: 3}]", "b", 5),
    ],
)
def test_duplicate_key_is_refused_with_its_place(write, text, key, line):
    with pytest.raises(RecipeError, match=rf"r.yaml(?s:.*)duplicate key {key}\n.*line {line},"):
        read_recipe(write("r.yaml", text))


def test_later_changes_win(tmp_path):
    changes = [{"teacher": {"epochs": 4, "x": 1}}, {"teacher.epochs": 5, "seed": 1}, {"variables": {"seed": 2}}]
    options = recipe(tmp_path, changes=changes).stages["teacher"].options
    assert options == {"seed": 2, "dataset": "numbers", "epochs": 5, "x": 1}


def test_option_that_is_a_mapping_is_replaced_as_a_whole(tmp_path):
    changes = [{"teacher.config": {"a": 1, "b": 2}}, {"teacher.config": {"a": 3}}]
    assert recipe(tmp_path, changes=changes).stages["teacher"].options["config"] == {"a": 3}


def test_file_overrides_its_base(tmp_path, write):
    write("base.yaml", CONTENT)
    content = {
        "base": "../base.yaml",
        "variables": {"seed": 1, "labels": "${teacher}/labels"},
        "stages": {"student": {"lists": ["${labels}"]}, "last": {"command": "train", "solver": "${student}"}},
        "budgets": {"small": {"teacher": {"layers": 2}}, "none": {}},
        "targets": ["last"],
    }
    path = write("files/more.yaml", content)
    merged = Recipe.from_file(path, tmp_path / "runs", budget="small")
    assert merged.title == "Two models"
    assert [stage.name for stage in merged.wanted()] == ["teacher", "student", "last"]
    teacher = merged.stages["teacher"]
    student = merged.stages["student"]
    assert teacher.options == {"seed": 1, "dataset": "few", "epochs": 1, "layers": 2}
    assert student.options == {"teacher": str(teacher.folder), "seed": 1, "lists": [f"{teacher.folder}/labels"]}
    assert Recipe.from_file(path, tmp_path / "runs").stages["teacher"].options["dataset"] == "numbers"
    # Stages that the file does not change are not run again.
    assert merged.stages["unused"].fingerprint == recipe(tmp_path).stages["unused"].fingerprint


@pytest.mark.parametrize(
    ("base", "content", "message"),
    [
        ("base: more.yaml", "base: base.yaml", "more.yaml: .*`base`.*more.yaml"),
        ("a text", "base: base.yaml", "more.yaml: .*`base`.*base.yaml"),
        ("stages: {teacher: {command: train}}", "base: base.yaml\nstages: [teacher]", "more.yaml: .*list.*mapping"),
        ("stages: {teacher: {command: train}}", "base: base.yaml\nstages: {teacher: [9]}", "more.yaml: .*mapping"),
        ("variables: {a: '${oc.env:SECRET}'}", "base: base.yaml", r"base\.yaml, variables\.a: .*resolver"),
    ],
)
def test_wrong_base_is_named(tmp_path, write, base, content, message):
    write("base.yaml", base)
    with pytest.raises(RecipeError, match=message):
        Recipe.from_file(write("more.yaml", content), tmp_path)


def test_other_base_replaces_the_base_of_the_file(tmp_path, write):
    base = write("one.yaml", "variables: {a: 1, b: 1}\nstages: {s: {command: train, seed: '${a}${b}'}}")
    other_base = write("two.yaml", "base: one.yaml\nvariables: {a: 2}")
    path = write("own.yaml", "base: one.yaml\nvariables: {b: 3}")
    assert Recipe.from_file(path, tmp_path).stages["s"].options == {"seed": "13"}
    assert Recipe.from_file(path, tmp_path, other_base).stages["s"].options == {"seed": "23"}
    with pytest.raises(RecipeError, match="one.yaml .*`base`.*two.yaml"):
        Recipe.from_file(base, tmp_path, other_base)
    with pytest.raises(RecipeError, match="own.yaml: .*`base`.*own.yaml"):
        Recipe.from_file(path, tmp_path, path)
    with pytest.raises(RecipeError, match="own.yaml: .*none.yaml is not a valid recipe"):
        Recipe.from_file(path, tmp_path, write("none.yaml", "seed: 4"))


def test_file_may_require_a_value_that_its_base_has(tmp_path, write):
    write("base.yaml", CONTENT)
    path = write("more.yaml", "base: base.yaml\nvariables: {data: '???'}")
    with pytest.raises(RecipeError, match="stage teacher.*--data"):
        Recipe.from_file(path, tmp_path).wanted()
    changed = Recipe.from_file(path, tmp_path, changes={"data": "few"})
    assert changed.stages["teacher"].options == {"seed": 42, "dataset": "few", "epochs": 3}


def test_content_that_is_read_includes_its_base(tmp_path, write):
    write("base.yaml", CONTENT)
    content = read_recipe(write("more.yaml", "{base: base.yaml, stages: {teacher: {epochs: 9}}}"))
    assert "base" not in content
    assert Recipe(content, tmp_path).stages["teacher"].options["epochs"] == 9


@pytest.mark.parametrize(
    "value",
    [
        "Made on ${ oc.env : SECRET }.",
        "${oc.env:NOTHING,${oc.env:SECRET}}",
        "${oc.${word}:SECRET}",
        "${oc.decode:'1'}",
        r"\\${oc.env:SECRET}",
        r"\${oc.env:SECRET}",  # a backslash does not help, since the command reads the value from a file of options
        {"deep": ["x", "${oc.env:SECRET}"]},
    ],
)
def test_resolvers_are_refused_with_file_and_key(tmp_path, write, monkeypatch, value):
    monkeypatch.setenv("SECRET", "hush")
    in_stage = {"variables": {"word": "env"}, "stages": {"card": {"command": "card", "notes": value}}}
    in_variable = {"variables": {"word": value}, "stages": {"card": {"command": "card", "notes": "${word}"}}}
    for content in (in_stage, in_variable):
        with pytest.raises(RecipeError, match=r"some\.yaml, .*(notes|word).*resolver") as error:
            Recipe.from_file(write("some.yaml", content), tmp_path)
        assert "hush" not in str(error.value)


def test_backslash_keeps_the_text_of_a_reference(tmp_path):
    content = {"variables": {"a": 1}, "stages": {"card": {"command": "card", "notes": r"\${a} is ${a}: yes"}}}
    assert Recipe(content, tmp_path).stages["card"].options == {"notes": "${a} is 1: yes"}


def test_unknown_target_and_damaged_file_are_named(tmp_path, write):
    with pytest.raises(RecipeError, match="'studnt'.*'student'"):
        recipe(tmp_path).wanted(["studnt"])
    with pytest.raises(RecipeError, match="none.yaml"):
        Recipe.from_file(tmp_path / "none.yaml", tmp_path)
    with pytest.raises(RecipeError, match="broken.yaml.*YAML"):
        Recipe.from_file(write("broken.yaml", "stages: ["), tmp_path)


def test_seconds_count_earlier_starts_up_to_the_checkpoint_that_was_resumed(tmp_path, monkeypatch):
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


def test_stage_waits_for_another_run_of_it(tmp_path, caplog):
    begun = threading.Event()
    may_end = threading.Event()

    class Slow(Commands):
        def call(self, name, argv):
            begun.set()
            assert may_end.wait(30)
            return super().call(name, argv)

    slow_commands = Slow()
    commands = Commands()
    with ThreadPoolExecutor(2) as pool:
        slow_run = pool.submit(recipe(tmp_path).stages["teacher"].run, slow_commands)
        assert begun.wait(30)
        waiting_run = pool.submit(recipe(tmp_path).stages["teacher"].run, commands)
        time.sleep(0.2)
        assert not waiting_run.done()
        may_end.set()
        assert not slow_run.result(30).skipped
        assert waiting_run.result(30).skipped
    assert len(slow_commands.calls) == 1
    assert not commands.calls
    assert recipe(tmp_path).stages["teacher"].folder.name in caplog.text
