import json

import pytest
import torch
from transformers import AutoTokenizer, BertConfig, BertModel, BertTokenizerFast

from hf_mwp.runtime.expressions import ExpressionError
from hf_mwp.runtime.output_vocabulary import OutputVocabulary
from hf_mwp.runtime.problems import MathWordProblem
from hf_mwp.solver.batches.mwp_collator import MwpCollator
from hf_mwp.solver.batches.mwp_processor import MwpProcessor
from tests.solver.encoded_rows import rows_of


PROBLEM = MathWordProblem("小明有4个苹果和2个梨，又买4个", equation="x=4+2*3", answer="10", id="1")


@pytest.fixture
def tokenizer(tmp_path):
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *"小明有个苹果和梨，又买种了米棵"]
    vocabulary = tmp_path / "vocab.txt"
    vocabulary.write_text("\n".join(words) + "\n", "utf-8")
    return BertTokenizerFast(str(vocabulary))


@pytest.fixture
def processor(tokenizer):
    return MwpProcessor(tokenizer, OutputVocabulary(constants=("3",)))


def tokens_of(processor, problem):
    return processor.tokenizer.convert_ids_to_tokens(processor.encode([problem])["input_ids"][0])


def test_numbers_become_placeholders_whose_tokens_are_found(processor):
    encoded = processor.encode([PROBLEM], with_labels=True)
    tokens = tokens_of(processor, PROBLEM)
    assert tokens[:6] == ["[CLS]", "小", "明", "有", "[NUM]", "个"]
    assert encoded["number_positions"] == [[4, 9, 15]]
    assert tokens[4] == tokens[9] == tokens[15] == "[NUM]"
    assert encoded["number_groups"] == [[0, 1, 0]]
    assert encoded["length"] == [len(tokens)]
    # 4 + 2 * 3 in prefix order; 3 is a constant, the first 4 stands for both.
    assert encoded["labels"] == [[0, 6, 2, 7, 5]]


def test_indexed_placeholders(tokenizer):
    tokens = tokens_of(MwpProcessor(tokenizer, indexed_numbers=True, num_index_tokens=2), PROBLEM)
    assert [token for token in tokens if token.startswith("[NUM")] == ["[NUM0]", "[NUM1]", "[NUM]"]


def test_placeholder_in_the_text_is_not_a_number(processor):
    assert tokens_of(processor, "[NUM]有4个")[1:4] == ["[NUM]", "有", "[NUM]"]
    assert processor.encode(["[NUM]有4个"])["number_positions"] == [[3]]


def test_rows_without_a_language_have_the_language_of_the_processor(tokenizer):
    processor = MwpProcessor(tokenizer, language="en")
    text = "Seven apples and 2 pears"
    assert processor.problem({"text": text}).numbers == processor.problem(text).numbers == ("7", "2")
    assert processor.problem({"text": text, "language": "zh"}).numbers == ("2",)


def test_a_single_row_is_a_batch_of_one(processor):
    row = {"text": "小明有4个苹果", "language": "zh"}
    assert torch.equal(processor(row)["input_ids"], processor([row])["input_ids"])


def test_batches_are_padded(processor):
    batch = processor(["小明有4个苹果", PROBLEM])
    assert batch["input_ids"].shape == batch["attention_mask"].shape == (2, 18)
    assert batch["attention_mask"].sum(1).tolist() == [9, 18]
    assert batch["number_positions"].tolist() == [[4, -1, -1], [4, 9, 15]]
    assert batch["number_groups"].tolist() == [[0, -1, -1], [0, 1, 0]]
    assert processor(["小明", "苹果"])["number_positions"].shape == (2, 0)
    assert {name: values.shape for name, values in processor([]).items()} == dict.fromkeys(batch, (0, 0))


def test_numbers_that_are_cut_off_cannot_be_used(tokenizer):
    processor = MwpProcessor(tokenizer, OutputVocabulary(constants=("3",)), max_length=8)
    processor.add_columns(["number_values"])
    encoded = processor.encode([PROBLEM])
    assert encoded["number_positions"] == [[4]]
    assert encoded["number_groups"] == [[0]]
    assert encoded["number_values"] == [["4"]]
    with pytest.raises(ExpressionError, match="'2'.*max_length=8"):
        processor.encode([PROBLEM], with_labels=True)


def test_batches_are_no_wider_than_max_length(tokenizer):
    processor = MwpProcessor(tokenizer, max_length=8)
    batch = processor([PROBLEM, "有4个苹果，" * 3000])
    assert batch["number_positions"].tolist() == [[4], [2]]
    assert batch["number_groups"].tolist() == [[0], [0]]


def test_texts_are_truncated_on_the_right_whatever_the_tokenizer_says(tokenizer):
    tokenizer.truncation_side = "left"
    assert MwpProcessor(tokenizer, max_length=8).encode([PROBLEM])["number_positions"] == [[4]]


@pytest.mark.parametrize("text", ["", " ", "🍎🍏", "小" * 10_000, "有4" * 200])
def test_unusual_texts_give_a_batch(processor, text):
    batch = processor([text])
    assert batch["input_ids"].shape[1] <= 512
    assert (batch["number_positions"] < batch["input_ids"].shape[1]).all()


@pytest.mark.parametrize(
    ("reading", "numbers"), [("original", ("3",)), ("plain", ("3", "80%")), ("people", ("3", "2", "80%"))]
)
def test_reading_of_numbers_is_saved_and_used(processor, tmp_path, reading, numbers):
    processor.number_reading = reading
    processor.save_pretrained(tmp_path)
    loaded = MwpProcessor.from_pretrained(tmp_path)
    assert loaded.number_reading == reading
    assert loaded.problem("小明有3支笔，又买两支，打八折").numbers == numbers


def test_folder_without_a_reading_of_numbers_has_the_plain_one(processor, tmp_path):
    processor.save_pretrained(tmp_path)
    path = tmp_path / "mwp_processor.json"
    fields = json.loads(path.read_text("utf-8"))
    del fields["number_reading"]
    path.write_text(json.dumps(fields), "utf-8")
    assert MwpProcessor.from_pretrained(tmp_path).number_reading == "plain"


def test_save_and_load(processor, tmp_path):
    processor.language = "en"
    processor.parse_number_words = False
    processor.save_pretrained(tmp_path)
    loaded = MwpProcessor.from_pretrained(tmp_path)
    assert loaded.vocabulary == processor.vocabulary
    assert (loaded.language, loaded.parse_number_words, loaded.max_length) == ("en", False, 512)
    assert loaded.encode([PROBLEM], with_labels=True) == processor.encode([PROBLEM], with_labels=True)
    assert AutoTokenizer.from_pretrained(tmp_path).tokenize("[NUM]") == ["[NUM]"]


def test_wrong_arguments_are_named(tokenizer, processor, tmp_path):
    with pytest.raises(TypeError, match="`tokenizer` must be a `PreTrainedTokenizerBase`, got object"):
        MwpProcessor(object())
    with pytest.raises(ValueError, match="`language`.*'fr'"):
        MwpProcessor(tokenizer, language="fr")
    with pytest.raises(ValueError, match=r"symbols.*processor.*\['3'\]"):
        processor.check_symbols(["+"], [])
    with pytest.raises(OSError, match="nowhere"):
        MwpProcessor.from_pretrained(tmp_path / "nowhere")


def test_embeddings_grow_and_indexed_rows_start_near_the_placeholder(tokenizer):
    size = len(tokenizer)
    sizes = {"hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 8}
    encoder = BertModel(BertConfig(vocab_size=size, **sizes))
    before = encoder.get_input_embeddings().weight.detach().clone()
    processor = MwpProcessor(tokenizer, indexed_numbers=True, num_index_tokens=3)
    # The second call changes nothing.
    for _ in range(2):
        processor.resize_embeddings(encoder)
        weight = encoder.get_input_embeddings().weight
        assert weight.shape == (size + 4, 8)
        assert torch.equal(weight[:size], before)
        assert len(weight[size:].unique(dim=0)) == 4


def test_collator_adds_targets_only_when_all_rows_have_them(processor):
    rows = rows_of(processor.encode([PROBLEM, "小明有4个"]))
    collator = MwpCollator(processor)
    rows[0]["labels"] = [0, 6, 7]
    assert "labels" not in collator(rows)
    rows[1]["labels"] = [6]
    batch = collator(rows)
    assert batch["labels"].tolist() == [[0, 6, 7], [6, -100, -100]]
    assert len(batch["trees"].rows) == 4


def test_columns_of_some_decoders_are_added(processor, tokenizer, tmp_path):
    expected = processor.encode([PROBLEM])
    processor.add_columns(["question_positions", "number_values"])
    encoded = processor.encode([PROBLEM, "1/2和小"])
    # 又买[NUM]个 is the last clause, and none asks a question.
    assert encoded["question_positions"][0] == [13, 14, 15, 16]
    assert encoded["number_values"] == [["4", "2", "4"], ["1/2"]]
    for name, values in expected.items():
        assert encoded[name][:1] == values
    assert processor.pad(encoded)["question_positions"].tolist() == [[13, 14, 15, 16], [1, 2, 3, -1]]
    processor.save_pretrained(tmp_path)
    assert MwpProcessor.from_pretrained(tmp_path).encode([PROBLEM]) == processor.encode([PROBLEM])
    # A question that was cut off has the last token of the text.
    short = MwpProcessor(tokenizer, max_length=8, extra_columns=["question_positions"])
    assert short.encode([PROBLEM, ""])["question_positions"] == [[6], []]
    with pytest.raises(ValueError, match="`extra_columns`.*'depth'"):
        processor.add_columns(["depth"])
