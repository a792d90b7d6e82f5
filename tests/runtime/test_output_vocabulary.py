import re

import pytest

from hf_mwp.runtime.expressions import Expression, ExpressionError
from hf_mwp.runtime.output_vocabulary import OutputVocabulary
from hf_mwp.runtime.problems import MathWordProblem


def test_ids_are_operators_then_constants_then_numbers():
    vocabulary = OutputVocabulary(constants=("1", "3.14"))
    assert (vocabulary.num_operators, vocabulary.num_symbols) == (5, 7)
    for index, token in [(0, "+"), (4, "^"), (5, "1"), (6, "3.14"), (7, "N0"), (19, "N12")]:
        assert vocabulary.token_to_id(token) == index
        assert vocabulary.id_to_token(index) == token


def test_decoding_inverts_encoding():
    vocabulary = OutputVocabulary(constants=("1",))
    expression = Expression.from_infix("(N0-1)*N1")
    assert vocabulary.encode(expression) == [2, 1, 6, 5, 7]
    assert vocabulary.decode([2, 1, 6, 5, 7, -100]) == expression


def test_unknown_symbols_are_named():
    with pytest.raises(ExpressionError, match="'2'.*symbol"):
        OutputVocabulary().encode(Expression.from_infix("N0*2"))
    with pytest.raises(ValueError, match=r"operators.*\['%'\]"):
        OutputVocabulary(operators=("+", "%"))
    with pytest.raises(ValueError, match="repeat.*'1', '1'"):
        OutputVocabulary(constants=("1", "1"))


def test_further_constants_are_added_at_the_end():
    vocabulary = OutputVocabulary(constants=("3.14", "1")).with_constants(["60", "1", "50%", "100%", "60.0"])
    assert vocabulary.constants == ("3.14", "1", "60", "0.5")


@pytest.mark.parametrize("wrong", ["N0", "1+2", "eleven", ""])
def test_constant_that_is_no_number_is_refused(wrong):
    with pytest.raises(ExpressionError, match=f"constant '{re.escape(wrong)}' is not a number"):
        OutputVocabulary().with_constants([wrong])


def test_constants_must_occur_often_enough():
    often = MathWordProblem("种了2米和3棵", equation="x=2*3-1")
    seldom = MathWordProblem("种了2米和3棵", equation="x=2*3*3.14")
    broken = MathWordProblem("种了2米和3棵", equation="x=2*")
    vocabulary = OutputVocabulary.from_problems([often] * 3 + [seldom, broken], min_constant_count=2)
    assert vocabulary.constants == ("1",)
