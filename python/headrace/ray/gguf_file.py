"""Whether a file can be a GGUF model, before replicas of another one make room for some that load it."""

from __future__ import annotations

from pathlib import Path

from headrace.language_model import LanguageModelError, check_model_file


def check_gguf(path: str | Path) -> None:
    """Errors: FileNotFoundError; ValueError for what is no GGUF file, is damaged or cut off."""
    if not Path(path).is_file():
        raise FileNotFoundError(
            f"{path} does not exist on this host, where the application is built; replicas read it at that "
            "path of theirs, and check_model=False leaves it to them"
        )
    try:
        check_model_file(path)
    except LanguageModelError as error:
        raise ValueError(str(error)) from None
