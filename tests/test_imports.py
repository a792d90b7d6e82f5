"""Structure of the package: which module imports which, and what an import pulls in."""

import ast
import re
import subprocess
import sys
import textwrap
from functools import cache
from pathlib import Path

import pytest

from tests.fresh_python import run_fresh


PACKAGE = Path(__file__).parents[1] / "hf_mwp"

# The five boxes of the package, and the boxes that each imports besides itself. `compress` knows no problem and no
# expression, `runtime` no PyTorch.
BOXES = {
    "utils": set(),
    "compress": {"utils"},
    "runtime": {"utils"},
    "solver": {"utils", "compress", "runtime"},
    "commands": {"utils", "compress", "runtime", "solver"},
}

# Imported where they are used, so that `import hf_mwp` stays quick.
LAZY = {
    *("datasets", "evaluate", "pyarrow", "matplotlib", "rich", "jieba", "ltp", "peft", "onnx", "onnxruntime"),
    "omegaconf",
}

# But for the command line, and for classes derived from `evaluate.Metric`, whose files are themselves reached lazily.
AT_ONCE = {
    "commands": {"rich"},
    "solver/metrics/evaluate_metrics.py": {"datasets", "evaluate"},
}


def modules() -> list[Path]:
    return sorted(PACKAGE.rglob("*.py"))


def name_of(path: Path) -> tuple[str, ...]:
    parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
    return parts[:-1] if parts[-1] == "__init__" else parts


def imported(path: Path, node: ast.Import | ast.ImportFrom) -> list[tuple[str, ...]]:
    """Absolute names, as tuples, of what an import statement in the file `path` names."""
    if isinstance(node, ast.Import):
        return [tuple(alias.name.split(".")) for alias in node.names]
    base: tuple[str, ...] = ()
    if node.level:
        package = path.relative_to(PACKAGE.parent).parent.parts
        base = package[: len(package) - node.level + 1]
    base += tuple(node.module.split(".")) if node.module else ()
    return [(*base, alias.name) for alias in node.names]


@cache
def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


@cache
def imports_of(path: Path) -> list[tuple[int, tuple[str, ...]]]:
    nodes = [node for node in ast.walk(tree_of(path)) if isinstance(node, ast.Import | ast.ImportFrom)]
    return [(node.lineno, name) for node in nodes for name in imported(path, node)]


def imports_at_load(path: Path) -> list[tuple[int, tuple[str, ...]]]:
    """Imports that run with the file: not those inside functions, nor those for type checkers alone."""
    found: list[tuple[int, tuple[str, ...]]] = []

    def visit(node: ast.AST) -> None:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            return
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            return
        if isinstance(node, ast.Import | ast.ImportFrom):
            found.extend((node.lineno, name) for name in imported(path, node))
        for child in ast.iter_child_nodes(node):
            visit(child)

    visit(tree_of(path))
    return found


def run(code: str) -> str:
    result = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, cwd=PACKAGE.parent
    )
    assert result.returncode == 0, result.stderr[-2000:]
    return result.stdout


def test_every_folder_is_a_box():
    folders = {path.name for path in PACKAGE.iterdir() if (path / "__init__.py").exists()}
    assert folders == set(BOXES)


def test_only_models_and_the_registry_name_a_decoder():
    pattern = re.compile("gts(?!_)|athena(?!-math)", re.IGNORECASE)
    # The registry of the command line, and the weights that the runtime reads.
    allowed = {"__init__.py", "commands/building/solver.py", "runtime/tree_search.py"}
    found = set()
    for path in modules():
        nodes = [*ast.walk(tree_of(path))] if pattern.search(path.read_text(encoding="utf-8")) else []
        texts = {node.value for node in nodes if isinstance(node, ast.Expr)}
        for node in nodes:
            named = [getattr(node, field, None) for field in ("id", "attr", "name", "value") if node not in texts]
            if any(isinstance(each, str) and pattern.search(each) for each in named):
                found.add(path.relative_to(PACKAGE).as_posix())
    assert {path for path in found if not path.startswith("solver/models/")} == allowed


def test_relative_imports_are_resolved():
    statement = ast.parse("from ..problems import find_numbers").body[0]
    path = PACKAGE / "runtime" / "numbers" / "forms.py"
    assert imported(path, statement) == [("hf_mwp", "runtime", "problems", "find_numbers")]
    statement = ast.parse("from .matching import answers_match").body[0]
    assert imported(PACKAGE / "metrics" / "__init__.py", statement) == [
        ("hf_mwp", "metrics", "matching", "answers_match")
    ]


def test_imports_go_one_way():
    wrong = []
    for path in modules():
        # The second file is copied into the folders of models.
        if path.parent == PACKAGE or path.name == "use_hf_mwp.py":
            continue
        box = name_of(path)[1]
        allowed = {box} | BOXES[box]
        for line, name in imports_of(path):
            if name[0] == "hf_mwp" and (len(name) == 1 or name[1] not in allowed):
                wrong.append(f"{path.relative_to(PACKAGE.parent)}:{line} imports {'.'.join(name)}")
    assert not wrong, "a box imports from itself and the boxes in `BOXES` only:\n" + "\n".join(wrong)


def test_the_package_does_not_know_its_examples():
    examples = (PACKAGE.parent / "examples").iterdir()
    code = (path.stem for path in examples if path.suffix == ".py" or (path / "__init__.py").exists())
    scripts = {"examples", "tests", *code}
    wrong = [f"{path}:{line}" for path in modules() for line, name in imports_of(path) if name[0] in scripts]
    assert not wrong


def test_no_two_files_import_each_other():
    """Not inside functions either, nor for types."""
    files = {name_of(path): path for path in modules()}
    graph = {name: set() for name in files}
    for name, path in files.items():
        for _, imported_name in imports_of(path):
            target = imported_name if imported_name in files else imported_name[:-1]
            if target in files and target != name:
                graph[name].add(target)
    circles = sorted({tuple(sorted((".".join(a), ".".join(b)))) for a in graph for b in graph[a] if a in graph[b]})
    assert not circles, f"files that import each other: {circles}"


def test_chains_of_imports_are_short():
    """To understand a file, nobody has to follow more than 20 files down."""
    files = {name_of(path): path for path in modules()}

    @cache
    def longest_chain(name: tuple[str, ...]) -> tuple[str, ...]:
        longest: tuple[str, ...] = ()
        for _, imported_name in imports_at_load(files[name]):
            target = imported_name if imported_name in files else imported_name[:-1]
            if target in files and target != name:
                longest = max(longest, longest_chain(target), key=len)
        return (".".join(name), *longest)

    chain = max(map(longest_chain, files), key=len)
    assert len(chain) <= 20, f"the longest chain of imports has {len(chain)} files: {' -> '.join(chain)}"


def test_slow_packages_are_imported_lazily():
    wrong = []
    for path in modules():
        inside = path.relative_to(PACKAGE)
        allowed = AT_ONCE.get(inside.parts[0], set()) | AT_ONCE.get(str(inside), set())
        for line, name in imports_at_load(path):
            if name[0] in LAZY - allowed:
                wrong.append(f"{path.relative_to(PACKAGE.parent)}:{line} imports {name[0]}")
    assert not wrong, "import these inside the functions that use them:\n" + "\n".join(wrong)


def test_the_student_travels_alone():
    # save_pretrained copies `from .sibling import X`, nothing else, when the model goes to the Hub with its code.
    for path in (PACKAGE / "compress" / "models" / "mwp_student").glob("*.py"):
        for line, name in imports_of(path):
            own = name[:4] == ("hf_mwp", "compress", "models", "mwp_student")
            assert name[0] != "hf_mwp" or own, f"{path.name}:{line}"


@pytest.mark.parametrize("package", ["runtime.expressions", "runtime.problems"])
def test_no_torch_is_needed_for(package):
    run(f"""
        import importlib.abc, pathlib, sys, types

        class Blocked(importlib.abc.MetaPathFinder):
            def find_spec(self, name, path, target=None):
                if name.partition(".")[0] in ("torch", "transformers", "numpy", "datasets", "evaluate"):
                    raise ImportError(name + " is blocked")

        sys.meta_path.insert(0, Blocked())
        root = types.ModuleType("hf_mwp")  # in place of the package itself, which registers the models
        root.__path__ = [{str(PACKAGE)!r}]
        sys.modules["hf_mwp"] = root
        import hf_mwp.{package}
    """)


def test_compress_does_not_load_the_boxes_above():
    run(f"""
        import sys, types

        root = types.ModuleType("hf_mwp")  # in place of the package itself, which registers the models
        root.__path__ = [{str(PACKAGE)!r}]
        sys.modules["hf_mwp"] = root
        import hf_mwp.compress.trainers.distillation_trainer

        boxes = ("hf_mwp.solver", "hf_mwp.runtime", "hf_mwp.commands")
        loaded = [name for name in sys.modules if name.startswith(boxes)]
        assert not loaded, loaded
    """)


def test_import_registers_and_stays_light(tmp_path):
    code = f"""
        import sys
        from transformers import AutoConfig

        before = set(sys.modules)
        import hf_mwp, hf_mwp.solver.data, hf_mwp.compress.losses, hf_mwp.compress.distillation, hf_mwp.solver.metrics
        loaded = ({{*{sorted(LAZY)!r}, "transformers.trainer"}} & set(sys.modules)) - before
        assert not loaded, loaded
        for model_type in ("mwp_student", "mwp_gts", "mwp_solver"):
            assert AutoConfig.for_model(model_type).model_type == model_type
    """
    run_fresh(tmp_path, (textwrap.dedent(code),))


def test_help_needs_no_torch():
    run("""
        import sys
        sys.argv[0] = "bin/hf-mwp"
        from hf_mwp.commands.main import COMMANDS, main

        for argv in (["--help"], ["--version"], *([command, "--help"] for command in COMMANDS)):
            try:
                main(argv)
            except SystemExit as stopped:
                assert stopped.code == 0
            loaded = {"torch", "transformers", "datasets", "numpy", "matplotlib"} & set(sys.modules)
            assert not loaded, (argv, loaded)
    """)


def test_solving_to_a_file_without_pytorch_needs_no_torch(solver_folder, tmp_path):
    (tmp_path / "problems.txt").write_text("小明有4个苹果和2个梨，一共有多少个水果？\n", "utf-8")
    argv = ["solve", "--model", str(solver_folder), "--runtime", "numpy", "--file", str(tmp_path / "problems.txt")]
    run(f"""
        import sys
        sys.argv[0] = "bin/hf-mwp"
        from hf_mwp.commands.main import main

        assert main({[*argv, "--output", str(tmp_path / "answers.jsonl")]!r}) == 0
        assert not {{"torch", "transformers", "datasets"}} & set(sys.modules)
    """)
    assert len((tmp_path / "answers.jsonl").read_text("utf-8").splitlines()) == 1


def test_the_command_line_registers_when_it_has_its_arguments(tmp_path):
    code = """
        import sys
        from transformers import AutoConfig, AutoModel
        from transformers.pipelines import PIPELINE_REGISTRY

        sys.argv[0] = "bin/hf-mwp"
        import hf_mwp
        assert "math-word-problem" not in PIPELINE_REGISTRY.get_supported_tasks()
        from hf_mwp.commands.main import run_command

        try:
            run_command("heads", ["--model", "nowhere/at/all", "--dataset", "nowhere.jsonl"])
        except ValueError:
            pass
        assert "math-word-problem" in PIPELINE_REGISTRY.get_supported_tasks()
        for model_type in ("mwp_student", "mwp_gts", "mwp_solver"):
            assert type(AutoConfig.for_model(model_type)) in AutoModel._model_mapping
    """
    run_fresh(tmp_path, (textwrap.dedent(code),))


def test_files_stay_short():
    lengths = {path: len(path.read_text(encoding="utf-8").splitlines()) for path in modules()}
    assert not [path for path, length in lengths.items() if length > (450 if "modeling_" in path.name else 400)]


def test_a_statement_is_one_step():
    """No comprehension is inside another, and unrelated values are not assigned together."""
    comprehensions = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
    packed = []
    for path in modules():
        for node in ast.walk(tree_of(path)):
            inner = [child for child in ast.walk(node) if isinstance(child, comprehensions)]
            is_nested = isinstance(node, comprehensions) and (len(inner) > 1 or len(node.generators) > 1)
            is_parallel = isinstance(node, ast.Assign) and isinstance(node.value, ast.Tuple)
            if is_nested or (is_parallel and isinstance(node.targets[0], ast.Tuple)):
                packed.append(f"{path.relative_to(PACKAGE.parent)}:{node.lineno}")
    assert not packed


def test_every_folder_of_modules_is_a_package_that_git_keeps():
    """A wheel has only folders with an `__init__.py`, and a clone only files that are not ignored."""
    assert {path.parent for path in modules()} == {path.parent for path in PACKAGE.rglob("__init__.py")}
    command = ["git", "ls-files", "--cached", "--others", "--ignored", "--exclude-standard", "--", "*.py"]
    listed = subprocess.run(command, cwd=PACKAGE.parent, capture_output=True, text=True)
    assert not [path for path in listed.stdout.split() if path.startswith(("hf_mwp/", "tests/"))]
