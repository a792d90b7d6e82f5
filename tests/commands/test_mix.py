import re

import pytest
import torch
from transformers import AutoModel

from hf_mwp.commands.main import main
from hf_mwp.solver.batches import MwpProcessor
from hf_mwp.solver.models import AthenaModel, MwpSolver
from tests.commands.folders import contents, save_solver
from tests.tiny import tiny_processor, tiny_solver


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """A pretrained encoder without indexed number tokens and a solver with them."""
    folder = tmp_path_factory.mktemp("mix")
    tiny_solver(tiny_processor(), seed=3).encoder.save_pretrained(folder / "pretrained")
    save_solver(folder / "distilled", tiny_processor(indexed_numbers=True))
    return folder


@pytest.fixture
def argv(folders, tmp_path):
    """Arguments that mix both to the test's folder `out`."""
    argv = ["mix", "--pretrained", str(folders / "pretrained"), "--distilled", str(folders / "distilled")]
    return [*argv, "--output_dir", str(tmp_path / "out"), "--pretrained_weight=0.25"]


def test_encoders_are_mixed_and_the_decoder_is_kept(folders, argv, tmp_path):
    assert main(argv) == 0
    pretrained = AutoModel.from_pretrained(folders / "pretrained", add_pooling_layer=False).state_dict()
    distilled = MwpSolver.from_pretrained(folders / "distilled")
    distilled_encoder = distilled.encoder.state_dict()
    mixed = MwpSolver.from_pretrained(tmp_path / "out")
    for name, value in mixed.encoder.state_dict().items():
        # The distilled encoder has more rows, for the indexed number tokens.
        num_rows = len(pretrained[name])
        expected = 0.25 * pretrained[name] + 0.75 * distilled_encoder[name][:num_rows]
        torch.testing.assert_close(value[:num_rows], expected)
    for name, value in mixed.decoder.state_dict().items():
        assert torch.equal(value, distilled.decoder.state_dict()[name])


@pytest.mark.slow
def test_existing_model_is_replaced_only_on_demand(argv, tmp_path, monkeypatch, error_of):
    out = tmp_path / "out"
    assert main(argv) == 0
    for name in ("plausibility.json", "model.safetensors.index.json"):
        (out / name).touch()
    before = contents(out)
    assert re.search(r"config\.json.*--overwrite", error_of(*argv))

    def fail(*args, **kwargs):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("hf_mwp.solver.batches.mwp_processor.MwpProcessor.save_pretrained", fail)
        assert "Free disk space" in error_of(*argv, "--overwrite")
    assert contents(out) == before
    assert main([*argv, "--overwrite"]) == 0
    assert not {"plausibility.json", "model.safetensors.index.json"} & contents(out).keys()


@pytest.fixture(scope="module")
def siblings(tmp_path_factory):
    """Three solvers of the same shape."""
    folder = tmp_path_factory.mktemp("siblings")
    return [str(save_solver(folder / str(seed), seed=seed)) for seed in (1, 2, 3)]


def test_solvers_are_averaged(siblings, tmp_path, output_of):
    assert re.search(r"mean .*\b3\b", output_of("mix", "--solvers", *siblings, "--output_dir", tmp_path))
    weights = [MwpSolver.from_pretrained(sibling).state_dict() for sibling in siblings]
    for name, mean in MwpSolver.from_pretrained(tmp_path).state_dict().items():
        torch.testing.assert_close(mean, (weights[0][name] + weights[1][name] + weights[2][name]) / 3)


@pytest.mark.slow
def test_number_reading_is_chosen_for_solvers_that_differ_in_it(siblings, tmp_path, error_of):
    processor = tiny_processor()
    processor.number_reading = "people"
    other = save_solver(tmp_path / "people", processor)
    argv = ["mix", "--solvers", siblings[0], other, "--output_dir", str(tmp_path / "mean")]
    assert "number_reading differ" in error_of(*argv)
    assert main([str(part) for part in [*argv, "--number_reading", "people"]]) == 0
    assert MwpProcessor.from_pretrained(tmp_path / "mean").number_reading == "people"


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


@pytest.mark.slow
def test_average_searches_as_deep_as_its_deepest_solver(tmp_path):
    folders = [save_athena(tmp_path / str(depth), depth) for depth in (3, 5)]
    assert main(["mix", "--solvers", *folders, "--output_dir", str(tmp_path / "mean")]) == 0
    assert MwpSolver.from_pretrained(tmp_path / "mean").decoder.deepest_target == 5


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--pretrained=a"], "`distilled`"),
        (["--solvers=a"], "`solvers`"),
        (["--solvers", "a", "b", "--distilled=c"], "`pretrained`.*`distilled`"),
        (["--pretrained=a", "--distilled=b", "--number_reading=people"], "mix: `number_reading`.*`solvers`"),
        (["--solvers", "a", "b", "--pretrained_weight=0.9"], "mix: `pretrained_weight`.*`solvers`"),
    ],
)
def test_wrong_options_are_named(options, message, error_of):
    assert re.search(message, error_of("mix", "--output_dir=out", *options))


@pytest.mark.slow
def test_models_of_other_shapes_are_refused(folders, siblings, tmp_path, error_of):
    deeper = save_solver(tmp_path / "deeper", layers=3)
    argv = ["mix", "--output_dir", tmp_path / "out"]
    assert "encoder.layer.2" in error_of(*argv, "--solvers", siblings[0], deeper)
    MwpSolver.from_pretrained(deeper).encoder.save_pretrained(tmp_path / "encoder")
    pair = ["--pretrained", tmp_path / "encoder", "--distilled", folders / "distilled"]
    assert "encoder.layer.2" in error_of(*argv, *pair)
    assert not (tmp_path / "out").exists()


@pytest.mark.slow
def test_solvers_that_read_or_write_problems_differently_are_refused(siblings, tmp_path, error_of):
    argv = ["mix", "--output_dir", tmp_path / "out", "--solvers"]
    processor = tiny_processor()
    processor.vocabulary = processor.vocabulary.with_constants(["7"])
    other = save_solver(tmp_path / "constants", processor)
    assert re.search(f"{other} .*{siblings[0]}.*'7'", error_of(*argv, siblings[0], other))
    processor = tiny_processor(max_length=64)
    processor.parse_number_words = True
    other = save_solver(tmp_path / "words", processor)
    assert re.search(f"{other} .*{siblings[0]}.*parse_number_words", error_of(*argv, siblings[0], other))
    # One initial constant each, so that the weights have the same shapes.
    athena = [save_athena(tmp_path / constant, 3, initial_constants=[constant]) for constant in ("1", "2")]
    assert "initial_constants" in error_of(*argv, *athena)
