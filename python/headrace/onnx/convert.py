"""ONNX models as graph files."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import Any

from .importer import Dimensions, Importer
from .source import read_model


def graph_bytes(source: Any, dimensions: Dimensions | None = None) -> bytes:
    """A model as the content of a graph file (`.hrg`).

    source: a path, a file's bytes or an onnx.ModelProto. dimensions: numbers for named dimensions of inputs,
    or an input's whole shape by its name. Errors: OSError for a file that cannot be read; ValueError for what
    is no valid model or cannot be expressed, with the node, its operator and what to do.
    """
    return Importer(read_model(source), dimensions or {}).run()


def convert(source: Any, path: str | Path, dimensions: Dimensions | None = None) -> None:
    """Writes a model as a graph file; the extension chooses the form (docs/graph-files.md)."""
    content = graph_bytes(source, dimensions)
    if Path(path).suffix.lower() not in (".webnn", ".json"):
        _write(content, path)
        return
    import webnn

    with tempfile.TemporaryDirectory() as folder:
        own = os.path.join(folder, "model.hrg")
        _write(content, own)
        webnn.MLGraph.load(own).save(str(path))


def _write(content: bytes, path: str | Path) -> None:
    """Nothing half-written keeps the name."""
    path = Path(path)
    partial = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        partial.write_bytes(content)
        os.replace(partial, path)
    except BaseException:
        partial.unlink(missing_ok=True)
        raise
