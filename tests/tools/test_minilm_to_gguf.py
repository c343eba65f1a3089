import gguf
import numpy as np
import pytest
from gguf import GGMLQuantizationType, TokenType
from minilm.model import map_safetensors, model_file
from minilm_to_gguf import convert, wordpieces


@pytest.fixture(scope="module", autouse=True)
def published():
    try:
        return map_safetensors(model_file("model.safetensors"))
    except FileNotFoundError as error:
        pytest.skip(str(error))


@pytest.fixture(scope="module")
def open_gguf(tmp_path_factory):
    def opened(type_name):
        path = tmp_path_factory.mktemp("minilm") / f"{type_name}.gguf"
        convert(path, type_name)
        return gguf.GGUFReader(path)

    return opened


def tensors(reader):
    return {tensor.name: tensor for tensor in reader.tensors}


def test_f32_holds_the_published_weights(open_gguf, published):
    found = tensors(open_gguf("f32"))
    assert len(found) == 5 + 6 * 16
    for name, source in {
        "token_embd.weight": "embeddings.word_embeddings.weight",
        "position_embd.weight": "embeddings.position_embeddings.weight",
        "blk.0.attn_q.weight": "encoder.layer.0.attention.self.query.weight",
        "blk.5.layer_output_norm.bias": "encoder.layer.5.output.LayerNorm.bias",
    }.items():
        np.testing.assert_array_equal(found[name].data, published[source])


@pytest.mark.parametrize(
    "type_name, kind", [("f16", GGMLQuantizationType.F16), ("q8_0", GGMLQuantizationType.Q8_0)]
)
def test_only_matrices_that_multiply_and_word_embeddings_are_compressed(open_gguf, type_name, kind):
    found = tensors(open_gguf(type_name))
    compressed = {name for name, tensor in found.items() if tensor.tensor_type == kind}
    assert compressed == {"token_embd.weight"} | {
        f"blk.{layer}.{part}.weight"
        for layer in range(6)
        for part in ("attn_q", "attn_k", "attn_v", "attn_output", "ffn_up", "ffn_down")
    }


def test_word_starts_are_marked_and_continuations_are_not(open_gguf):
    reader = open_gguf("f32")
    tokens = reader.get_field("tokenizer.ggml.tokens").contents()
    types = reader.get_field("tokenizer.ggml.token_type").contents()
    ids = {piece: index for index, piece in enumerate(wordpieces())}
    assert tokens[ids["the"]] == "\u2581the"
    assert tokens[ids["##ing"]] == "ing"
    assert tokens[ids["[CLS]"]] == "[CLS]"
    assert types[ids["[CLS]"]] == TokenType.CONTROL and types[ids["[UNK]"]] == TokenType.UNKNOWN


def test_llama_cpp_is_told_to_average_tokens_that_see_each_other(open_gguf):
    reader = open_gguf("f32")
    assert reader.get_field("bert.pooling_type").contents() == gguf.PoolingType.MEAN
    assert not reader.get_field("bert.attention.causal").contents()
    assert reader.get_field("bert.context_length").contents() == 512
