"""Measurements of `gts.py` in one process with a fixed number of threads."""

import argparse
import copy
import random
from pathlib import Path
from unittest import mock

import peer as peers
import torch
from measuring import Clock, GpuOperators, OperatorCounter, PeakMemory, clock
from transformers.utils.logging import disable_progress_bar

from hf_mwp import MwpCollator, MwpProcessor, MwpSolver, MwpStudentConfig, MwpStudentModel, load_mwp_dataset
from hf_mwp.compress.trainers.length_grouped_sampler import LengthGroupedSampler
from hf_mwp.solver.data import problem_from_row


VOCABULARY = Path(__file__).parents[1] / "data" / "vocab"
SEED = 0
NUM_BEAMS = 5
MAX_LENGTH = 30  # the peer's setting
FIT_BATCH_SIZE = 32  # problems of a step that makes the weights
COLUMNS = ["input_ids", "number_positions", "number_groups", "labels", "length"]


def new_solver(processor: MwpProcessor) -> MwpSolver:
    """Return the 3 x 312 student with random weights and a decoder with the same width."""
    torch.manual_seed(SEED)
    encoder = MwpStudentModel(MwpStudentConfig(), add_pooling_layer=False)
    settings = {"dropout": 0.1, "root_goal": "mean", "max_length": MAX_LENGTH}
    return MwpSolver.from_encoder_decoder_pretrained(encoder, processor, decoder_kwargs=settings)


def bucketed(rows: list[dict], size: int, seed: int = SEED) -> list[list[dict]]:
    """Return the full batches of one epoch, grouped by length as in the trainer."""
    lengths = [row["length"] for row in rows]
    order = LengthGroupedSampler(lengths, size, seed)
    return full_batches([rows[index] for index in order], size)


def full_batches(rows: list[dict], size: int) -> list[list[dict]]:
    """Return the rows in batches of `size`, without the rest."""
    return [rows[start : start + size] for start in range(0, len(rows) - size + 1, size)]


def padding(batches: list[list[dict]]) -> float:
    """Return the share of padding tokens in the batches."""
    num_tokens = 0
    num_padded_tokens = 0
    for batch in batches:
        lengths = [row["length"] for row in batch]
        num_tokens += sum(lengths)
        num_padded_tokens += max(lengths) * len(lengths)
    return 1 - num_tokens / num_padded_tokens


def train_step(solver: MwpSolver, batch: dict, optimizer: torch.optim.Optimizer) -> None:
    optimizer.zero_grad()
    solver(**batch).loss.backward()
    torch.nn.utils.clip_grad_norm_(solver.parameters(), 5.0)
    optimizer.step()


def new_optimizer(model: torch.nn.Module, lr: float) -> torch.optim.Optimizer:
    return torch.optim.AdamW(model.parameters(), lr=lr, fused=True)


def fitted_solver(args: argparse.Namespace, processor: MwpProcessor, rows: list[dict]) -> MwpSolver:
    """Return a solver overfitted to the test problems, so that both programs decode trees as long as in the data.

    The weights are cached on disk.
    """
    num_constants = len(processor.vocabulary.constants)
    folder = Path(args.cache_dir) / f"solver-{len(rows)}-{args.fit_steps}-{num_constants}"
    if (folder / "config.json").exists():
        return MwpSolver.from_pretrained(folder)
    solver = new_solver(processor).eval()
    collator = MwpCollator(processor)
    groups = [{"params": solver.encoder.parameters(), "lr": 4e-4}, {"params": solver.decoder.parameters(), "lr": 1e-3}]
    optimizer = torch.optim.AdamW(groups, fused=True)
    draw = random.Random(SEED)
    size = min(FIT_BATCH_SIZE, len(rows))
    for _ in range(args.fit_steps):
        train_step(solver, collator(draw.sample(rows, size)), optimizer)
    solver.save_pretrained(folder)
    return solver


def measure(args: argparse.Namespace) -> dict:
    """Measure all figures for one number of threads, for JSON."""
    torch.set_num_threads(args.threads[0])
    disable_progress_bar()
    data = load_mwp_dataset("math23k", data_dir=args.data_dir)
    train_rows = limited(data["train"], args.max_problems)
    processor = MwpProcessor.build(VOCABULARY, map(problem_from_row, train_rows), indexed_numbers=True)
    train = encode(processor, train_rows)
    validation = encode(processor, limited(data["validation"], args.max_problems))
    held_out = random.Random(SEED).sample(validation, min(args.problems, len(validation)))
    solver = fitted_solver(args, processor, held_out)
    peer_folder = peers.fetch(Path(args.cache_dir))
    peer = peers.Peer(peers.import_model(peer_folder), solver, max_length=MAX_LENGTH)
    return figures_of(args, solver, peer, MwpCollator(processor), train, held_out)


def limited(dataset, num_rows: int | None):
    """Return the first rows of a dataset, all if `num_rows` is `None`."""
    if num_rows is None:
        return dataset
    return dataset.select(range(min(num_rows, len(dataset))))


def encode(processor: MwpProcessor, dataset) -> list[dict]:
    """Encode the rows whose labels are within the peer's length limit."""
    rows = processor.prepare_dataset(dataset, skipped=[]).select_columns(COLUMNS).to_list()
    return [row for row in rows if len(row["labels"]) <= MAX_LENGTH]


def figures_of(
    args: argparse.Namespace,
    solver: MwpSolver,
    peer: peers.Peer,
    collator: MwpCollator,
    train: list[dict],
    held_out: list[dict],
) -> dict:
    """Check that both models agree, then measure both."""
    size = args.batch_size
    held_out = sorted(held_out, key=lambda row: row["length"])
    held_out_batches = []
    for start in range(0, len(held_out), size):
        held_out_batches.append(collator(held_out[start : start + size]))
    batches = bucketed(train, size)
    shuffled = full_batches(random.Random(SEED).sample(train, len(train)), size)
    figures = {
        "batch_size": size,
        "padding": padding(batches),
        "padding_shuffled": padding(shuffled),
        "checks": check(solver, peer, held_out_batches),
    }
    figures.update(measure_solving(solver, peer, held_out_batches))
    random.Random(SEED).shuffle(batches)
    batches = batches[: args.steps + 1]
    shuffled = shuffled[: args.steps + 1]
    figures.update(measure_training(solver, peer, collator, batches, shuffled))
    figures.update(memory_tables(solver))
    if torch.cuda.is_available():
        figures["gpu"] = measure_gpu(solver, collator, batches)
    return figures


@torch.no_grad()
def solve(solver: MwpSolver, batch: dict, num_beams: int) -> list[list[int]]:
    output = solver.solve(
        input_ids=batch["input_ids"],
        attention_mask=batch["attention_mask"],
        number_positions=batch["number_positions"],
        num_beams=num_beams,
        max_length=MAX_LENGTH,
    )
    equations = []
    for sequence in output.sequences[:, 0].tolist():
        equations.append([symbol for symbol in sequence if symbol >= 0])
    return equations


@torch.no_grad()
def check(solver: MwpSolver, peer: peers.Peer, batches: list[dict]) -> dict:
    """Compare scores of teacher-forced nodes, then equations, with the peer's."""
    solver.eval()
    peer.model.eval()
    checks = {"nodes": 0, "logits": 0.0, "problems": 0, "greedy": 0, "beam": 0}
    lengths = []
    for batch in batches:
        mask = batch["labels"] >= 0
        logits = solver(**batch).logits[mask]
        peer_logits = peer.logits(peer.batch(batch))[mask]
        possible = peer_logits > -1e11
        differences = (logits[possible] - peer_logits[possible]).abs()
        checks["logits"] = max(checks["logits"], differences.max().item())
        checks["nodes"] += int(mask.sum())
        for name, num_beams in [("greedy", 1), ("beam", NUM_BEAMS)]:
            peer.model.beam_size = num_beams
            equations = solve(solver, batch, num_beams)
            peer_equations = peer.solve(peer.batch(batch))
            for equation, peer_equation in zip(equations, peer_equations, strict=True):
                checks[name] += equation == peer_equation
                lengths.append(len(equation))
        checks["problems"] += len(mask)
    return {**checks, "length": sum(lengths) / len(lengths)}


def figure(total: Clock, problems: int) -> dict:
    return {"cpu": total.cpu, "wall": total.wall, "problems": problems}


def measure_solving(solver: MwpSolver, peer: peers.Peer, batches: list[dict]) -> dict:
    """Measure the encoder, and greedy and beam search, on batches and on single problems."""
    singles = []
    for batch in batches:
        for index in range(len(batch["input_ids"])):
            singles.append(single(batch, index))
    peer_batches = [peer.batch(batch) for batch in batches]

    @torch.no_grad()
    def encode_only(batch: dict) -> None:
        solver.encoder(input_ids=batch["input_ids"], attention_mask=batch["attention_mask"])

    figures = {
        "encoder": clock(encode_only, batches),
        "encoder_1": clock(encode_only, singles),
        "greedy_1": clock(lambda batch: solve(solver, batch, 1), singles),
    }
    for name, num_beams in [("greedy", 1), ("beam", NUM_BEAMS)]:
        peer.model.beam_size = num_beams
        figures[name] = clock(lambda batch, k=num_beams: solve(solver, batch, k), batches)
        figures[f"peer_{name}"] = clock(peer.solve, peer_batches, warmup=0)
    num_problems = len(singles)
    return {name: figure(total, num_problems) for name, total in figures.items()}


def single(batch: dict, index: int) -> dict:
    """Return one problem of a batch, without padding."""
    problem = {}
    for key, value in batch.items():
        if isinstance(value, torch.Tensor):
            problem[key] = value[index : index + 1]
    length = int(problem["attention_mask"].sum())
    num_numbers = int((problem["number_positions"] >= 0).sum())
    problem["input_ids"] = problem["input_ids"][:, :length]
    problem["attention_mask"] = problem["attention_mask"][:, :length]
    problem["number_positions"] = problem["number_positions"][:, :num_numbers]
    return problem


def calls_on_gpu(solver: MwpSolver, batch: dict) -> int:
    """Return the operator calls of forward and backward on a GPU, counted on the meta device."""
    solver = copy.deepcopy(solver).to("meta")
    batch = {name: values.to("meta") for name, values in batch.items()}
    # Transformers leaves out a mask that hides nothing, but tensors on the meta device have no values to look at.
    keep_mask = mock.patch("transformers.masking_utils._ignore_bidirectional_mask_sdpa", return_value=False)
    with OperatorCounter() as counter:
        with GpuOperators(), keep_mask:
            loss = solver(**batch).loss
        loss.backward()
    return counter.calls


def measure_training(
    solver: MwpSolver,
    peer: peers.Peer,
    collator: MwpCollator,
    batches: list[list[dict]],
    shuffled: list[list[dict]],
) -> dict:
    """Measure alternating steps: ours, with collation; the peer's, with the same batches and optimizer; the peer's
    with its own settings (random batches, Adam). Then measure our decoder alone."""
    solver.train()
    peer.model.train()
    optimizer = new_optimizer(solver, 1e-5)
    peer_optimizer = new_optimizer(peer.model, 1e-5)
    own_optimizer = torch.optim.Adam(peer.model.parameters(), lr=1e-5, weight_decay=1e-5)
    clocks = {name: Clock() for name in ("train", "peer_train", "peer_own_train", "decoder_step")}
    for number, (rows, own_rows) in enumerate(zip(batches, shuffled, strict=True)):
        batch = collator(rows)
        peer_batch = peer.batch(batch)
        own_batch = peer.batch(collator(own_rows))
        if not number:  # warms up, and counts
            with OperatorCounter() as counter:
                train_step(solver, batch, optimizer)
            with OperatorCounter() as peer_counter:
                peer.train_step(peer_batch, peer_optimizer)
            peer.train_step(own_batch, own_optimizer)
            continue
        with clocks["train"]:
            train_step(solver, collator(rows), optimizer)
        with clocks["peer_train"]:
            peer.train_step(peer_batch, peer_optimizer)
        with clocks["peer_own_train"]:
            peer.train_step(own_batch, own_optimizer)
        decoder_step(solver, batch, clocks["decoder_step"])
    num_problems = sum(map(len, batches[1:]))
    figures = {name: figure(total, num_problems) for name, total in clocks.items()}
    calls = {"calls": counter.calls, "peer_calls": peer_counter.calls}
    calls["gpu_calls"] = [calls_on_gpu(solver, collator(rows)) for rows in batches]
    return {**figures, **calls}


def decoder_step(solver: MwpSolver, batch: dict, total: Clock) -> None:
    """Run the decoder forward and backward on fixed hidden states."""
    inputs = dict(batch)
    input_ids = inputs.pop("input_ids")
    with torch.no_grad():
        states = solver.encoder(input_ids=input_ids, attention_mask=batch["attention_mask"])[0]
    states.requires_grad_()
    with total:
        solver.decoder(encoder_hidden_states=states, **inputs).loss.backward()
    solver.zero_grad()


def synthetic_batch(solver: MwpSolver, problems: int, nodes: int, length: int = 40) -> dict:
    """Return problems with `length` tokens, four numbers and balanced trees with `nodes` nodes."""
    config = solver.config.decoder_config
    first_number = len(config.operators) + len(config.constants)

    def tree(size: int) -> list[int]:
        if size == 1:
            return [first_number + size % 4]
        left_size = (size // 2) | 1
        if left_size > size - 2:
            left_size -= 2
        return [0, *tree(left_size), *tree(size - 1 - left_size)]

    positions = torch.tensor([[5, 12, 20, 30]]).repeat(problems, 1)
    return {
        "input_ids": torch.full((problems, length), 7),
        "attention_mask": torch.ones(problems, length, dtype=torch.long),
        "number_positions": positions,
        "number_groups": torch.arange(4).repeat(problems, 1),
        "labels": torch.tensor([tree(nodes)]).repeat(problems, 1),
    }


def memory_tables(solver: MwpSolver) -> dict:
    """Measure peak memory of a step by number of problems and by tree size."""
    solver.train()

    def peak(problems: int, nodes: int) -> int:
        batch = synthetic_batch(solver, problems, nodes)
        solver.zero_grad()
        with PeakMemory() as memory:
            solver(**batch).loss.backward()
        return memory.peak

    by_batch = [[problems, 7, peak(problems, 7)] for problems in (16, 32, 64, 128)]
    by_nodes = [[nodes, 64, peak(64, nodes)] for nodes in (7, 15, 31, 63)]
    return {"memory_batch": growth(by_batch), "memory_nodes": growth(by_nodes)}


def growth(sizes: list[list[int]]) -> list[list]:
    """Return memory in MiB, and the increase per unit of the first column."""
    rows = []
    previous = None
    for units, fixed, peak in sizes:
        added = ""
        if previous is not None:
            previous_units, previous_peak = previous
            added = f"{(peak - previous_peak) / (units - previous_units) / 2**20:.2f}"
        rows.append([units, fixed, f"{peak / 2**20:.0f}", added])
        previous = units, peak
    return rows


def measure_gpu(solver: MwpSolver, collator: MwpCollator, batches: list[list[dict]]) -> list[list]:
    """Measure steps per second and kernel launches per step on the first GPU."""
    from torch.profiler import ProfilerActivity, profile

    solver.to("cuda").train()
    optimizer = new_optimizer(solver, 1e-5)

    def step(rows: list[dict]) -> None:
        batch = collator(rows)
        gpu_batch = {key: value.to("cuda") for key, value in batch.items()}
        train_step(solver, gpu_batch, optimizer)
        torch.cuda.synchronize()

    total = clock(step, batches, warmup=3)
    with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as trace:
        step(batches[0])
    launches = sum(event.count for event in trace.key_averages() if event.key == "cudaLaunchKernel")
    solver.to("cpu")
    return [["training steps per second", f"{total.laps / total.wall:.1f}"], ["kernels started per step", launches]]
