"""Texts that programs give to encoders: what is none is named by its place."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import Any

import numpy as np

from ._argument_errors import wrong
from ._core import TextEncoder


def several(name: str, given: Any) -> Iterable[Any]:
    """A single text as a list. name: of the argument. Errors: TypeError for what cannot be texts."""
    if isinstance(given, str):
        return [given]
    if isinstance(given, bytes | bytearray):
        raise TypeError(f"{wrong(name, given, 'a str or several of them')}: decode() makes a str of it")
    if isinstance(given, Mapping) or not isinstance(given, Iterable):
        raise TypeError(wrong(name, given, "a str or several of them"))
    return given


def texts_of(name: str, given: Any, first: int = 0) -> list[str]:
    """The same with each of them checked. first: the number of the first one, for errors."""
    texts = list(several(name, given))
    for i, text in enumerate(texts):
        if not isinstance(text, str):
            raise TypeError(f"text {first + i} is a {type(text).__name__}: {text!r}; texts are str")
    return texts


def with_characters(texts: list[str], first: int = 0) -> list[str]:
    """The texts. Errors: ValueError for one with half of a character, which has no UTF-8."""
    for i, text in enumerate(texts):
        try:
            text.encode()
        except UnicodeEncodeError as error:
            raise ValueError(
                f"text {first + i} has {text[error.start]!r} at place {error.start}, half of a character;"
                " text.encode('utf-8', 'replace').decode() puts a question mark there"
            ) from None
    return texts


def vectors_of(encoder: TextEncoder, texts: list[str], first: int = 0) -> np.ndarray:
    """float32 [texts, width]"""
    try:
        return encoder.embed_array(texts)
    except TypeError:
        with_characters(texts, first)
        raise


def check_batch_size(size: Any) -> None:
    if not isinstance(size, int) or size < 1:
        raise ValueError(f"batch_size is {size!r}; it must be a number of at least 1")


def batches(texts: Iterable[Any], size: int) -> Iterator[list[Any]]:
    left = iter(texts)
    while batch := list(islice(left, size)):
        yield batch
