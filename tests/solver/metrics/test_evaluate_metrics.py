import pytest

from hf_mwp.solver.metrics import AnswerAccuracy, EquationAccuracy


def compute(metric_class, predictions, references, **options):
    metric = metric_class(keep_in_memory=True)
    (value,) = metric.compute(predictions=predictions, references=references, **options).values()
    return value


def test_answers_are_compared_with_annotations():
    predictions = ["4+2", "7/4", "20%", "7+(2/3)", "3", "", "1/0", "(("]
    references = ["6", "((7)/(4))", "20%", "7((2)/(3))", "9 (apples)", "1", "0", "2"]
    result = AnswerAccuracy(keep_in_memory=True).compute(predictions=predictions, references=references)
    assert result == {"answer_accuracy": 4 / 8}


def test_answers_are_compared_with_the_values_of_equations():
    accuracy = compute(AnswerAccuracy, ["2+4", "10/3"], ["x=4+2", "x=3.333"], answer_match="equation_value")
    assert accuracy == 0.5


@pytest.mark.parametrize(("canonical", "accuracy"), [(False, 0.5), (True, 0.75)])
def test_equations_are_compared_literally_or_in_canonical_form(canonical, accuracy):
    predictions = ["4+2", "2+4", "", "(1+2)+3"]
    references = ["x=4+2", "x=4+2", "x=1", "x=1+2+3"]
    assert compute(EquationAccuracy, predictions, references, canonical=canonical) == accuracy


@pytest.mark.parametrize(
    ("metric_class", "references", "options", "message"),
    [
        (AnswerAccuracy, ["1", "many"], {}, "row 1: .*'many'"),
        (AnswerAccuracy, ["1/0", "1"], {"answer_match": "equation_value"}, "row 0: .*'1/0'"),
        (EquationAccuracy, ["", "1"], {}, "row 0: ''"),
    ],
)
def test_unusable_references_are_named(metric_class, references, options, message):
    with pytest.raises(ValueError, match=message):
        compute(metric_class, ["1", "2"], references, **options)


@pytest.mark.parametrize("metric_class", [AnswerAccuracy, EquationAccuracy])
def test_empty_predictions_are_refused(metric_class):
    with pytest.raises(ValueError, match="`predictions`"):
        compute(metric_class, [], [])
