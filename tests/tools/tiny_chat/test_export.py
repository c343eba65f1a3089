from dataclasses import asdict

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed: make executorch installs it")

from tiny_chat.corpus import exchange
from tiny_chat.evaluate import answers_rightly, is_story, read_gguf
from tiny_chat.export import write_gguf
from tiny_chat.model import Shape, TinyChat
from tiny_chat.tokenizer import train_tokenizer

SHAPE = Shape(context=64, width=64, layers=2, heads=2, kv_heads=1, head_size=32, feed_forward=96)


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """A random model, its tokenizer and its GGUF."""
    torch.manual_seed(1)
    model, tokenizer = TinyChat(SHAPE), train_tokenizer(conversations=300)
    path = tmp_path_factory.mktemp("models") / "random.gguf"
    write_gguf(path, model, tokenizer)
    return model, tokenizer, path


def test_what_is_written_is_read_back_within_the_precision_of_q8_0(written):
    model, _, path = written
    read, _ = read_gguf(path)
    assert asdict(read.shape) == pytest.approx(asdict(SHAPE))
    for name, weight in model.state_dict().items():
        error = (read.state_dict()[name] - weight).abs().max()
        assert error <= weight.abs().max() / 127, name


def test_the_tokenizer_that_is_read_back_encodes_alike(written):
    _, tokenizer, path = written
    _, read = read_gguf(path)
    for text in ("<|im_start|>user\nWhat is 7+8?<|im_end|>\n", "A brave fox named Zoé", '{"age": 41}'):
        assert read.encode(text).ids == tokenizer.encode(text).ids


def test_writing_what_was_read_gives_the_same_bytes(written, tmp_path):
    _, _, path = written
    write_gguf(tmp_path / "again.gguf", *read_gguf(path))
    assert (tmp_path / "again.gguf").read_bytes() == path.read_bytes()


def test_an_untrained_model_answers_nothing_rightly(written):
    model, tokenizer, _ = written
    with torch.inference_mode():
        assert not answers_rightly(model, tokenizer, exchange("What is 2+3?", "2+3=5"))


def test_a_story_needs_its_animal_one_hero_and_an_end():
    text = (
        "Once upon a time there was a brave fox named Ada. One day Ada went to the lake and found a key. "
        "Then Ada met a kind owl. They walked to the hill together. And Ada slept well that night."
    )
    assert is_story(text, "fox")
    assert not is_story(text, "owl")
    assert not is_story(text.replace("And Ada", "And Ben"), "fox")
    assert not is_story(text.removesuffix(" And Ada slept well that night."), "fox")
