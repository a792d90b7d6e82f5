"""Cost of STARK's stages: scoring compared with an epoch of distillation, and sliced with masked teachers.

The teacher is a classifier with MiniLM's shape (6 x 384) and random weights, the student has its first two layers;
the choice of heads and neurons does not change the time. An epoch of distillation without cache is a pass of the
teacher and a training step of the student on each row; scores are measured on a tenth of the rows. All figures are
CPU seconds from one process with alternating calls, the minimum over the rounds. The search is StarkTrainer's own:
trial student, scores and a student for each sparsity, with the teachers' outputs cached and without.

    python examples/benchmarks/stark.py [--rows 32] [--tokens 64] [--rounds 3] [--epochs 5] [--bf16] [--quick]
        [--write]
"""

import argparse
import copy
import time
from contextlib import nullcontext
from functools import partial
from tempfile import TemporaryDirectory

from measuring import restart_with_threads, show_report, table
from pruning import QUICK, SEED, SHAPES, least, new_batch, new_classifier


SCORED = 0.1
# Numbers of rows in the search.
BATCHES = 4
SPARSITIES = (0.1, 0.3, 0.5, 0.7, 0.9)


def parse_arguments(argv: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Scoring and sparse teachers, beside distillation.")
    parser.add_argument("--rows", type=int, default=32, help="of a batch")
    parser.add_argument("--tokens", type=int, default=64, help="of a row; texts of RTE have about as many")
    parser.add_argument("--rounds", type=int, default=3, help="turns of all calls")
    parser.add_argument("--epochs", type=int, default=5, help="of each student of the search")
    parser.add_argument("--bf16", action="store_true", help="with automatic mixed precision")
    parser.add_argument("--quick", action="store_true", help="a tiny shape and one round: only to see it run")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--write", action="store_true", help="put the tables into RESULTS.md")
    return parser.parse_args(argv)


def workload(args: argparse.Namespace) -> tuple[dict, int, int]:
    """Return the sizes of the teacher, and the rows and tokens of a batch."""
    if args.quick:
        return QUICK, 4, 8
    return SHAPES["6x384"], args.rows, args.tokens


def measure(args: argparse.Namespace) -> dict:
    """Measure CPU seconds of each operation on one batch, and floating point operations of the teachers."""
    import torch

    from hf_mwp.compress.losses import LogitDistillationLoss
    from hf_mwp.compress.metrics.efficiency import count_flops
    from hf_mwp.compress.pruning import RemovedUnits, UnitScores, cut_teacher, mask_teacher, measure_scores

    torch.set_num_threads(args.threads)
    sizes, rows, tokens = workload(args)
    teacher = new_classifier(sizes)
    student = new_classifier(sizes | {"num_hidden_layers": min(2, sizes["num_hidden_layers"])})
    trial = copy.deepcopy(student)
    batch = new_batch(rows, tokens)
    batch["attention_mask"] = torch.ones_like(batch["input_ids"])
    batch["labels"] = torch.arange(rows) % 2
    optimizer = torch.optim.AdamW(student.train().parameters())
    soft = LogitDistillationLoss(2.0)

    def precision():
        return torch.autocast("cpu", torch.bfloat16) if args.bf16 else nullcontext()

    def call(model):
        with torch.no_grad(), precision():
            return model(**batch).logits

    teacher_logits = call(teacher)

    def step():
        with precision():
            outputs = student(**batch)
            loss = soft(outputs.logits, teacher_logits) + outputs.loss
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()

    def score(**options):
        with precision():
            measure_scores(teacher, [batch], trial, **options)

    scores = UnitScores.random(teacher, SEED)
    teachers = {"dense": teacher}
    for sparsity in SPARSITIES:
        removed = RemovedUnits.lowest(scores, sparsity, round_to=8)
        teachers[f"cut, {sparsity:.0%}"] = cut_teacher(teacher, removed).eval()
        teachers[f"masked, {sparsity:.0%}"] = mask_teacher(teacher, removed).eval()
    calls = {
        "student step": step,
        "scores": score,
        "scores per example": partial(score, per_example=True),
    }
    for name, model in teachers.items():
        calls[name] = partial(call, model)

    meta_batch = {"input_ids": batch["input_ids"].to("meta")}
    flops = {}
    for name, model in {**teachers, "student": student}.items():
        meta_model = copy.deepcopy(model).to("meta")
        flops[name] = count_flops(meta_model, meta_batch)
    # Backward takes two matrix products for each one forward.
    flops["student step"] = 3 * flops.pop("student")
    rounds = 1 if args.quick else args.rounds
    return {
        "seconds": least(calls, rounds, repeats=1),
        "flops": flops,
        "workload": (rows, tokens),
    }


def measure_search(args: argparse.Namespace) -> dict:
    """Measure CPU seconds of the trial student and of all sparsities, with and without caches."""
    from transformers import PrinterCallback, default_data_collator

    from hf_mwp import StarkConfig, StarkTrainer
    from hf_mwp.compress.models import MwpStudentForSequenceClassification

    sizes, rows, tokens = workload(args)
    epochs = args.epochs
    sparsities = SPARSITIES
    if args.quick:
        epochs = 1
        sparsities = SPARSITIES[:1]
    teacher = new_classifier(sizes)
    student = MwpStudentForSequenceClassification.from_encoder(teacher, layers=min(2, sizes["num_hidden_layers"]))
    texts = new_batch(BATCHES * rows, tokens)["input_ids"].tolist()
    data = [{"input_ids": ids, "labels": number % 2} for number, ids in enumerate(texts)]
    seconds: dict = {name: {} for name in ("trial student", "search")}
    for cached in (False, True):
        with TemporaryDirectory() as folder:
            config = StarkConfig(
                folder,
                sparsities=list(sparsities),
                num_train_epochs=epochs,
                per_device_train_batch_size=rows,
                cache_teacher_outputs=cached,
                # Only training is compared.
                eval_strategy="no",
                load_best_model_at_end=False,
                early_stopping_patience=None,
                save_strategy="no",
                bf16=args.bf16,
                use_cpu=True,
                report_to="none",
                disable_tqdm=True,
            )
            trainer = StarkTrainer(student, teacher, config, default_data_collator, data, data[:rows])
            begun = time.process_time()

            def note(trainer, sparsity, begun=begun, cached=cached):
                trainer.remove_callback(PrinterCallback)
                # The first sparse teacher is created after trial student and scores.
                if sparsity:
                    seconds["trial student"].setdefault(cached, time.process_time() - begun)

            trainer.on_trainer = note
            trainer.train()
            seconds["search"][cached] = time.process_time() - begun
    return {"seconds": seconds, "epochs": epochs, "sparsities": len(sparsities)}


def promised_by_caches(figures: dict, search: dict) -> dict[str, float]:
    """
    Return the largest saving of a cache, from the costs of single batches: a teacher runs once, not in every epoch.
    """
    seconds = figures["seconds"]
    epochs = search["epochs"]
    cut = [seconds[f"cut, {sparsity:.0%}"] for sparsity in SPARSITIES[: search["sparsities"]]]
    step = seconds["student step"]
    # Scores are measured on one batch of all, and the students are evaluated on it.
    scores = seconds["scores"] / BATCHES
    ratios = {}
    for name, teachers in (("trial student", [seconds["dense"]]), ("search", [seconds["dense"], *cut])):
        without_cache = 0
        with_cache = 0
        for teacher_pass in teachers:
            without_cache += epochs * teacher_pass + epochs * step
            with_cache += teacher_pass + epochs * step
        ratios[name] = (without_cache + scores) / (with_cache + scores)
    return ratios


def speed_up(costs: dict, sparsity: float, with_student: bool) -> float:
    """
    Return how much cheaper a pruned teacher is than a masked one, in seconds or operations, alone or with a training
    step of the student.
    """
    masked = costs[f"masked, {sparsity:.0%}"]
    cut = costs[f"cut, {sparsity:.0%}"]
    if with_student:
        masked += costs["student step"]
        cut += costs["student step"]
    return masked / cut


def report(figures: dict, search: dict) -> str:
    """Return all measurements as Markdown."""
    seconds = figures["seconds"]
    rows, tokens = figures["workload"]
    epoch = seconds["dense"] + seconds["student step"]
    costs = []
    for name in ("dense", "student step", "scores", "scores per example"):
        in_epochs = seconds[name] / epoch
        scored_in_epochs = SCORED * seconds[name] / epoch
        costs.append([name, f"{1000 * seconds[name]:.0f}", f"{in_epochs:.2f}", f"{scored_in_epochs:.3f}"])
    sparse = []
    for sparsity in SPARSITIES:
        cut = seconds[f"cut, {sparsity:.0%}"]
        masked = seconds[f"masked, {sparsity:.0%}"]
        row = [f"{sparsity:.0%}", f"{1000 * masked:.0f}", f"{1000 * cut:.0f}"]
        for with_student in (False, True):
            measured = speed_up(seconds, sparsity, with_student)
            promised = speed_up(figures["flops"], sparsity, with_student)
            row.append(f"{measured:.2f} of {promised:.2f}, {measured / promised:.0%}")
        sparse.append(row)
    promised_ratios = promised_by_caches(figures, search)
    searches = []
    for name, by_cached in search["seconds"].items():
        uncached = by_cached[False]
        cached = by_cached[True]
        ratio = uncached / cached
        cells = [f"{uncached:.0f}", f"{cached:.0f}", f"{ratio:.2f}", f"{ratio / promised_ratios[name]:.0%}"]
        searches.append([name, *cells])
    return "\n\n".join(
        [
            f"Batches of {rows} x {tokens}. Costs are also given in epochs of distillation without cache (target for "
            "both scores on a tenth of the rows: 0.3). For sparse teachers: the speed-up of pruned over masked "
            "teachers, the speed-up expected from floating point operations, and the ratio of both "
            "(target for distillation: 90 %).",
            table(["", "ms a batch", "epochs", "epochs, a tenth of the rows"], costs),
            f"StarkTrainer on {BATCHES} such batches, {search['epochs']} epochs per student, {search['sparsities']} "
            "sparsities: CPU seconds of trial student and scores, and of the whole search, without and with cached "
            "teacher outputs, and the share of the expected speed-up (target: 90 %).",
            table(["", "without, s", "cached, s", "speed-up", "of promised"], searches),
            table(["sparsity", "masked, ms", "cut, ms", "speed-up of the teacher", "of distillation"], sparse),
        ]
    )


def main() -> None:
    args = parse_arguments()
    restart_with_threads(args.threads)
    figures = measure(args)
    search = measure_search(args)
    show_report("STARK", report(figures, search), args.write)


if __name__ == "__main__":
    main()
