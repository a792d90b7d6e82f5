"""Local web server of `hf-mwp app`, which solves problems with the runtime."""

import json
import math
import time
from collections import defaultdict
from collections.abc import Sequence
from http import HTTPStatus
from importlib.resources import files
from pathlib import Path
from typing import Any

from hf_mwp.runtime import RuntimeSolver, load_solver
from hf_mwp.runtime.answer import answer_records
from hf_mwp.runtime.expressions import ExpressionError
from hf_mwp.runtime.problems import MathWordProblem
from hf_mwp.utils.usage_error import UsageError

from .local_server import LocalServer, Request, RequestError, Response


MAX_PROBLEMS = 20  # per request; `hf-mwp solve --file` solves more
BEAMS = 8  # at least, because the page also shows the next best answers
SHOWN = 6
ANSWER_FIELDS = ("value", "equation", "prefix", "numbers", "plausibility", "violations")
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
        if (request.method, request.path) == ("GET", "/"):
            return Response(files(__package__).joinpath("page.html").read_bytes(), "text/html; charset=utf-8")
        if (request.method, request.path) == ("GET", "/models"):
            language = self.reader.language
            return _json({"models": list(self.solvers), "language": language, "examples": EXAMPLES[language]})
        if (request.method, request.path) == ("POST", "/solve"):
            return self._solve(request.body)
        raise RequestError(HTTPStatus.NOT_FOUND, "There is nothing at this address.")

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
    """Solve a problem for the page. The `probability` of an answer is the sum over all equations with its value."""
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
            fields = {name: record[name] for name in ANSWER_FIELDS if name in record}
            answers[value] = fields | {"probability": probabilities[value]}
    result: dict[str, Any] = {
        "answers": list(answers.values())[:SHOWN],
        "milliseconds": 1000 * (time.perf_counter() - started),
    }
    if not answers:
        result["error"] = records[0].get("error", "")
    if "warning" in records[0]:
        result["warning"] = records[0]["warning"]
    return result


def marked_parts(problem: MathWordProblem) -> list[list[Any]]:
    """Split the text of a problem into pairs of a piece and a flag that tells whether the piece is a number."""
    pieces: list[list[Any]] = [[problem.masked.segments[0], False]]
    for mention, segment in zip(problem.masked.mentions, problem.masked.segments[1:], strict=True):
        pieces += [[mention.text, True], [segment, False]]
    return [piece for piece in pieces if piece[0]]
