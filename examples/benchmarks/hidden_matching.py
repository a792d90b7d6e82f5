"""Time and memory that matching hidden states adds to a step of distillation, with the teacher in the loop or cached.

A BERT of 12 layers and width 768 teaches the 3 x 312 student on batches of 32 texts of 128 tokens, in fp32, three
pairs of layers. Weights are random, which does not change the time. The losses alternate in each round of one process.
They are compared with the formula in the authors' program (in fp64), and with TextBrewer's `nst`.

    python examples/benchmarks/hidden_matching.py [--rounds 3] [--quick] [--write]
"""

import argparse
import tempfile

from measuring import Clock, PeakMemory, first_batch_step, restart_with_threads, show_report, table


LOGITS = "logits alone"
SEED = 0


def parse_arguments(argv: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Distillation with losses on hidden states.")
    parser.add_argument("--rounds", type=int, default=3, help="timed steps of each kind")
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--tokens", type=int, default=128, help="tokens of each text")
    parser.add_argument("--width", type=int, default=768, help="width of the teacher")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--quick", action="store_true", help="few, short texts and one round: only to see it run")
    parser.add_argument("--write", action="store_true", help="put the tables into RESULTS.md")
    args = parser.parse_args(argv)
    if args.quick:
        args.rounds = 1
        args.batch_size = 4
        args.tokens = 16
        args.width = 48
    return args


def losses() -> dict:
    """Return losses on a pair of hidden states, by row name."""
    import torch
    from torch import nn

    from hf_mwp.compress.losses import CKALoss, GramLoss, HiddenMSELoss, ProcrustesLoss

    class AuthorsCKA(nn.Module):
        """`1 - CKA` as in the program of Dasgupta and Cohn."""

        needs_equal_width = False

        def forward(self, student, teacher, mask):
            x = student[mask.bool()].double()
            y = teacher[mask.bool()].double()
            x = x - x.mean(0, keepdim=True)
            y = y - y.mean(0, keepdim=True)
            xy_norm = torch.norm(x.T @ y)
            xx_norm = torch.norm(x.T @ x)
            yy_norm = torch.norm(y.T @ y)
            return 1 - xy_norm / torch.sqrt((xx_norm + 1e-8) * (yy_norm + 1e-8))

    class TextBrewerNST(nn.Module):
        """`nst` (`mmd_loss`) as in TextBrewer, for one layer paired with itself."""

        needs_equal_width = False

        def forward(self, student, teacher, mask):
            student_gram = student @ student.transpose(1, 2) / student.shape[2]
            teacher_gram = teacher @ teacher.transpose(1, 2) / teacher.shape[2]
            pairs = mask.unsqueeze(-1) * mask.unsqueeze(1)
            return ((student_gram - teacher_gram).square() * pairs).sum() / pairs.sum()

    return {
        "CKA": CKALoss(),
        "Gram": GramLoss(),
        "Procrustes": ProcrustesLoss(),
        "MSE through linear maps": HiddenMSELoss(),
        "CKA, authors' formula in fp64": AuthorsCKA(),
        "TextBrewer `nst`": TextBrewerNST(),
    }


def make_teacher(args: argparse.Namespace):
    """Return a classifier with random weights."""
    import torch
    from transformers import BertConfig, BertForSequenceClassification

    torch.manual_seed(SEED)
    sizes = {"hidden_size": args.width, "intermediate_size": 4 * args.width, "num_attention_heads": 12}
    return BertForSequenceClassification(BertConfig(**sizes))


def make_step(args: argparse.Namespace, teacher, loss, is_cached: bool, folder: str):
    """Return a function that trains a student for one step, always on the same batch."""
    import torch

    from hf_mwp import DistillationConfig, DistillationTrainer, MwpStudentConfig, MwpStudentForSequenceClassification
    from hf_mwp.compress.distillation.objectives import HardLabels, HiddenStates, SoftLabels

    torch.manual_seed(SEED)
    student = MwpStudentForSequenceClassification(MwpStudentConfig(vocab_size=teacher.config.vocab_size, num_labels=2))
    rows = []
    for number, ids in enumerate(torch.randint(5, 20_000, (args.batch_size, args.tokens)).tolist()):
        rows.append({"input_ids": ids, "attention_mask": [1] * args.tokens, "labels": number % 2})
    config = DistillationConfig(
        folder,
        use_cpu=True,
        report_to="none",
        per_device_train_batch_size=args.batch_size,
        per_device_eval_batch_size=args.batch_size,
        cache_teacher_outputs=is_cached,
    )
    objectives = [SoftLabels(0.5), HardLabels(0.5)]
    if loss is not None:
        objectives.append(HiddenStates(loss))
    trainer = DistillationTrainer(student, teacher, config, train_dataset=rows, objectives=objectives)
    return first_batch_step(trainer)


def measure(args: argparse.Namespace) -> dict:
    """Measure CPU seconds per step by kind of teacher and loss, and bytes of a pair of the teacher's states."""
    import torch

    torch.set_num_threads(args.threads)
    figures: dict = {"rounds": args.rounds, "batch": f"{args.batch_size} x {args.tokens}", "seconds": {}}
    losses_by_name = {LOGITS: None, **losses()}
    teacher = make_teacher(args)
    with tempfile.TemporaryDirectory() as folder:
        for is_cached in (False, True):
            steps = {}
            for name, loss in losses_by_name.items():
                steps[name] = make_step(args, teacher, loss, is_cached, folder)
            # Warm-up.
            for step in steps.values():
                step()
            clocks = {name: Clock() for name in steps}
            for _ in range(args.rounds):
                for name, step in steps.items():
                    with clocks[name]:
                        step()
            title = "cached" if is_cached else "in the loop"
            figures["seconds"][title] = {name: clock.cpu / clock.laps for name, clock in clocks.items()}
    states = torch.randn(args.batch_size, args.tokens, args.width)
    mask = torch.ones(args.batch_size, args.tokens, dtype=torch.long)
    figures["memory"] = {}
    for name, loss in losses().items():
        width = args.width if getattr(loss, "needs_equal_width", False) else 312
        student = torch.randn(args.batch_size, args.tokens, width, requires_grad=True)
        with PeakMemory() as memory:
            loss(student, states, mask).backward()
        figures["memory"][name] = memory.peak / states.nbytes
    return figures


def report(figures: dict) -> str:
    """Return all measurements as Markdown."""
    loop = figures["seconds"]["in the loop"]
    cached = figures["seconds"]["cached"]
    rows = []
    for name in loop:
        cells = [name]
        for seconds in (loop, cached):
            cells += [f"{seconds[name]:.2f}", f"{100 * (seconds[name] / seconds[LOGITS] - 1):+.1f} %"]
        memory = ""
        if name in figures["memory"]:
            memory = f"{figures['memory'][name]:.2f}"
        rows.append([*cells, memory])
    head = ["loss on hidden states", "teacher in the loop, CPU s", "added", "cached, CPU s", "added"]
    text = (
        f"Batches of {figures['batch']} tokens, mean of {figures['rounds']} steps, CPU seconds. Memory: maximum per "
        "pair in addition to the hidden states, with the backward pass, in units of a teacher's hidden states."
    )
    return f"{text}\n\n{table([*head, 'memory of a pair'], rows)}"


def main() -> None:
    args = parse_arguments()
    restart_with_threads(args.threads)
    show_report("Matching hidden states", report(measure(args)), args.write)


if __name__ == "__main__":
    main()
