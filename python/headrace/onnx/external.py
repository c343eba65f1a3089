"""Elements of tensors that lie in other files, in the model's folder."""

from __future__ import annotations

import os
import stat
from pathlib import Path, PurePath

import numpy as np

_REMEDY = "copy the file itself beside the model"


def mapped(location: str, folder: str, offset: int, count: int) -> np.ndarray:
    """`count` bytes from `offset` on of a file in the model's folder, mapped and not read.

    Only regular files of that folder and those below it, with a single name: what a model comes with, not
    what it could point at. Symbolic links are followed in a cache of Hugging Face's layout alone, into the
    blobs of the same model. Errors: ValueError with the remedy; OSError where the file cannot be read.
    """
    if not folder:
        raise ValueError(f"its data is in the file '{location}'; load the model from its path")
    parts = PurePath(location).parts
    if not parts or os.path.isabs(location) or ".." in parts:
        raise ValueError(
            f"its data is in '{location}', which is not named from the model's folder on; "
            "save the model with its data beside it"
        )
    path = os.path.join(folder, location)
    real, home = os.path.realpath(path), os.path.realpath(folder)
    blobs = _blobs(home)
    if real == os.path.join(home, *parts):
        root = home
    elif blobs and real.startswith(os.path.join(blobs, "")):
        root = blobs
    else:
        raise ValueError(f"its data is in {path}, a link to {real}, which is not followed; {_REMEDY}")
    if not os.path.exists(real):
        raise ValueError(f"its data is in {path}, which does not exist; it belongs beside the model")
    if not os.path.isfile(real):
        raise ValueError(f"its data is in {path}, which is no regular file; put one there")
    with os.fdopen(_opened(root, os.path.relpath(real, root).split(os.sep)), "rb") as file:
        found = os.fstat(file.fileno())
        if not stat.S_ISREG(found.st_mode):
            raise ValueError(f"its data is in {path}, which is no regular file; put one there")
        if found.st_nlink > 1:
            raise ValueError(
                f"its data is in {path}, a file with {found.st_nlink} names (hard links), and others may "
                f"lie outside the model's folder; {_REMEDY}"
            )
        if offset + count > found.st_size:
            raise ValueError(
                f"its {count} bytes are said to be at {offset} of {path}, which has {found.st_size}; "
                "the file is cut off or belongs to another model"
            )
        return np.memmap(file, np.uint8, "r", offset, (count,)) if count else np.zeros(0, np.uint8)


def _blobs(folder: str) -> str | None:
    """Of models--org--name/snapshots/<revision>/...: models--org--name/blobs, of its contents."""
    for parent in Path(folder).parents:
        if parent.name == "snapshots" and parent.parent.name.startswith("models--"):
            return str(parent.parent / "blobs")
    return None


def _opened(root: str, parts: list[str]) -> int:
    """A descriptor of root/parts. No part may be a link, whatever has happened since the names were read."""
    if os.open not in os.supports_dir_fd:
        return os.open(os.path.join(root, *parts), os.O_RDONLY)
    kept = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC
    at = os.open(root, kept | os.O_DIRECTORY)
    try:
        for part in parts[:-1]:
            inner = os.open(part, kept | os.O_DIRECTORY, dir_fd=at)
            os.close(at)
            at = inner
        return os.open(parts[-1], kept | os.O_NONBLOCK, dir_fd=at)  # which a pipe does not keep waiting
    finally:
        os.close(at)
