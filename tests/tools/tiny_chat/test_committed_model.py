"""models/tiny-chat-q8_0.gguf, as it is in the repository."""

import hashlib
import importlib.util
import re
from pathlib import Path

import gguf
import pytest
from tiny_chat.tokenizer import tokenizer_from

MODELS = Path(__file__).resolve().parents[3] / "models"
MODEL = MODELS / "tiny-chat-q8_0.gguf"


@pytest.fixture(scope="module")
def reader():
    return gguf.GGUFReader(MODEL)


def test_its_hash_and_size_are_those_of_the_readme():
    readme = (MODELS / "README.md").read_text()
    (digest,) = re.findall(r"\b[0-9a-f]{64}\b", readme)
    assert hashlib.sha256(MODEL.read_bytes()).hexdigest() == digest
    assert f"{MODEL.stat().st_size:,} bytes" in readme
    assert MODEL.stat().st_size <= 4_000_000


def test_it_says_where_an_answer_ends_and_how_a_chat_is_written(reader):
    def field(name):
        return reader.get_field(name).contents()

    tokens = field("tokenizer.ggml.tokens")
    assert field("general.architecture") == "llama"
    assert field("llama.context_length") == 512
    assert tokens[field("tokenizer.ggml.eos_token_id")] == "<|im_end|>"
    assert tokens[field("tokenizer.ggml.eot_token_id")] == "<|im_end|>"
    assert not field("tokenizer.ggml.add_bos_token")
    assert "<|im_start|>" in field("tokenizer.chat_template")


def test_its_tokenizer_survives_any_text(reader):
    tokens, merges = (reader.get_field(f"tokenizer.ggml.{name}").contents() for name in ("tokens", "merges"))
    tokenizer = tokenizer_from(tokens, merges)
    text = "Make JSON: name Zoë, age 41, city Oslo. 😀"
    assert tokenizer.decode(tokenizer.encode(text).ids) == text


@pytest.mark.skipif(
    not importlib.util.find_spec("torch"), reason="PyTorch is not installed: make executorch installs it"
)
def test_it_answers_held_out_questions():
    from tiny_chat.evaluate import answer, evaluate, read_gguf
    from tiny_chat.tasks import Message

    model, tokenizer = read_gguf(MODEL)
    assert answer(model, tokenizer, [Message("user", "What is 2+3?")]) == "2+3=5"
    results = evaluate(model, tokenizer, per_task=8, seed=77)
    scores = {name: (good, asked) for name, good, asked, _ in results}
    for certain in ("add", "multiply", "capital", "opposite", "calendar", "tools"):
        assert scores[certain][0] >= 7, certain
    right, asked = map(sum, zip(*scores.values(), strict=True))
    assert right >= 0.8 * asked, scores
