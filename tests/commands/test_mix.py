import re

import pytest
import torch
from transformers import AutoModel

from hf_mwp.commands.main import main
from hf_mwp.solver.models import AthenaModel, MwpSolver
from tests.tiny import tiny_processor, tiny_solver


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """A pretrained encoder without indexed number tokens and a solver with them."""
    folder = tmp_path_factory.mktemp("mix")
    plain = tiny_processor()
    indexed = tiny_processor(indexed_numbers=True)
    tiny_solver(plain, seed=3).encoder.save_pretrained(folder / "pretrained")
    tiny_solver(indexed).save_pretrained(folder / "distilled")
    indexed.save_pretrained(folder / "distilled")
    return folder


def test_encoders_are_mixed_and_the_decoder_stays(folders, tmp_path, capsys):
    argv = ["mix", "--pretrained", str(folders / "pretrained"), "--distilled", str(folders / "distilled")]
    assert main([*argv, "--output_dir", str(tmp_path), "--pretrained_weight=0.25"]) == 0
    assert main([*argv, "--output_dir", str(tmp_path)]) == 1
    assert re.search(r"config\.json.*--overwrite", capsys.readouterr().err)
    old = [tmp_path / "plausibility.json", tmp_path / "model.safetensors.index.json"]
    for file in old:
        file.touch()
    assert main([*argv, "--output_dir", str(tmp_path), "--pretrained_weight=0.25", "--overwrite"]) == 0
    assert not any(file.exists() for file in old)
    before = AutoModel.from_pretrained(folders / "pretrained", add_pooling_layer=False).state_dict()
    distilled, mixed = (MwpSolver.from_pretrained(each) for each in (folders / "distilled", tmp_path))
    for name, value in mixed.encoder.state_dict().items():
        after = distilled.encoder.state_dict()[name]
        rows = len(before[name])
        torch.testing.assert_close(value[:rows], 0.25 * before[name] + 0.75 * after[:rows])
    for name, value in mixed.decoder.state_dict().items():
        assert torch.equal(value, distilled.decoder.state_dict()[name])


def test_a_mix_that_fails_keeps_the_old_model(folders, tmp_path, monkeypatch, capsys):
    argv = ["mix", "--pretrained", str(folders / "pretrained"), "--distilled", str(folders / "distilled")]
    argv += ["--output_dir", str(tmp_path)]
    assert main(argv) == 0
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}

    def fail(*args, **kwargs):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("hf_mwp.solver.batches.mwp_processor.MwpProcessor.save_pretrained", fail)
    assert main([*argv, "--overwrite"]) == 1
    assert "Free disk space" in capsys.readouterr().err
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_other_models_are_refused(folders, tmp_path, capsys):
    tiny_solver(tiny_processor(), layers=3).encoder.save_pretrained(tmp_path / "deeper")
    argv = ["mix", "--pretrained", str(tmp_path / "deeper"), "--distilled", str(folders / "distilled")]
    assert main([*argv, "--output_dir", str(tmp_path / "out")]) == 1
    assert "encoder.layer.2" in capsys.readouterr().err and not (tmp_path / "out").exists()
    assert main(["mix", "--pretrained", "a", "--output_dir", str(tmp_path / "out")]) == 1
    assert "`distilled`" in capsys.readouterr().err


@pytest.fixture(scope="module")
def siblings(tmp_path_factory):
    """Three solvers of the same shape."""
    folder = tmp_path_factory.mktemp("siblings")
    processor = tiny_processor()
    for seed in (1, 2, 3):
        tiny_solver(processor, seed=seed).save_pretrained(folder / str(seed))
        processor.save_pretrained(folder / str(seed))
    return [str(folder / str(seed)) for seed in (1, 2, 3)]


def test_whole_solvers_are_averaged(siblings, tmp_path, capsys):
    assert main(["mix", "--solvers", *siblings, "--output_dir", str(tmp_path)]) == 0
    assert re.search(r"mean .*\b3\b", capsys.readouterr().out)
    parts = [MwpSolver.from_pretrained(each).state_dict() for each in siblings]
    mean = MwpSolver.from_pretrained(tmp_path).state_dict()
    for name, value in mean.items():
        torch.testing.assert_close(value, sum(part[name] for part in parts) / 3)


@pytest.fixture
def refuse(tmp_path, capsys):
    """A function that runs a command that must fail, and returns its message."""

    def run(*argv):
        assert main(["mix", *argv, "--output_dir", str(tmp_path / "out")]) == 1
        assert not (tmp_path / "out").exists()
        return " ".join(capsys.readouterr().err.split())

    return run


def save_athena(folder, depth, **decoder_fields):
    """Save a solver with a thought-expansion decoder whose deepest training target has this depth."""
    processor = tiny_processor()
    encoder = tiny_solver(processor).encoder
    fields = {"num_attention_heads": 2} | decoder_fields
    solver = MwpSolver.from_encoder_decoder_pretrained(encoder, processor, AthenaModel, decoder_kwargs=fields)
    solver.decoder.deepest_target.fill_(depth)
    solver.save_pretrained(folder)
    processor.save_pretrained(folder)
    return str(folder)


def test_an_average_searches_as_deep_as_its_deepest_solver(tmp_path):
    folders = [save_athena(tmp_path / str(depth), depth) for depth in (3, 5)]
    assert main(["mix", "--solvers", *folders, "--output_dir", str(tmp_path / "mean")]) == 0
    assert MwpSolver.from_pretrained(tmp_path / "mean").decoder.deepest_target == 5


def test_solvers_that_do_not_belong_together_are_refused(siblings, tmp_path, refuse):
    assert "`solvers`" in refuse("--solvers", siblings[0])
    both = ["--solvers", *siblings, "--distilled", siblings[0]]
    assert re.search("`pretrained`.*`distilled`", refuse(*both))
    assert re.search("mix: `pretrained_weight`.*`solvers`", refuse("--solvers", *siblings, "--pretrained_weight=0.9"))
    processor = tiny_processor()
    processor.vocabulary = processor.vocabulary.with_constants(["7"])
    other = tmp_path / "other"
    tiny_solver(processor).save_pretrained(other)
    processor.save_pretrained(other)
    message = refuse("--solvers", siblings[0], str(other))
    assert re.search(f"{other} .*{siblings[0]}.*'7'", message)
    tiny_solver(tiny_processor(), layers=3).save_pretrained(tmp_path / "deeper")
    tiny_processor().save_pretrained(tmp_path / "deeper")
    assert "encoder.layer.2" in refuse("--solvers", siblings[0], str(tmp_path / "deeper"))


def test_solvers_that_read_or_write_problems_differently_are_refused(siblings, tmp_path, refuse):
    processor = tiny_processor()
    processor.parse_number_words = True
    tiny_solver(processor, seed=4).save_pretrained(tmp_path / "words")
    processor.save_pretrained(tmp_path / "words")
    message = refuse("--solvers", siblings[0], str(tmp_path / "words"))
    assert re.search(rf"{tmp_path / 'words'} .*{siblings[0]}.*parse_number_words", message)
    # One initial constant each, so that the weights have the same shapes.
    athena = [save_athena(tmp_path / each, 3, initial_constants=[each]) for each in ("1", "2")]
    assert "initial_constants" in refuse("--solvers", *athena)
