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
SIZES = {"v1": 40, "main": 50}


@pytest.fixture(scope="module")
def cache(tmp_path_factory):
    """A cache with two revisions of a solver, which differ in all that lies beside the weights."""
    cache = tmp_path_factory.mktemp("hub")
    repository = cache / "models--me--solver"
    (repository / "refs").mkdir(parents=True)
    for number, (revision, size) in enumerate(SIZES.items()):
        commit = f"{number}" * 40
        (repository / "refs" / revision).write_text(commit)
        folder = repository / "snapshots" / commit
        processor = tiny_processor(max_length=size)
        solver = tiny_solver(processor)
        solver.training_texts = TrainingTexts.from_texts(["有1个"], [revision])
        solver.save_pretrained(folder)
        processor.save_pretrained(folder)
        weights = {feature.name: 0.0 for feature in FEATURES}
        PlausibilityReranker("zh", weights, num_beams=size).save_pretrained(folder)
    shutil.copytree(repository, cache / "models--me--other")
    return cache


def load(cache, revision=None, **kwargs):
    return pipeline(
        "math-word-problem", model=NAME, revision=revision, device="cpu", model_kwargs={"cache_dir": cache}, **kwargs
    )


@pytest.mark.parametrize("revision", ["v1", "main", "0" * 40, None])
def test_all_is_of_the_revision_that_is_asked_for(cache, revision):
    solver = load(cache, revision, rerank=True)
    size = SIZES["v1" if revision in ("v1", "0" * 40) else "main"]
    assert solver.processor.max_length == size
    assert solver._forward_params["rerank"].num_beams == size
    assert training_texts_of(solver.model).sources == ("v1" if size == 40 else "main",)


def test_a_model_that_was_loaded_before_remembers_it_too(cache):
    model = MwpSolver.from_pretrained(NAME, revision="v1", cache_dir=cache)
    solver = pipeline("math-word-problem", model=model, device="cpu")
    assert solver.processor.max_length == SIZES["v1"]


def test_what_an_encoder_was_trained_on_is_read_there_too(cache):
    solver, processor = tiny_solver(tiny_processor()), tiny_processor()
    repository, commit = cache / "models--me--encoder", "2" * 40
    solver.encoder.save_pretrained(repository / "snapshots" / commit)
    TrainingTexts.from_texts(["有1个"], ["v1"]).save(repository / "snapshots" / commit)
    (repository / "refs").mkdir()
    (repository / "refs" / "v1").write_text(commit)
    made = MwpSolver.from_encoder_decoder_pretrained("me/encoder", processor, revision="v1", cache_dir=cache)
    assert ancestry_of(made).sources == ("v1",)


def test_what_is_named_by_itself_is_not_looked_for_at_the_models_revision(cache):
    solver = load(cache, "v1", processor="me/other", rerank="me/other")
    assert solver.processor.max_length == SIZES["main"]
    assert solver._forward_params["rerank"].num_beams == SIZES["main"]
    # Its own repository by its name is the same as none.
    assert load(cache, "v1", processor=NAME, rerank=NAME).processor.max_length == SIZES["v1"]
    assert load(cache, "v1", rerank="zh")._forward_params["rerank"].num_beams == 20


def test_the_token_goes_along_and_stays_out_of_the_model(cache, monkeypatch):
    tokens = []
    for kind in (MwpProcessor, PlausibilityReranker):

        def read(cls, name, *, wrapped=kind.from_pretrained.__func__, **kwargs):
            tokens.append((cls.__name__, str(name), kwargs.get("token")))
            return wrapped(cls, name, **kwargs)

        monkeypatch.setattr(kind, "from_pretrained", classmethod(read))
    solver = load(cache, token="secret", rerank=True)
    load(cache, token="secret", processor="me/other")
    assert tokens == [
        ("MwpProcessor", NAME, "secret"),
        ("PlausibilityReranker", NAME, "secret"),
        ("MwpProcessor", "me/other", "secret"),
    ]
    assert (
        "secret" not in str([vars(module) for module in solver.model.modules()]) + solver.model.config.to_json_string()
    )
