"""Local web server of `hf-mwp app`, which solves problems with the runtime."""

import json
import math
import re
import time
from collections import defaultdict
from collections.abc import Sequence
from fractions import Fraction
from http import HTTPStatus
from importlib.resources import files
from pathlib import Path
from typing import Any

from hf_mwp.runtime import RuntimeSolver, load_solver
from hf_mwp.runtime.answer import answer_records, rounding_remark
from hf_mwp.runtime.expressions import ExpressionError
from hf_mwp.runtime.problems import MathWordProblem
from hf_mwp.utils.usage_error import UsageError

from .local_server import LocalServer, Request, RequestError, Response
from .sentences import in_both_languages, page_words


MAX_PROBLEMS = 20  # per request; the page sends several requests
BEAMS = 8  # at least, because the page also shows the next best answers
SHOWN = 6
ANSWER_FIELDS = ("value", "equation", "prefix", "numbers", "plausibility")
SIGNS = {"*": "×", "/": "÷", "-": "−"}
# Files that are served, by path.
FILES = {
    "/": ("page.html", "text/html; charset=utf-8"),
    "/page.css": ("page.css", "text/css; charset=utf-8"),
    "/page.js": ("page.js", "text/javascript; charset=utf-8"),
    "/favicon.svg": ("favicon.svg", "image/svg+xml"),
}
_OPERATOR = re.compile(r"(?<=[\d)%])[-+*/^]")  # with an operand before it, so not a sign
EXAMPLES = {
    "zh": [
        "小明有4个苹果和2个梨，一共有多少个水果？",
        "食堂运来105千克萝卜，运来的青菜是萝卜的3倍，运来青菜多少千克？",
        "一本书120页，小红第一天看了全书的25%，第二天看了30页，还剩多少页没看？",
        "甲乙两地相距360千米，一辆汽车4.5小时行完全程，平均每小时行多少千米？",
    ],
    "en": [
        "Tom has 4 apples and 2 pears. How many fruits does he have?",
        "A box holds 12 pencils. How many pencils are in 7 boxes?",
        "Mary had 25 dollars and bought 3 books at 6 dollars each. How much money has she left?",
    ],
}


def make_server(folders: Sequence[str | Path], port: int = 0, host: str = "127.0.0.1") -> LocalServer:
    """Return a web server for one or two solvers. Port 0 is any free one. Raises `UsageError` if the port is in use
    or the host is not an address of this machine."""
    if not host:
        raise UsageError("--host is empty. Pass 127.0.0.1 for this machine only, or 0.0.0.0 for all its addresses.")
    page = Page(folders)
    try:
        return LocalServer(page.answer, host, port)
    except (OSError, OverflowError) as error:
        fault = f"{host}, port {port} cannot be used ({error}). Choose another --port or --host."
        raise UsageError(fault) from error


class Page:
    """The page, and the answers of its solvers. The solvers are loaded from `folders`."""

    def __init__(self, folders: Sequence[str | Path]) -> None:
        names = [Path(folder).resolve().name for folder in folders]
        if len(set(names)) < len(names):
            names = [str(folder) for folder in folders]
        self.solvers = {name: load_solver(folder) for name, folder in zip(names, folders, strict=True)}
        for solver in self.solvers.values():
            solver.search(None, None)  # raises an error now, not for each request, if the re-ranker cannot be loaded
        self.reader = next(iter(self.solvers.values())).reader

    def answer(self, request: Request) -> Response:
        """Answer a request. Raises `RequestError` if it is wrong."""
        if request.method == "GET" and request.path in FILES:
            name, content_type = FILES[request.path]
            return Response(files(__package__).joinpath(name).read_bytes(), content_type)
        if (request.method, request.path) == ("GET", "/models"):
            return _json(self._description())
        if (request.method, request.path) == ("POST", "/solve"):
            return self._solve(request.body)
        raise RequestError(HTTPStatus.NOT_FOUND, "There is nothing at this address.")

    def _description(self) -> dict[str, Any]:
        """Return the names of the solvers, their language, examples in it, and the words of the page."""
        language = self.reader.language
        return {
            "models": list(self.solvers),
            "language": language,
            "examples": EXAMPLES[language],
            "words": page_words(),
        }

    def _solve(self, body: bytes) -> Response:
        try:
            text = json.loads(body)["text"]
            lines = [line for line in text.splitlines() if line.strip()] or [""]
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            raise RequestError(HTTPStatus.BAD_REQUEST, 'The body must be JSON: {"text": "..."}.') from None
        solved = [self._solve_problem(line) for line in lines[:MAX_PROBLEMS]]
        return _json({"problems": solved, "left_out": len(lines) - len(solved)})

    def _solve_problem(self, text: str) -> dict[str, Any]:
        problem = self.reader.problem(text)
        pieces = [] if problem.is_too_long else marked_parts(problem)
        results = [{"model": name} | solve(solver, text) for name, solver in self.solvers.items()]
        return {"parts": pieces, "results": results}


def _json(content: dict[str, Any]) -> Response:
    return Response(json.dumps(content).encode(), "application/json")


def solve(solver: RuntimeSolver, text: str) -> dict[str, Any]:
    """
    Solve a problem for the page.

    Args:
        solver (`RuntimeSolver`): The solver.
        text (`str`): Text of the problem.

    Returns:
        `dict[str, Any]`: `answers`, the best first, each with a different value; `warnings`; `milliseconds`; and, if
        there are no answers, `error`. The `probability` of an answer is the sum over all equations with its value.
        Warnings, violations and the error are sentences by language ([`~sentences.in_both_languages`]).
    """
    started = time.perf_counter()
    reranker, num_beams, score_margin = solver.search()
    num_beams = max(num_beams, BEAMS)
    answer = solver.answer(solver.reader.problem(text), num_beams, reranker, score_margin=score_margin)
    records = answer_records(answer, num_beams)
    # Value -> sum of the probabilities of its equations.
    probabilities: dict[str, float] = defaultdict(float)
    for expression, log_probability in answer.beam.trees:
        try:
            value = str(expression.evaluate(answer.problem.numbers))
        except ExpressionError:
            continue
        probabilities[value] += math.exp(log_probability)
    answers: dict[str, dict[str, Any]] = {}
    for record in records:
        value = record["value"]
        if value is not None and value not in answers:
            answers[value] = _shown_answer(record, probabilities[record.get("quotient", value)])
    first = records[0]
    result: dict[str, Any] = {
        "answers": list(answers.values())[:SHOWN],
        "warnings": [in_both_languages(warning) for warning in first.get("warnings", ())],
        "milliseconds": 1000 * (time.perf_counter() - started),
    }
    if not answers:
        result["error"] = in_both_languages(first["error"])
    return result


def _shown_answer(record: dict[str, Any], probability: float) -> dict[str, Any]:
    """Return the fields of a result dictionary that the page shows, and those that are written for readers."""
    shown = {name: record[name] for name in ANSWER_FIELDS if name in record}
    shown["decimal"] = decimal_form(record["value"])
    if "percent" in record:
        shown["decimal"] += f" = {record['percent']}"
    shown["written"] = written_equation(record["equation"])
    shown["probability"] = probability
    remarks = list(record.get("violations", ()))
    if "rounded" in record:
        remarks.append(rounding_remark(record["rounded"]))
    shown["violations"] = [in_both_languages(remark) for remark in remarks]
    return shown


def decimal_form(value: str) -> str:
    """Return a fraction as a decimal with its sign of equality: `"= 24.5"` for `"49/2"`, `"≈ 0.333333"` for `"1/3"`.
    Empty if the value is no fraction."""
    if "/" not in value:
        return ""
    fraction = Fraction(value)
    decimal = f"{float(fraction):.6g}"
    if Fraction(decimal) == fraction:
        return f"= {decimal}"
    return f"≈ {decimal}"


def written_equation(equation: str) -> str:
    """Return an equation with spaces and the signs of schoolbooks: `"25 − 3 × 6"` for `"25-3*6"`."""

    def spaced(match: re.Match[str]) -> str:
        operator = match.group()
        return f" {SIGNS.get(operator, operator)} "

    return _OPERATOR.sub(spaced, equation)


def marked_parts(problem: MathWordProblem) -> list[list[Any]]:
    """Split the text of a problem into pairs of a piece and a flag that tells whether the piece is a number."""
    pieces: list[list[Any]] = [[problem.masked.segments[0], False]]
    for mention, segment in zip(problem.masked.mentions, problem.masked.segments[1:], strict=True):
        pieces += [[mention.text, True], [segment, False]]
    return [piece for piece in pieces if piece[0]]
