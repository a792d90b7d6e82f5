"""`hf-mwp solve`: problems in, equations and values out."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.text import Text

from .console import make_console
from .errors import CommandError
from .evaluate import check_device
from .model_folder import load_solver
from .parsing import parse
from .reranking import RERANK_HELP, RERANKER_HELP, wanted_reranker


@dataclass
class SolveArguments:
    """Options of `hf-mwp solve`; the fields' help says what each is."""

    model: str = field(default="hf_mwp_quickstart/student", metadata={"help": "Folder or Hub id of the solver."})
    file: str | None = field(
        default=None,
        metadata={"help": "File of problems: one a line, or .jsonl with a field `text`; - is standard input."},
    )
    json: bool = field(default=False, metadata={"help": "Print JSON lines instead of text."})
    tree: bool = field(default=True, metadata={"help": "Draw the expression tree."})
    num_beams: int | None = field(
        default=None, metadata={"help": "Beams of the search, 1 if not given, or those of the re-ranker."}
    )
    rerank: bool = field(default=False, metadata={"help": RERANK_HELP})
    reranker: str | None = field(default=None, metadata={"help": RERANKER_HELP})
    top_k: int = field(default=1, metadata={"help": "Equations to show for each problem."})
    batch_size: int = field(default=16, metadata={"help": "Problems solved at once."})
    device: str | None = field(default=None, metadata={"help": "Device, such as cpu or cuda:0; chosen if not given."})


def run(argv: list[str]) -> int:
    """Solves and prints; see `hf-mwp solve --help`. A problem without an answer is reported in its place."""
    (args,), values = parse(
        "solve",
        "Solve math word problems given as arguments, in a file, or on standard input (one a line).",
        [SolveArguments],
        argv,
        positional="problems",
    )
    check_device(args.device)
    problems = _problems(values["problems"], args.file)
    first = next(problems, None)
    if first is None:
        raise CommandError("There is no problem to solve: the input is empty.")

    console = make_console()
    model, processor = load_solver(args.model)
    from ..pipelines import MathWordProblemPipeline

    reranker, num_beams = wanted_reranker(args.rerank, args.reranker, args.model, processor, args.num_beams)
    solver = MathWordProblemPipeline(model=model, processor=processor, device=args.device)
    typed = args.file in (None, "-") and values["problems"] in ([], ["-"]) and sys.stdin.isatty()
    for batch in _batches(first, problems, 1 if typed else args.batch_size):
        texts = [problem["text"] for problem in batch]
        solved = solver(texts, num_beams=num_beams, top_k=args.top_k, batch_size=args.batch_size, rerank=reranker)
        for problem, results in zip(batch, solved, strict=True):
            if args.json:
                for result in results:
                    print(json.dumps(problem | result, ensure_ascii=False), flush=True)
            else:
                print_solution(console, problem["text"], results, tree=args.tree)
    return 0


def print_solution(console: Console, text: str, results: list[dict[str, Any]], tree: bool = True) -> None:
    """
    Prints a problem with its equation, value and expression tree.

    Args:
        console (`rich.console.Console`): Where to.
        text (`str`): The problem.
        results (`list[dict]`): What the pipeline `math-word-problem` returned for it, best first.
        tree (`bool`, *optional*, defaults to `True`): Whether to draw the tree.
    """
    from ..expressions import Expression, draw

    shown = text if len(text) <= 1000 else f"{text[:1000]}... ({len(text)} characters)"
    console.print(Text(shown, style="bold"))
    for result in results:
        if "warning" in result:
            console.print(Text(f"  {result['warning']}", style="yellow"))
        if result["equation"] is None:
            console.print(Text(f"  no answer: {result['error']}", style="red"))
            continue
        if result["answer"] is None:
            console.print(Text(f"  {result['equation']}: {result['error']}", style="red"))
        else:
            value = result["value"]
            rounded = "" if "/" not in value else f" = {result['answer']:.10g}"
            line = Text(f"  {result['equation']} = ").append(f"{value}{rounded}", style="bold green")
            console.print(line.append(f"   (probability {result['score']:.2f})", style="dim"))
        if result.get("instead_of"):
            console.print(Text(f"  {told(result['instead_of'])}", style="dim"))
        if tree:
            drawn = draw(Expression.from_prefix(result["prefix"]).bind(result["numbers"]))
            console.print(Text("\n".join(f"    {row}" for row in drawn.splitlines())))
    console.print()


def told(rejected: dict[str, Any]) -> str:
    """What the solver itself held for likelier, and what speaks against it."""
    reasons = f": {', '.join(rejected['complaints'])}" if rejected["complaints"] else ""
    return f"instead of {rejected['equation']} = {rejected['answer']:.10g}{reasons}"


def _problems(texts: list[str], file: str | None) -> Iterator[dict[str, Any]]:
    if texts and file is not None:
        raise CommandError("Give problems as arguments or a --file, not both.")
    if texts and texts != ["-"]:
        return ({"text": text} for text in texts)
    if file not in (None, "-"):
        return _from_file(Path(file))
    if not texts and file is None and sys.stdin.isatty():
        raise CommandError('There is nothing to solve: hf-mwp solve "a problem", or --file problems.txt, or a pipe.')
    return ({"text": line.strip()} for line in sys.stdin if line.strip())


def _from_file(path: Path) -> Iterator[dict[str, Any]]:
    if not path.is_file():
        raise CommandError(f"There is no file {path}.")
    with path.open(encoding="utf-8") as lines:
        try:
            for number, line in enumerate(lines, start=1):
                if line.strip():
                    yield _record(line, path, number) if path.suffix in (".jsonl", ".json") else {"text": line.strip()}
        except UnicodeDecodeError as error:
            raise CommandError(f"{path} is not UTF-8 text: {error}") from error


def _record(line: str, path: Path, number: int) -> dict[str, Any]:
    try:
        record = json.loads(line)
    except ValueError as error:
        hint = "" if line.endswith("\n") else " (the last line is cut off)"
        raise CommandError(f"{path}, line {number}: no JSON{hint}: {error}") from error
    if not isinstance(record, dict) or not isinstance(record.get("text"), str):
        raise CommandError(f"{path}, line {number}: needs an object with a field `text`.")
    return {name: record[name] for name in ("id", "text") if name in record}


def _batches(first: dict[str, Any], rest: Iterator[dict[str, Any]], size: int) -> Iterator[list[dict[str, Any]]]:
    if size < 1:
        raise CommandError(f"`batch_size` must be at least 1, not {size}.")
    batch = [first]
    for problem in rest:
        if len(batch) == size:
            yield batch
            batch = []
        batch.append(problem)
    yield batch
