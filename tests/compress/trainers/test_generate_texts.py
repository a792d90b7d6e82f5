import pytest
import torch

from hf_mwp.compress.trainers.generate_texts import generate_texts, score_texts
from tests.tiny import tiny_rows, tiny_tokenizer
from tests.tiny_seq2seq import KINDS, tiny_seq2seq


@pytest.mark.parametrize("kind", KINDS)
def test_log_probabilities_are_those_of_the_generated_tokens(kind):
    # The first input of the decoder is neither the start nor the end of a text, as the language code of mBART.
    # The tokenizer, as that of a BERT, has no end token; the model has.
    model = tiny_seq2seq(kind, decoder_start_token_id=7)
    tokenizer = tiny_tokenizer()
    texts = [row["text"] for row in tiny_rows(3)]
    for text, (found,) in zip(texts, generate_texts(model, tokenizer, texts, max_length=8), strict=True):
        given = tokenizer(text, return_tensors="pt")
        inputs = {name: given[name] for name in ("input_ids", "attention_mask")}
        ids = model.generate(**inputs, max_length=8, do_sample=False)
        with torch.no_grad():
            scores = model(**inputs, decoder_input_ids=ids[:, :-1]).logits.log_softmax(-1)
        expected = scores[0, range(ids.shape[1] - 1), ids[0, 1:]].sum().item()
        assert found.log_probability == pytest.approx(expected, rel=1e-4)
        assert found.num_tokens == ids.shape[1] - 1


@pytest.mark.parametrize("own", [None, 20])
def test_texts_are_not_longer_than_the_positions(own):
    model = tiny_seq2seq(max_position_embeddings=12)
    tokenizer = tiny_tokenizer()
    model.generation_config.update(eos_token_id=None, max_new_tokens=own)
    ((found,),) = generate_texts(model, tokenizer, ["小明有4个苹果"], max_length=50)
    assert found.num_tokens == 11 and model.generation_config.max_new_tokens == own


@pytest.mark.parametrize("kind", KINDS)
def test_padding_is_on_the_right(kind):
    model = tiny_seq2seq(kind)
    tokenizer = tiny_tokenizer()
    texts = [row["text"] for row in tiny_rows(3)]
    found = []
    for side in ("right", "left"):
        tokenizer.padding_side = side
        made = generate_texts(model, tokenizer, texts, max_length=8)
        found.append(
            [
                made,
                score_texts(
                    model, tokenizer, texts, [text[:size] for text, size in zip(texts, (3, 5, 9), strict=True)]
                ),
            ]
        )
    assert found[0] == found[1]
