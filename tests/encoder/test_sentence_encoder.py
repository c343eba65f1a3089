"""headrace.SentenceEncoder and TextEmbedding: pooling beside NumPy, folders, prompts."""

from __future__ import annotations

import random
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from headrace import SentenceEncoder, TextEmbedding
from sentence_folders import POOLED, WIDTH, WORDS, model, tokens_of, write_folder

TEXTS = [" ".join(random.Random(i).choices(WORDS, k=1 + i * 7 % 23)) for i in range(60)] + ["", "mill"]


def reference(pooling: str, texts: list[str], most_tokens: int = 512) -> np.ndarray:
    return np.array([POOLED[pooling](tokens_of(text, most_tokens)) for text in texts])


def lengthened_to_one(vectors: np.ndarray) -> np.ndarray:
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def legacy(pooling: str) -> str:
    return {"cls": "cls_token", "max": "max_tokens", "mean": "mean_tokens"}.get(pooling, pooling)


@pytest.mark.parametrize("pooling", POOLED)
@pytest.mark.parametrize("is_legacy", [True, False])
def test_vectors_are_pooled_as_the_folder_says(tmp_path: Path, pooling: str, is_legacy: bool) -> None:
    says = (
        {f"pooling_mode_{legacy(pooling)}": True, "pooling_mode_other": False}
        if is_legacy
        else {"pooling_mode": pooling}
    )
    folder = write_folder(tmp_path, says, ["Transformer", "Pooling"])
    vectors = SentenceEncoder(folder).encode(TEXTS)
    assert vectors.dtype == np.float32 and vectors.flags.c_contiguous
    np.testing.assert_allclose(vectors, reference(pooling, TEXTS), atol=1e-5)


def test_a_folder_that_says_nothing_has_the_mean_as_it_is(tmp_path: Path) -> None:
    encoder = SentenceEncoder(write_folder(tmp_path))
    np.testing.assert_allclose(encoder.encode(TEXTS), reference("mean", TEXTS), atol=1e-5)


def test_a_pooling_that_is_given_comes_before_the_folders(tmp_path: Path) -> None:
    folder = write_folder(tmp_path, {"pooling_mode": "mean"})
    encoder = SentenceEncoder(folder, pooling="max", normalizes=True)
    np.testing.assert_allclose(encoder.encode(TEXTS), lengthened_to_one(reference("max", TEXTS)), atol=1e-5)


def test_vectors_are_normalized_by_a_module_or_by_the_call(tmp_path: Path) -> None:
    expected = lengthened_to_one(reference("cls", TEXTS))
    says = {"pooling_mode": "cls"}
    plain = SentenceEncoder(write_folder(tmp_path / "plain", says, ["Transformer", "Pooling"]))
    own = SentenceEncoder(write_folder(tmp_path / "own", says, ["Transformer", "Pooling", "Normalize"]))
    np.testing.assert_allclose(own.encode(TEXTS), expected, atol=1e-5)
    np.testing.assert_allclose(plain.encode(TEXTS, normalize_embeddings=True), expected, atol=1e-5)


def test_truncated_vectors_are_normalized_after_that(tmp_path: Path) -> None:
    encoder = SentenceEncoder(write_folder(tmp_path), truncate_dim=4)
    assert encoder.get_sentence_embedding_dimension() == 4
    short = reference("mean", TEXTS)[:, :3]
    np.testing.assert_allclose(encoder.encode(TEXTS, truncate_dim=3), short, atol=1e-5)
    np.testing.assert_allclose(
        encoder.encode(TEXTS, truncate_dim=3, normalize_embeddings=True), lengthened_to_one(short), atol=1e-5
    )
    assert encoder.encode(TEXTS).shape == (len(TEXTS), 4)


def test_long_texts_are_cut_as_the_folder_says(tmp_path: Path) -> None:
    folder = write_folder(tmp_path, {"pooling_mode": "lasttoken"}, most_tokens=9)
    text = " ".join(WORDS * 40)
    encoder = SentenceEncoder(folder)
    assert encoder.max_seq_length == 9
    np.testing.assert_allclose(encoder.encode([text]), reference("lasttoken", [text], 9), atol=1e-5)
    longer = SentenceEncoder(folder, max_seq_length=20)
    np.testing.assert_allclose(longer.encode([text]), reference("lasttoken", [text], 20), atol=1e-5)


@pytest.mark.parametrize("kind", ["bert", "roberta", "xlm-roberta"])
def test_the_configuration_of_sentences_has_a_name_by_the_model(tmp_path: Path, kind: str) -> None:
    config = {"max_seq_length": 9, "do_lower_case": True}
    folder = write_folder(tmp_path, {"pooling_mode": "mean"}, **{f"sentence_{kind}_config": config})
    encoder = SentenceEncoder(folder)
    assert encoder.max_seq_length == 9
    np.testing.assert_allclose(encoder.encode(["MILL Stone"]), encoder.encode(["mill stone"]))
    of_capitals, of_small = (encoder.tokenize([text])["input_ids"] for text in ("MILL Stone", "mill stone"))
    np.testing.assert_array_equal(of_capitals, of_small)
    as_written = SentenceEncoder(write_folder(tmp_path / "other", {"pooling_mode": "mean"}))
    assert np.abs(as_written.encode("MILL Stone") - as_written.encode("mill stone")).max() > 0.1


def test_a_single_text_gives_a_vector_and_no_texts_an_empty_array(tmp_path: Path) -> None:
    encoder = SentenceEncoder(write_folder(tmp_path))
    assert encoder.encode("mill").shape == (WIDTH + 1,)
    assert encoder.encode([]).shape == (0, WIDTH + 1)
    np.testing.assert_array_equal(encoder.encode(("mill", "road"))[1], encoder.encode("road"))
    np.testing.assert_array_equal(encoder.encode(np.array(["mill", "road"]))[1], encoder.encode("road"))


def test_the_order_is_kept_whatever_the_batches(tmp_path: Path) -> None:
    encoder, many = SentenceEncoder(write_folder(tmp_path)), TEXTS * 80
    expected = np.tile(reference("mean", TEXTS), (80, 1))
    assert len(many) > 4096, "more than are handed over at once"
    np.testing.assert_allclose(encoder.encode(many), expected, atol=1e-5)
    np.testing.assert_allclose(
        encoder.encode(TEXTS, batch_size=7, show_progress_bar=True), expected[: len(TEXTS)], atol=1e-5
    )


def test_prompts_come_before_texts(tmp_path: Path) -> None:
    prompts = {"query": "water ", "passage": "stone wheel ", "odd": "bread "}
    folder = write_folder(
        tmp_path, config_sentence_transformers={"prompts": prompts, "default_prompt_name": "odd"}
    )
    encoder = SentenceEncoder(folder)

    def expected(prompt: str) -> np.ndarray:
        return reference("mean", [prompt + text for text in TEXTS])

    np.testing.assert_allclose(encoder.encode(TEXTS), expected("bread "), atol=1e-5)
    np.testing.assert_allclose(encoder.encode(TEXTS, prompt_name="query"), expected("water "), atol=1e-5)
    np.testing.assert_allclose(encoder.encode(TEXTS, "query", prompt="road "), expected("road "), atol=1e-5)
    np.testing.assert_allclose(encoder.encode_query(TEXTS), expected("water "), atol=1e-5)
    np.testing.assert_allclose(encoder.encode_document(TEXTS), expected("stone wheel "), atol=1e-5)
    np.testing.assert_allclose(encoder.encode(TEXTS, prompt=""), expected(""), atol=1e-5)
    with pytest.raises(
        ValueError, match=r"no prompt 'nope'; there are \['document', 'odd', 'passage', 'query'\]"
    ):
        encoder.encode(TEXTS, prompt_name="nope")
    with pytest.raises(ValueError, match="no prompt 'nope'"):
        SentenceEncoder(folder, default_prompt_name="nope")


def test_similarity_is_the_folders(tmp_path: Path) -> None:
    a, b = reference("mean", TEXTS[:5]), reference("mean", TEXTS[5:9])
    pairs = [(x, y) for x in a for y in b]
    kinds = {
        "cosine": lambda x, y: x @ y / np.linalg.norm(x) / np.linalg.norm(y),
        "dot": lambda x, y: x @ y,
        "euclidean": lambda x, y: -np.linalg.norm(x - y),
        "manhattan": lambda x, y: -np.abs(x - y).sum(),
    }
    for name, kind in kinds.items():
        folder = write_folder(tmp_path / name, config_sentence_transformers={"similarity_fn_name": name})
        expected = np.array([kind(x, y) for x, y in pairs]).reshape(5, 4)
        np.testing.assert_allclose(SentenceEncoder(folder).similarity(a, b), expected, atol=1e-4)


def test_pairs_are_compared_by_their_places(tmp_path: Path) -> None:
    a, b = reference("mean", TEXTS[:4]), reference("mean", TEXTS[4:8])
    for name in ("cosine", "dot", "euclidean", "manhattan"):
        encoder = SentenceEncoder(write_folder(tmp_path), similarity_fn_name=name)
        pairs = np.asarray(encoder.similarity_pairwise(a, list(b)))
        np.testing.assert_allclose(pairs, np.diagonal(encoder.similarity(a, b)), rtol=1e-5)
    with pytest.raises(ValueError, match="4 vectors and 3 make no pairs"):
        encoder.similarity_pairwise(a, b[:3])
    assert tuple(encoder.similarity(a, b[:0]).shape) == (4, 0)


def test_similarity_is_a_tensor_where_pytorch_is_installed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    torch = pytest.importorskip("torch", reason="PyTorch is not installed: make executorch installs it")
    encoder = SentenceEncoder(write_folder(tmp_path))
    vectors = encoder.encode(TEXTS[:5], convert_to_tensor=True)
    scores = encoder.similarity(vectors[0], vectors)
    best = torch.topk(scores[0], k=2)
    assert best.indices[0].item() == 0 and best.values[0].item() == pytest.approx(1, abs=1e-5)
    monkeypatch.setitem(sys.modules, "torch", None)  # as where it is not installed
    plain = encoder.similarity(vectors[0].numpy(), vectors.numpy())
    assert type(plain) is np.ndarray
    np.testing.assert_array_equal(plain, scores)


def test_tokens_are_those_that_the_model_reads(tmp_path: Path) -> None:
    encoder = SentenceEncoder(write_folder(tmp_path, most_tokens=4))
    assert encoder.get_max_seq_length() == 4
    made = {name: np.asarray(array) for name, array in encoder.tokenize(["mill stone water", "road"]).items()}
    assert made["input_ids"].tolist() == [[2, 4, 5, 3], [2, 12, 3, 0]]
    assert made["attention_mask"].tolist() == [[1, 1, 1, 1], [1, 1, 1, 0]]
    assert made["token_type_ids"].tolist() == [[0] * 4] * 2


def test_results_may_be_tensors(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch", reason="PyTorch is not installed: make executorch installs it")
    encoder = SentenceEncoder(write_folder(tmp_path))
    whole = encoder.encode(TEXTS, convert_to_tensor=True)
    assert isinstance(whole, torch.Tensor) and whole.shape == (len(TEXTS), WIDTH + 1)
    parts = encoder.encode(TEXTS, convert_to_numpy=False)
    assert isinstance(parts, list) and torch.equal(torch.stack(parts), whole)
    assert torch.equal(encoder.encode(TEXTS[0], convert_to_numpy=False), whole[0])


def test_a_folder_may_have_several_files(tmp_path: Path) -> None:
    folder = write_folder(tmp_path)
    plain = SentenceEncoder(folder).encode(TEXTS)
    (folder / "onnx/model_scaled.onnx").write_bytes(model(scale=2))
    np.testing.assert_array_equal(SentenceEncoder(folder).encode(TEXTS), plain)
    for name in ("onnx/model_scaled.onnx", "model_scaled.onnx"):
        scaled = SentenceEncoder(folder, model_kwargs={"file_name": name})
        np.testing.assert_allclose(scaled.encode(TEXTS)[:, :-1], 2 * plain[:, :-1], atol=1e-5)
    (folder / "onnx/model.onnx").rename(folder / "model_optimized.onnx")
    np.testing.assert_array_equal(SentenceEncoder(folder).encode(TEXTS), plain)
    with pytest.raises(FileNotFoundError, match=r"onnx have no other.onnx; sentence-transformers writes one"):
        SentenceEncoder(folder, model_kwargs={"file_name": "other.onnx"})


def test_what_a_folder_lacks_is_named(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"there is no folder .*nowhere: .* `hf download`"):
        SentenceEncoder(tmp_path / "nowhere")
    (tmp_path / "empty").mkdir()
    with pytest.raises(FileNotFoundError, match=r"have no model\.onnx, .*backend='onnx'"):
        SentenceEncoder(tmp_path / "empty")
    folder = write_folder(tmp_path / "bare")
    (folder / "tokenizer.json").unlink()
    with pytest.raises(FileNotFoundError, match=r"there is no tokenizer\.json in .*onnx or "):
        SentenceEncoder(folder)


@pytest.mark.parametrize(
    ("pooling", "modules", "message"),
    [
        ({"pooling_mode": "weightedmean"}, None, 'pooling_mode "weightedmean"; one of mean, cls'),
        ({"pooling_mode": ["mean", "max"]}, None, "one of mean, cls, lasttoken, max"),
        ({"pooling_mode_mean_tokens": True, "pooling_mode_cls_token": True}, None, "besides another one"),
        ({"pooling_mode": "mean", "include_prompt": False}, None, "include_prompt to false"),
        (
            None,
            ["Transformer", "Pooling", "Dense"],
            "modules.json has Dense; Transformer, Pooling and Normalize",
        ),
    ],
)
def test_what_would_change_the_vectors_and_is_not_known_is_refused(
    tmp_path: Path, pooling: dict | None, modules: list[str] | None, message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        SentenceEncoder(write_folder(tmp_path, pooling, modules))


def test_arguments_that_are_wrong_are_named(tmp_path: Path) -> None:
    encoder = SentenceEncoder(write_folder(tmp_path))
    with pytest.raises(TypeError, match="text 1 is a int: 3; texts are str"):
        encoder.encode(["mill", 3])
    for given, said in (
        (None, "sentences is None; it must be a str or several of them"),
        (3, "sentences is 3, an int; it must be a str or several of them"),
        (b"mill", r"sentences is bytes; it must be .*: decode\(\) makes a str of it"),
    ):
        with pytest.raises(TypeError, match=said):
            encoder.encode(given)
    with pytest.raises(ValueError, match=r"text 1 has '\\ud800' at place 5, half of a character"):
        encoder.encode(["mill", "road \ud800"])
    with pytest.raises(ValueError, match="batch_size is 0; it must be a number of at least 1"):
        encoder.encode(TEXTS, batch_size=0)
    with pytest.raises(
        ValueError, match="output_value is 'token_embeddings'; 'sentence_embedding' is what there is"
    ):
        encoder.encode(TEXTS, output_value="token_embeddings")
    with pytest.raises(ValueError, match="precision is 'int8'"):
        encoder.encode(TEXTS, precision="int8")
    with pytest.raises(ValueError, match="device is 'cuda'"):
        SentenceEncoder(tmp_path, device="cuda")
    with pytest.raises(ValueError, match="pooling is 'median'; it must be mean, cls, last, max"):
        SentenceEncoder(tmp_path, pooling="median")


def test_options_of_the_two_libraries_are_taken_and_others_named(tmp_path: Path) -> None:
    folder = write_folder(tmp_path)
    encoder = SentenceEncoder(folder, trust_remote_code=True, cache_folder="x", similarity_fn_name="dot")
    assert encoder.similarity_fn_name == "dot"
    TextEmbedding(folder, pooling="mean", providers=["CPUExecutionProvider"], lazy_load=True)
    with pytest.raises(TypeError, match="no option 'normalizaton'; did you mean 'normalization'"):
        TextEmbedding(folder, pooling="mean", normalizaton=False)
    with pytest.raises(TypeError, match="SentenceEncoder: there is no option 'foo'; there are"):
        SentenceEncoder(folder, foo=3)
    with pytest.raises(ValueError, match=r"tokenizer_kwargs is .* the folder's files say that"):
        SentenceEncoder(folder, tokenizer_kwargs={"padding_side": "left"})
    (file,) = folder.glob("**/*.onnx")
    with pytest.raises(FileNotFoundError, match="is a file; give its folder"):
        SentenceEncoder(file)


@pytest.mark.parametrize(
    ("name", "pooling"), [("lasttoken", "last"), ("mean_sqrt_len_tokens", "mean_sqrt_length")]
)
def test_pooling_has_the_names_of_the_folders_files(tmp_path: Path, name: str, pooling: str) -> None:
    folder = write_folder(tmp_path)
    given, same = (SentenceEncoder(folder, pooling=way).encode(TEXTS) for way in (name, pooling))
    np.testing.assert_array_equal(given, same)


def test_fewer_tokens_are_read_once_max_seq_length_is_set(tmp_path: Path) -> None:
    encoder = SentenceEncoder(write_folder(tmp_path))
    encoder.max_seq_length = 8
    assert encoder.max_seq_length == 8 and "at most 8 tokens" in repr(encoder)
    np.testing.assert_allclose(encoder.encode(TEXTS), reference("mean", TEXTS, 8), atol=1e-5)
    with pytest.raises(ValueError, match="max_seq_length is 0"):
        encoder.max_seq_length = 0


def test_more_tokens_than_positions_are_refused_when_they_are_set(tmp_path: Path) -> None:
    folder = write_folder(tmp_path, {"pooling_mode": "lasttoken"}, config={"max_position_embeddings": 12})
    (folder / "onnx/model.onnx").write_bytes(model(positions=12))
    encoder, text = SentenceEncoder(folder), " ".join(WORDS * 4)
    assert encoder.max_seq_length == 12
    np.testing.assert_allclose(encoder.encode([text]), reference("lasttoken", [text], 12), atol=1e-5)
    with pytest.raises(ValueError, match=r"texts of 13 tokens .*; the model has 12 positions: 12 tokens are"):
        encoder.max_seq_length = 13
    assert encoder.max_seq_length == 12
    (folder / "onnx/model.onnx").write_bytes(model())  # whose positions have no end
    encoder.max_seq_length = 20
    np.testing.assert_allclose(encoder.encode([text]), reference("lasttoken", [text], 20), atol=1e-5)


@pytest.mark.parametrize(
    ("config", "cut"),
    [({"model_max_length": 20}, 20), ({"model_max_length": 20, "max_length": 16}, 16), ({}, 512)],
)
def test_embed_cuts_texts_where_fastembed_does(tmp_path: Path, config: dict, cut: int) -> None:
    says = {"pooling_mode": "lasttoken"}
    folder = write_folder(tmp_path, says, most_tokens=9, tokenizer_config=config)
    text = " ".join(WORDS * 4)
    assert SentenceEncoder(folder).max_seq_length == 9
    (vector,) = TextEmbedding(folder, normalization=False).embed(text)
    expected = reference("lasttoken", [text], cut)[0]
    np.testing.assert_allclose(vector, expected, atol=1e-5)


def test_tokens_are_counted_as_embed_reads_them(tmp_path: Path) -> None:
    folder = write_folder(tmp_path, tokenizer_config={"model_max_length": 5})
    embedding = TextEmbedding(folder, pooling="mean")
    assert embedding.token_count(["mill stone", " ".join(WORDS)]) == 4 + 5
    assert embedding.token_count("mill") == 3


def test_documents_that_are_no_texts_are_named(tmp_path: Path) -> None:
    embedding = TextEmbedding(write_folder(tmp_path), pooling="mean")
    with pytest.raises(TypeError, match="documents is None; it must be a str or several of them"):
        list(embedding.embed(None))
    with pytest.raises(TypeError, match="text 300 is a int: 3; texts are str"):
        list(embedding.embed(["mill"] * 300 + [3]))
    with pytest.raises(ValueError, match="batch_size is 0"):
        list(embedding.embed(TEXTS, batch_size=0))


def test_embed_gives_vectors_one_by_one_as_they_are_needed(tmp_path: Path) -> None:
    embedding = TextEmbedding(write_folder(tmp_path, {"pooling_mode": "cls"}), threads=1)
    taken = 0

    def endless() -> Iterator[str]:
        nonlocal taken
        while True:
            taken += 1
            yield TEXTS[(taken - 1) % len(TEXTS)]

    vectors = embedding.embed(endless(), batch_size=16)
    expected = lengthened_to_one(reference("cls", TEXTS))
    for i in range(300):
        np.testing.assert_allclose(next(vectors), expected[i % len(TEXTS)], atol=1e-5)
    assert 300 <= taken <= 1024
    assert embedding.embedding_size == WIDTH + 1
    (query,) = embedding.query_embed("mill")
    np.testing.assert_array_equal([query], list(embedding.passage_embed(["mill"])))
    assert list(embedding.embed([])) == []


def test_embed_is_not_normalized_where_it_is_told_so(tmp_path: Path) -> None:
    folder = write_folder(tmp_path)
    embedding = TextEmbedding("any name", specific_model_path=folder, pooling="mean", normalization=False)
    np.testing.assert_allclose(list(embedding.embed(TEXTS)), reference("mean", TEXTS), atol=1e-5)


def test_embed_needs_to_know_how_vectors_are_pooled(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"does not say how .* pooling='cls', as fastembed does for BGE"):
        TextEmbedding(write_folder(tmp_path))
