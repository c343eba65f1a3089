from dataclasses import replace

import gguf
import make_llm
import numpy as np
import pytest
from make_llm import FORMATS, SIZES, successors, write_model
from tokenizers import Tokenizer, decoders, models, pre_tokenizers


@pytest.fixture(scope="module", params=FORMATS)
def small(request, tmp_path_factory):
    path = tmp_path_factory.mktemp("bench") / f"{request.param}.gguf"
    write_model(path, SIZES["small"], FORMATS[request.param])
    return path


def weights(path, name):
    (tensor,) = (tensor for tensor in gguf.GGUFReader(path).tensors if tensor.name == name)
    return gguf.quants.dequantize(tensor.data, tensor.tensor_type)


def tokenizer_of(path):
    reader = gguf.GGUFReader(path)
    tokens, merges = (reader.get_field(f"tokenizer.ggml.{name}").contents() for name in ("tokens", "merges"))
    vocabulary = {token: index for index, token in enumerate(tokens)}
    assert len(vocabulary) == SIZES["small"].vocabulary
    tokenizer = Tokenizer(models.BPE(vocabulary, [tuple(merge.split(" ")) for merge in merges]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    return tokenizer


def test_writing_again_gives_the_same_bytes(small, tmp_path):
    write_model(tmp_path / "again.gguf", SIZES["small"], FORMATS[small.stem])
    assert (tmp_path / "again.gguf").read_bytes() == small.read_bytes()


def test_every_word_that_can_be_generated_is_one_token_again(small):
    tokenizer = tokenizer_of(small)
    words = [tokenizer.decode([token]) for token in range(3000, 3100)]
    assert all(word[0] == " " and word[1:].isalpha() for word in words)
    assert tokenizer.encode("".join(words)).ids == list(range(3000, 3100))


def test_what_cannot_be_printed_is_never_the_likeliest_token(small):
    matrix = weights(small, "token_embd.weight")
    silent = [0, ord("\n"), 200, 257, 258]
    assert not matrix[silent].any()
    assert matrix[ord("a")].any() and matrix[3000].any()


def test_weights_have_the_deviation_that_keeps_activations_in_bounds(small):
    matrix = weights(small, "blk.0.ffn_up.weight")
    assert matrix.shape == (1536, 512)
    assert np.std(matrix) == pytest.approx(512**-0.5, rel=0.02)
    assert abs(np.mean(matrix)) < 0.15 * np.std(matrix)
    assert not np.array_equal(matrix, weights(small, "blk.1.ffn_up.weight"))


def test_the_full_size_has_the_parameters_of_qwen3_0_6b():
    shape = SIZES["0.6b"]
    per_layer = sum(rows * columns for rows, columns, _ in make_llm.matrices(shape).values())
    norms = sum(make_llm.norms(shape).values())
    total = shape.vocabulary * shape.width + shape.layers * (per_layer + norms) + shape.width
    assert total == 596_049_920


@pytest.mark.parametrize("layers", ["0", "-3"])
def test_too_few_layers_are_refused_by_name(layers, monkeypatch, capsys):
    monkeypatch.setattr("sys.argv", ["make_llm.py", "--layers", layers])
    with pytest.raises(SystemExit):
        make_llm.main()
    assert f"--layers must be 1 or more, not {layers}" in capsys.readouterr().err


def test_with_a_period_each_words_likeliest_next_one_leads_back_to_it(tmp_path):
    shape = replace(SIZES["small"], layers=1, period=7)
    write_model(tmp_path / "m.gguf", shape, FORMATS["q8_0"])
    embedded, output = (weights(tmp_path / "m.gguf", f"{name}.weight") for name in ("token_embd", "output"))
    token, seen = 2000, []
    for _ in range(14):
        token = int(np.argmax(output @ embedded[token]))
        seen.append(token)
    assert seen[:7] == seen[7:]
    assert len(set(seen)) == 7
    assert seen[0] == successors(shape)[2000]


def test_with_a_period_what_is_no_word_is_followed_by_one(tmp_path):
    following = successors(replace(SIZES["small"], period=12))
    assert following.min() >= 259
    assert following.max() < 4096
