"""Files beside a model of the Hub come from the model's revision, with its token; the Hub is a cache on disk."""

import shutil

import pytest
from transformers import pipeline

from hf_mwp import MwpProcessor, MwpSolver
from hf_mwp.runtime.plausibility import FEATURES, PlausibilityReranker
from hf_mwp.solver.data import TrainingTexts
from hf_mwp.utils.provenance import ancestry_of, training_texts_of
from tests.tiny import tiny_processor, tiny_solver


NAME = "me/solver"
COMMITS = {"v1": "0" * 40, "main": "1" * 40}
SIZES = {"v1": 40, "main": 50}
TEXTS = {revision: TrainingTexts.from_texts(["有1个"], [revision]) for revision in COMMITS}


def new_snapshot(cache, name, revision):
    """The folder of a revision of a repository in a cache, without files."""
    repository = cache / f"models--me--{name}"
    (repository / "refs").mkdir(parents=True, exist_ok=True)
    (repository / "refs" / revision).write_text(COMMITS[revision])
    return repository / "snapshots" / COMMITS[revision]


@pytest.fixture(scope="module")
def cache(tmp_path_factory):
    """A cache with two revisions of a solver, which differ in all files beside the weights."""
    cache = tmp_path_factory.mktemp("hub")
    for revision, size in SIZES.items():
        folder = new_snapshot(cache, "solver", revision)
        processor = tiny_processor(max_length=size)
        solver = tiny_solver(processor)
        solver.training_texts = TEXTS[revision]
        solver.save_pretrained(folder)
        processor.save_pretrained(folder)
        weights = {feature.name: 0.0 for feature in FEATURES}
        PlausibilityReranker("zh", weights, num_beams=size).save_pretrained(folder)
    shutil.copytree(cache / "models--me--solver", cache / "models--me--other")
    return cache


def load(cache, revision=None, **kwargs):
    options = {"device": "cpu", "model_kwargs": {"cache_dir": cache}, **kwargs}
    return pipeline("math-word-problem", model=NAME, revision=revision, **options)


def sizes_of(solver):
    """The sizes that tell the revisions of the processor and of the re-ranker."""
    return solver.processor.max_length, solver._forward_params["rerank"].num_beams


@pytest.mark.parametrize(
    ("revision", "source"), [("v1", "v1"), (COMMITS["v1"], "v1"), ("main", "main"), (None, "main")]
)
def test_all_files_are_of_the_requested_revision(cache, revision, source):
    solver = load(cache, revision, rerank=True)
    assert sizes_of(solver) == (SIZES[source], SIZES[source])
    assert training_texts_of(solver.model).sources == (source,)


def test_loaded_model_remembers_its_revision(cache):
    model = MwpSolver.from_pretrained(NAME, revision="v1", cache_dir=cache)
    solver = pipeline("math-word-problem", model=model, device="cpu")
    assert solver.processor.max_length == SIZES["v1"]


def test_training_texts_of_an_encoder_are_of_its_revision(cache):
    processor = tiny_processor()
    folder = new_snapshot(cache, "encoder", "v1")
    tiny_solver(processor).encoder.save_pretrained(folder)
    TEXTS["v1"].save(folder)
    solver = MwpSolver.from_encoder_decoder_pretrained("me/encoder", processor, revision="v1", cache_dir=cache)
    assert ancestry_of(solver).sources == ("v1",)


def test_other_repositories_are_not_read_at_the_revision_of_the_model(cache):
    assert sizes_of(load(cache, "v1", processor="me/other", rerank="me/other")) == (SIZES["main"], SIZES["main"])
    assert sizes_of(load(cache, "v1", processor=NAME, rerank=NAME)) == (SIZES["v1"], SIZES["v1"])
    assert sizes_of(load(cache, "v1", rerank="zh")) == (SIZES["v1"], 20)


def test_token_is_passed_on_and_not_kept_in_the_model(cache, monkeypatch):
    tokens = []

    def record_token(loaded_class):
        from_pretrained = loaded_class.from_pretrained.__func__

        def recording(cls, name, **kwargs):
            tokens.append((cls.__name__, str(name), kwargs.get("token")))
            return from_pretrained(cls, name, **kwargs)

        monkeypatch.setattr(loaded_class, "from_pretrained", classmethod(recording))

    record_token(MwpProcessor)
    record_token(PlausibilityReranker)
    solver = load(cache, token="secret", rerank=True)
    load(cache, token="secret", processor="me/other")
    assert tokens == [
        ("MwpProcessor", NAME, "secret"),
        ("PlausibilityReranker", NAME, "secret"),
        ("MwpProcessor", "me/other", "secret"),
    ]
    assert "secret" not in solver.model.config.to_json_string()
    for module in solver.model.modules():
        assert "secret" not in str(vars(module))
