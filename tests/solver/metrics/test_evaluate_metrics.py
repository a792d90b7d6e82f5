import pytest

from hf_mwp.solver.metrics import AnswerAccuracy, EquationAccuracy


def test_answer_accuracy_against_annotations():
    result = AnswerAccuracy(keep_in_memory=True).compute(
        predictions=["4+2", "7/4", "20%", "7+(2/3)", "3", "", "1/0", "(("],
        references=["6", "((7)/(4))", "20%", "7((2)/(3))", "9 (apples)", "1", "0", "2"],
    )
    assert result == {"answer_accuracy": 4 / 8}


def test_answer_accuracy_of_whole_numbers_and_of_written_digits():
    result = AnswerAccuracy(keep_in_memory=True).compute(
        predictions=["1538910", "1538832", "12345.66", "12345.64", "10/3"],
        references=["1538832", "1538832", "12345.6", "12345.6", "3.3333"],
    )
    assert result == {"answer_accuracy": 3 / 5}


def test_answer_accuracy_by_the_peers_rule():
    metric = AnswerAccuracy(keep_in_memory=True)
    predictions, references = ["2+4", "10/3"], ["x=4+2", "x=3.333"]
    assert metric.compute(predictions=predictions, references=references, answer_match="equation_value") == {
        "answer_accuracy": 0.5
    }


def test_equation_accuracy():
    metric = EquationAccuracy(keep_in_memory=True)
    inputs = {"predictions": ["4+2", "2+4", "", "(1+2)+3"], "references": ["x=4+2", "x=4+2", "x=1", "x=1+2+3"]}
    assert metric.compute(**inputs) == {"equation_accuracy": 0.5}
    assert metric.compute(**inputs, canonical=True) == {"equation_accuracy": 0.75}


def test_references_must_be_usable():
    with pytest.raises(ValueError, match="row 1: .*'many'"):
        AnswerAccuracy(keep_in_memory=True).compute(predictions=["1", "2"], references=["1", "many"])
    with pytest.raises(ValueError, match="row 0: .*'1/0'"):
        AnswerAccuracy(keep_in_memory=True).compute(
            predictions=["1"], references=["1/0"], answer_match="equation_value"
        )
    with pytest.raises(ValueError, match="row 0: ''"):
        EquationAccuracy(keep_in_memory=True).compute(predictions=["1"], references=[""])


@pytest.mark.parametrize("metric", [AnswerAccuracy, EquationAccuracy])
def test_nothing_to_score_is_an_error(metric):
    with pytest.raises(ValueError, match="`predictions`"):
        metric(keep_in_memory=True).compute(predictions=[], references=[])
