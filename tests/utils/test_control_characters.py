import pytest

from hf_mwp.runtime.problems import MathWordProblem
from hf_mwp.runtime.problems.text_keys import TextKeys
from hf_mwp.utils.control_characters import show_controls, without_controls
from tests.tiny import rebuilt


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("4个苹果\n和\t2个\r\n", "4个苹果\n和\t2个\r\n"),
        ("\x1b[31m4\x1b[0m个", "4个"),
        ("\x1b[1;38;5;208m4\x1b[m个和\x1b[2K2个", "4个和2个"),
        ("1\x1b[1m5\x1b[0m0米", "150米"),
        # Cut off in the middle.
        ("4个\x1b[31", "4个"),
        ("4个\x1b[31个", "4个个"),
        ("4个\x1b", "4个"),
        # A window's title, a link, a character set, a saved position.
        ("\x1b]0;7 apples\x07 4个", " 4个"),
        ("\x1b]8;;http://a/9\x1b\\4\x1b]8;;\x1b\\个", "4个"),
        ("\x1b]0;7 apples\n4个", "\n4个"),
        ("\x1b(B\x1b[m4个\x1b7\x1b8", "4个"),
        # No escape of a terminal: the number is the text's.
        ("\x1b4个", "4个"),
        ("\x1b 4个", " 4个"),
        ("4\x00个\x07\x08\x7f\x9b", "4个"),
        # White space.
        ("3\x0b4\x0c5\x856", "3\x0b4\x0c5\x856"),
    ],
)
def test_control_characters_are_removed(text, expected):
    assert without_controls(text) == expected == without_controls(expected)
    problem = MathWordProblem(text)
    assert problem.text == rebuilt(problem.masked) == expected
    assert TextKeys.of(text) == TextKeys.of(expected)


def test_digits_of_escape_sequences_are_no_numbers():
    problem = MathWordProblem("小明有\x1b[31m4\x1b[0m个苹果，又买了\x1b[32m2\x1b[0m个", "x=4+2")
    assert problem.numbers == ("4", "2") and str(problem.expression) == "N0+N1"
    assert MathWordProblem("\x1b[" + "1" * 300 + "m4个").masked.unreadable == ()


def test_control_characters_are_shown():
    assert show_controls("\x1b[31m4\x1b[0m个\n\t\r\n") == "\\x1b[31m4\\x1b[0m个\n\t\r\n"
    assert show_controls("a\rb\x00\x9b\x7f") == "a\\x0db\\x00\\x9b\\x7f"
    assert show_controls("a\x9b", "\\u{:04x}") == "a\\u009b"
