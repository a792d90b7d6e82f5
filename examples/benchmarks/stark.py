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


def measure(args: argparse.Namespace) -> dict:
    """Measure CPU seconds of each operation on one batch, and floating point operations of the teachers."""
    import torch

    from hf_mwp.compress.losses import LogitDistillationLoss
    from hf_mwp.compress.metrics.efficiency import count_flops
    from hf_mwp.compress.pruning import RemovedUnits, UnitScores, cut_teacher, mask_teacher, measure_scores

    torch.set_num_threads(args.threads)
    sizes, rows, tokens = (QUICK, 4, 8) if args.quick else (SHAPES["6x384"], args.rows, args.tokens)
    teacher = new_classifier(sizes)
    student = new_classifier(sizes | {"num_hidden_layers": min(2, sizes["num_hidden_layers"])})
    trial = copy.deepcopy(student)
    batch = new_batch(rows, tokens)
    batch |= {"attention_mask": torch.ones_like(batch["input_ids"]), "labels": torch.arange(rows) % 2}
    optimizer = torch.optim.AdamW(student.train().parameters())
    soft = LogitDistillationLoss(2.0)

    def precision():
        return torch.autocast("cpu", torch.bfloat16) if args.bf16 else nullcontext()

    def call(model):
        with torch.no_grad(), precision():
            return model(**batch).logits

    taught = call(teacher)

    def step():
        with precision():
            outputs = student(**batch)
            loss = soft(outputs.logits, taught) + outputs.loss
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
        "scores per example": lambda: score(per_example=True),
        **{name: lambda model=model: call(model) for name, model in teachers.items()},
    }
    meta = {"input_ids": batch["input_ids"].to("meta")}
    models = {**teachers, "student": student}
    flops = {name: count_flops(copy.deepcopy(model).to("meta"), meta) for name, model in models.items()}
    # Backward takes two matrix products for each one forward.
    flops["student step"] = 3 * flops.pop("student")
    return {
        "seconds": least(calls, 1 if args.quick else args.rounds, repeats=1),
        "flops": flops,
        "workload": (rows, tokens),
    }


def measure_search(args: argparse.Namespace) -> dict:
    """Measure CPU seconds of the trial student and of all sparsities, with and without caches."""
    from transformers import PrinterCallback, default_data_collator

    from hf_mwp import StarkConfig, StarkTrainer
    from hf_mwp.compress.models import MwpStudentForSequenceClassification

    sizes, rows, tokens = (QUICK, 4, 8) if args.quick else (SHAPES["6x384"], args.rows, args.tokens)
    epochs, sparsities = (1, SPARSITIES[:1]) if args.quick else (args.epochs, SPARSITIES)
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


def promised_by_caches(found: dict, search: dict) -> dict[str, float]:
    """
    Return the largest saving of a cache, from the costs of single batches: a teacher runs once, not in every epoch.
    """
    seconds = found["seconds"]
    epochs = search["epochs"]
    cut = [seconds[f"cut, {sparsity:.0%}"] for sparsity in SPARSITIES[: search["sparsities"]]]
    step = seconds["student step"]
    ratios = {}
    for name, teachers in (("trial student", [seconds["dense"]]), ("search", [seconds["dense"], *cut])):
        # Scores are measured on one batch of all, and the students are evaluated on it.
        once = seconds["scores"] / BATCHES
        without, with_cache = (sum(n * each + epochs * step for each in teachers) for n in (epochs, 1))
        ratios[name] = (without + once) / (with_cache + once)
    return ratios


def report(found: dict, search: dict) -> str:
    """Return all measurements as Markdown."""
    seconds, flops, (rows, tokens) = found["seconds"], found["flops"], found["workload"]
    step = seconds["student step"]
    epoch = seconds["dense"] + step
    costs = [
        [name, f"{1000 * seconds[name]:.0f}", f"{seconds[name] / epoch:.2f}", f"{SCORED * seconds[name] / epoch:.3f}"]
        for name in ("dense", "student step", "scores", "scores per example")
    ]
    sparse = []
    for sparsity in SPARSITIES:
        cut = f"cut, {sparsity:.0%}"
        masked = f"masked, {sparsity:.0%}"
        row = [f"{sparsity:.0%}", f"{1000 * seconds[masked]:.0f}", f"{1000 * seconds[cut]:.0f}"]
        for both in (0, 1):
            measured, promised = (
                (each[masked] + both * each["student step"]) / (each[cut] + both * each["student step"])
                for each in (seconds, flops)
            )
            row.append(f"{measured:.2f} of {promised:.2f}, {measured / promised:.0%}")
        sparse.append(row)
    ratios = promised_by_caches(found, search)
    searches = []
    for name, each in search["seconds"].items():
        ratio = each[False] / each[True]
        searches.append(
            [name, f"{each[False]:.0f}", f"{each[True]:.0f}", f"{ratio:.2f}", f"{ratio / ratios[name]:.0%}"]
        )
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
    show_report("STARK", report(measure(args), measure_search(args)), args.write)


if __name__ == "__main__":
    main()
