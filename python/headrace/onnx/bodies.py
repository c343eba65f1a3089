"""Graphs that are bodies of nodes: the branches of an If, what a Loop repeats."""

from __future__ import annotations

from typing import Any

import numpy as np

from headrace._core import Graph as FinishedGraph

from .graph import Dim, Extent, Graph, Operand, is_same, known


class Body(Graph):
    """A graph within another. Values of that one become inputs where an op needs them."""

    def __init__(self, outer: Graph) -> None:
        super().__init__(outer.budget)
        self.outer = outer
        outer.bodies.append(self)
        self.label, self.operator = outer.label, outer.operator
        self.dimensions, self.symbols = outer.dimensions, outer.symbols
        self.captured: list[Operand] = []  # the outer graph's values that are the last inputs, in order
        self._captures: dict[int, int] = {}  # inputs by the outer graph's values
        self._named: dict[str, Extent] = {}  # symbols that ops name
        self._told: set[str] = set()  # by the inputs' shapes

    def forget(self) -> None:
        super().forget()
        self.captured.clear()

    def declare(self, name: str, stored: str, shape: list[Dim]) -> int:
        for d in shape:
            if isinstance(d, Extent):
                self._told.update(d.told)
        return super().declare(name, stored, shape)

    def capture(self, x: Operand) -> int:
        outer = self.outer.value(x)
        if outer not in self._captures:
            shape, stored = self.outer.writer.shape(outer), self.outer.writer.dtype(outer)
            self._captures[outer] = self.declare(f"outer value {len(self.captured)}", stored, shape)
            self.captured.append(Operand(stored, outer, home=self.outer))
        return self._captures[outer]

    def ops(self, name: str, operands: list[Operand | None], **attributes: Any) -> list[Operand]:
        for value in attributes.values():
            for extent in value if isinstance(value, list) else ():
                if isinstance(extent, Extent):
                    for symbol in extent.symbols:
                        self._named[symbol] = self.symbols.setdefault(symbol, Extent.symbol(symbol, 0))
        return super().ops(name, operands, **attributes)

    def finish(self, results: list[Operand]) -> FinishedGraph:
        """The whole graph. Extents that it names and that no input has become inputs without elements."""
        for i, result in enumerate(results):
            value = self.writer.op("identity", [self.value(result)], {}, self.label)[0]
            self.writer.output(f"result {i}", value)
        for name, extent in list(self._named.items()):
            if name not in self._told and name not in self.counts:
                empty = self.outer.op("expand", known(np.zeros([1, 0]), "u8"), new_shape=[extent, 0])
                self.capture(empty)
        return self.writer.finish()


class Extents:
    """Those of a node's results, in the graph around its bodies."""

    def __init__(self, outer: Graph, own: set[str]) -> None:
        """own: symbols that mean something in the bodies only."""
        self._outer, self._own = outer, own
        self.results: list[Dim] = []
        self.counts: list[Extent] = []

    def add(self, *candidates: list[Dim]) -> None:
        """A result that has one of these shapes: extents are counted where they are not the same in all."""
        for extents in zip(*candidates, strict=True):
            first = extents[0]
            is_one = all(is_same(first, d) for d in extents[1:])
            is_outer = not isinstance(first, Extent) or not self._own.intersection(first.symbols)
            self.results.append(first if is_one and is_outer else self.count())

    def count(self) -> Extent:
        self.counts.append(self._outer.counted())
        return self.counts[-1]
