"""Many problems solved at once, from texts, problems and rows."""

import math

import pytest
import torch

import hf_mwp
from hf_mwp.runtime.answer import Beam
from hf_mwp.runtime.expressions import Expression
from hf_mwp.runtime.plausibility import FEATURES, PlausibilityError, PlausibilityReranker
from hf_mwp.runtime.problems import MathWordProblem
from hf_mwp.solver.metrics import FAILURE_REASONS
from hf_mwp.solver.solving import kept_records
from hf_mwp.solver.solving.solve_problems import solve_batch
from hf_mwp.solver.solving.solver_prediction import SolverPrediction, read_predictions
from hf_mwp.utils.usage_error import UsageError
from tests.slow_parameters import slow_except
from tests.tiny import tiny_athena_solver, tiny_processor, tiny_rows, tiny_solver


CALLS = [hf_mwp.solve_problems, hf_mwp.label_problems]
TOO_LONG = "4个" + "苹" * 100_000


@pytest.fixture(scope="module")
def solver():
    processor = tiny_processor(max_length=64)
    return tiny_solver(processor), processor


def naive_expression(model, processor, text, **options):
    """The best expression of one problem, without batches, order or padding."""
    solved = solve_batch(model, processor(text), **options)
    if not solved.finished[0, 0]:
        return None
    ids = solved.sequences[0, 0]
    return processor.decode(ids[ids >= 0].tolist())


@pytest.mark.parametrize("num_beams", slow_except([1, 3], 3))
def test_batches_give_the_results_of_single_problems(solver, num_beams):
    rows = tiny_rows(13)
    expected = [naive_expression(*solver, row["text"], num_beams=num_beams) for row in rows]
    for batch_size in (1, 4, None):
        predictions = hf_mwp.solve_problems(*solver, rows, num_beams=num_beams, batch_size=batch_size)
        assert [prediction.expression for prediction in predictions] == expected
    assert [prediction.problem.id for prediction in predictions] == [row["id"] for row in rows]


def test_texts_problems_and_rows_are_solved_alike(solver):
    row = tiny_rows(1)[0]
    problem = MathWordProblem(row["text"], row["equation"], row["answer"])
    of_text, of_problem, of_row = hf_mwp.solve_problems(*solver, [row["text"], problem, row])
    assert of_text.expression == of_problem.expression == of_row.expression
    assert of_text.score.reason == "unlabelled"
    assert of_problem.score == of_row.score
    assert of_row.score.reason in {"correct", *FAILURE_REASONS}


@pytest.mark.parametrize("call", CALLS)
def test_single_problem_is_refused(solver, call):
    (row,) = tiny_rows(1)
    for problem in (row["text"], row, MathWordProblem(row["text"])):
        with pytest.raises(TypeError, match="`problems` must be a list or another iterable, got "):
            call(*solver, problem)


@pytest.mark.parametrize(
    ("call", "name", "value"),
    [
        (hf_mwp.solve_problems, "num_beams", 0),
        (hf_mwp.solve_problems, "num_beams", 2.5),
        (hf_mwp.solve_problems, "top_k", 0),
        (hf_mwp.solve_problems, "batch_size", 0),
        (hf_mwp.solve_problems, "batch_size", "8"),
        (hf_mwp.solve_problems, "max_decode_length", -1),
        (hf_mwp.solve_problems, "answer_match", "x"),
        (hf_mwp.label_problems, "num_beams", 0),
        (hf_mwp.label_problems, "batch_size", 0),
        (hf_mwp.label_problems, "pseudo_label_fraction", 3),
        (hf_mwp.label_problems, "pseudo_label_fraction", "0.3"),
    ],
)
def test_impossible_options_are_refused(solver, call, name, value):
    with pytest.raises((TypeError, ValueError), match=f"`{name}`.* {value!r}"):
        call(*solver, tiny_rows(1), **{name: value})


@pytest.mark.parametrize("problem", [3, None, b"4+2", {"text": None}, {"question": "4+2"}])
@pytest.mark.parametrize("call", CALLS)
def test_problem_without_a_text_is_named_by_its_index(solver, call, problem):
    with pytest.raises(TypeError, match=r"problems\[2\]`? must be .*, got (int|None|bytes)|\[2\]: `text` must be"):
        call(*solver, [*tiny_rows(2), problem, *tiny_rows(1)])


def test_unsolvable_problem_says_why_and_stops_nothing(solver):
    rows = [{"text": "没有数字", "answer": "1"}, *tiny_rows(1), {"text": ""}, {"text": "4个\ud800"}]
    without_number, solved, empty, broken = hf_mwp.solve_problems(*solver, rows, num_beams=3)
    assert without_number.expression is None
    assert without_number.log_probability == -math.inf
    assert without_number.score.reason == "no_numbers"
    assert "number" in without_number.error
    assert "empty" in empty.error
    assert "U+D800" in broken.error
    assert solved.error is None
    assert solved.expression is not None
    assert hf_mwp.solve_problems(*solver, []) == []


def test_text_that_is_too_long_or_whose_numbers_are_cut_off_gets_an_error(solver):
    model, processor = solver
    (row,) = tiny_rows(1)
    cut_off = "苹果" * processor.max_length + row["text"]
    rows = [{"text": text, "answer": "6"} for text in (TOO_LONG, cut_off, row["text"])]
    predictions = hf_mwp.solve_problems(model, processor, rows, num_beams=2)
    assert predictions[2].expression is not None
    expected = [("no_numbers", "100,000 characters"), ("no_prediction", f"{processor.max_length} tokens")]
    for prediction, (reason, error) in zip(predictions, expected, strict=False):
        assert prediction.expression is None
        assert prediction.score.reason == reason
        assert error in prediction.error
        assert prediction.confidence == 0.0
    assert hf_mwp.label_problems(*solver, rows[::2]).fates["no answer"] == 1
    # The evaluation of a trainer reads its rows in the same way.
    evaluated = []
    for text in (cut_off, row["text"]):
        evaluated.append({"text": text, "number_positions": processor.encode([text])["number_positions"][0]})
    ids = processor.vocabulary.encode(Expression.from_infix("N0"))
    first, second = read_predictions(evaluated, [ids, ids], [-0.5, -0.5], processor)
    assert first.expression is None
    assert second.expression is not None


@pytest.mark.parametrize("num_beams", [1, 3])
def test_weights_that_are_not_finite_are_named(num_beams):
    processor = tiny_processor()
    model = tiny_athena_solver(processor)
    next(model.decoder.answer.parameters()).data.fill_(math.nan)
    (prediction,) = hf_mwp.solve_problems(model, processor, tiny_rows(1), num_beams=num_beams)
    assert prediction.expression is None
    assert "NaN or infinite" in prediction.error
    assert "decoder.answer." in prediction.error


def test_scores_that_overflow_are_named():
    processor = tiny_processor()
    model = tiny_solver(processor)
    model.decoder.operator_scorer.weight.data.fill_(3e38)
    (prediction,) = hf_mwp.solve_problems(model, processor, tiny_rows(1))
    assert "from finite weights, which are too large" in prediction.error


@pytest.mark.parametrize(("top_k", "num_trees"), [(1, 1), (3, 3), (5, 5), (None, 4)])
def test_number_of_trees(solver, top_k, num_trees):
    (prediction,) = hf_mwp.solve_problems(*solver, tiny_rows(1), num_beams=4, top_k=top_k)
    scores = [score for _, score in prediction.beam.trees]
    assert len(scores) == num_trees
    assert scores == sorted(scores, reverse=True)


def test_progress_gets_the_batches(solver):
    sizes = []

    def progress(batches):
        sizes.extend(map(len, batches))
        return batches

    hf_mwp.solve_problems(*solver, tiny_rows(5), batch_size=2, progress=progress)
    assert sizes == [2, 2, 1]


def test_progress_gets_the_chunks_that_are_not_kept_yet(solver, tmp_path, monkeypatch):
    monkeypatch.setattr(kept_records, "AT_ONCE", 2)
    kept = hf_mwp.solve_problems(*solver, tiny_rows(2), unfinished=tmp_path)
    num_chunks = []

    def progress(chunks):
        num_chunks.append(len(chunks))
        return chunks

    predictions = hf_mwp.solve_problems(*solver, tiny_rows(7), unfinished=tmp_path, progress=progress)
    assert num_chunks == [3]
    assert [prediction.beam for prediction in predictions[:2]] == [prediction.beam for prediction in kept]


def test_reranker_selects_an_answer_and_the_solvers_answer_is_kept(solver):
    rows = tiny_rows(6)
    weights = {feature.name: 0.0 for feature in FEATURES} | {"rank": 99.0}
    reranker = PlausibilityReranker("zh", weights, 4)
    predictions = hf_mwp.solve_problems(*solver, rows, num_beams=4)
    reranked = hf_mwp.solve_problems(*solver, rows, reranker=reranker)
    num_displaced = 0
    for prediction, expected in zip(reranked, predictions, strict=True):
        assert prediction.without_reranking().expression == expected.expression
        assert prediction.expression == prediction.ranked[0].expression
        assert 0 < prediction.plausibility == prediction.confidence <= 1
        if prediction.displaced is not None:
            num_displaced += 1
            fields = prediction.to_dict()
            assert fields["instead_of"]["value"] != fields["value"]
    assert num_displaced
    with pytest.raises(PlausibilityError, match="4 beams.* 3.*num_beams=4"):
        hf_mwp.solve_problems(*solver, rows, reranker=reranker, num_beams=3)
    with pytest.raises(PlausibilityError, match="'zh', not 'en'"):
        hf_mwp.solve_problems(*solver, [*rows, {"text": "5 apples", "language": "en"}], reranker=reranker)


def test_prediction_with_a_rounded_answer_is_right():
    problem = MathWordProblem("50个小朋友去划船，每条船坐6人，至少要租多少条船？", answer="9")
    trees = ((Expression.from_infix("N0/N1"), -0.1),)
    ranked = tuple(PlausibilityReranker.from_pretrained("zh").rerank(problem, trees))
    prediction = SolverPrediction(problem, Beam(trees), ranked)
    assert prediction.is_right
    assert prediction.to_dict()["value"] == 9
    assert not prediction.without_reranking().is_right


def test_labels_are_the_first_trees_with_the_answer(solver):
    problems = []
    for prediction in hf_mwp.solve_problems(*solver, tiny_rows(3), num_beams=4, top_k=4):
        problem = prediction.problem
        second_tree, _ = prediction.beam.trees[1]
        answer = str(second_tree.evaluate(problem.numbers))
        problems.append(MathWordProblem(problem.text, "x=1", answer, problem.id))
    labelled = hf_mwp.label_problems(*solver, [*problems, problems[0]], num_beams=4)
    assert sum(labelled.fates.values()) == 4
    assert labelled.fates["duplicate"] == 1
    for row, problem in zip(labelled.rows, problems, strict=True):
        assert Expression.from_infix(row["equation"]).evaluate() == problem.answer_value
        assert row["id"] == problem.id
        assert row["rank"] <= 1


def test_other_languages_are_not_labelled(solver):
    with pytest.raises(UsageError, match="language.*zh"):
        hf_mwp.label_problems(*solver, [MathWordProblem("2 and 3?", answer="5", language="en")])


@pytest.mark.parametrize("is_training", [True, False])
def test_problems_are_solved_in_evaluation_mode(solver, is_training, monkeypatch):
    model, processor = solver
    model.train(is_training)
    modes = []
    solve = model.solve

    def recording_solve(**inputs):
        modes.append(model.training)
        return solve(**inputs)

    monkeypatch.setattr(model, "solve", recording_solve)
    hf_mwp.solve_problems(model, processor, ["有4个和2个"])
    assert modes == [False]
    assert model.training is model.encoder.training is is_training
    assert torch.is_grad_enabled()
