"""Structure of the package: which module imports which, and what an import pulls in."""

import ast
import pickle
import re
import subprocess
import sys
import textwrap
from functools import cache
from pathlib import Path

import pytest

from hf_mwp import MwpStudentConfig
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
    if node.module:
        base += tuple(node.module.split("."))
    return [(*base, alias.name) for alias in node.names]


@cache
def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


@cache
def nodes_of(path: Path) -> list[ast.AST]:
    return list(ast.walk(tree_of(path)))


@cache
def imports_of(path: Path) -> list[tuple[int, tuple[str, ...]]]:
    """Lines and names of all imports of a file."""
    return imports_among(path, nodes_of(path))


def imports_among(path, nodes) -> list[tuple[int, tuple[str, ...]]]:
    imports = []
    for node in nodes:
        if isinstance(node, ast.Import | ast.ImportFrom):
            imports += [(node.lineno, name) for name in imported(path, node)]
    return imports


def nodes_at_load(node: ast.AST):
    """Nodes that run with the file: not those inside functions, nor those for type checkers alone."""
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
        return
    if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
        return
    yield node
    for child in ast.iter_child_nodes(node):
        yield from nodes_at_load(child)


def run(code: str) -> str:
    result = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, cwd=PACKAGE.parent
    )
    assert result.returncode == 0, result.stderr[-2000:]
    return result.stdout


def place(path: Path, line: int) -> str:
    return f"{path.relative_to(PACKAGE.parent)}:{line}"


def test_boxes_are_the_folders_of_the_package_and_of_contributing():
    folders = [path.parent.name for path in PACKAGE.glob("*/__init__.py")]
    text = (PACKAGE.parent / "CONTRIBUTING.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `(\w+)/` \|", text, re.MULTILINE)
    assert sorted(folders) == sorted(rows) == sorted(BOXES)


def test_only_models_and_the_registry_name_a_decoder():
    pattern = re.compile("gts(?!_)|athena(?!-math)", re.IGNORECASE)
    # The registry of the command line, and the weights that the runtime reads.
    allowed = {"__init__.py", "commands/building/solver.py", "runtime/tree_search.py"}
    files = set()
    for path in modules():
        if not pattern.search(path.read_text(encoding="utf-8")):
            continue
        nodes = nodes_of(path)
        docstrings = {node.value for node in nodes if isinstance(node, ast.Expr)}
        for node in nodes:
            for field in ("id", "attr", "name", "value"):
                name = getattr(node, field, None)
                if node not in docstrings and isinstance(name, str) and pattern.search(name):
                    files.add(path.relative_to(PACKAGE).as_posix())
    assert {file for file in files if not file.startswith("solver/models/")} == allowed


def test_imports_go_one_way():
    examples = {path.stem for path in (PACKAGE.parent / "examples").glob("*.py")}
    wrong = []
    for path in modules():
        # The second file is copied into the folders of models.
        if path.parent == PACKAGE or path.name == "use_hf_mwp.py":
            continue
        box = name_of(path)[1]
        allowed = {box} | BOXES[box]
        for line, name in imports_of(path):
            is_of_a_box_above = name[0] == "hf_mwp" and (len(name) == 1 or name[1] not in allowed)
            if is_of_a_box_above or name[0] in {"examples", "tests", *examples}:
                wrong.append(f"{place(path, line)} imports {'.'.join(name)}")
    assert not wrong, "a box imports from itself and the boxes in `BOXES` only:\n" + "\n".join(wrong)


def test_no_two_files_import_each_other():
    """Not inside functions either, nor for types."""
    files = {name_of(path): path for path in modules()}
    edges = set()
    for name, path in files.items():
        for _, imported_name in imports_of(path):
            target = imported_name if imported_name in files else imported_name[:-1]
            if target in files and target != name:
                edges.add((name, target))
    assert not [edge for edge in edges if edge[::-1] in edges]


def test_chains_of_imports_are_short():
    """To understand a file, nobody has to follow more than 20 files down."""
    files = {name_of(path): path for path in modules()}

    @cache
    def longest_chain(name: tuple[str, ...]) -> tuple[str, ...]:
        longest: tuple[str, ...] = ()
        path = files[name]
        for _, imported_name in imports_among(path, nodes_at_load(tree_of(path))):
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
        for line, name in imports_among(path, nodes_at_load(tree_of(path))):
            if name[0] in LAZY - allowed:
                wrong.append(f"{place(path, line)} imports {name[0]}")
    assert not wrong, "import these inside the functions that use them:\n" + "\n".join(wrong)


def test_student_imports_only_its_siblings():
    # save_pretrained copies `from .sibling import X`, nothing else, when the model goes to the Hub with its code.
    student = ("hf_mwp", "compress", "models", "mwp_student")
    for path in (PACKAGE / "compress" / "models" / "mwp_student").glob("*.py"):
        for line, name in imports_of(path):
            assert name[0] != "hf_mwp" or name[:4] == student, f"{path.name}:{line}"


def test_runtime_problems_need_no_torch():
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
        import hf_mwp.runtime.expressions, hf_mwp.runtime.problems
    """)


@pytest.mark.slow
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
        for model_type in ("mwp_student", "mwp_gts", "mwp_solver", "mwp_cut_bart"):
            assert AutoConfig.for_model(model_type).model_type == model_type
    """
    run_fresh(tmp_path, (textwrap.dedent(code),))


def test_help_needs_no_torch():
    run("""
        import sys
        from hf_mwp.commands.main import COMMANDS, main

        for argv in (["--help"], ["--version"], *([command, "--help"] for command in COMMANDS)):
            try:
                main(argv)
            except SystemExit as stopped:
                assert stopped.code == 0
            loaded = {"torch", "transformers", "datasets", "numpy", "matplotlib"} & set(sys.modules)
            assert not loaded, (argv, loaded)
    """)


@pytest.mark.slow
def test_solving_to_a_file_without_pytorch_needs_no_torch(solver_folder, tmp_path):
    (tmp_path / "problems.txt").write_text("小明有4个苹果和2个梨，一共有多少个水果？\n", "utf-8")
    argv = ["solve", "--model", str(solver_folder), "--runtime", "numpy", "--file", str(tmp_path / "problems.txt")]
    run(f"""
        import sys
        from hf_mwp.commands.main import main

        assert main({[*argv, "--output", str(tmp_path / "answers.jsonl")]!r}) == 0
        assert not {{"torch", "transformers", "datasets"}} & set(sys.modules)
    """)
    assert len((tmp_path / "answers.jsonl").read_text("utf-8").splitlines()) == 1


@pytest.mark.slow
def test_solving_with_pytorch_does_not_import_datasets(solver_folder, tmp_path):
    code = """
        import sys
        from hf_mwp.commands.main import main

        assert main(["solve", "--runtime", "torch", "--model", sys.argv[1], "4个苹果和2个梨"]) == 0
        assert "torch" in sys.modules
        assert "datasets" not in sys.modules
    """
    run_fresh(tmp_path, (textwrap.dedent(code), solver_folder))


def test_runtime_imports_neither_pytorch_nor_transformers(solver_folder):
    run(f"""
        import importlib.util, sys
        from hf_mwp.runtime import load_solver

        assert load_solver({str(solver_folder)!r})("4个苹果和2个梨")[0]["equation"]
        import hf_mwp.solver.data
        assert importlib.util.find_spec("transformers") is not None
        assert not {{"torch", "transformers", "datasets"}} & set(sys.modules)
    """)


@pytest.mark.slow
def test_models_are_registered_when_transformers_is_imported_after_the_runtime(solver_folder):
    run(f"""
        import importlib, sys
        import hf_mwp.runtime

        assert "transformers" not in sys.modules
        from transformers import AutoModel
        from transformers.pipelines import PIPELINE_REGISTRY

        assert type(AutoModel.from_pretrained({str(solver_folder)!r})) is hf_mwp.MwpSolver
        assert "math-word-problem" in PIPELINE_REGISTRY.get_supported_tasks()
        assert all("hf_mwp" not in type(finder).__module__ for finder in sys.meta_path)
        importlib.reload(sys.modules["hf_mwp"])
        importlib.reload(sys.modules["transformers"])
        assert type(AutoModel.from_pretrained({str(solver_folder)!r})) is hf_mwp.MwpSolver
    """)


@pytest.mark.slow
def test_models_are_registered_when_a_module_of_the_package_imports_transformers_first():
    run("""
        from hf_mwp.compress.trainers.distillation_trainer import DistillationTrainer
        from transformers import AutoConfig, AutoModel

        for model_type in ("mwp_student", "mwp_gts", "mwp_solver"):
            assert type(AutoConfig.for_model(model_type)) in AutoModel._model_mapping
    """)


@pytest.mark.slow
def test_pickled_config_registers_the_models_in_a_new_process(tmp_path):
    """As in a spawned process of multiprocessing."""
    config = MwpStudentConfig(num_hidden_layers=1, hidden_size=8, num_attention_heads=2, intermediate_size=8)
    (tmp_path / "config.pickle").write_bytes(pickle.dumps(config))
    code = """
        import pickle, sys
        from transformers import AutoModel

        with open(sys.argv[1], "rb") as file:
            model = AutoModel.from_config(pickle.load(file))
        assert type(model).__name__ == "MwpStudentModel"
    """
    run_fresh(tmp_path, (textwrap.dedent(code), tmp_path / "config.pickle"))


@pytest.mark.slow
def test_nothing_is_registered_without_pytorch():
    run("""
        import sys
        sys.modules["torch"] = None
        import hf_mwp.runtime
        assert all("hf_mwp" not in type(finder).__module__ for finder in sys.meta_path)
        import transformers
        assert not any(name.startswith("hf_mwp.solver") for name in sys.modules)
    """)


def test_files_stay_short():
    for path in modules():
        num_lines = len(path.read_text(encoding="utf-8").splitlines())
        assert num_lines <= (450 if "modeling_" in path.name else 400), path


COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


def is_packed(node: ast.AST) -> bool:
    """A comprehension with another one inside, or values that are assigned together."""
    if isinstance(node, COMPREHENSIONS):
        inner = [child for child in ast.walk(node) if isinstance(child, COMPREHENSIONS)]
        return len(inner) > 1 or len(node.generators) > 1
    is_assignment = isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Tuple)
    return is_assignment and isinstance(node.value, ast.Tuple)


def test_statement_is_one_step():
    packed = []
    for path in modules():
        packed += [place(path, node.lineno) for node in nodes_of(path) if is_packed(node)]
    assert not packed


def test_every_folder_of_modules_is_a_package_that_git_keeps():
    """A wheel has only folders with an `__init__.py`, and a clone only files that are not ignored."""
    assert {path.parent for path in modules()} == {path.parent for path in PACKAGE.rglob("__init__.py")}
    command = ["git", "ls-files", "--cached", "--others", "--ignored", "--exclude-standard", "--", "*.py"]
    listed = subprocess.run(command, cwd=PACKAGE.parent, capture_output=True, text=True)
    assert not [path for path in listed.stdout.split() if path.startswith(("hf_mwp/", "tests/"))]
