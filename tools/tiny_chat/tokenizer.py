"""Byte-level BPE of 512 tokens. Digits stay single, so that sums are computed digit by digit."""

from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers, trainers

from tiny_chat import corpus
from tiny_chat.tasks import Message, Source

VOCABULARY = 512
SPECIAL_TOKENS = [corpus.END_OF_CONVERSATION, corpus.START, corpus.END]
# What llama.cpp splits text by when tokenizer.ggml.pre is "qwen2".
QWEN2_SPLIT = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*"
    r"|\s*[\r\n]+|\s+(?!\S)|\s+"
)


def with_splitting(model: models.BPE) -> Tokenizer:
    tokenizer = Tokenizer(model)
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(QWEN2_SPLIT), "isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    tokenizer.decoder = decoders.ByteLevel()
    return tokenizer


def train_tokenizer(conversations: int = 6000, seed: int = 1) -> Tokenizer:
    """Merges learned from generated conversations; the same for the same arguments."""
    source = Source(seed)
    texts = [
        text
        for _ in range(conversations)
        for message in corpus.conversation(source, most_turns=4)
        for text in (f"{message.role}\n", message.text)
    ]
    trainer = trainers.BpeTrainer(
        vocab_size=VOCABULARY,
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        special_tokens=SPECIAL_TOKENS,
        show_progress=False,
    )
    tokenizer = with_splitting(models.BPE())
    tokenizer.train_from_iterator(texts, trainer)
    return tokenizer


def tokenizer_from(tokens: list[str], merges: list[str]) -> Tokenizer:
    """The tokenizer that a GGUF's token list and merges describe."""
    vocabulary = {token: index for index, token in enumerate(tokens)}
    tokenizer = with_splitting(models.BPE(vocabulary, [tuple(merge.split(" ")) for merge in merges]))
    tokenizer.add_special_tokens(SPECIAL_TOKENS)
    return tokenizer


def encode_conversation(tokenizer: Tokenizer, messages: list[Message]) -> tuple[list[int], list[bool]]:
    """Tokens of a whole conversation, and which of them the model is to learn to say."""
    end_of_conversation, start, end = map(tokenizer.token_to_id, SPECIAL_TOKENS)
    newline = tokenizer.encode("\n").ids
    tokens, targets = [], []
    for message in messages:
        header = [start, *tokenizer.encode(f"{message.role}\n").ids]
        text = tokenizer.encode(message.text).ids
        is_answer = message.role == "assistant"
        tokens += [*header, *text, end, *newline]
        targets += [False] * len(header) + [is_answer] * len(text)
        targets += [is_answer] + [False] * len(newline)
    return [*tokens, end_of_conversation], [*targets, False]
