"""Costs and savings of masked (gated) and removed (sliced) heads and neurons: latency, size, and cost of pruning
during training.

Classifiers have random weights and the shapes of MiniLM (6 x 384) and BERT-base (12 x 768); the choice of heads
does not change the time. Pruned models are students, so the dense model is also measured as a student. They are
compared with torch-pruning 1.6 (`pip install --no-deps torch-pruning==1.6.*`), which removes the same heads and
neurons from the BERT class; its result cannot be reloaded. All figures are CPU seconds from one process with
alternating calls, the minimum over the rounds; both shapes take about seven minutes on an idle core.

    python examples/benchmarks/pruning.py [--shapes 6x384 12x768] [--rounds 2] [--long] [--quick] [--write]
"""

import argparse
import copy
from collections.abc import Callable
from functools import partial
from importlib.util import find_spec
from pathlib import Path

from measuring import Clock, restart_with_threads, show_report, table


ROOT = Path(__file__).parents[2]
SEED = 0
SHAPES = {
    "6x384": {"num_hidden_layers": 6, "hidden_size": 384, "num_attention_heads": 12, "intermediate_size": 1536},
    "12x768": {"num_hidden_layers": 12, "hidden_size": 768, "num_attention_heads": 12, "intermediate_size": 3072},
}
QUICK = {"num_hidden_layers": 2, "hidden_size": 16, "num_attention_heads": 4, "intermediate_size": 24}
# Texts and tokens of a batch.
WORKLOADS = [(1, 32), (1, 128), (32, 32), (32, 128)]
# Numbers of batches for a training step and for scoring heads.
STEP = (32, 32)
INTERVAL = 100  # steps between two events: 10 events, the default, in a training of 1,000 steps


def parse_arguments(argv: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Heads and neurons gated and cut, beside torch-pruning.")
    parser.add_argument("--shapes", nargs="+", choices=SHAPES, default=[*SHAPES], help="layers x width")
    parser.add_argument("--rounds", type=int, default=2, help="turns of all models with each workload")
    parser.add_argument(
        "--long", action="store_true", help="32 texts of 128 tokens with 12x768, too, which takes long"
    )
    parser.add_argument("--quick", action="store_true", help="a tiny shape and one round: only to see it run")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--write", action="store_true", help="put the tables into RESULTS.md")
    return parser.parse_args(argv)


def new_classifier(sizes: dict):
    """Return a BERT with random weights and without dropout."""
    import torch
    from transformers import BertConfig, BertForSequenceClassification

    torch.manual_seed(SEED)
    dropout = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
    return BertForSequenceClassification(BertConfig(vocab_size=1000, **sizes, **dropout)).eval()


def chosen(model, share: float) -> tuple[dict, dict]:
    """Choose a share of the heads over all layers, and of the neurons in each layer."""
    import torch

    from hf_mwp.compress.models.architecture import layer_parts
    from hf_mwp.compress.pruning import RandomImportance, choose_heads

    num_neurons = layer_parts(model)[0].num_neurons
    generator = torch.Generator().manual_seed(SEED)
    order = torch.randperm(num_neurons, generator=generator).tolist()
    neurons = sorted(order[: round(share * num_neurons)])
    heads = choose_heads(RandomImportance(SEED).scores(model), share)
    return heads, dict.fromkeys(range(model.config.num_hidden_layers), neurons)


def gated(model, heads: dict):
    """Return a copy with heads masked by gates."""
    from hf_mwp.compress.pruning import HeadGates

    model = copy.deepcopy(model)
    HeadGates(model).close(heads)
    return model


def cut_by_peer(model, heads: dict, neurons: dict):
    """Return a copy pruned by torch-pruning."""
    import torch_pruning

    from hf_mwp.compress.models.architecture import layer_parts

    model = copy.deepcopy(model)
    for index, layer in enumerate(layer_parts(model)):
        rows = []
        for head in heads.get(index, ()):
            first_row = head * layer.head_dim
            rows.extend(range(first_row, first_row + layer.head_dim))
        for linear in (layer.query, layer.key, layer.value):
            torch_pruning.prune_linear_out_channels(linear, rows)
        torch_pruning.prune_linear_in_channels(layer.attention_output, rows)
        if neurons:
            torch_pruning.prune_linear_out_channels(layer.intermediate, neurons[index])
            torch_pruning.prune_linear_in_channels(layer.output, neurons[index])
    return model


def variants(model) -> dict:
    """Return the compared models by name."""
    from hf_mwp.compress.pruning import prune_heads, prune_neurons

    models = {"dense": model, "dense, as a student": prune_heads(model, {})}
    models["gated, 25% of heads"] = gated(model, chosen(model, 0.25)[0])
    for share in (0.2, 0.25, 0.3, 0.5):
        models[f"cut, {share:.0%} of heads"] = prune_heads(model, chosen(model, share)[0])
    heads, neurons = chosen(model, 0.3)
    models["cut, 30% of heads and neurons"] = prune_neurons(prune_heads(model, heads), neurons)
    if find_spec("torch_pruning"):
        models["torch-pruning, 25% of heads"] = cut_by_peer(model, chosen(model, 0.25)[0], {})
        models["torch-pruning, 30% of heads and neurons"] = cut_by_peer(model, heads, neurons)
    return models


def new_batch(rows: int, tokens: int) -> dict:
    import torch

    generator = torch.Generator().manual_seed(SEED)
    return {"input_ids": torch.randint(5, 1000, (rows, tokens), generator=generator)}


def least(functions: dict[str, Callable], rounds: int, repeats: int) -> dict[str, float]:
    """Return the minimum CPU seconds of each function, called in alternating rounds."""
    seconds = {name: [] for name in functions}
    # Warm-up.
    for function in functions.values():
        function()
    for _ in range(rounds):
        for name, function in functions.items():
            clock = Clock()
            with clock:
                for _ in range(repeats):
                    function()
            seconds[name].append(clock.cpu / repeats)
    return {name: min(seconds_of_rounds) for name, seconds_of_rounds in seconds.items()}


def measure_shape(sizes: dict, workloads: list[tuple[int, int]], rounds: int) -> dict:
    """Measure a shape: model sizes, seconds and operations of each workload, price of pruning."""
    import torch

    from hf_mwp.compress.metrics.efficiency import count_flops, count_parameters, peak_memory

    models = variants(new_classifier(sizes))
    check = new_batch(2, 8)
    with torch.no_grad():
        outputs = {name: model(**check).logits for name, model in models.items()}
        figures = {"difference": largest_difference(outputs), "models": {}, "workloads": {}}
        for name, model in models.items():
            # Neither operations nor tensors depend on values.
            meta_model = copy.deepcopy(model).to("meta")
            meta_batches = {}
            for workload in workloads:
                meta_batches[workload] = {"input_ids": new_batch(*workload)["input_ids"].to("meta")}
            weight_bytes = sum(weight.numel() * weight.element_size() for weight in model.parameters())
            largest_pass = partial(meta_model, **meta_batches[workloads[-1]])
            figures["models"][name] = {
                "parameters": count_parameters(model, embeddings=False),
                "flops": {workload: count_flops(meta_model, batch) for workload, batch in meta_batches.items()},
                "memory": weight_bytes + peak_memory(largest_pass),
            }
        for workload in workloads:
            batch = new_batch(*workload)
            calls = {name: partial(model, **batch) for name, model in models.items()}
            num_texts, _ = workload
            repeats = 3 if num_texts == 1 else 1
            figures["workloads"][workload] = least(calls, rounds, repeats)
    figures["price"] = measure_price(models["dense"], rounds)
    return figures


def largest_difference(logits: dict) -> float:
    """Return the largest difference between the logits of models that must be equal."""
    pairs = [("gated, 25% of heads", "cut, 25% of heads")]
    for name in logits:
        if name.startswith("torch-pruning"):
            pairs.append((name, name.replace("torch-pruning", "cut")))
    differences = []
    for first_name, second_name in pairs:
        difference = (logits[first_name] - logits[second_name]).abs()
        differences.append(difference.max().item())
    return max(differences)


def measure_price(model, rounds: int) -> dict:
    """Measure CPU seconds of a training step without and with gates, and of one scoring of heads."""
    import torch

    from hf_mwp.compress.pruning import CombinedImportance
    from hf_mwp.compress.pruning.head_pruning_callback import CALIBRATION_BATCH_SIZE, CALIBRATION_EXAMPLES

    batch = new_batch(*STEP)
    batch["attention_mask"] = torch.ones_like(batch["input_ids"])
    batch["labels"] = torch.zeros(STEP[0], dtype=torch.long)
    plain_model = copy.deepcopy(model)
    gated_model = gated(model, {0: [0]})

    def step_of(model):
        optimizer = torch.optim.AdamW(model.train().parameters())

        def step():
            model(**batch).loss.backward()
            optimizer.step()
            optimizer.zero_grad()

        return step

    scored = {name: values[:CALIBRATION_BATCH_SIZE] for name, values in batch.items()}
    num_scored = CALIBRATION_EXAMPLES // CALIBRATION_BATCH_SIZE
    calls = {
        "plain": step_of(plain_model),
        "gated": step_of(gated_model),
        "one batch scored": lambda: CombinedImportance().scores(plain_model, [scored]),
    }
    seconds = least(calls, rounds, repeats=1)
    event = seconds["one batch scored"] * num_scored
    return {
        "gates": seconds["gated"] / seconds["plain"] - 1,
        "event": event / seconds["plain"],
        "scoring": event / (event + INTERVAL * seconds["plain"]),
        "batches": num_scored,
    }


def measure(args: argparse.Namespace) -> dict:
    """Measure each shape."""
    import torch

    torch.set_num_threads(args.threads)
    if args.quick:
        return {"2x16": measure_shape(QUICK, [(1, 8), (2, 8)], 1)}
    figures = {}
    for name in args.shapes:
        workloads = WORKLOADS
        if name == "12x768" and not args.long:
            workloads = WORKLOADS[:-1]
        figures[name] = measure_shape(SHAPES[name], workloads, args.rounds)
    return figures


def report(results: dict) -> str:
    """Return all measurements as Markdown."""
    paragraphs = [
        "Weights do not include embeddings; peak memory includes weights and the tensors of the largest workload. For "
        "each workload (texts x tokens): the speed-up over the dense model, the speed-up expected from floating point "
        "operations, and the ratio of both.",
    ]
    for shape, figures in results.items():
        dense = figures["models"]["dense"]
        workloads = figures["workloads"]
        largest = list(workloads)[-1]
        sizes = []
        speeds = []
        reached = []
        for name, model in figures["models"].items():
            change = model["parameters"] / dense["parameters"] - 1
            cells = [f"{model['parameters'] / 1e6:.2f}", f"{change:+.1%}"]
            cells += [f"{model['flops'][largest] / 1e9:.2f}", f"{model['memory'] / 2**20:.0f}"]
            sizes.append([name, *cells])
            row = [name]
            for workload, seconds in workloads.items():
                speed_up = seconds["dense"] / seconds[name]
                promised = dense["flops"][workload] / model["flops"][workload]
                row += [f"{1000 * seconds[name]:.1f}", f"{speed_up:.2f} of {promised:.2f}, {speed_up / promised:.0%}"]
                if name.startswith("cut"):
                    reached.append(speed_up / promised)
            speeds.append(row)
        price = figures["price"]
        head = []
        for num_texts, num_tokens in workloads:
            head += [f"{num_texts} x {num_tokens}, ms", "speed-up"]
        marks = [
            ["least part of the promised speed-up that a cut model reaches (mark: 90 %)", f"{min(reached):.0%}"],
            ["the same, mean", f"{sum(reached) / len(reached):.0%}"],
            [f"gates, added to a training step of {STEP[0]} x {STEP[1]} (mark: 3 %)", f"{price['gates']:+.1%}"],
            [f"an event of scoring, {price['batches']} batches, in training steps", f"{price['event']:.2f}"],
            [f"scoring, part of a training with {INTERVAL} steps an event (mark: 2 %)", f"{price['scoring']:.1%}"],
            ["largest difference of logits: gated, cut, torch-pruning", f"{figures['difference']:.0e}"],
        ]
        paragraphs += [
            f"### {shape}",
            table(["", "weights, M", "change", f"GFLOP, {largest[0]} x {largest[1]}", "peak MiB"], sizes),
            table(["", *head], speeds),
            table(["", "measured"], marks),
        ]
    return "\n\n".join(paragraphs)


def main() -> None:
    args = parse_arguments()
    restart_with_threads(args.threads)
    show_report("Pruning", report(measure(args)), args.write)


if __name__ == "__main__":
    main()
