"""`hf-mwp solve`: problems in, equations and values out."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

from rich.console import Console
from rich.text import Text

from ...building.solver import load_solver
from ...option_checks import check_at_least_one
from ...solving.reranking import RERANK_HELP, RERANKER_HELP, wanted_reranker
from ...usage_error import UsageError
from ..options.parsing import parse
from ..terminal.console import make_console
from ..terminal.problem_input import problem_batches
from .evaluate import check_device


_NO_ANSWER = dict.fromkeys(("answer", "value", "equation", "prefix")) | {"numbers": [], "score": 0.0}


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
    min_score: float | None = field(
        default=None,
        metadata={"help": 'Probability below which the answer is "unsure", with the equations of all beams.'},
    )
    batch_size: int = field(default=16, metadata={"help": "Problems solved at once."})
    device: str | None = field(default=None, metadata={"help": "Device, such as cpu or cuda:0; chosen if not given."})

    def __post_init__(self):
        check_at_least_one(self, "num_beams", "top_k", "batch_size")
        if self.min_score is not None:
            from ...pipelines.math_word_problem_pipeline import check_min_score

            check_min_score(self.min_score)


def argument_types() -> list[type]:
    """Dataclasses whose fields are the options."""
    return [SolveArguments]


def run(argv: list[str]) -> int:
    """
    Solves and prints; see `hf-mwp solve --help`. A problem without an answer, or one that cannot be read, is reported
    in its place: the exit status is 0 when each problem has been reported on.
    """
    (args,), values = parse(
        "solve",
        "Solve math word problems given as arguments, in a file, or on standard input (one a line, answered as it "
        "comes). One without an answer is reported in its place with its error; the exit status is 0 all the same.",
        argument_types(),
        argv,
        positional="problems",
    )
    check_device(args.device)
    batches = problem_batches(values["problems"], args.file, args.batch_size)
    first = next(batches, None)
    if first is None:
        raise UsageError("There is no problem to solve: the input is empty.")

    console = make_console()
    model, processor = load_solver(args.model)
    from ...pipelines import MathWordProblemPipeline

    reranker, num_beams = wanted_reranker(args.rerank, args.reranker, args.model, processor, args.num_beams)
    solver = MathWordProblemPipeline(model=model, processor=processor, device=args.device)
    options = {"num_beams": num_beams, "top_k": args.top_k, "min_score": args.min_score, "rerank": reranker}
    for batch in chain([first], batches):
        readable = [problem["text"] for problem in batch if "error" not in problem]
        solved = iter(solver(readable, **options, batch_size=args.batch_size))
        for problem in batch:
            results = [_NO_ANSWER] if "error" in problem else next(solved)
            if args.json:
                for result in results:
                    print(_json_line(problem | result), flush=True)
            else:
                results = [problem | result for result in results]
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
    from ...expressions import Expression, draw

    shown = text if len(text) <= 1000 else f"{text[:1000]}... ({len(text)} characters)"
    shown = shown.encode("utf-8", "backslashreplace").decode("utf-8")
    console.print(Text(shown, style="bold"))
    for result in results:
        if "warning" in result:
            console.print(Text(f"  {result['warning']}", style="yellow"))
        if "candidates" in result:
            console.print(Text(f"  {result['error']} It may be:", style="yellow"))
            for each in result["candidates"]:
                value = "no value" if each["value"] is None else each["value"]
                console.print(Text(f"    {each['equation']} = {value}   (probability {each['score']:.2f})"))
            continue
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


def _json_line(record: dict[str, Any]) -> str:
    """One line; with escapes only where the text holds what UTF-8 cannot: half a surrogate pair."""
    line = json.dumps(record, ensure_ascii=False)
    try:
        line.encode("utf-8")
    except UnicodeEncodeError:
        return json.dumps(record)
    return line
