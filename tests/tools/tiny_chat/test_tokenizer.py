import pytest
from tiny_chat.corpus import END, render
from tiny_chat.tasks import Message
from tiny_chat.tokenizer import VOCABULARY, encode_conversation, train_tokenizer


@pytest.fixture(scope="module")
def tokenizer():
    return train_tokenizer(conversations=300)


@pytest.mark.parametrize(
    "text", ["What is 12+30?", '{"name": "Ada"}', "naïve café 日本 😀", " two  spaces\n\n\ttab "]
)
def test_any_text_survives_encoding_and_decoding(tokenizer, text):
    assert tokenizer.decode(tokenizer.encode(text).ids) == text


def test_digits_are_tokens_of_their_own(tokenizer):
    assert tokenizer.encode("1234").tokens == ["1", "2", "3", "4"]


def test_training_again_gives_the_same_tokens(tokenizer):
    assert train_tokenizer(conversations=300).to_str() == tokenizer.to_str()
    assert tokenizer.get_vocab_size() == VOCABULARY


def test_a_conversation_is_the_rendered_text_and_its_targets_are_the_answers(tokenizer):
    messages = [
        Message("system", "Be brief."),
        Message("user", "What is 2+3?"),
        Message("assistant", "2+3=5"),
        Message("user", "Say cat again and again."),
        Message("assistant", "cat cat"),
    ]
    tokens, is_target = encode_conversation(tokenizer, messages)
    assert tokenizer.decode(tokens, skip_special_tokens=False) == render(messages) + "<|endoftext|>"
    assert tokens[:-1] == tokenizer.encode(render(messages)).ids
    targets = [token for token, target in zip(tokens, is_target, strict=True) if target]
    assert tokenizer.decode(targets, skip_special_tokens=False) == f"2+3=5{END}cat cat{END}"
