"""What a model may become while it is read: a kilobyte can ask for any amount of time and memory."""

from __future__ import annotations

import numpy as np

from .registry import Refused

MOST_NODES = 2**17  # that functions add to the model's own
MOST_DEPTH = 64  # of functions and branches within one another
MOST_OPS = 2**16  # of the graph, and for each of the model's nodes
OPS_PER_NODE = 128
MOST_BYTES = 2**30  # of constants, and for each byte of the model's own
GROWTH = 16  # 4-bit weights as f64


class Budget:
    """Counts what is made of one model. Errors: Refused with the limit, where it is reached."""

    def __init__(self, nodes: int = 0, size: int = 0) -> None:
        """nodes: the model's, also those of branches and functions. size: its bytes without data()."""
        self._nodes, self._ops, self._bytes = 0, 0, 0
        self._most_nodes, self._most_ops = MOST_NODES + nodes, MOST_OPS + OPS_PER_NODE * nodes
        self._most_bytes = MOST_BYTES + GROWTH * size
        self._seen: dict[int, np.ndarray] = {}  # kept, so that no other array has the same id

    def nodes(self, count: int, depth: int) -> None:
        """Nodes that are to be read, so deep in functions and branches."""
        self._nodes += count
        if self._nodes > self._most_nodes:
            raise Refused(
                f"the model's functions become more than {MOST_NODES} nodes, the most that are read",
                "Export the model with fewer calls of functions that call others",
            )
        if depth > MOST_DEPTH:
            raise Refused(
                f"functions and branches lie more than {MOST_DEPTH} deep in one another, which is too deep",
                "Export the model with its functions inlined",
            )

    def op(self) -> None:
        self._ops += 1
        if self._ops > self._most_ops:
            raise Refused(
                f"it would become more than {self._most_ops} operations, too many for a model of this size",
                "Export the model with smaller extents here, or compute this part outside the model",
            )

    def data(self, array: np.ndarray) -> None:
        """A tensor of the model that is read once."""
        self._most_bytes += GROWTH * array.nbytes
        root = _root(array)
        self._seen[id(root)] = root

    def made(self, array: np.ndarray) -> None:
        """Elements that were computed; views of what is known cost nothing."""
        root = _root(array)
        if id(root) not in self._seen:
            self._seen[id(root)] = root
            self.constant(root.nbytes)

    def forget(self) -> None:
        """The collector does not see what arrays of objects hold, which may be the graph."""
        self._seen.clear()

    def constant(self, size: int) -> None:
        """Bytes of a constant."""
        self._bytes += size
        if self._bytes > self._most_bytes:
            raise Refused(
                f"constants that are made while the model is read have more than {self._most_bytes} bytes, "
                "the most for a model of this size",
                "Store what is needed as initializers, or compute this part outside the model",
            )


def _root(array: np.ndarray) -> np.ndarray:
    """The array whose memory a view shows."""
    while isinstance(array.base, np.ndarray):
        array = array.base
    return array
