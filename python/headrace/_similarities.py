"""How alike vectors are, as sentence-transformers compares them, and results as PyTorch's tensors."""

from __future__ import annotations

from typing import Any

import numpy as np


def similarities(name: str, a: Any, b: Any, *, pairs: bool) -> Any:
    """Similarities of each of `a` with each of `b`, [len(a), len(b)]; pairs: with the one in its place.

    name: cosine, dot, euclidean or manhattan. Errors: ValueError for another one, and for pairs of lists of
    different lengths.
    """
    a, b = (np.atleast_2d(_array(vectors)) for vectors in (a, b))
    if pairs and len(a) != len(b):
        raise ValueError(f"{len(a)} vectors and {len(b)} make no pairs; similarity() compares each with each")
    if name == "cosine":
        a, b = normalized(a), normalized(b)
    if name in ("cosine", "dot"):
        return tensor((a * b).sum(axis=1) if pairs else a @ b.T)
    order = {"euclidean": 2, "manhattan": 1}.get(name)
    if order is None:
        raise ValueError(f"similarity_fn_name is {name!r}; cosine, dot, euclidean and manhattan are known")
    return tensor(-np.linalg.norm(a - b if pairs else a[:, None] - b[None], ord=order, axis=-1))


def normalized(vectors: np.ndarray) -> np.ndarray:
    """A vector of zeros stays as it is."""
    return vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)


def tensor(array: np.ndarray) -> Any:
    """PyTorch's of the same memory; where that is not installed, the array."""
    try:
        import torch
    except ImportError:
        return array
    return torch.from_numpy(np.ascontiguousarray(array))


def _array(vectors: Any) -> np.ndarray:
    """Vectors of an array, a tensor, or a list of such: float32."""
    if isinstance(vectors, list | tuple):
        vectors = [np.asarray(vector, np.float32) for vector in vectors]
    return np.asarray(vectors, np.float32)
