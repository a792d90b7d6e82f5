"""`hf-mwp quickstart`: teacher, student, figures and solved problems in five minutes on two cores."""

from __future__ import annotations

import math
import random
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.table import Table

from ...building.encoder import parse_layers
from ...building.model_sources import find_encoder
from ...building.solver import build_solver
from ...options import option
from ...options.checks import check_at_least_one, check_not_negative, check_share
from ...store.runs.run_folder import RECORD, RunFolder, check_output_folder, describe_contents, last_record
from ...tasks.data_options import DataArguments
from ...tasks.evaluation import evaluate_part
from ...tasks.math_word_problems import MathWordProblems
from ...tasks.pictures import draw_learning_curve
from ...usage_error import UsageError
from ..options import parse_command
from ..terminal.console import make_console, make_table, of_equations, percent
from ..terminal.solution import print_solution


if TYPE_CHECKING:
    from ...data.batches.mwp_processor import MwpProcessor
    from ...expressions import Expression
    from ...models import MwpSolver
    from ...problems import MathWordProblem

NUM_SHOWN = 5
NUM_TIMED = 10
# Of a quickstart that is to be seen running: training and test problems.
FAST = {"max_train_samples": 160, "max_eval_samples": 60}


@dataclass
class QuickstartArguments:
    """
    Options of `hf-mwp quickstart`. Learning rates and layers were chosen on problems held out from the training part
    of fold 0, never on the part that the quickstart reports; epochs so that it takes some five minutes of two cores.
    """

    output_dir: str = option("hf_mwp_quickstart", "Folder for models and figures.")
    encoder: str = option(
        "all-MiniLM-L6-v2", "Hub id or folder of the encoder; the 6-layer MiniLM of the `demo` extra otherwise."
    )
    data_dir: str | None = option(None, "Folder of ASDiv-A; examples/data/asdiv of the repository if not given.")
    fold: int = option(0, "Fold of ASDiv-A to hold out.")
    seed: int = option(42, "Seed of weights and order.")
    num_beams: int = option(1, "Beams of the search in the final evaluation.")
    fast: bool = option(False, "One epoch on a part of the data: to see that it runs.")
    teacher_epochs: float = option(4.0, "Epochs of the teacher's fine-tuning.")
    student_epochs: float = option(3.0, "Epochs of the distillation, and of the student from random weights.")
    student_layers: str = option(
        "3", "Layers of the teacher that the student starts from: a number, or indices (0,2,4)."
    )
    baseline: bool = option(True, "Train the student from random weights as well.")
    learning_rate: float = option(2e-4, "Learning rate of the encoders.")
    decoder_learning_rate: float = option(1e-3, "Learning rate of the decoders.")
    scratch_learning_rate: float = option(5e-4, "Learning rate of the encoder that starts from random weights.")
    batch_size: int = option(16, "Problems of a training step.")
    dropout: float = option(0.1, "Dropout of all models.")
    temperature: float = option(2.0, "Temperature of the distillation.")
    threads: int | None = option(None, "Threads; one for each core if not given.")

    def __post_init__(self):
        for name in ("teacher_epochs", "student_epochs", "batch_size", "num_beams", "temperature"):
            if not 0 < getattr(self, name) < math.inf:
                raise ValueError(f"`{name}` must be positive, not {getattr(self, name)}.")
        check_not_negative(self, "fold", "seed", "learning_rate", "decoder_learning_rate", "scratch_learning_rate")
        check_share(self, "dropout")
        check_at_least_one(self, "threads")
        if self.fast:
            self.teacher_epochs, self.student_epochs = min(self.teacher_epochs, 1), min(self.student_epochs, 1)
        parse_layers(self.student_layers, "student_layers")
        self.encoder = find_encoder(self.encoder)


def argument_types() -> list[type]:
    """Dataclasses whose fields are the options."""
    return [QuickstartArguments]


def run(argv: list[str]) -> int:
    """Runs the quickstart; see `hf-mwp quickstart --help`."""
    started = time.perf_counter()
    (args,), values = parse_command(
        "quickstart",
        "Fine-tune a pretrained encoder into a teacher on ASDiv-A, cut a 3-layer student from it, distil it, train "
        "the same student from random weights for comparison, and measure all of them on the fold held out.",
        argv,
    )
    check_output(Path(args.output_dir))
    import torch

    if args.threads is not None:
        torch.set_num_threads(args.threads)
    console = make_console()
    place = {"dataset": "asdiv_a", "data_dir": args.data_dir, "fold": args.fold}
    task = MathWordProblems(DataArguments(**place, validation_fraction=0.0, **(FAST if args.fast else {})))
    task.tell(console)
    with RunFolder(args.output_dir, "quickstart", values) as folder:
        models, processor, logs = train_models(args, list(task.train), console)
        figures = measure(models, processor, task, args.num_beams)
        console.print(figures_table(figures, args, task))
        console.print(groups_table(figures))
        show_solutions(folder.path / "student", list(task.test), args.seed, console)
        figures["student"]["answer_accuracy_reranked"] = show_reranking(task, models["student"], processor, console)
        draw_learning_curve(logs, folder.path / "learning_curve.png", title=f"quickstart on ASDiv-A, fold {args.fold}")
        seconds = time.perf_counter() - started
        folder.finish({"data": task.record(), "test": figures, "seconds": round(seconds, 1), "logs": logs})
    console.print(
        f"Done in {seconds:.0f} s. {describe_contents(folder.path, 'teacher', 'student')}. Try:\n"
        f'  hf-mwp solve --model {folder.path / "student"} --reranker en "Tom has 12 apples and eats 3. How many now?"'
    )
    return 0


def check_output(path: Path) -> None:
    """Raises `UsageError` unless an output folder is new, empty, or of an earlier quickstart, which is replaced."""
    check_output_folder(path)
    for part in ("teacher", "student"):
        if (path / part / RECORD).is_file():
            raise UsageError(f"{path / part} is of another run than a quickstart; choose another --output_dir.")
    if path.is_dir() and any(path.iterdir()) and last_record(path).get("command") != "hf-mwp quickstart":
        raise UsageError(f"{path} is not empty and not from an earlier quickstart; choose another --output_dir.")


def train_models(
    args: QuickstartArguments, rows: list[dict], console: Console
) -> tuple[dict[str, MwpSolver], MwpProcessor, dict[str, list[dict]]]:
    """
    The trained models by name, their processor, and the logs of their trainings; teacher and student are saved.

    They are made in one process and not by stages of a recipe: a teacher that was saved and loaded gives a student
    of other last digits, and `hf-mwp train` draws random weights in another order, so that seed 42 would not give
    the accuracies that are told of it.
    """
    from transformers import set_seed

    from ...distillation import cut_student
    from ...models import MwpSolver
    from ...trainers import DistillationConfig, DistillationTrainer, SolverConfig, SolverTrainer
    from ..terminal.progress import RichProgressCallback

    folder, models, logs = Path(args.output_dir), {}, {}

    def train(
        name: str, model: MwpSolver, epochs: float, rate: float, teacher: MwpSolver | None = None, cache: str = ""
    ) -> None:
        options = {
            "output_dir": str(folder / name.replace(" ", "_")),
            "num_train_epochs": epochs,
            "per_device_train_batch_size": args.batch_size,
            "learning_rate": rate,
            "decoder_learning_rate": args.decoder_learning_rate,
            "save_strategy": "no",
            "logging_steps": 0.02,
            "seed": args.seed,
            "disable_tqdm": True,
            "report_to": "none",
        }
        data = {"model": model, "train_dataset": rows, "processing_class": processor}
        if teacher is None:
            trainer = SolverTrainer(args=SolverConfig(**options), **data)
        else:
            how = {"temperature": args.temperature, "cache_teacher_outputs": True, "teacher_cache_dir": cache}
            config = DistillationConfig(**options, **how)
            trainer = DistillationTrainer(args=config, teacher_model=teacher, **data)
        progress = RichProgressCallback.attach(trainer, console, name)
        try:
            trainer.train()
        finally:
            progress.close()
        models[name], logs[name] = model, trainer.state.log_history

    set_seed(args.seed)
    teacher, processor = build_solver(
        rows, encoder=args.encoder, dropout=args.dropout, min_constant_count=2, indexed_numbers=True, language="en"
    )
    train("teacher", teacher, args.teacher_epochs, args.learning_rate)
    student = cut_student(teacher, parse_layers(args.student_layers))
    with tempfile.TemporaryDirectory() as cache:
        train("student", student, args.student_epochs, args.learning_rate, teacher, cache)
    for name, model in models.items():
        model.save_pretrained(folder / name)
        processor.save_pretrained(folder / name)
    if args.baseline:
        set_seed(args.seed)
        baseline = MwpSolver(type(student.config).from_dict(student.config.to_dict()))
        train("random student", baseline, args.student_epochs, args.scratch_learning_rate)
    return models, processor, logs


def measure(
    models: dict[str, MwpSolver], processor: MwpProcessor, task: MathWordProblems, num_beams: int
) -> dict[str, Any]:
    """Size, accuracy, cost of one problem and, relative to the teacher, the accuracy kept by each model."""
    from ...data import problem_from_row
    from ...metrics import compare_latency, count_flops, count_parameters

    rows = task.test.select(range(min(NUM_TIMED, len(task.test))))
    timed = [processor(problem_from_row(row, numerals=processor.numerals)) for row in rows]
    names = ("input_ids", "attention_mask", "number_positions")
    timed = [{name: inputs[name] for name in names} for inputs in timed]

    def solve_all(model):
        return lambda: [model.solve(**inputs, num_beams=num_beams) for inputs in timed]

    figures: dict[str, Any] = {}
    for name, model in models.items():
        evaluation = evaluate_part(task, model, processor, "test", num_beams=num_beams, rule="annotated")
        figures[name] = {"layers": model.config.num_hidden_layers, "parameters": count_parameters(model)}
        figures[name] |= evaluation.reports["all problems"] | evaluation.figures
        figures[name]["flops"] = count_flops(solve_all(model)) / len(timed)
    latencies = compare_latency({name: solve_all(model) for name, model in models.items()}, repeats=5, warmup=1)
    teacher = figures["teacher"]["answer_accuracy"]
    for name, latency in latencies.items():
        figures[name]["milliseconds"] = 1000 * latency.median / len(timed)
        figures[name]["speedup"] = latencies["teacher"].median / latency.median
        figures[name]["retention"] = figures[name]["answer_accuracy"] / teacher if teacher else None
    return figures


def figures_table(figures: dict[str, Any], args: QuickstartArguments, task: MathWordProblems) -> Table:
    """Size, accuracy and speed of each model."""
    notes = {
        "teacher": f"fine-tuned {args.teacher_epochs:g} epochs",
        "student": f"cut from the teacher, distilled {args.student_epochs:g} epochs",
        "random student": f"random weights, trained {args.student_epochs:g} epochs without teacher",
    }
    rows = (
        (
            name,
            notes[name],
            str(each["layers"]),
            f"{each['parameters'] / 1e6:.1f} M",
            percent(each["answer_accuracy"]),
            percent(each.get("equation_accuracy")) + of_equations(each),
            f"{each['milliseconds']:.1f}",
            f"{each['speedup']:.1f} x",
            percent(each["retention"]),
        )
        for name, each in figures.items()
    )
    search = "greedy" if args.num_beams == 1 else f"{args.num_beams} beams"
    title = f"{len(task.test)} held-out problems of ASDiv-A ({task.scheme}), seed {args.seed}, {search}"
    numbers = ("layers", "parameters", "answer %", "equation %", "ms a problem", "speed", "kept %")
    return make_table(title, ("model", "how", *numbers), rows, right=numbers)


def groups_table(figures: dict[str, Any]) -> Table:
    """How each model does on problems that it was trained on and on those that it was not."""
    remarks = dict.fromkeys(each["training_texts"]["remark"] for each in figures.values())
    rows = []
    for group, report in figures["teacher"]["reports"].items():
        answers = (each["reports"].get(group, {}).get("answer_accuracy") for each in figures.values())
        rows.append((group, str(report["num_problems"]), *map(percent, answers)))
    title = "\n".join(["answer %, by what was trained on", *filter(None, remarks)])
    numbers = ("problems", *figures)
    return make_table(title, ("", *numbers), rows, right=numbers)


def show_solutions(folder: Path, rows: list[dict], seed: int, console: Console) -> None:
    """Solves some held-out problems, drawn by lot, with the saved student, and says which answers are right."""
    from transformers import pipeline

    from ...data import problem_from_row
    from ...expressions import Expression

    solver = pipeline("math-word-problem", model=str(folder), device="cpu")
    chosen = [problem_from_row(row) for row in random.Random(seed).sample(rows, min(NUM_SHOWN, len(rows)))]
    console.print(f"{len(chosen)} held-out problems, drawn by lot, solved by the student from {folder}:\n")
    for problem, result in zip(chosen, solver(chosen), strict=True):
        print_solution(console, problem.text, [result])
        found = None if result["prefix"] is None else Expression.from_prefix(result["prefix"])
        print_verdict(problem, found, console)


def show_reranking(task: MathWordProblems, student: MwpSolver, processor: MwpProcessor, console: Console) -> float:
    """
    Solves the held-out problems once more with the answers of 20 beams ranked by how plausible they are, and shows the
    first one whose answer becomes another: its best answers, and what speaks against those behind the first. Returns
    the share of right answers.
    """
    from ...solving.answer_records import answer_records
    from ...solving.plausibility import PlausibilityReranker

    reranker = PlausibilityReranker.from_pretrained("en")
    found = evaluate_part(task, student, processor, "test", reranker=reranker, num_beams=reranker.num_beams)
    answers = found.predictions
    changed = [each for each in answers if each.displaced]
    before = sum(each.without_reranking().score.answer_correct for each in answers) / len(answers)
    after = found.reports["all problems"]["answer_accuracy"]
    console.print(
        f"The student once more, with {reranker.num_beams} beams whose answers are ranked by how plausible they are "
        f"(weights of the package, fitted on MAWPS): {percent(after)} % right in place of {percent(before)} %, "
        f"{len(changed)} answers are others.{' The first of them:' if changed else ''}\n"
    )
    for each in changed[:1]:
        print_solution(console, each.problem.text, answer_records(each, top_k=3), tree=False)
        print_verdict(each.problem, each.expression, console)
    return after


def print_verdict(problem: MathWordProblem, found: Expression | None, console: Console) -> None:
    """Says whether an equation gives the annotated answer."""
    from ...metrics import score_prediction

    score = score_prediction(problem, found)
    verdict = "right" if score.answer_correct else f"wrong ({score.reason}; {problem.answer} is annotated)"
    console.print(f"  {verdict}\n", style="green" if score.answer_correct else "red")
