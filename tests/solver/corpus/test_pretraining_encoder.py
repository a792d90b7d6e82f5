import numpy as np
import pytest
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast

from hf_mwp.runtime.problems import TaggedWord, find_keywords
from hf_mwp.solver.batches import MwpProcessor
from hf_mwp.solver.corpus import PreTrainingEncoder, pos_label_list
from hf_mwp.solver.data import DataError
from tests.pretraining import TAGS, tag, text_processor, tiny_pairs


TEXT = "小明有12个苹果，一共几个？"
#       小明 有 12 个 苹果 ， 一共 几 个 ？


def encode(text=TEXT, words=None, **fields):
    processor = text_processor(**fields)
    encoder = PreTrainingEncoder(processor, TAGS, "jieba")
    columns = encoder.encode([text], [tag(text) if words is None else words])
    row = {name: values[0] for name, values in columns.items()}
    row["tokens"] = processor.tokenizer.convert_ids_to_tokens(row["input_ids"].tolist())
    row["names"] = [encoder.pos_labels[label] if label >= 0 else None for label in row["pos_labels"]]
    return row


def test_labels_are_sorted_and_in_pairs():
    assert pos_label_list(["v", "n", "n"]) == ["B-n", "I-n", "B-v", "I-v"]


@pytest.mark.parametrize(("indexed", "placeholder"), [(False, "[NUM]"), (True, "[NUM0]")])
def test_numbers_are_masked_as_solvers_see_them(indexed, placeholder):
    row = encode(indexed_numbers=indexed)
    assert row["tokens"] == ["[CLS]", *"小明有", placeholder, *"个苹果，一共几个？", "[SEP]"]
    assert row["length"] == len(row["tokens"])
    ours = text_processor(indexed_numbers=indexed).encode([TEXT])["input_ids"][0]
    assert row["input_ids"].tolist() == ours


def test_each_token_has_the_label_of_its_word():
    names = ["B-n", "I-n", "B-v", "B-m", "B-q", "B-n", "I-n", "B-x", "B-n", "I-n", "B-n", "B-q", "B-x"]
    assert encode()["names"] == [None, *names, None]


def test_a_placeholder_has_the_tag_of_the_word_at_its_numbers_start():
    # The number is in two words, of which the second goes beyond it.
    words = [TaggedWord("3.", "m", 0, 2), TaggedWord("5个苹", "n", 2, 5), TaggedWord("果", "v", 5, 6)]
    row = encode("3.5个苹果", words)
    assert row["tokens"] == ["[CLS]", "[NUM]", "个", "苹", "果", "[SEP]"]
    assert row["names"] == [None, "B-m", "B-n", "I-n", "B-v", None]
    # It begins in the middle of a word, and the word goes on behind it.
    words = [TaggedWord("有5个", "v", 0, 3), TaggedWord("苹果", "n", 3, 5)]
    assert encode("有5个苹果", words)["names"] == [None, "B-v", "I-v", "I-v", "B-n", "I-n", None]


def test_white_space_and_untagged_characters_have_no_label():
    words = [TaggedWord("小明", "n", 1, 3), TaggedWord("果", "n", 5, 6)]
    row = encode(" 小明 苹果", words)
    assert row["tokens"] == ["[CLS]", "小", "明", "苹", "果", "[SEP]"]
    assert row["names"] == [None, "B-n", "I-n", None, "B-n", None]
    assert encode("小明", [])["names"] == [None] * 4


def test_classes_of_masking():
    row = encode()
    spans = find_keywords(TEXT, "zh")
    assert (9, 11) in spans  # 一共
    kinds = dict(zip(range(len(row["tokens"])), row["mask_class"].tolist(), strict=True))
    assert kinds[0] == kinds[14] == 0  # [CLS] and [SEP]
    assert kinds[1] == kinds[2] == kinds[6] == 1  # 小 明 苹
    assert kinds[9] == kinds[10] == 2  # 一共
    assert kinds[4] == 3  # [NUM]
    units = row["mask_unit"]
    assert units[9] == units[10] and len(set(units.tolist())) < len(units)
    assert len({units[1], units[2], units[4]}) == 3
    assert (np.diff(units) >= 0).all()


def test_quantity_words_are_quantities_and_masked_whole():
    words = [TaggedWord("果果", "q", 0, 2), TaggedWord("小明", "n", 2, 4)]
    row = encode("果果小明", words)
    assert row["mask_class"].tolist() == [0, 3, 3, 1, 1, 0]
    assert row["mask_unit"].tolist() == [0, 1, 1, 2, 3, 4]
    # What tags are of quantities is not known of every tagger.
    plain = PreTrainingEncoder(text_processor(), TAGS, "another").encode(["果果小明"], [words])
    assert plain["mask_class"][0].tolist() == [0, 1, 1, 1, 1, 0]


def test_quantities_without_labels():
    encoder = PreTrainingEncoder(text_processor(), tagger="jieba")
    words = [TaggedWord("果果", "q", 0, 2), TaggedWord("小明", "n", 2, 4)]
    columns = encoder.encode(["果果小明", "果果小明"], [words, None])
    assert "pos_labels" not in columns
    assert [classes.tolist() for classes in columns["mask_class"]] == [[0, 3, 3, 1, 1, 0], [0, 1, 1, 1, 1, 0]]
    assert [units.tolist() for units in columns["mask_unit"]] == [[0, 1, 1, 2, 3, 4], [0, 1, 2, 3, 4, 5]]


def test_unknown_tokens_are_not_masked_but_tagged():
    row = encode("龘小", [TaggedWord("龘", "n", 0, 1), TaggedWord("小", "n", 1, 2)])
    assert row["tokens"][1] == "[UNK]" and row["mask_class"].tolist() == [0, 0, 1, 0]
    assert row["names"][1:3] == ["B-n", "B-n"]


def test_the_unknown_token_may_be_the_first():
    tokenizer = Tokenizer(models.WordPiece({"[UNK]": 0, "[PAD]": 1, "小": 2}, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Split("", "isolated")
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=tokenizer, unk_token="[UNK]", pad_token="[PAD]")
    columns = PreTrainingEncoder(MwpProcessor(tokenizer)).encode(["龘小"])
    assert columns["input_ids"][0].tolist() == [0, 2] and columns["mask_class"][0].tolist() == [0, 1]


def test_cut_texts_and_empty_ones():
    row = encode(max_length=6)
    assert row["length"] == 6 and len(row["pos_labels"]) == len(row["mask_unit"]) == 6
    assert encode("", [])["names"] == [None, None]


def test_the_same_characters_one_by_one():
    """The labels again, by a loop over the tokens' characters."""
    processor = text_processor(indexed_numbers=True)
    encoder = PreTrainingEncoder(processor, TAGS, "jieba")
    pairs = tiny_pairs(30, seed=3)
    columns = encoder.encode(*zip(*pairs, strict=True))
    for (text, words), ids, labels in zip(pairs, columns["input_ids"], columns["pos_labels"], strict=True):
        masked = processor.problem(text).masked
        characters = []  # of the masked text: (text of the token, place in the original)
        place = 0
        for index, segment in enumerate(masked.segments):
            characters += [(character, place + offset) for offset, character in enumerate(segment)]
            if index < len(masked.mentions):
                characters.append((f"[NUM{index}]", masked.mentions[index].start))
                place = masked.mentions[index].end
        assert processor.tokenizer.convert_ids_to_tokens(ids[1:-1].tolist()) == [name for name, _ in characters]
        expected, before = [], None
        for _, place in characters:
            word = next((word for word in words if word.start <= place < word.end), None)
            expected.append(f"{'I' if word is before else 'B'}-{word.tag}")
            before = word
        assert [encoder.pos_labels[label] for label in labels[1:-1]] == expected


def test_keys_ignore_numbers_and_tell_texts_apart():
    encoder = PreTrainingEncoder(text_processor())
    keys = encoder.encode(["小明有5个", "小明有 17 个", "小明有5盒"])["text_key"]
    assert keys[0] == keys[1] != keys[2] and all(0 <= key < 2**63 for key in keys)
    assert keys[0] == 5429867651358846910


def test_wrong_words_are_named():
    encoder = PreTrainingEncoder(text_processor(), TAGS, "jieba")
    with pytest.raises(DataError, match="tag"):
        encoder.encode(["小明"])
    with pytest.raises(DataError, match="'小明'.*3-5.*'小'"):
        encoder.encode(["小"], [[TaggedWord("小明", "n", 3, 5)]])
    with pytest.raises(DataError, match="'nh'.*jieba.*m, n, q, v, x"):
        encoder.encode(["小明"], [[TaggedWord("小明", "nh", 0, 2)]])
