"""Hub: graphs with their weights, downloaded once and kept in the user's cache directory.

A hub is a web address. Under it, <model id>/index.json lists a model's files by their roles:
{"files": {"graph": {"name": "model.webnn", "sha256": "..."}, "weights": {"name": "model.weights"}}}.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import tempfile
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

ROLES = ("graph", "manifest", "weights")
_PART = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]*")
_TIMEOUT = 30  # seconds without an answer
_CHUNK = 1 << 20


def _default_cache() -> Path:
    home = os.environ.get("XDG_CACHE_HOME")
    return (Path(home) if home else Path.home() / ".cache") / "headrace" / "hub"


class Hub:
    """Downloads models and keeps them. What is cached is there without a network."""

    def __init__(self, url: str | None = None, cache_dir: str | os.PathLike[str] | None = None) -> None:
        """url: where the models are, else the environment variable HEADRACE_HUB_URL."""
        self.url = url if url is not None else os.environ.get("HEADRACE_HUB_URL", "")
        self.cache_dir = Path(cache_dir) if cache_dir is not None else _default_cache()

    def download_model(self, model_id: str, force: bool = False) -> dict[str, str | None]:
        """Paths of the model's "graph", "manifest" and "weights"; None for those that it does not have.

        The arguments of MLGraph.load. force: download even what is cached. RuntimeError: no address is
        configured, it does not answer, or a file is not the one that the index describes.
        """
        folder = self._folder(model_id)
        if force or not (folder / "index.json").is_file():
            self._download(model_id, folder)
        return self._paths(folder, self._index((folder / "index.json").read_bytes(), model_id))

    def list_cached_models(self) -> list[str]:
        """The ids of the cached models, in alphabetical order."""
        found = self.cache_dir.glob("*/*/index.json")
        return sorted(f"{path.parent.parent.name}/{path.parent.name}" for path in found)

    def clear_cache(self, model_id: str | None = None) -> None:
        """Deletes one model, or all of them."""
        shutil.rmtree(self.cache_dir if model_id is None else self._folder(model_id), ignore_errors=True)

    def _folder(self, model_id: str) -> Path:
        parts = model_id.split("/")
        if len(parts) != 2 or not all(_PART.fullmatch(part) for part in parts):
            raise ValueError(f"Hub: '{model_id}' is no model id such as 'owner/name'")
        return self.cache_dir.joinpath(*parts)

    def _download(self, model_id: str, folder: Path) -> None:
        """Into a folder beside the final one, so that an interruption leaves no half a model."""
        if not self.url:
            raise RuntimeError(
                f"Hub: '{model_id}' is not cached and no address is configured; "
                "give Hub(url=...) or set HEADRACE_HUB_URL"
            )
        self.cache_dir.mkdir(parents=True, exist_ok=True)
        partial = Path(tempfile.mkdtemp(prefix=".partial-", dir=self.cache_dir))
        try:
            self._fetch(f"{model_id}/index.json", partial / ".index")
            content = (partial / ".index").read_bytes()
            for entry in self._index(content, model_id).values():
                digest = self._fetch(f"{model_id}/{entry['name']}", partial / entry["name"])
                expected = entry.get("sha256", digest)
                if digest != str(expected).lower():
                    raise RuntimeError(
                        f"Hub: {entry['name']} of '{model_id}' has the SHA-256 {digest}, not {expected}"
                    )
            (partial / ".index").rename(partial / "index.json")
            shutil.rmtree(folder, ignore_errors=True)
            folder.parent.mkdir(parents=True, exist_ok=True)
            partial.rename(folder)
        finally:
            shutil.rmtree(partial, ignore_errors=True)

    def _fetch(self, name: str, path: Path) -> str:
        """Saves a file and returns its SHA-256."""
        address = f"{self.url.rstrip('/')}/{name}"
        digest = hashlib.sha256()
        try:
            with urllib.request.urlopen(address, timeout=_TIMEOUT) as answer, open(path, "wb") as file:
                while chunk := answer.read(_CHUNK):
                    digest.update(chunk)
                    file.write(chunk)
        except (urllib.error.URLError, ValueError, TimeoutError) as error:
            raise RuntimeError(f"Hub: cannot download {address}: {error}") from None
        return digest.hexdigest()

    @staticmethod
    def _index(content: bytes, model_id: str) -> dict[str, Any]:
        """The entries by role; names must not lead out of the model's folder."""
        try:
            files = json.loads(content)["files"]
            entries = {role: files[role] for role in ROLES if role in files}
            names = [entry["name"] for entry in entries.values()]
        except (ValueError, KeyError, TypeError):
            raise RuntimeError(f"Hub: index.json of '{model_id}' does not list files by role") from None
        if "graph" not in entries or not all(_PART.fullmatch(str(n)) and n != "index.json" for n in names):
            raise RuntimeError(f"Hub: index.json of '{model_id}' names no graph, or a file outside: {names}")
        return entries

    @staticmethod
    def _paths(folder: Path, index: dict[str, Any]) -> dict[str, str | None]:
        return {role: str(folder / index[role]["name"]) if role in index else None for role in ROLES}
