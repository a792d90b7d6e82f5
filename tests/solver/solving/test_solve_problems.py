"""Many problems solved at once: as one by one, from texts, problems and rows."""

import math

import pytest
import torch

import hf_mwp
from hf_mwp.runtime.expressions import Expression
from hf_mwp.runtime.plausibility import FEATURES, PlausibilityError, PlausibilityReranker
from hf_mwp.runtime.problems import MathWordProblem
from hf_mwp.solver.data import problem_from_row
from hf_mwp.solver.metrics import FAILURE_REASONS
from hf_mwp.solver.solving import kept_records
from hf_mwp.solver.solving.solve_problems import solve_batch
from hf_mwp.solver.solving.solver_prediction import read_predictions
from tests.tiny import tiny_athena_solver, tiny_processor, tiny_rows, tiny_solver


@pytest.fixture(scope="module")
def solver():
    processor = tiny_processor(max_length=64)
    return tiny_solver(processor), processor


def naive(model, processor, row, **options):
    """The best tree of one problem, without batches, order or padding."""
    solved = solve_batch(model, processor(row["text"]), **options)
    ids = [symbol for symbol in solved.sequences[0, 0].tolist() if symbol >= 0]
    return processor.decode(ids) if solved.finished[0, 0] else None


@pytest.mark.parametrize("num_beams", [1, 3])
def test_batches_give_what_single_problems_give(solver, num_beams):
    rows = tiny_rows(13)
    expected = [naive(*solver, row, num_beams=num_beams) for row in rows]
    for batch_size in (1, 4, 64, None):
        found = hf_mwp.solve_problems(*solver, rows, num_beams=num_beams, batch_size=batch_size)
        assert [each.expression for each in found] == expected
    assert [each.problem.id for each in found] == [row["id"] for row in rows]


def test_texts_problems_and_rows(solver):
    row = tiny_rows(1)[0]
    problem = MathWordProblem(row["text"], row["equation"], row["answer"])
    text, given, read = hf_mwp.solve_problems(*solver, [row["text"], problem, row])
    assert text.expression == given.expression == read.expression
    assert text.score.reason == "unlabelled"
    assert given.score == read.score and given.score.reason in {"correct", *FAILURE_REASONS}


@pytest.mark.parametrize("answer", [6, 6.0, 0, 2.5])
def test_answers_and_equations_may_be_numbers(solver, answer):
    """As a table or a JSON file gives them."""
    row = {"text": "有4个和2个", "equation": answer, "answer": answer}
    problem = problem_from_row(row)
    assert (problem.equation, problem.answer, problem.answer_value) == (str(answer), str(answer), answer)
    (found,) = hf_mwp.solve_problems(*solver, [row])
    assert found.to_dict()["answer"] == str(answer)
    assert hf_mwp.label_problems(*solver, [row]).fates["no answer"] == 0


@pytest.mark.parametrize("call", [hf_mwp.solve_problems, hf_mwp.label_problems])
def test_one_problem_is_not_taken_for_several(solver, call):
    (row,) = tiny_rows(1)
    for one in (row["text"], row, MathWordProblem(row["text"])):
        with pytest.raises(TypeError, match="`problems` must be a list or another iterable, got "):
            call(*solver, one)


@pytest.mark.parametrize(
    ("call", "options"),
    [
        (hf_mwp.solve_problems, {"num_beams": 0}),
        (hf_mwp.solve_problems, {"top_k": 0}),
        (hf_mwp.solve_problems, {"batch_size": 0}),
        (hf_mwp.solve_problems, {"max_decode_length": -1}),
        (hf_mwp.solve_problems, {"num_beams": 2.5}),
        (hf_mwp.solve_problems, {"batch_size": "8"}),
        (hf_mwp.label_problems, {"pseudo_label_fraction": "0.3"}),
        (hf_mwp.solve_problems, {"answer_match": "x"}),
        (hf_mwp.label_problems, {"num_beams": 0}),
        (hf_mwp.label_problems, {"batch_size": 0}),
        (hf_mwp.label_problems, {"pseudo_label_fraction": 3}),
    ],
)
def test_what_the_command_line_refuses_is_refused(solver, call, options):
    ((name, value),) = options.items()
    with pytest.raises((TypeError, ValueError), match=f"`{name}`.* {value!r}"):
        call(*solver, tiny_rows(1), **options)


def test_what_cannot_be_solved_says_why_and_stops_nothing(solver):
    rows = [{"text": "没有数字", "answer": "1"}, *tiny_rows(1), {"text": ""}, {"text": "4个\ud800"}]
    refused, solved, empty, broken = hf_mwp.solve_problems(*solver, rows, num_beams=3)
    assert (refused.expression, refused.log_probability, refused.score.reason) == (None, -math.inf, "no_numbers")
    assert "number" in refused.error and "empty" in empty.error and "U+D800" in broken.error
    assert solved.error is None and solved.expression is not None
    assert hf_mwp.solve_problems(*solver, []) == []


def test_a_text_that_is_too_long_or_has_its_numbers_beyond_the_cut_gets_an_error(solver):
    model, processor = solver
    (row,) = tiny_rows(1)
    beyond = "苹果" * processor.max_length + row["text"]
    texts = ["4个" + "苹" * 100_000, beyond, row["text"]]
    found = hf_mwp.solve_problems(model, processor, [{"text": text, "answer": "6"} for text in texts], num_beams=2)
    assert [each.expression is None for each in found] == [True, True, False]
    assert "100,000 characters" in found[0].error and f"{processor.max_length} tokens" in found[1].error
    assert [each.score.reason for each in found[:2]] == ["no_numbers", "no_prediction"]
    assert [each.confidence for each in found[:2]] == [0.0, 0.0]
    # What a trainer evaluates is read in the same way.
    rows = [{"text": text} for text in texts[1:]]
    for each in rows:
        each["number_positions"] = processor.encode([each])["number_positions"][0]
    sequences = [processor.vocabulary.encode(Expression.from_infix("N0"))] * 2
    read = read_predictions(rows, sequences, [-0.5, -0.5], processor)
    assert [each.expression is None for each in read] == [True, False]


def test_scores_that_are_not_finite_name_the_weights():
    processor = tiny_processor()
    model = tiny_athena_solver(processor)
    next(model.decoder.answer.parameters()).data.fill_(math.nan)
    for num_beams in (1, 3):
        (prediction,) = hf_mwp.solve_problems(model, processor, tiny_rows(1), num_beams=num_beams)
        assert prediction.expression is None
        assert prediction.error.startswith("The solver computed scores that are NaN or infinite")
        assert "decoder.answer." in prediction.error


def test_scores_that_overflow_say_so():
    processor = tiny_processor()
    model = tiny_solver(processor)
    model.decoder.operator_scorer.weight.data.fill_(3e38)
    (prediction,) = hf_mwp.solve_problems(model, processor, tiny_rows(1))
    assert "from finite weights, which are too large" in prediction.error


@pytest.mark.parametrize("problem", [3, None, b"4+2", {"text": None}, {"question": "4+2"}])
@pytest.mark.parametrize("call", [hf_mwp.solve_problems, hf_mwp.label_problems])
def test_what_is_no_text_is_named_by_its_place(solver, call, problem):
    with pytest.raises(TypeError, match=r"problems\[2\]`? must be .*, got (int|None|bytes)|\[2\]: `text` must be"):
        call(*solver, [*tiny_rows(2), problem, *tiny_rows(1)])


def test_trees_that_are_kept(solver):
    (row,) = tiny_rows(1)
    for top_k, kept in ((1, 1), (3, 3), (5, 5), (None, 4)):
        (found,) = hf_mwp.solve_problems(*solver, [row], num_beams=4, top_k=top_k)
        scores = [score for _, score in found.beam.trees]
        assert len(scores) == kept and scores == sorted(scores, reverse=True)


def test_progress_is_given_the_batches(solver):
    seen = []
    hf_mwp.solve_problems(
        *solver, tiny_rows(5), batch_size=2, progress=lambda batches: seen.extend(batches) or batches
    )
    assert [len(batch) for batch in seen] == [2, 2, 1]


def test_progress_counts_all_chunks_that_are_not_kept_yet(solver, tmp_path, monkeypatch):
    monkeypatch.setattr(kept_records, "AT_ONCE", 2)
    kept, seen = hf_mwp.solve_problems(*solver, tiny_rows(2), unfinished=tmp_path), []

    def progress(chunks):
        seen.append(len(chunks))
        return chunks

    found = hf_mwp.solve_problems(*solver, tiny_rows(7), unfinished=tmp_path, progress=progress)
    assert seen == [3] and [each.beam for each in found[:2]] == [each.beam for each in kept]


def test_a_reranker_chooses_and_the_solvers_own_answer_is_kept(solver):
    rows = tiny_rows(6)
    weights = {feature.name: 0.0 for feature in FEATURES} | {"rank": 99.0}
    reranker = PlausibilityReranker("zh", weights, 4)
    plain = hf_mwp.solve_problems(*solver, rows, num_beams=4)
    ranked = hf_mwp.solve_problems(*solver, rows, reranker=reranker)
    assert [each.without_reranking().expression for each in ranked] == [each.expression for each in plain]
    for each in ranked:
        assert each.expression == each.ranked[0].expression and 0 < each.plausibility == each.confidence <= 1
        assert each.displaced is None or each.to_dict()["instead_of"]["value"] != each.to_dict()["value"]
    assert any(each.displaced for each in ranked)
    with pytest.raises(PlausibilityError, match="4 beams.* 3.*num_beams=4"):
        hf_mwp.solve_problems(*solver, rows, reranker=reranker, num_beams=3)
    # Before any search.
    with pytest.raises(PlausibilityError, match="'zh', not 'en'"):
        hf_mwp.solve_problems(*solver, [*rows, {"text": "5 apples", "language": "en"}], reranker=reranker)


def test_labels_are_the_first_trees_with_the_answer(solver):
    rows = tiny_rows(3)
    problems = []
    for each in hf_mwp.solve_problems(*solver, rows, num_beams=4, top_k=4):
        second = each.beam.trees[1][0].evaluate(each.problem.numbers)
        problems.append(MathWordProblem(each.problem.text, "x=1", str(second), each.problem.id))
    labelled = hf_mwp.label_problems(*solver, [*problems, problems[0]], num_beams=4)
    assert sum(labelled.fates.values()) == 4 and labelled.fates["duplicate"] == 1
    for row, problem in zip(labelled.rows, problems, strict=True):
        assert Expression.from_infix(row["equation"]).evaluate() == problem.answer_value
        assert row["id"] == problem.id and row["rank"] <= 1


def test_a_text_that_is_too_long_is_not_labelled(solver):
    rows = [*tiny_rows(1), {"text": "4个" + "苹" * 100_000, "answer": "4"}]
    assert hf_mwp.label_problems(*solver, rows).fates["no answer"] == 1


def test_languages_are_not_mixed(solver):
    with pytest.raises(hf_mwp.utils.usage_error.UsageError, match="language.*zh"):
        hf_mwp.label_problems(*solver, [MathWordProblem("2 and 3?", answer="5", language="en")])


@pytest.mark.parametrize("training", [True, False])
def test_no_gradient_and_no_training_mode(solver, training, monkeypatch):
    model, processor = solver
    model.train(training)
    modes, solve = [], model.solve
    monkeypatch.setattr(model, "solve", lambda **inputs: modes.append((model.training,)) or solve(**inputs))
    (found,) = hf_mwp.solve_problems(model, processor, ["有4个和2个"])
    assert found.expression is not None
    assert modes == [(False,)] and model.training is training is model.encoder.training
    assert torch.is_grad_enabled()
