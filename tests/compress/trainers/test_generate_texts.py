import pytest
import torch

from hf_mwp.compress.trainers.generate_texts import generate_texts, score_texts
from tests.slow_parameters import slow_after
from tests.tiny import tiny_rows, tiny_tokenizer
from tests.tiny_seq2seq import tiny_seq2seq


TEXTS = [row["text"] for row in tiny_rows(3)]


@pytest.mark.parametrize("architecture", slow_after(1, ["bart", "mbart", "t5"]))
def test_log_probabilities_are_those_of_the_generated_tokens(architecture):
    # The first input of the decoder is neither the start nor the end of a text, as the language code of mBART.
    # The tokenizer, as that of a BERT, has no end token; the model has.
    model = tiny_seq2seq(architecture, decoder_start_token_id=7)
    tokenizer = tiny_tokenizer()
    for text, (generated,) in zip(TEXTS, generate_texts(model, tokenizer, TEXTS, max_length=8), strict=True):
        inputs = tokenizer(text, return_tensors="pt", return_token_type_ids=False)
        ids = model.generate(**inputs, max_length=8, do_sample=False)
        with torch.no_grad():
            log_probabilities = model(**inputs, decoder_input_ids=ids[:, :-1]).logits[0].log_softmax(-1)
        expected = log_probabilities.gather(1, ids[0, 1:, None]).sum().item()
        assert generated.log_probability == pytest.approx(expected, rel=1e-4)
        assert generated.num_tokens == ids.shape[1] - 1


@pytest.mark.parametrize("max_new_tokens", [None, 20])
def test_texts_are_not_longer_than_the_positions(max_new_tokens):
    model = tiny_seq2seq(max_position_embeddings=12)
    model.generation_config.update(eos_token_id=None, max_new_tokens=max_new_tokens)
    ((generated,),) = generate_texts(model, tiny_tokenizer(), ["小明有4个苹果"], max_length=50)
    assert generated.num_tokens == 11
    assert model.generation_config.max_new_tokens == max_new_tokens


@pytest.mark.parametrize("architecture", ["bart", "m2m_100"])
def test_the_padding_side_of_the_tokenizer_does_not_matter(architecture):
    model = tiny_seq2seq(architecture)
    targets = [TEXTS[0][:3], TEXTS[1][:5], TEXTS[2][:9]]
    results = []
    for side in ("right", "left"):
        tokenizer = tiny_tokenizer()
        tokenizer.padding_side = side
        generated = generate_texts(model, tokenizer, TEXTS, max_length=8)
        results.append((generated, score_texts(model, tokenizer, TEXTS, targets)))
    assert results[0] == results[1]
