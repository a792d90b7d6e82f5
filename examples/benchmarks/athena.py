"""Speed of ATHENA's batched decoder, compared with the one-by-one reference used in the tests.

Problems of Math23k or ASDiv-A in batches of like length, as the trainer makes them, an encoder of MiniLM's shape with
random weights and a decoder of the same width. The one-by-one form takes each problem alone through the encoder and,
round by round, through the decoder; gradients add up to one optimiser step. The third form has the batched encoder, as
the authors' program, and the decoder one by one. Gold expansions are made beforehand for all. The script compares
losses and answers. To have answers, the decoder first learns the problems to be solved by heart, with the encoder
frozen; these weights are made once and kept.

    python examples/benchmarks/athena.py [--datasets math23k asdiv_a] [--shape 6x384] [--batch-size 32] [--steps 4]
        [--problems 64] [--quick] [--write]
"""

import argparse
import random
from collections.abc import Sequence
from pathlib import Path

from distillation import SEED, VOCABULARY, settle
from measuring import Clock, restart_with_threads, show_report, table

from hf_mwp.runtime.expressions import Expression


CACHE = Path(__file__).parents[2] / ".bench"
FORMS = ("batched", "decoder one by one", "one by one", "encoder alone")


def parse_arguments(argv: Sequence[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="ATHENA: batched against one by one.")
    parser.add_argument("--datasets", nargs="+", default=["math23k", "asdiv_a"])
    parser.add_argument("--shape", default="6x384", help="layers and width of the encoder")
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--steps", type=int, default=4, help="training steps to measure, both forms in turn")
    parser.add_argument("--problems", type=int, default=64, help="problems to solve")
    parser.add_argument("--fit-steps", type=int, default=120, help="steps that make the weights for solving")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--quick", action="store_true", help="a tiny shape and one step: only to see it run")
    parser.add_argument("--write", action="store_true", help="put the tables into RESULTS.md")
    args = parser.parse_args(argv)
    if args.quick:
        args.shape = "2x24"
        args.batch_size = 4
        args.steps = 1
        args.problems = 4
        args.fit_steps = 2
    return args


class Setting:
    """Encoder, decoder and batches of encoded problems from a dataset."""

    def __init__(self, name: str, args: argparse.Namespace) -> None:
        import torch

        from hf_mwp import AthenaConfig, AthenaModel, MwpProcessor, MwpStudentConfig, MwpStudentModel, load_mwp_dataset
        from hf_mwp.commands.building.model_sources import resolve_encoder
        from hf_mwp.compress.trainers.length_grouped_sampler import LengthGroupedSampler
        from hf_mwp.solver.data import problem_from_row
        from hf_mwp.solver.models.athena.gold_plan import PlanMaker

        torch.manual_seed(SEED)
        data = load_mwp_dataset(name)["train"]
        if name == "math23k":
            tokenizer = VOCABULARY
            language = "zh"
        else:
            tokenizer = resolve_encoder("all-MiniLM-L6-v2")
            language = "en"
        self.processor = MwpProcessor.build(tokenizer, map(problem_from_row, data), language=language)
        layers, width = map(int, args.shape.split("x"))
        sizes = {"num_hidden_layers": layers, "hidden_size": width, "intermediate_size": 4 * width}
        sizes |= {"vocab_size": len(self.processor.tokenizer), "hidden_dropout_prob": 0.0}
        config = MwpStudentConfig(**sizes, num_attention_heads=12, attention_probs_dropout_prob=0.0)
        self.encoder = MwpStudentModel(config, add_pooling_layer=False).train()
        # The reference only supports constant exponents; other problems are skipped.
        rules = {"constants": self.processor.vocabulary.constants, "strict_exponents": True}
        config = AthenaConfig(hidden_size=width, dropout=0.0, **rules)
        self.decoder = AthenaModel(config).train()
        self.processor.vocabulary = PlanMaker(config).vocabulary
        self.processor.add_columns(self.decoder.extra_columns)
        self.collator = self.decoder.make_collator(self.processor)
        num_sampled = min(len(data), 100 * args.batch_size)
        sample = random.Random(SEED).sample(range(len(data)), num_sampled)
        encoded = self.processor.encode(data.select(sample).to_list(), with_labels=True, skipped=[])
        rows = []
        for values in zip(*encoded.values(), strict=True):
            row = dict(zip(encoded, values, strict=True))
            if row["labels"] and self.collator.plan(row) is not None:
                rows.append(row)
        lengths = [row["length"] for row in rows]
        order = list(LengthGroupedSampler(lengths, args.batch_size, SEED))
        # The first batch is the longest.
        order = order[args.batch_size :]
        self.rows = [rows[index] for index in order]

    def batches(self, num_problems: int, size: int) -> list[list[dict]]:
        return [self.rows[start : start + size] for start in range(0, num_problems, size)]

    def states(self, batch: dict):
        return self.encoder(input_ids=batch["input_ids"], attention_mask=batch["attention_mask"]).last_hidden_state

    def decode(self, batch: dict, states):
        """Return the output of the batched form."""
        return self.decoder(
            states,
            number_positions=batch["number_positions"],
            question_positions=batch["question_positions"],
            plans=batch["plans"],
        )


# Operations of thoughts with any number of terms: sign, sign of an inverted term, and value without terms.
SIGNS = {"ADD": ("+", "-", "0"), "MUL": ("*", "/", "1")}
INVERSES = {"ADD": "NEG", "MUL": "INV"}


def expression_of(thought: tuple) -> Expression:
    """Return a thought of the reference, a nested tuple, as an expression."""
    operation, *children = thought
    if operation == "NUM":
        return Expression(f"N{children[0]}")
    if operation == "CON":
        (value,) = children
        if value.denominator == 1:
            return Expression(str(value))
        return Expression(str(float(value)))
    if operation == "NEG":
        return Expression("-", Expression("0"), expression_of(children[0]))
    if operation == "INV":
        return Expression("/", Expression("1"), expression_of(children[0]))
    if operation == "HALF":
        return Expression("/", expression_of(children[0]), Expression("2"))
    if operation == "ROOT":
        return Expression("^", expression_of(children[0]), Expression("0.5"))
    sign, inverse_sign, neutral = SIGNS[operation]
    inverse = INVERSES[operation]
    tree = None
    # Inverted terms come last.
    for child in sorted(children, key=lambda child: child[0] == inverse):
        if child[0] == inverse:
            tree = Expression(inverse_sign, tree or Expression(neutral), expression_of(child[1]))
        elif tree is None:
            tree = expression_of(child)
        else:
            tree = Expression(sign, tree, expression_of(child))
    return tree


class OneByOne:
    """One-by-one reference decoder for the problems of a batch."""

    def __init__(self, setting: Setting) -> None:
        from fractions import Fraction

        from hf_mwp.runtime.expressions import parse_number
        from tests.solver.models.athena import naive_athena

        self.twin = naive_athena
        self.setting = setting
        config = setting.decoder.config
        self.constants = {}
        for literal in config.constants:
            self.constants[literal] = Fraction(parse_number(literal))
        self.initial = [("CON", self.constants[literal]) for literal in config.initial_constants]
        self.golds: dict[tuple, tuple] = {}

    def slots(self, row: dict) -> list[int]:
        """Return the number slots of the initial thoughts of a problem."""
        return self.setting.collator.maker.initial_slots(row["number_positions"], row["number_groups"])

    def initial_thoughts(self, row: dict) -> list[tuple]:
        """Return the initial thoughts of a problem: its numbers, then the constants."""
        numbers = [("NUM", slot) for slot in self.slots(row)]
        return [*numbers, *self.initial]

    def gold(self, row: dict) -> tuple:
        key = (*row["labels"], *row["number_groups"])
        if key not in self.golds:
            expression = self.setting.processor.vocabulary.decode(row["labels"])
            node = self.twin.read(expression, self.constants)
            pool, rounds = self.twin.gold(self.initial_thoughts(row), node)
            self.golds[key] = rounds, pool.index(node.thought)
        return self.golds[key]

    def naive(self, row: dict, states):
        positions = [row["number_positions"][slot] for slot in self.slots(row)]
        return self.twin.NaiveAthena(self.setting.decoder, states, positions, row["question_positions"])

    def loss(self, rows: list[dict], states):
        losses = []
        for row, row_states in zip(rows, states, strict=True):
            naive = self.naive(row, row_states)
            rounds, answer_index = self.gold(row)
            losses.append(naive.loss(rounds, answer_index)[0])
        return sum(losses)

    def answer(self, row: dict, states) -> str:
        config = self.setting.decoder.config
        naive = self.naive(row, states)
        thoughts = self.initial_thoughts(row)
        pool, _ = naive.search(thoughts, config.max_depth, config.threshold, config.strength)
        return pool[int(naive.answers().argmax())]


def measure(name: str, args: argparse.Namespace) -> dict:
    """Time the forms on a dataset and check that they agree."""
    import torch

    setting = Setting(name, args)
    peer = OneByOne(setting)
    clocks = {form: Clock() for form in FORMS}
    weights = [*setting.encoder.parameters(), *setting.decoder.parameters()]
    optimizer = torch.optim.AdamW(weights, lr=1e-6, fused=True)

    def gradients(rows: list[dict], form: str) -> float:
        """Return the loss of a batch, and add its gradients to the weights' gradients."""
        if form == "one by one":
            return sum(gradients([row], "decoder one by one") for row in rows)
        batch = setting.collator(rows)
        states = setting.states(batch)
        if form == "batched":
            loss = setting.decode(batch, states).loss * len(rows)
        elif form == "decoder one by one":
            loss = peer.loss(rows, states)
        else:
            loss = states.sum()
        loss.backward()
        return loss.item()

    num_problems = args.batch_size * args.steps
    batches = setting.batches(num_problems, args.batch_size)
    for rows in batches:
        for row in rows:
            peer.gold(row)
    losses = [gradients(batches[0], form) / len(batches[0]) for form in FORMS[:3]]
    for rows in batches:
        for form in FORMS:
            with clocks[form]:
                optimizer.zero_grad()
                gradients(rows, form)
                optimizer.step()
    num_candidates = []
    for rows in batches:
        for row in rows:
            plan = setting.collator.plan(row)
            num_candidates.append(len(plan.kept))
    solved = solve(setting, peer, args, name)
    return {
        "training": {form: clock.cpu / num_problems for form, clock in clocks.items()},
        "loss": max(losses) - min(losses),
        "candidates": sum(num_candidates) / len(num_candidates),
        **solved,
    }


def solve(setting: Setting, peer: OneByOne, args: argparse.Namespace, name: str) -> dict:
    """Time all forms' searches, and count equal answers."""
    import torch

    setting.encoder.eval()
    row_batches = setting.batches(args.problems, args.batch_size)
    batches = [setting.collator(rows) for rows in row_batches]
    fit(setting, batches, args, name)
    # The reference has no limits; random weights keep half of all candidates, so it only runs three rounds.
    setting.decoder.eval()
    setting.decoder.config.max_depth = 3 if args.quick else int(setting.decoder.deepest_target)
    clocks = {form: Clock() for form in FORMS}
    equal = 0
    right = 0
    with torch.no_grad():
        for rows, batch in zip(row_batches, batches, strict=True):
            with clocks["encoder alone"]:
                states = setting.states(batch)
            with clocks["batched"]:
                output = setting.decoder.generate(
                    setting.states(batch),
                    number_positions=batch["number_positions"],
                    number_groups=batch["number_groups"],
                    question_positions=batch["question_positions"],
                )
            with clocks["decoder one by one"]:
                states = setting.states(batch)
                peer_answers = [peer.answer(row, row_states) for row, row_states in zip(rows, states, strict=True)]
            with clocks["one by one"]:
                for row in rows:
                    row_states = setting.states(setting.collator([row]))[0]
                    peer.answer(row, row_states)
            sequences = output.sequences[:, 0].tolist()
            for row, ids, peer_answer in zip(rows, sequences, peer_answers, strict=True):
                answer = setting.processor.decode(ids).canonical()
                equal += answer == expression_of(peer_answer).canonical()
                right += answer == setting.processor.decode(row["labels"]).canonical()
    seconds = {form: clock.cpu / args.problems for form, clock in clocks.items()}
    return {"solving": seconds, "equal": equal, "right": right}


def fit(setting: Setting, batches: list[dict], args: argparse.Namespace, name: str) -> None:
    """Overfit the decoder to the problems, or load weights from an earlier fit."""
    import torch
    from safetensors.torch import load_file, save_file

    path = CACHE / f"athena-{name}-{args.shape}-{args.problems}-{args.fit_steps}.safetensors"
    if path.exists():
        weights: dict[str, dict] = {"encoder": {}, "decoder": {}}
        for key, tensor in load_file(path).items():
            model_name, _, weight_name = key.partition(".")
            weights[model_name][weight_name] = tensor
        setting.encoder.load_state_dict(weights["encoder"])
        setting.decoder.load_state_dict(weights["decoder"])
        return
    with torch.no_grad():
        encoded = [setting.states(batch) for batch in batches]
    optimizer = torch.optim.AdamW(setting.decoder.parameters(), lr=5e-4, fused=True)
    for step in range(args.fit_steps):
        index = step % len(batches)
        optimizer.zero_grad()
        output = setting.decode(batches[index], encoded[index])
        output.loss.backward()
        torch.nn.utils.clip_grad_norm_(setting.decoder.parameters(), 1.0)
        optimizer.step()
    CACHE.mkdir(exist_ok=True)
    state = {}
    for model_name, model in (("encoder", setting.encoder), ("decoder", setting.decoder)):
        for weight_name, tensor in model.state_dict().items():
            state[f"{model_name}.{weight_name}"] = tensor
    save_file(state, path)


def report(results: dict[str, dict], args: argparse.Namespace) -> str:
    """Return a table and the checks as Markdown."""
    rows = []
    for name, figures in results.items():
        for label in ("training", "solving"):
            seconds = figures[label]
            batched = seconds["batched"]
            mixed = seconds["decoder one by one"]
            peer = seconds["one by one"]
            encoder = seconds["encoder alone"]
            speeds = [f"{1 / batched:.1f}", f"{1 / mixed:.1f}", f"{1 / peer:.1f}"]
            decoder_speed_up = (mixed - encoder) / (batched - encoder)
            ratios = [f"{peer / batched:.1f}", f"{decoder_speed_up:.1f}", f"{1 - encoder / batched:.0%}"]
            rows.append([f"{name}, {label}", *speeds, *ratios])
    head = [f"{args.shape}, batch {args.batch_size}", *FORMS[:3], "times faster", "decoder alone", "decoder's share"]
    checks = []
    for name, figures in results.items():
        checks.append(
            f"{name}: {figures['candidates']:.0f} judged candidates a problem in training; losses differ by "
            f"{figures['loss']:.0e}. Solving: {figures['equal']} of {args.problems} answers are the same, "
            f"{figures['right']} are right."
        )
    text = "Problems per CPU second, encoder included; training with backward pass and optimiser."
    return "\n\n".join([text, table(head, rows), *checks])


def main() -> None:
    args = parse_arguments()
    restart_with_threads(args.threads)
    settle(args.threads)
    results = {name: measure(name, args) for name in args.datasets}
    show_report("ATHENA", report(results, args), args.write)


if __name__ == "__main__":
    main()
