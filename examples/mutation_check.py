"""
Change lines of the package at random, and see whether the tests notice.

    python examples/mutation_check.py --mutants 30 --seed 0 --output mutants.json
    python examples/mutation_check.py --repeat mutants.json --repository OTHER_CHECKOUT --output other.json

Each change is made in a copy of the repository: a comparison, an operator, a number, a truth value, a condition or a
returned value is replaced. The tests of the changed file run first, then those of its box (`tests/compress` for a file
in `hf_mwp/compress`), up to the first failure. A change is caught if a test fails, or if the tests run longer than
`--timeout`. `--repeat` makes the same changes in a different checkout, to compare two states of the tests.
"""

import argparse
import ast
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path


COMPARISONS = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}
ARITHMETIC = {ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Add, ast.Div: ast.Mult, ast.FloorDiv: ast.Mult}
BOOLEAN = {ast.And: ast.Or, ast.Or: ast.And}
NOT_COPIED = shutil.ignore_patterns(".git", ".venv", "__pycache__", "*.egg-info", "build", "dist")


@dataclass
class Mutant:
    """One changed expression of a file: the text before and after, and the lines that identify the place."""

    file: str
    line: int
    before: str
    after: str
    column: int
    source_line: str


def mutated(node: ast.AST) -> ast.AST | None:
    """Return a changed copy of a node, or `None` for a node that is not changed."""
    if isinstance(node, ast.Compare) and len(node.ops) == 1 and type(node.ops[0]) in COMPARISONS:
        operator = COMPARISONS[type(node.ops[0])]()
        return ast.Compare(node.left, [operator], node.comparators)
    if isinstance(node, ast.BinOp) and type(node.op) in ARITHMETIC:
        return ast.BinOp(node.left, ARITHMETIC[type(node.op)](), node.right)
    if isinstance(node, ast.BoolOp):
        return ast.BoolOp(BOOLEAN[type(node.op)](), node.values)
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        return node.operand
    if isinstance(node, ast.Constant) and isinstance(node.value, bool):
        return ast.Constant(not node.value)
    if isinstance(node, ast.Constant) and isinstance(node.value, int | float):
        return ast.Constant(node.value + 1)
    return None


def conditions_of(tree: ast.Module) -> list[ast.expr]:
    """Return the conditions of `if` statements, which are negated."""
    return [node.test for node in ast.walk(tree) if isinstance(node, ast.If)]


def find_mutants(path: Path, root: Path) -> list[Mutant]:
    """Return all changes of expressions that stand on one line of a file."""
    text = path.read_text(encoding="utf-8")
    lines = text.splitlines()
    tree = ast.parse(text)
    # The columns of expressions within f-strings are not those of the file.
    formatted = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            formatted.update(ast.walk(node))
    changes = []
    for node in ast.walk(tree):
        changed = mutated(node)
        if changed is not None:
            changes.append((node, f"({ast.unparse(changed)})"))
    for condition in conditions_of(tree):
        changes.append((condition, f"not ({ast.unparse(condition)})"))
    for node in ast.walk(tree):
        if isinstance(node, ast.Return) and node.value is not None and not isinstance(node.value, ast.Constant):
            changes.append((node.value, "None"))
    mutants = []
    for node, after in changes:
        if node in formatted or node.lineno != node.end_lineno:
            continue
        source_line = lines[node.lineno - 1]
        # Columns are counted in bytes of UTF-8.
        encoded = source_line.encode()
        before = encoded[node.col_offset : node.end_col_offset].decode()
        column = len(encoded[: node.col_offset].decode())
        name = path.relative_to(root).as_posix()
        mutants.append(Mutant(name, node.lineno, before, after, column, source_line))
    return mutants


def apply(mutant: Mutant, root: Path) -> bool:
    """Change a file as the mutant says, and return whether it still has the line."""
    path = root / mutant.file
    if not path.is_file():
        return False
    lines = path.read_text(encoding="utf-8").splitlines()
    numbers = [number for number, line in enumerate(lines) if line == mutant.source_line]
    if not numbers:
        return False
    # The nearest of equal lines.
    number = min(numbers, key=lambda number: abs(number + 1 - mutant.line))
    start = mutant.column
    end = start + len(mutant.before)
    line = lines[number]
    lines[number] = line[:start] + mutant.after + line[end:]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return True


def select_tests(mutant: Mutant, root: Path) -> list[list[str]]:
    """Return the tests to run for a changed file: those of the file, if there are any, then those of its box."""
    path = Path(mutant.file)
    folder = Path("tests", *path.parent.parts[1:])
    box = Path("tests", path.parts[1])
    tests = []
    for candidate in (folder / f"test_{path.name}", folder):
        if (root / candidate).exists() and candidate != box:
            tests.append([str(candidate)])
    return [*tests, [str(box)]]


def first_failure(root: Path, tests: list[list[str]], timeout: float) -> str | None:
    """Return the first test that fails, or `None` if all of them pass."""
    environment = {**os.environ, "PYTHONPATH": str(root), "PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-m", "not slow", "-p", "no:cacheprovider", "--no-header"]
    for paths in tests:
        try:
            result = subprocess.run(
                [*command, *paths], cwd=root, env=environment, capture_output=True, text=True, timeout=timeout
            )
        except subprocess.TimeoutExpired:
            return "timeout"
        # 5: no tests were collected.
        if result.returncode not in (0, 5):
            failures = [line for line in result.stdout.splitlines() if line.startswith(("FAILED", "ERROR"))]
            return failures[0] if failures else result.stdout[-200:] + result.stderr[-200:]
    return None


def choose_mutants(root: Path, boxes: list[str], count: int, seed: int) -> list[Mutant]:
    """Draw changes from the files of the boxes, at most one a line."""
    mutants = {}
    for box in boxes:
        for path in sorted((root / "hf_mwp" / box).rglob("*.py")):
            for mutant in find_mutants(path, root):
                mutants.setdefault((mutant.file, mutant.line), []).append(mutant)
    generator = random.Random(seed)
    places = generator.sample(sorted(mutants), count)
    return [generator.choice(mutants[place]) for place in places]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repository", type=Path, default=Path(__file__).parents[1], help="checkout to copy")
    parser.add_argument("--boxes", nargs="+", default=["compress", "runtime"], help="folders of hf_mwp to change")
    parser.add_argument("--mutants", type=int, default=30, help="number of changes")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--repeat", type=Path, help="results whose changes are made again")
    parser.add_argument("--timeout", type=float, default=1800, help="seconds for the tests of a change")
    parser.add_argument("--output", type=Path, required=True, help="JSON file for the results; resumed if it exists")
    args = parser.parse_args()

    if args.repeat is None:
        mutants = choose_mutants(args.repository, args.boxes, args.mutants, args.seed)
    else:
        mutants = []
        for result in json.loads(args.repeat.read_text(encoding="utf-8")):
            del result["outcome"]
            mutants.append(Mutant(**result))
    results = []
    if args.output.exists():
        results = json.loads(args.output.read_text(encoding="utf-8"))
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder, "repository")
        shutil.copytree(args.repository, copy, ignore=NOT_COPIED)
        for mutant in mutants[len(results) :]:
            original = args.repository / mutant.file
            outcome = "the line is no longer there"
            if apply(mutant, copy):
                outcome = first_failure(copy, select_tests(mutant, copy), args.timeout) or "survived"
                shutil.copy2(original, copy / mutant.file)
            results.append({**asdict(mutant), "outcome": outcome})
            args.output.write_text(json.dumps(results, ensure_ascii=False, indent=1), encoding="utf-8")
            print(f"{mutant.file}:{mutant.line}: {mutant.before} -> {mutant.after}: {outcome}", flush=True)
    survived = [result for result in results if result["outcome"] == "survived"]
    missing = [result for result in results if result["outcome"] == "the line is no longer there"]
    caught = len(results) - len(survived) - len(missing)
    print(f"{caught} of {len(results) - len(missing)} changes were caught, {len(survived)} survived")


if __name__ == "__main__":
    main()
