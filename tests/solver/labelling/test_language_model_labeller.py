"""Labels from a language model."""

import threading

import pytest

import hf_mwp
from hf_mwp.solver.labelling import language_model_labeller as labelling
from hf_mwp.solver.labelling.labeller import Candidate, Labeller, Proposal
from hf_mwp.utils.usage_error import UsageError
from tests.slow_parameters import slow_after
from tests.solver.labelling.chat_server import chat_server
from tests.tiny import tiny_rows


APPLES = {"id": "1", "text": "小明有4个苹果和2个梨，一共有多少个水果？", "answer": "6"}
BOOK = {"id": "2", "text": "A book has 30 pages. Ann reads 12. How many pages are left?", "answer": "18"}
REPLIES = {"4个苹果": "4+2", "30 pages": "30-12 = 18 pages"}


def reply_of(replies):
    """A function that returns the reply for a question with a word. Several replies are given one after another."""
    remaining = {word: [texts] * 9 if isinstance(texts, str) else list(texts) for word, texts in replies.items()}

    def reply(question):
        text = question.rpartition("\n")[0].rpartition("\n")[2]
        word = next(word for word in remaining if word in text)
        return remaining[word].pop(0)

    return reply


@pytest.fixture
def server():
    with chat_server(reply_of(REPLIES)) as server:
        yield server


def label(server, rows, progress=None, unfinished=None, **options):
    labeller = hf_mwp.LanguageModelLabeller(server.url, "m", **options)
    return hf_mwp.label_problems(labeller, problems=rows, progress=progress, unfinished=unfinished)


def counts_of(labelled):
    return {fate: count for fate, count in labelled.fates.items() if count}


def test_problems_of_both_languages_are_labelled(server):
    labelled = label(server, [APPLES, BOOK])
    expected = {"samples": 1, "rank": 0}
    assert labelled.rows == [
        {**APPLES, "language": "zh", "equation": "4+2", **expected},
        {**BOOK, "language": "en", "equation": "30-12", **expected},
    ]
    assert counts_of(labelled) == {"labelled": 2}
    assert labelled.usage == {"requests": 2, "prompt_tokens": 200, "completion_tokens": 14, "not_counted": 0}
    questions = {request["messages"][-1]["content"] for request in server.requests}
    assert questions == {f"题目：{APPLES['text']}\n算式：", f"Problem: {BOOK['text']}\nEquation:"}
    for request in server.requests:
        assert request["temperature"] == 0
        assert "seed" not in request


@pytest.mark.parametrize(
    ("reply", "fate"),
    [
        ("4-2", "not found"),
        ("4*2", "not found"),
        ("6", "unreadable"),
        ("他一共有4+2个水果。", "unreadable"),
        ("3+3", "unreadable"),
        ("", "unreadable"),
    ],
)
def test_unusable_reply_is_not_a_label(server, reply, fate):
    server.reply = lambda question: reply
    labelled = label(server, [APPLES])
    assert labelled.rows == []
    assert counts_of(labelled) == {fate: 1}


def test_cut_reply_is_not_used(server):
    server.finish_reason = "length"
    assert counts_of(label(server, [APPLES])) == {"unreadable": 1}


def test_replies_are_requested_until_one_is_right(server):
    server.reply = reply_of({"4个苹果": ["4-2", "?", "4-2", "2+4", "4+2"]})
    (row,) = label(server, [APPLES], samples=5, temperature=0.3).rows
    assert (row["equation"], row["rank"], row["samples"]) == ("2+4", 1, 1)
    sampling = [(request["temperature"], request.get("seed")) for request in server.requests]
    assert sampling == [(0.0, None), (0.3, 1), (0.3, 2), (0.3, 3)]


@pytest.mark.parametrize(
    ("replies", "agreement", "label_and_confidence", "fate"),
    slow_after(
        3,
        [
            (["30-12", "30-12", "30-12", "30/12", "x"], 0.6, ("30-12", 0.6), "surest"),
            (["30-12", "30-12", "30/12", "30/12", "x"], 0.6, None, "unsure"),
            # Equations of the same value agree; the more frequent one is the label.
            (["30-6*2", "30-12", "30/12", "30-12", "30*12"], 0.6, ("30-12", 0.6), "surest"),
            (["30-12", "30-12", "30/12", "30/12", "x"], 0.4, ("30-12", 0.4), "surest"),
            (["30-12"] * 5, 1.0, ("30-12", 1.0), "surest"),
            (["x"] * 5, 0.1, None, "unreadable"),
        ],
    ),
)
def test_problem_without_an_answer_is_labelled_if_replies_agree(
    server, replies, agreement, label_and_confidence, fate
):
    # 6 is not in the text, and a common constant.
    server.reply = reply_of({"30 pages": replies})
    labelled = label(server, [{"id": "2", "text": BOOK["text"]}], samples=5, agreement=agreement)
    assert len(server.requests) == 5
    labels = [(row["equation"], row["confidence"]) for row in labelled.rows]
    assert labels == ([] if label_and_confidence is None else [label_and_confidence])
    assert counts_of(labelled) == {fate: 1}


def test_one_reply_labels_no_problem_without_an_answer(server):
    row = {"text": BOOK["text"]}
    assert counts_of(label(server, [APPLES, row])) == {"labelled": 1, "no answer": 1}
    with pytest.raises(UsageError, match="no problem to label: 1 no answer"):
        label(server, [row])
    assert len(server.requests) == 1


def test_failed_request_is_not_a_label_and_ends_nothing(server):
    server.faults += [400]
    labelled = label(server, [APPLES, BOOK], workers=1)
    assert [row["id"] for row in labelled.rows] == ["2"]
    assert counts_of(labelled) == {"labelled": 1, "failed": 1}
    assert labelled.usage["requests"] == 2
    assert labelled.usage["prompt_tokens"] == 100


def test_other_replies_are_sufficient_if_a_request_fails(server):
    server.faults += [400]
    labelled = label(server, [APPLES], samples=2)
    assert counts_of(labelled) == {"labelled": 1}
    assert labelled.usage["requests"] == 2


def test_server_that_never_replies_is_an_error(server):
    server.faults += [400] * 9
    with pytest.raises(UsageError, match=f"{server.url}: status 400 .fault 400."):
        label(server, [APPLES, BOOK])


def test_requests_without_stated_tokens_are_counted(server):
    server.usage = None
    usage = label(server, [APPLES, BOOK]).usage
    assert usage == {"requests": 2, "prompt_tokens": 0, "completion_tokens": 0, "not_counted": 2}


def many_rows(count):
    return [{"text": f"{'苹果' * number}有1个和2个，一共几个？", "answer": "3"} for number in range(1, count + 1)]


@pytest.mark.parametrize("workers", [1, 3])
def test_requests_are_simultaneous(server, workers):
    barrier = threading.Barrier(workers)

    def reply(question):
        barrier.wait(5)
        return "1+1"

    server.reply = reply
    label(server, many_rows(6), workers=workers)
    assert server.most_at_once == workers


def test_interrupted_call_requests_only_the_other_replies(server, tmp_path, monkeypatch):
    monkeypatch.setattr(labelling, "AT_ONCE", 1)
    server.faults += [None, 401]
    with pytest.raises(UsageError, match="status 401"):
        label(server, [APPLES, BOOK], unfinished=tmp_path)
    num_chunks = []

    def progress(chunks):
        num_chunks.append(len(chunks))
        return chunks

    labelled = label(server, [APPLES, BOOK], unfinished=tmp_path, progress=progress)
    assert len(server.requests) == 3
    assert num_chunks == [1]
    assert [row["equation"] for row in labelled.rows] == ["4+2", "30-12"]
    assert labelled.usage["requests"] == 2
    # Other settings are other replies.
    label(server, [APPLES, BOOK], unfinished=tmp_path, max_tokens=99)
    assert len(server.requests) == 5


def test_error_ends_waiting_requests(server):
    server.faults += [401] * 30
    with pytest.raises(UsageError, match="status 401"):
        label(server, many_rows(29), workers=2)
    assert len(server.requests) < 10


def test_training_texts_of_the_labeller_are_unknown():
    labeller = hf_mwp.LanguageModelLabeller("http://127.0.0.1:1/v1", "org/model")
    assert labeller.training_texts.unknown == ("org/model",)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("samples", 0),
        ("max_tokens", 0),
        ("workers", 0),
        ("temperature", -1),
        ("retries", -1),
        ("timeout", 0),
        ("agreement", 0),
        ("agreement", 1.1),
    ],
)
def test_numbers_out_of_range_are_named(name, value):
    with pytest.raises(ValueError, match=f"`{name}` must be"):
        hf_mwp.LanguageModelLabeller("http://127.0.0.1:1/v1", "m", **{name: value})


def test_language_without_a_prompt_is_named():
    labeller = hf_mwp.LanguageModelLabeller("http://127.0.0.1:1/v1", "m")
    with pytest.raises(UsageError, match="language 'fr' .*: zh, en"):
        hf_mwp.label_problems(labeller, problems=[{"text": "1 et 2?", "answer": "3", "language": "fr"}])


class FirstTwo(Labeller):
    """Adds the first two numbers of a text."""

    languages = ("zh",)
    default_language = "zh"
    labels_unanswered = True
    training_texts = None

    def read(self, problems):
        return [hf_mwp.MathWordProblem(row["text"], answer=row.get("answer")) for row in problems]

    def propose(self, problems, unfinished=None, progress=None):
        candidates = [Candidate(hf_mwp.Expression.from_infix("N0+N1"), {"note": "a"})]
        return [Proposal(candidates, 0, 0.5) for _ in problems]

    def surest(self, confidences):
        return {len(confidences) - 1}


def test_labeller_of_another_class():
    rows = [{"text": "有1个和2个", "answer": "3"}, {"text": "有3个、4个和5个"}, {"text": "有6和7"}]
    labelled = hf_mwp.label_problems(FirstTwo(), problems=rows)
    assert [(row["equation"], row["note"]) for row in labelled.rows] == [("1+2", "a"), ("6+7", "a")]
    assert counts_of(labelled) == {"labelled": 1, "surest": 1, "unsure": 1}
    assert labelled.usage == {}
    with pytest.raises(ValueError, match="`pseudo_label_fraction` are for a solver"):
        hf_mwp.label_problems(FirstTwo(), problems=tiny_rows(1), pseudo_label_fraction=0.5)
