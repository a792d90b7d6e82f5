"""Part-of-speech taggers, which also return the positions of words in the text."""

from hf_mwp.runtime.problems.math_word_problem import ProblemError
from hf_mwp.utils.checked_types import checked

from .jieba_tagger import JiebaTagger
from .ltp_tagger import LtpTagger
from .pos_tagger import PosTagger


@checked
def load_tagger(name: str) -> PosTagger:
    """Load a tagger: `"jieba"` or `"ltp:FOLDER_OR_ID"`. Raises `ProblemError` if the package or model is missing."""
    tagger_name, source = split_tagger(name)
    if tagger_name == "jieba":
        return JiebaTagger()
    return LtpTagger(source)


def split_tagger(name: str) -> tuple[str, str]:
    """Split a name such as `"ltp:LTP/small"` into tagger and model. Raises `ProblemError` if the name is invalid."""
    tagger_name, _, source = name.partition(":")
    if name != "jieba" and (tagger_name != "ltp" or not source):
        raise ProblemError(f"unknown tagger {name!r}: use 'jieba', or 'ltp:' + the folder or Hub id of an LTP model")
    return tagger_name, source
