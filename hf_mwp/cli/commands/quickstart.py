"""`hf-mwp quickstart`: teacher, student, figures and solved problems in five minutes on two cores."""

from __future__ import annotations

import random
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.table import Table

from ...runs.run_folder import RECORD, RunFolder, check_output_folder, describe_contents
from ...tasks.data_options import DataArguments
from ...tasks.math_word_problems import MathWordProblems
from ...usage_error import UsageError
from ..options.parsing import parse
from ..terminal.console import make_console, of_equations, percent
from ..terminal.curve import draw_learning_curve
from ..terminal.solution import print_solution
from .quickstart_models import QuickstartArguments, train_models


if TYPE_CHECKING:
    from ...data.batches.mwp_processor import MwpProcessor
    from ...models import MwpSolver

NUM_SHOWN = 5
NUM_TIMED = 20


def argument_types() -> list[type]:
    """Dataclasses whose fields are the options."""
    return [QuickstartArguments]


def run(argv: list[str]) -> int:
    """Runs the quickstart; see `hf-mwp quickstart --help`."""
    started = time.perf_counter()
    (args,), values = parse(
        "quickstart",
        "Fine-tune a pretrained encoder into a teacher on ASDiv-A, cut a 3-layer student from it, distil it, train "
        "the same student from random weights for comparison, and measure all of them on the fold held out.",
        argument_types(),
        argv,
    )
    check_output(Path(args.output_dir))
    import torch

    if args.threads is not None:
        torch.set_num_threads(args.threads)
    console = make_console()
    data = MathWordProblems(
        DataArguments(dataset="asdiv_a", data_dir=args.data_dir, fold=args.fold, validation_fraction=0.0)
    )
    data.tell(console)
    train, test = list(data.train), list(data.test)
    if args.fast:
        train, test = train[:160], test[:60]

    with RunFolder(args.output_dir, "quickstart", values) as folder:
        models, processor, logs = train_models(args, train, console)
        figures = measure(models, processor, test, args.num_beams)
        console.print(figures_table(figures, args, data))
        console.print(groups_table(figures))
        show_solutions(folder.path / "student", test, args.seed, console)
        draw_learning_curve(logs, folder.path / "learning_curve.png", title=f"quickstart on ASDiv-A, fold {args.fold}")
        seconds = time.perf_counter() - started
        folder.finish({"data": data.record(), "test": figures, "seconds": round(seconds, 1), "logs": logs})
    console.print(
        f"Done in {seconds:.0f} s. {describe_contents(folder.path, 'teacher', 'student')}. Try:\n"
        f'  hf-mwp solve --model {folder.path / "student"} "Tom has 12 apples and eats 3. How many are left?"'
    )
    return 0


def check_output(path: Path) -> None:
    """
    An output folder may be new, empty, or of an earlier quickstart, which is replaced.

    Raises:
        UsageError: it holds something else, or a run of another command has been written into it.
    """
    check_output_folder(path)
    for part in ("teacher", "student"):
        if (path / part / RECORD).is_file():
            raise UsageError(f"{path / part} is of another run than a quickstart; choose another --output_dir.")
    if path.is_dir() and any(path.iterdir()) and "hf-mwp quickstart" not in _text(path / RECORD):
        raise UsageError(f"{path} is not empty and not from an earlier quickstart; choose another --output_dir.")


def measure(models: dict[str, MwpSolver], processor: MwpProcessor, rows: list[dict], num_beams: int) -> dict[str, Any]:
    """Size, accuracy, cost of one problem and, relative to the teacher, the accuracy kept by each model."""
    from ...data import problem_from_row
    from ...metrics import TrainingOverlap, accuracy_report, compare_latency, count_flops, count_parameters
    from ...solving.solve_problems import solve_problems

    timed = [processor(problem_from_row(row, numerals=processor.numerals)) for row in rows[:NUM_TIMED]]
    names = ("input_ids", "attention_mask", "number_positions")
    timed = [{name: inputs[name] for name in names} for inputs in timed]

    def solve_all(model):
        return lambda: [model.solve(**inputs, num_beams=num_beams) for inputs in timed]

    figures: dict[str, Any] = {}
    for name, model in models.items():
        predictions = solve_problems(model, processor, rows, num_beams=num_beams)
        problems = [prediction.problem for prediction in predictions]
        scores, overlap = [prediction.score for prediction in predictions], TrainingOverlap.of(model)
        figures[name] = {"layers": model.config.num_hidden_layers, "parameters": count_parameters(model)}
        figures[name] |= accuracy_report(scores)
        figures[name]["reports"] = overlap.reports(problems, scores)
        figures[name]["training_texts"] = overlap.record(problems)
        figures[name]["flops"] = count_flops(solve_all(model)) / len(timed)
    latencies = compare_latency({name: solve_all(model) for name, model in models.items()}, repeats=5, warmup=1)
    teacher = figures["teacher"]["answer_accuracy"]
    for name, latency in latencies.items():
        figures[name]["milliseconds"] = 1000 * latency.median / len(timed)
        figures[name]["speedup"] = latencies["teacher"].median / latency.median
        figures[name]["retention"] = figures[name]["answer_accuracy"] / teacher if teacher else None
    return figures


def figures_table(figures: dict[str, Any], args: QuickstartArguments, data: MathWordProblems) -> Table:
    """The one table of the quickstart."""
    count = figures["teacher"]["num_problems"]
    title = f"{count} held-out problems of ASDiv-A ({data.scheme}), seed {args.seed}, " + (
        "greedy" if args.num_beams == 1 else f"{args.num_beams} beams"
    )
    notes = {
        "teacher": f"fine-tuned {args.teacher_epochs:g} epochs",
        "student": f"cut from the teacher, distilled {args.student_epochs:g} epochs",
        "random student": f"random weights, trained {args.student_epochs:g} epochs without teacher",
    }
    table = Table(title=title, title_justify="left")
    headings = ("layers", "parameters", "answer %", "equation %", "ms a problem", "speed", "kept %")
    for heading in ("model", "how", *headings):
        table.add_column(heading, justify="right" if heading in headings else "left")
    for name, figure in figures.items():
        table.add_row(
            name,
            notes[name],
            str(figure["layers"]),
            f"{figure['parameters'] / 1e6:.1f} M",
            percent(figure["answer_accuracy"]),
            percent(figure.get("equation_accuracy")) + of_equations(figure),
            f"{figure['milliseconds']:.1f}",
            f"{figure['speedup']:.1f} x",
            percent(figure["retention"]),
        )
    return table


def groups_table(figures: dict[str, Any]) -> Table:
    """How each model does on problems that it was trained on and on those that it was not."""
    remarks = dict.fromkeys(figure["training_texts"]["remark"] for figure in figures.values())
    title = "\n".join(["answer %, by what was trained on", *filter(None, remarks)])
    table = Table(title=title, title_justify="left")
    table.add_column("")
    for heading in ("problems", *figures):
        table.add_column(heading, justify="right")
    for group, report in figures["teacher"]["reports"].items():
        answers = (figure["reports"].get(group, {}).get("answer_accuracy") for figure in figures.values())
        table.add_row(group, str(report["num_problems"]), *map(percent, answers))
    return table


def show_solutions(folder: Path, rows: list[dict], seed: int, console: Console) -> None:
    """Solves some held-out problems, drawn by lot, with the saved student, and says which answers are right."""
    from transformers import pipeline

    from ...data import problem_from_row
    from ...metrics import score_prediction

    solver = pipeline("math-word-problem", model=str(folder), device="cpu")
    chosen = [problem_from_row(row) for row in random.Random(seed).sample(rows, min(NUM_SHOWN, len(rows)))]
    console.print(f"{len(chosen)} held-out problems, drawn by lot, solved by the student from {folder}:\n")
    for problem, result in zip(chosen, solver(chosen), strict=True):
        print_solution(console, problem.text, [result])
        score = score_prediction(problem, _expression(result))
        verdict = "right" if score.answer_correct else f"wrong ({score.reason}; {problem.answer} is annotated)"
        console.print(f"  {verdict}\n", style="green" if score.answer_correct else "red")


def _expression(result: dict[str, Any]):
    from ...expressions import Expression

    return None if result["prefix"] is None else Expression.from_prefix(result["prefix"])


def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8") if path.is_file() else ""
