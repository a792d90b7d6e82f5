"""Time and memory of the distillation of causal language models.

A Llama of 12 layers and width 768 with random weights, which does not change the time, teaches one of 6 layers and
width 512. The kinds of steps alternate in each round of one process: fine-tuning on labels, and distillation with the
teacher in the loop or cached, from logits alone and with CKA losses on hidden states. Then the divergence between
logits over a vocabulary of 150,000 tokens is computed whole and in chunks of positions.

    python examples/benchmarks/causal.py [--rounds 5] [--quick] [--write]
"""

import argparse
import tempfile

from measuring import Clock, OperatorCounter, PeakMemory, first_batch_step, restart_with_threads, show_report, table


SEED = 0
FINE_TUNING = "fine-tuning on labels"
LOGITS = "labels and logits"
HIDDEN = "labels, logits and hidden states (CKA)"
TEACHER = {"num_hidden_layers": 12, "hidden_size": 768, "intermediate_size": 2048, "num_attention_heads": 12}
STUDENT = {"num_hidden_layers": 6, "hidden_size": 512, "intermediate_size": 1376, "num_attention_heads": 8}


def parse_arguments(argv: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Distillation of causal language models.")
    parser.add_argument("--rounds", type=int, default=5, help="timed steps of each kind")
    parser.add_argument("--batch-size", type=int, default=4)
    parser.add_argument("--tokens", type=int, default=256, help="tokens of each text")
    parser.add_argument("--vocabulary", type=int, default=32_000, help="tokens of the models")
    parser.add_argument(
        "--large-vocabulary", type=int, default=150_000, help="tokens of the logits compared in chunks"
    )
    parser.add_argument("--positions", type=int, default=512, help="positions of the logits compared in chunks")
    parser.add_argument("--top-k", type=int, default=64, help="tokens that a cache stores for each position")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--quick", action="store_true", help="small models and one round: only to see it run")
    parser.add_argument("--write", action="store_true", help="put the tables into RESULTS.md")
    args = parser.parse_args(argv)
    if args.quick:
        args.rounds = 1
        args.batch_size = 2
        args.tokens = 32
        args.vocabulary = 500
        args.large_vocabulary = 2_000
        args.positions = 16
    return args


def make_model(sizes: dict, args: argparse.Namespace):
    """Return a Llama with random weights."""
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    torch.manual_seed(SEED)
    tokens = {"vocab_size": args.vocabulary, "max_position_embeddings": args.tokens, "tie_word_embeddings": True}
    key_value_heads = sizes["num_attention_heads"] // 4
    return LlamaForCausalLM(LlamaConfig(**sizes, **tokens, num_key_value_heads=key_value_heads))


def make_step(args: argparse.Namespace, teacher, fields: dict, folder: str):
    """Return a function that trains a student for one step, always on the same batch."""
    import torch

    from hf_mwp import CausalLMDistillationConfig, DistillationTrainer

    student = make_model(STUDENT, args)
    torch.manual_seed(SEED)
    rows = []
    for token_ids in torch.randint(5, args.vocabulary, (args.batch_size, args.tokens)).tolist():
        rows.append({"input_ids": token_ids, "attention_mask": [1] * args.tokens, "labels": token_ids})
    config = CausalLMDistillationConfig(
        folder,
        use_cpu=True,
        report_to="none",
        per_device_train_batch_size=args.batch_size,
        per_device_eval_batch_size=args.batch_size,
        cache_top_k=args.top_k,
        **fields,
    )
    trainer = DistillationTrainer(student, teacher, config, train_dataset=rows)
    return first_batch_step(trainer)


def measure_steps(args: argparse.Namespace) -> dict:
    """Return CPU seconds and operator calls of a step by name."""
    teacher = make_model(TEACHER, args)
    only_labels = {"soft_label_weight": 0.0, "prediction_weight": 1.0, "hidden_loss": None}
    kinds = {FINE_TUNING: only_labels}
    for suffix, cached in (("", False), (", cached", True)):
        kinds[LOGITS + suffix] = {"hidden_loss": None, "cache_teacher_outputs": cached}
        kinds[HIDDEN + suffix] = {"cache_teacher_outputs": cached}
    with tempfile.TemporaryDirectory() as folder:
        steps = {name: make_step(args, teacher, fields, folder) for name, fields in kinds.items()}
        calls = {}
        for name, step in steps.items():
            # The first step is also the warm-up.
            with OperatorCounter() as counter:
                step()
            calls[name] = counter.calls
        clocks = {name: Clock() for name in steps}
        for _ in range(args.rounds):
            for name, step in steps.items():
                with clocks[name]:
                    step()
    return {name: (clock.cpu / clock.laps, calls[name]) for name, clock in clocks.items()}


def measure_divergences(args: argparse.Namespace) -> dict:
    """Return CPU seconds, peak memory in units of the logits, and loss, for whole logits and chunks."""
    import torch

    from hf_mwp.compress.losses import LogitDistillationLoss, position_chunks

    torch.manual_seed(SEED)
    shape = (1, args.positions, args.large_vocabulary)
    student = torch.randn(shape, requires_grad=True)
    teacher = torch.randn(shape)
    loss = LogitDistillationLoss(temperature=1.0)
    sizes = {"whole": 2**62, "in chunks": position_chunks.CHUNK_SIZE}

    def value_of(size: int) -> float:
        position_chunks.CHUNK_SIZE = size
        student.grad = None
        value = loss(student, teacher)
        value.backward()
        return value.item()

    figures = {}
    clocks = {name: Clock() for name in sizes}
    for name, size in sizes.items():
        with PeakMemory() as memory:
            value = value_of(size)
        figures[name] = {"memory": memory.peak / student.nbytes, "loss": value}
    for _ in range(args.rounds):
        for name, size in sizes.items():
            with clocks[name]:
                value_of(size)
    position_chunks.CHUNK_SIZE = sizes["in chunks"]
    for name, clock in clocks.items():
        figures[name]["seconds"] = clock.cpu / clock.laps
    return figures


def report(args: argparse.Namespace, steps: dict, divergences: dict) -> str:
    """Return all measurements as Markdown."""
    baseline = steps[FINE_TUNING][0]
    rows = []
    for name, (seconds, calls) in steps.items():
        rows.append([name, f"{seconds:.2f}", f"{seconds / baseline:.2f}", f"{calls:,}"])
    sentences = [
        f"Batches of {args.batch_size} x {args.tokens} tokens, vocabulary {args.vocabulary:,}, {args.top_k} cached "
        f"tokens, fp32, mean of {args.rounds} steps.",
    ]
    for suffix in ("", ", cached"):
        added = steps[HIDDEN + suffix][0] / steps[LOGITS + suffix][0] - 1
        sentences.append(f"Hidden states add {added:.1%} to a step{suffix or ' with the teacher in the loop'}.")
    whole = divergences["whole"]
    chunked = divergences["in chunks"]
    chunk_rows = []
    for name, figures in divergences.items():
        chunk_rows.append([name, f"{figures['seconds']:.2f}", f"{figures['memory']:.2f}", f"{figures['loss']:.6f}"])
    chunk_text = (
        f"Divergence over {args.positions} positions and {args.large_vocabulary:,} tokens, forward and backward. "
        "Memory is the maximum in addition to both logits, with the gradient, in units of the logits. In chunks: "
        f"{chunked['seconds'] / whole['seconds']:.2f} of the time, {chunked['memory'] / whole['memory']:.2f} of the "
        "memory."
    )
    head = ["step", "CPU s", "of fine-tuning", "operator calls"]
    chunk_head = ["logits", "CPU s", "memory", "loss"]
    tables = [" ".join(sentences), table(head, rows), chunk_text, table(chunk_head, chunk_rows)]
    return "\n\n".join(tables)


def main() -> None:
    args = parse_arguments()
    restart_with_threads(args.threads)
    import torch

    torch.set_num_threads(args.threads)
    steps = measure_steps(args)
    show_report("Causal language models", report(args, steps, measure_divergences(args)), args.write)


if __name__ == "__main__":
    main()
