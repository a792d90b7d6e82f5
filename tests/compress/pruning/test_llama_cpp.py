"""An evenly pruned model, exported as a model of Transformers, converted and run in llama.cpp."""

import math

import pytest
import torch

from hf_mwp import export_dense
from hf_mwp.compress.pruning import RemovedUnits, UnitScores, cut_teacher
from tests.tiny import tiny_tokenizer
from tests.tiny_causal import tiny_causal, tiny_causal_batch


LENGTH = 8


def write_gguf(gguf, model, path):
    """Convert a Qwen3 as llama.cpp's own script does, with names of tokens for a vocabulary."""
    config = model.config
    writer = gguf.GGUFWriter(str(path), "qwen3")
    writer.add_file_type(gguf.LlamaFileType.ALL_F32)
    writer.add_context_length(config.max_position_embeddings)
    writer.add_embedding_length(config.hidden_size)
    writer.add_block_count(config.num_hidden_layers)
    writer.add_feed_forward_length(config.intermediate_size)
    writer.add_head_count(config.num_attention_heads)
    writer.add_head_count_kv(config.num_key_value_heads)
    writer.add_key_length(config.head_dim)
    writer.add_value_length(config.head_dim)
    writer.add_layer_norm_rms_eps(config.rms_norm_eps)
    writer.add_rope_freq_base(config.rope_parameters["rope_theta"])
    tokens = tiny_tokenizer().convert_ids_to_tokens(range(config.vocab_size))
    writer.add_tokenizer_model("llama")
    writer.add_token_list(tokens)
    writer.add_token_scores([0.0] * len(tokens))
    writer.add_token_types([gguf.TokenType.NORMAL] * len(tokens))
    writer.add_unk_token_id(1)
    writer.add_bos_token_id(2)
    writer.add_eos_token_id(3)
    writer.add_add_bos_token(False)
    names = gguf.get_tensor_name_map(gguf.MODEL_ARCH.QWEN3, config.num_hidden_layers)
    for name, weight in model.state_dict().items():
        writer.add_tensor(names.get_name(name, try_suffixes=(".weight",)), weight.numpy())
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


@pytest.mark.slow
@pytest.mark.parametrize("unit", ["group", "query"])
def test_llama_cpp_generates_the_same_tokens(unit, tmp_path):
    gguf = pytest.importorskip("gguf")
    xllamacpp = pytest.importorskip("xllamacpp")
    teacher = tiny_causal("qwen3")
    removed = RemovedUnits.lowest(UnitScores.random(teacher), 0.5, unit=unit, uniform=True)
    cut = cut_teacher(teacher, removed)
    path = tmp_path / "model.gguf"
    write_gguf(gguf, export_dense(cut), path)
    parameters = xllamacpp.CommonParams()
    parameters.model.path = str(path)
    parameters.n_ctx = 64
    parameters.n_parallel = 1
    parameters.warmup = False
    parameters.verbosity = 0
    parameters.cpuparams.n_threads = 1
    server = xllamacpp.Server(parameters)
    input_ids = tiny_causal_batch(1)["input_ids"]
    request = {"prompt": input_ids[0].tolist(), "n_predict": LENGTH, "temperature": 0, "n_probs": 1}
    reply = server.handle_completions({**request, "ignore_eos": True, "cache_prompt": False})
    content = reply["choices"][0]["logprobs"]["content"]
    options = {"max_new_tokens": LENGTH, "do_sample": False, "eos_token_id": None}
    output = cut.generate(input_ids, output_scores=True, return_dict_in_generate=True, **options)
    tokens = output.sequences[0, input_ids.shape[1] :].tolist()
    assert [token["id"] for token in content] == tokens
    for token, scores in zip(content, output.scores, strict=True):
        expected = torch.log_softmax(scores[0], 0)[token["id"]].item()
        # llama.cpp stores keys and values in half precision.
        assert math.isclose(token["logprob"], expected, abs_tol=0.01)
