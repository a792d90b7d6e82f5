import pytest
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast

from hf_mwp.runtime.problems import TaggedWord
from hf_mwp.solver.batches import MwpProcessor
from hf_mwp.solver.corpus import PreTrainingEncoder, pos_label_list
from hf_mwp.solver.data import DataError
from tests.pretraining import TAGS, tag, text_processor


TEXT = "小明有12个苹果，一共几个？"
#       小明 有 12 个 苹果 ， 一共 几 个 ？


def encode(text=TEXT, words=None, tags=TAGS, tagger="jieba", **fields):
    """Encode a text, and add the tokens and the names of the labels to its row."""
    processor = text_processor(**fields)
    encoder = PreTrainingEncoder(processor, tags, tagger)
    columns = encoder.encode([text], [tag(text) if words is None else words])
    row = {name: list(values[0]) for name, values in columns.items() if name not in ("length", "text_key")}
    row["tokens"] = processor.tokenizer.convert_ids_to_tokens(row["input_ids"])
    row["length"] = columns["length"][0]
    if tags:
        row["names"] = [encoder.pos_labels[label] if label >= 0 else None for label in row["pos_labels"]]
    return row


def test_labels_are_sorted_and_in_pairs():
    assert pos_label_list(["v", "n", "n"]) == ["B-n", "I-n", "B-v", "I-v"]


@pytest.mark.parametrize(("indexed_numbers", "placeholder"), [(False, "[NUM]"), (True, "[NUM0]")])
def test_numbers_are_masked_as_for_solvers(indexed_numbers, placeholder):
    row = encode(indexed_numbers=indexed_numbers)
    assert row["tokens"] == ["[CLS]", *"小明有", placeholder, *"个苹果，一共几个？", "[SEP]"]
    assert row["length"] == len(row["tokens"])
    assert row["input_ids"] == text_processor(indexed_numbers=indexed_numbers).encode([TEXT])["input_ids"][0]


# Each text with its words, and the label of each token but the first and the last.
LABELS = [
    (TEXT, None, ["B-n", "I-n", "B-v", "B-m", "B-q", "B-n", "I-n", "B-x", "B-n", "I-n", "B-n", "B-q", "B-x"]),
    # A placeholder has the tag of the word in which its number begins. The second word goes beyond the number.
    (
        "3.5个苹果",
        [TaggedWord("3.", "m", 0, 2), TaggedWord("5个苹", "n", 2, 5), TaggedWord("果", "v", 5, 6)],
        ["B-m", "B-n", "I-n", "B-v"],
    ),
    # The number is in the middle of a word.
    (
        "有5个苹果",
        [TaggedWord("有5个", "v", 0, 3), TaggedWord("苹果", "n", 3, 5)],
        ["B-v", "I-v", "I-v", "B-n", "I-n"],
    ),
    # White space and characters without a word.
    (" 小明 苹果", [TaggedWord("小明", "n", 1, 3), TaggedWord("果", "n", 5, 6)], ["B-n", "I-n", None, "B-n"]),
    ("小明", [], [None, None]),
    ("", [], []),
]


@pytest.mark.parametrize(("text", "words", "names"), LABELS)
def test_each_token_has_the_label_of_its_word(text, words, names):
    assert encode(text, words)["names"] == [None, *names, None]


def test_classes_and_units_of_masking():
    row = encode()
    classes = row["mask_class"]
    assert classes[0] == classes[14] == 0  # [CLS] and [SEP]
    assert classes[1] == classes[2] == classes[6] == 1  # 小 明 苹
    assert classes[9] == classes[10] == 2  # 一共
    assert classes[4] == 3  # [NUM]
    units = row["mask_unit"]
    assert units[9] == units[10]
    assert len({units[1], units[2], units[4]}) == 3
    assert units == sorted(units)


# The tags of quantities are known of jieba.
@pytest.mark.parametrize(("tags", "tagger", "is_quantity"), [(TAGS, "jieba", 1), (None, "jieba", 1), (TAGS, "own", 0)])
def test_quantity_words_are_masked_whole(tags, tagger, is_quantity):
    words = [TaggedWord("果果", "q", 0, 2), TaggedWord("小明", "n", 2, 4)]
    row = encode("果果小明", words, tags, tagger)
    assert ("pos_labels" in row) == (tags is not None)
    assert row["mask_class"] == ([0, 3, 3, 1, 1, 0] if is_quantity else [0, 1, 1, 1, 1, 0])
    assert row["mask_unit"] == ([0, 1, 1, 2, 3, 4] if is_quantity else [0, 1, 2, 3, 4, 5])


def test_unknown_tokens_are_tagged_but_not_masked():
    row = encode("龘小", [TaggedWord("龘", "n", 0, 1), TaggedWord("小", "n", 1, 2)])
    assert row["tokens"][1] == "[UNK]"
    assert row["mask_class"] == [0, 0, 1, 0]
    assert row["names"][1:3] == ["B-n", "B-n"]


def test_the_unknown_token_may_be_the_first():
    tokenizer = Tokenizer(models.WordPiece({"[UNK]": 0, "[PAD]": 1, "小": 2}, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Split("", "isolated")
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=tokenizer, unk_token="[UNK]", pad_token="[PAD]")
    columns = PreTrainingEncoder(MwpProcessor(tokenizer)).encode(["龘小"])
    assert columns["input_ids"][0].tolist() == [0, 2]
    assert columns["mask_class"][0].tolist() == [0, 1]


def test_long_texts_are_cut():
    row = encode(max_length=6)
    assert row["length"] == len(row["pos_labels"]) == len(row["mask_unit"]) == 6


def test_text_keys_ignore_numbers():
    keys = PreTrainingEncoder(text_processor()).encode(["小明有5个", "小明有 17 个", "小明有5盒"])["text_key"]
    assert keys[0] == keys[1] == 5429867651358846910
    assert keys[2] != keys[0]
    assert 0 <= keys[2] < 2**63


@pytest.mark.parametrize(
    ("text", "words", "message"),
    [
        ("小", [TaggedWord("小明", "n", 3, 5)], "'小明'.*3-5.*'小'"),
        ("小明", [TaggedWord("小明", "nh", 0, 2)], "'nh'.*jieba.*m, n, q, v, x"),
    ],
)
def test_wrong_words_are_named(text, words, message):
    encoder = PreTrainingEncoder(text_processor(), TAGS, "jieba")
    with pytest.raises(DataError, match=message):
        encoder.encode([text], [words])


def test_labels_need_words():
    with pytest.raises(DataError, match="tag"):
        PreTrainingEncoder(text_processor(), TAGS, "jieba").encode(["小明"])
