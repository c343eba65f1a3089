"""Whether a file can be a GGUF model, before replicas of another one make room for some that load it."""

from __future__ import annotations

import os
import struct
from pathlib import Path
from typing import BinaryIO

#: Bytes of a value by its type's number; 8 is a text, 9 a list.
VALUE_BYTES = {0: 1, 1: 1, 2: 2, 3: 2, 4: 4, 5: 4, 6: 4, 7: 1, 10: 8, 11: 8, 12: 8}
TEXT, LIST = 8, 9


def check_gguf(path: str | Path) -> None:
    """Errors: FileNotFoundError; ValueError for what is no GGUF file, or is cut off.

    The header is read, and that the file reaches to its last tensor's beginning. What else may be wrong shows
    where the model is loaded.
    """
    path = Path(path)
    if not path.is_file():
        raise FileNotFoundError(
            f"{path} does not exist on this host, where the application is built; replicas read it at that "
            "path of theirs, and check_model=False leaves it to them"
        )
    size = path.stat().st_size
    with path.open("rb") as file:
        if file.read(4) != b"GGUF":
            raise ValueError(f"{path} does not start with 'GGUF', so it is no model in that format")
        try:
            end = _last_tensor(file)
        except (struct.error, KeyError, OverflowError, OSError):
            raise ValueError(f"{path}: the GGUF header is damaged or cut off") from None
    if end >= size:
        raise ValueError(f"{path} has {size} bytes, and a tensor begins at byte {end}: it is not complete")


def _last_tensor(file: BinaryIO) -> int:
    """The byte at which the last tensor begins."""
    _, tensors, pairs = _read(file, "<IQQ")
    alignment = 32
    for _ in range(pairs):
        key, kind = _text(file), _read(file, "<I")[0]
        if key == b"general.alignment" and kind == 4:
            (alignment,) = _read(file, "<I")
        else:
            _skip(file, kind)
    last = 0
    for _ in range(tensors):
        _text(file)
        (rank,) = _read(file, "<I")
        *_, offset = _read(file, f"<{rank}QIQ")
        last = max(last, offset)
    return (file.tell() + alignment - 1) // alignment * alignment + last


def _read(file: BinaryIO, format_: str) -> tuple[int, ...]:
    return struct.unpack(format_, file.read(struct.calcsize(format_)))


def _text(file: BinaryIO) -> bytes:
    (size,) = _read(file, "<Q")
    text = file.read(size)
    if len(text) < size:
        raise struct.error
    return text


def _skip(file: BinaryIO, kind: int) -> None:
    if kind == TEXT:
        _text(file)
    elif kind == LIST:
        of, count = _read(file, "<IQ")
        if of in (TEXT, LIST):
            for _ in range(count):
                _skip(file, of)
        else:
            file.seek(VALUE_BYTES[of] * count, os.SEEK_CUR)
    else:
        file.seek(VALUE_BYTES[kind], os.SEEK_CUR)
