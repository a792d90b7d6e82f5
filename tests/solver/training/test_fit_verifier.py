"""Training of an answer verifier, and the same network in PyTorch and NumPy."""

import numpy as np
import pytest
import torch

import hf_mwp
from hf_mwp.runtime.plausibility import AnswerVerifier, PlausibilityError, PlausibilityReranker
from hf_mwp.runtime.plausibility.answer_verifier import FEATURE_NAMES
from hf_mwp.runtime.plausibility.candidate_answer import candidate_answers
from hf_mwp.runtime.plausibility.features import FEATURES, describe_answers
from hf_mwp.runtime.plausibility.question import Question
from hf_mwp.solver.models.answer_verifier import AnswerVerifierConfig, AnswerVerifierModel
from hf_mwp.solver.solving.solve_problems import find_beams
from hf_mwp.solver.training import fit_verifier as fit_verifier_module
from hf_mwp.solver.training.fit_verifier import save_verifier
from hf_mwp.solver.training.verifier_rows import VerifierCollator, verifier_rows
from hf_mwp.solver.training.verifier_trainer import VerifierTrainer
from hf_mwp.utils.usage_error import UsageError
from tests.tiny import tiny_processor, tiny_rows, tiny_solver


NUM_BEAMS = 6
SMALL = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 24}


@pytest.fixture(scope="module")
def solved():
    """A solver with random weights, its processor, problems whose answers are among those of their beams, and these
    beams."""
    torch.manual_seed(0)
    processor = tiny_processor()
    model = tiny_solver(processor).eval()
    texts = [row["text"] for row in tiny_rows(12)]
    problems = processor.problems(texts)
    beams = find_beams(model, processor, problems, 4, None, num_beams=NUM_BEAMS, top_k=NUM_BEAMS)
    answered = []
    for number, (problem, beam) in enumerate(zip(problems, beams, strict=True)):
        answers = candidate_answers(Question.read(problem, beam.trees), beam.trees)
        value = float(answers[number % len(answers)].value)
        answered.append({"text": problem.text, "answer": str(value)})
    return model, processor, processor.problems(answered), beams


@pytest.fixture(scope="module")
def rows(solved):
    _, processor, problems, beams = solved
    return verifier_rows(processor, problems, [beam.trees for beam in beams])


@pytest.fixture
def new_verifier(solved):
    model, processor, *_ = solved
    symbols = [*processor.vocabulary.operators, *processor.vocabulary.constants]
    config = AnswerVerifierConfig(
        encoder_hidden_size=model.config.hidden_size, symbols=symbols, features=FEATURE_NAMES, **SMALL
    )
    torch.manual_seed(1)
    return AnswerVerifierModel(config).eval()


def test_numpy_scores_are_those_of_pytorch(solved, new_verifier, tmp_path):
    model, processor, problems, beams = solved
    verifier = save_verifier(new_verifier, tmp_path)
    # The file has half precision.
    new_verifier.half().float()
    kept = []
    for problem, beam in zip(problems, beams, strict=True):
        for row in verifier_rows(processor, [problem], [beam.trees]):
            kept.append((problem, beam, row))
    assert len(kept) >= 3
    # Texts and equations have different lengths.
    batch = VerifierCollator(processor, all_answers=True)([row for _, _, row in kept])
    with torch.no_grad():
        states = model.encode(batch["input_ids"], batch["attention_mask"]).last_hidden_state
        del batch["input_ids"], batch["labels"]
        expected = new_verifier(encoder_hidden_states=states, **batch).logits
    for index, (problem, beam, row) in enumerate(kept):
        answers = describe_answers(problem, beam.trees)
        scores = verifier(
            states[index, : len(row["input_ids"])].numpy(),
            row["number_positions"],
            [float(value) for value in problem.values],
            [described.answer.best.expression for described in answers],
            [described.features for described in answers],
        )
        assert scores == pytest.approx(expected[index, : len(scores)].tolist(), abs=1e-5)


def test_score_does_not_depend_on_the_other_equations(solved, new_verifier, tmp_path):
    verifier = save_verifier(new_verifier, tmp_path)
    states = np.random.default_rng(0).normal(size=(9, verifier.encoder_width)).astype(np.float32)
    equations = [hf_mwp.Expression.from_infix(text) for text in ("N0+N1", "N1-N0", "N0*N1/N1")]
    rows = np.random.default_rng(1).normal(size=(3, len(FEATURES)))
    together = verifier(states, [2, 5], [3.0, 4.0], equations, rows)
    alone = []
    for equation, row in zip(equations, rows, strict=True):
        alone += verifier(states, [2, 5], [3.0, 4.0], [equation], [row])
    assert together == pytest.approx(alone, abs=1e-5)
    assert len({round(score, 4) for score in together}) == 3


def test_equation_with_an_unknown_constant_is_not_read(new_verifier, tmp_path):
    verifier = save_verifier(new_verifier, tmp_path)
    states = np.ones((4, verifier.encoder_width), np.float32)
    equations = [hf_mwp.Expression.from_infix(text) for text in ("N0*987", "N0*N0")]
    scores = verifier(states, [1], [3.0], equations, np.ones((2, len(FEATURES))))
    assert np.isnan(scores[0]) and np.isfinite(scores[1])


def test_states_of_another_width_are_refused(new_verifier, tmp_path):
    verifier = save_verifier(new_verifier, tmp_path)
    with pytest.raises(UsageError, match="width"):
        verifier(np.ones((4, 3), np.float32), [1], [3.0], [hf_mwp.Expression.from_infix("N0+1")], [[0.0]])


def test_damaged_file_is_named(new_verifier, tmp_path):
    save_verifier(new_verifier, tmp_path)
    path = tmp_path / AnswerVerifier.file_name
    path.write_bytes(path.read_bytes()[:-4])
    with pytest.raises(UsageError, match="verifier.safetensors"):
        AnswerVerifier.from_pretrained(tmp_path)


def test_loss_is_zero_if_all_answers_are_right(rows, solved, new_verifier):
    model, processor, *_ = solved
    batch = VerifierCollator(processor, all_answers=True)(rows)
    states = model.encode(batch.pop("input_ids"), batch["attention_mask"]).last_hidden_state
    real = batch["symbols"][..., 0] >= 0
    assert new_verifier(encoder_hidden_states=states, **(batch | {"labels": real})).loss.item() == pytest.approx(0)
    loss = new_verifier(encoder_hidden_states=states, **batch).loss
    assert loss > 0
    loss.backward()
    assert all(parameter.grad is not None for parameter in new_verifier.parameters())


def test_training_row_has_a_right_answer_and_the_most_probable_wrong_ones(rows, solved):
    _, processor, *_ = solved
    collator = VerifierCollator(processor)
    for row in rows:
        chosen = collator._choose(row)
        labels = [row["labels"][index] for index in chosen]
        assert labels[0] and not any(labels[1:])
        wrong = [index for index, is_right in enumerate(row["labels"]) if not is_right]
        assert chosen[1 : 1 + min(4, len(wrong))] == wrong[:4]
        assert len(chosen) == 1 + min(6, len(wrong))


def test_interrupted_training_resumes_to_the_same_weights(solved, tmp_path, monkeypatch):
    model, processor, problems, _ = solved
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    monkeypatch.setattr(fit_verifier_module, "SAVE_STEPS", 2)
    options = {"num_beams": NUM_BEAMS, "batch_size": 4, "config": SMALL, "max_steps": 7}
    whole = hf_mwp.fit_verifier(model, processor, problems, tmp_path / "whole", **options)
    compute_loss = VerifierTrainer.compute_loss
    steps = []

    def interrupted(self, *args, **kwargs):
        steps.append(1)
        if len(steps) == 6:
            raise KeyboardInterrupt
        return compute_loss(self, *args, **kwargs)

    with monkeypatch.context() as patch:
        patch.setattr(VerifierTrainer, "compute_loss", interrupted)
        with pytest.raises(KeyboardInterrupt):
            hf_mwp.fit_verifier(model, processor, problems, tmp_path / "run", **options)
    resumed = hf_mwp.fit_verifier(model, processor, problems, tmp_path / "run", **options)
    assert resumed.file.read_bytes() == whole.file.read_bytes()
    assert [path.name for path in (tmp_path / "run").iterdir()] == [AnswerVerifier.file_name]
    # The solver does not change.
    for name, tensor in model.state_dict().items():
        assert torch.equal(tensor, before[name])


def test_beams_without_a_right_and_a_wrong_answer_are_an_error(solved, tmp_path):
    model, processor, problems, _ = solved
    with pytest.raises(PlausibilityError, match="none of the"):
        hf_mwp.fit_verifier(model, processor, problems, tmp_path, num_beams=1, max_steps=1)


def test_reranker_with_a_verifier(solved, new_verifier, tmp_path):
    model, processor, problems, _ = solved
    verifier = save_verifier(new_verifier, tmp_path)
    reranker = hf_mwp.fit_reranker(model, processor, {"train": problems}, num_beams=NUM_BEAMS, verifier=verifier)
    assert reranker.verifier_weight
    target = tmp_path / "saved"
    target.mkdir()
    reranker.save_pretrained(target)
    loaded = PlausibilityReranker.from_pretrained(target)
    assert loaded.verifier_weight == pytest.approx(reranker.verifier_weight, abs=1e-4)
    assert loaded.verifier.file == target / AnswerVerifier.file_name
    predictions = hf_mwp.solve_problems(model, processor, problems, reranker=loaded)
    verified = [prediction.beam.verifier_scores for prediction in predictions]
    assert any(verified)
    for prediction in predictions:
        assert len(prediction.beam.verifier_scores) == len(prediction.ranked)
    # The scores change the plausibilities.
    plain = [loaded.rerank(prediction.problem, prediction.beam.trees) for prediction in predictions]
    assert any(list(prediction.ranked) != without for prediction, without in zip(predictions, plain, strict=True))
    # Also if the beams are kept on disk.
    kept = hf_mwp.solve_problems(model, processor, problems, reranker=loaded, unfinished=tmp_path / "kept")
    assert [prediction.ranked for prediction in kept] == [prediction.ranked for prediction in predictions]


def test_missing_verifier_is_an_error(solved, new_verifier, tmp_path):
    model, processor, problems, _ = solved
    verifier = save_verifier(new_verifier, tmp_path)
    reranker = hf_mwp.fit_reranker(model, processor, {"train": problems}, num_beams=NUM_BEAMS, verifier=verifier)
    reranker.save_pretrained(tmp_path)
    (tmp_path / AnswerVerifier.file_name).unlink()
    with pytest.raises(PlausibilityError, match="verifier"):
        PlausibilityReranker.from_pretrained(tmp_path)
