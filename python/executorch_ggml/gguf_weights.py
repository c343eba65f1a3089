"""Weights whose blocks a GGUF file has, which go into a program bit for bit."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from executorch.exir.backend.compile_spec_schema import CompileSpec
from headrace._core import block_formats

if TYPE_CHECKING:
    from gguf import GGUFReader, ReaderTensor

SPEC = "gguf_blocks"


class GgufWeights:
    """What of a module is in a GGUF file.

        weights = GgufWeights("model.gguf", {"lm_head.weight": "output.weight"})
        module.load_state_dict(weights.state_dict(), strict=False)
        partitioner = GgmlPartitioner(gguf=weights)

    names: the file's tensors by the qualified names that weights have in the exported module. The module has
    to hold the values of the blocks: exporting it checks that. Errors: OSError; ValueError for tensors that
    the file does not have.
    """

    def __init__(self, path: str | os.PathLike[str], names: Mapping[str, str]) -> None:
        self.path, self.names = Path(path).resolve(), dict(names)
        tensors = _tensors(self.path)
        for name, tensor in self.names.items():
            if tensor not in tensors:
                some = ", ".join(sorted(tensors)[:8])
                raise ValueError(f"{path} has no tensor {tensor!r} for {name!r}; it has {some}, ...")

    def format_of(self, name: str) -> str | None:
        """The block format of a weight; None where the file has it not, or in a type that is none."""
        if name not in self.names:
            return None
        format_ = _tensors(self.path)[self.names[name]].tensor_type.name.lower()
        return format_ if format_ in block_formats() else None

    def shape_of(self, name: str) -> list[int]:
        return _shape(_tensors(self.path)[self.names[name]])

    def state_dict(self) -> dict[str, torch.Tensor]:
        """The values in float32, for Module.load_state_dict()."""
        tensors = _tensors(self.path)
        return {name: _values(tensors[tensor]) for name, tensor in self.names.items()}

    def spec(self, names: list[str]) -> CompileSpec:
        """What preprocess() has to know of those weights: blocks_in() reads it."""
        tensors = {name: self.names[name] for name in names}
        return CompileSpec(SPEC, json.dumps({"path": str(self.path), "tensors": tensors}).encode())


class GgufBlocks:
    """Blocks of weights, as a compile spec names them."""

    def __init__(self, path: str = "", tensors: Mapping[str, str] | None = None) -> None:
        self._path, self._names = path, tensors or {}

    def __contains__(self, name: str) -> bool:
        return name in self._names

    def content(self, name: str, tensor: torch.Tensor) -> np.ndarray:
        """The bytes. Errors: ValueError where the weight has other values."""
        found = _tensors(Path(self._path))[self._names[name]]
        if not torch.equal(_values(found).to(tensor.dtype), tensor.detach().cpu()):
            raise ValueError(
                f"{name} has other values than {found.name!r} of {self._path}, whose blocks are to be "
                "stored; load the module with GgufWeights.state_dict() before it is exported, or take the "
                "weight out of its names"
            )
        return np.ascontiguousarray(found.data).reshape(-1).view(np.uint8)


def blocks_in(specs: list[CompileSpec]) -> GgufBlocks:
    return next((GgufBlocks(**json.loads(spec.value)) for spec in specs if spec.key == SPEC), GgufBlocks())


def _shape(tensor: ReaderTensor) -> list[int]:
    return [int(extent) for extent in reversed(tensor.shape)]


def _values(tensor: ReaderTensor) -> torch.Tensor:
    from gguf.quants import dequantize

    values = dequantize(np.asarray(tensor.data), tensor.tensor_type)
    return torch.from_numpy(np.array(values, np.float32)).reshape(_shape(tensor))


def _tensors(path: Path) -> dict[str, Any]:
    status = path.stat()
    return _read(path, status.st_mtime_ns, status.st_size)[1]


@lru_cache(4)  # vocabularies make headers slow to read
def _read(path: Path, *_version: int) -> tuple[GGUFReader, dict[str, ReaderTensor]]:
    try:
        from gguf import GGUFReader
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            "GGUF files are read by the package gguf, which this environment lacks: pip install gguf",
            name="gguf",
        ) from error
    reader = GGUFReader(path)
    return reader, {tensor.name: tensor for tensor in reader.tensors}
