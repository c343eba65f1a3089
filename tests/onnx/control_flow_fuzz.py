"""Random models of branches, loops and scans within one another, beside ONNX Runtime.

Where ONNX Runtime gives results Headrace gives the same; where it fails Headrace gives any, or a ValueError.
"""

from __future__ import annotations

import argparse
import multiprocessing
import random
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import headrace
import numpy as np
import onnx
from onnx import TensorProto, helper
from peers import assert_same, on_onnx_runtime

FLOAT, INT, BOOL = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL
DEEPEST = 3
Dims = tuple[str, ...]


@dataclass(frozen=True)
class Value:
    name: str
    dims: Dims  # names of extents: equal ones are equal in every run


@dataclass
class Scope:
    """The values that a graph's next node may read, and the nodes so far."""

    values: list[Value]
    nodes: list[onnx.NodeProto]
    depth: int
    # What loops collect is an output only: of a loop that never ran ONNX Runtime takes all extents for 0.
    collected: list[Value] = field(default_factory=list)


class Drawn:
    """A model, drawn by a seed."""

    def __init__(self, seed: int) -> None:
        self.random, self.count = random.Random(seed), 0

    def model(self) -> onnx.ModelProto:
        given = [Value("x", ("n", "m")), Value("y", ("n", "m")), Value("z", ("m",)), Value("s", ())]
        scope = Scope(list(given), [], 0)
        for _ in range(self.random.randint(1, 3)):
            self.plain(scope)
        for _ in range(self.random.randint(1, 2)):
            self.control(scope)
            self.plain(scope)
        made = scope.values[len(given) :] + scope.collected
        results = self.random.sample(made, min(3, len(made)))
        inputs = [helper.make_tensor_value_info(v.name, FLOAT, list(v.dims)) for v in given]
        inputs += [
            helper.make_tensor_value_info("flag", BOOL, []),
            helper.make_tensor_value_info("most", INT, []),
        ]
        outputs = [_declared(v.name, len(v.dims)) for v in results]
        graph = helper.make_graph(scope.nodes, "drawn", inputs, outputs)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)

    def feeds(self) -> dict[str, np.ndarray]:
        n, m = self.random.randint(1, 4), self.random.randint(1, 3)
        real = np.random.default_rng(self.random.randrange(2**32))
        shapes = {"x": [n, m], "y": [n, m], "z": [m], "s": []}
        reals = {k: np.asarray(real.normal(size=s), np.float32) for k, s in shapes.items()}
        return reals | {
            "flag": np.array(self.random.random() < 0.5),
            "most": np.array(self.random.randint(0, 4), np.int64),
        }

    # --- nodes ------------------------------------------------------------------------------------------

    def fresh(self, word: str = "v") -> str:
        self.count += 1
        return f"{word}{self.count}"

    def node(self, scope: Scope, op: str, inputs: list[str], **attributes: Any) -> str:
        scope.nodes.append(helper.make_node(op, inputs, [self.fresh()], f"{op}.{self.count}", **attributes))
        return scope.nodes[-1].output[0]

    def add(self, scope: Scope, op: str, inputs: list[str], dims: Dims, **attributes: Any) -> Value:
        scope.values.append(Value(self.node(scope, op, inputs, **attributes), dims))
        return scope.values[-1]

    def constant(self, scope: Scope, **value: Any) -> str:
        return self.node(scope, "Constant", [], **value)

    def pick(self, scope: Scope, fits: Callable[[Value], bool] = lambda _: True) -> Value | None:
        """One of them, rather a late one."""
        fitting = [v for v in scope.values if fits(v)]
        return fitting[-1 - int(len(fitting) * self.random.random() ** 2)] if fitting else None

    def plain(self, scope: Scope) -> None:
        x = self.pick(scope)
        kind = self.random.choice(["unary", "binary", "reduce", "concat", "slice", "transpose"])
        if kind == "binary":
            other = self.pick(scope, lambda v: v.dims in (x.dims, ()))
            if other is not None:
                self.add(scope, self.random.choice(["Add", "Sub", "Mul"]), [x.name, other.name], x.dims)
                return
        if kind == "reduce" and x.dims:
            axis = self.random.randrange(len(x.dims))
            axes = self.constant(scope, value_ints=[axis])
            dims = x.dims[:axis] + x.dims[axis + 1 :]
            self.add(scope, "ReduceSum", [x.name, axes], dims, keepdims=0)
        elif kind == "concat" and x.dims:
            other = self.pick(scope, lambda v: v.dims[1:] == x.dims[1:] and len(v.dims) == len(x.dims))
            self.add(scope, "Concat", [x.name, other.name], (self.fresh("d"), *x.dims[1:]), axis=0)
        elif kind == "slice" and x.dims:
            begin, end = (self.random.randint(-3, 4) for _ in range(2))
            bounds = [self.constant(scope, value_ints=[n]) for n in (begin, end, 0)]
            self.add(scope, "Slice", [x.name, *bounds], (self.fresh("d"), *x.dims[1:]))
        elif kind == "transpose" and len(x.dims) == 2:
            self.add(scope, "Transpose", [x.name], x.dims[::-1], perm=[1, 0])
        else:
            self.add(scope, self.random.choice(["Neg", "Tanh", "Abs"]), [x.name], x.dims)

    def control(self, scope: Scope) -> None:
        self.random.choice([self.branch, self.loop, self.loop, self.scan])(scope)

    def inner(self, scope: Scope, own: list[Value]) -> Scope:
        inside = Scope([*scope.values, *own], [], scope.depth + 1)
        for _ in range(self.random.randint(1, 3)):
            self.plain(inside)
        if inside.depth < DEEPEST and self.random.random() < 0.3:
            self.control(inside)
        return inside

    def condition(self, scope: Scope) -> str:
        kind = self.random.randrange(3)
        if kind == 0:
            return "flag"
        x = self.pick(scope)
        if kind == 1 and x.dims:
            extent = self.extent(scope, x)
            return self.node(
                scope, "Less", [extent, self.constant(scope, value_int=self.random.randint(0, 4))]
            )
        total = self.node(scope, "ReduceSum", [x.name], keepdims=0)
        return self.node(scope, "Less", [total, self.constant(scope, value_float=self.random.uniform(-2, 2))])

    def extent(self, scope: Scope, x: Value) -> str:
        sizes = self.node(scope, "Shape", [x.name])
        return self.node(scope, "Gather", [sizes, self.constant(scope, value_int=0)], axis=0)

    def times(self, scope: Scope) -> str:
        kind = self.random.randrange(3)
        x = self.pick(scope, lambda v: bool(v.dims))
        if kind == 0 and x is not None:
            return self.extent(scope, x)
        return "most" if kind == 1 else self.constant(scope, value_int=self.random.randint(0, 3))

    def body(
        self, inside: Scope, inputs: list[onnx.ValueInfoProto], results: list[Value], more: str = ""
    ) -> onnx.GraphProto:
        """Results of their own, since a name is one value. more: a loop's condition, which comes first."""
        outputs = [_declared(self.node(inside, "Identity", [more]), 0, BOOL)] if more else []
        for value in results:
            outputs.append(_declared(self.node(inside, "Identity", [value.name]), len(value.dims)))
        return helper.make_graph(inside.nodes, self.fresh("body"), inputs, outputs)

    def branch(self, scope: Scope) -> None:
        condition, rank, bodies, dims = self.condition(scope), self.random.randrange(3), [], []
        for _ in range(2):
            inside = self.inner(scope, [])
            result = self.pick(inside, lambda v: len(v.dims) == rank)
            if result is None:
                return
            bodies.append(self.body(inside, [], [result]))
            dims.append(result.dims)
        known = tuple(a if a == b else self.fresh("d") for a, b in zip(*dims, strict=True))
        self.add(scope, "If", [condition], known, then_branch=bodies[0], else_branch=bodies[1])

    def loop(self, scope: Scope) -> None:
        first, grows = self.pick(scope), self.random.random() < 0.3
        grows = grows and bool(first.dims)
        dims = (self.fresh("d"), *first.dims[1:]) if grows else first.dims
        iteration, goes_on, now = self.fresh("i"), self.fresh("c"), Value(self.fresh("now"), dims)
        inside = self.inner(scope, [now])

        def follows(v: Value) -> bool:
            return v.dims[1:] == dims[1:] and len(v.dims) == len(dims) if grows else v.dims == dims

        next_ = self.pick(inside, follows)
        own = set(dims[:1]) if grows else set()
        known = {d for v in scope.values for d in v.dims}
        kept = self.pick(inside, lambda v: set(v.dims) <= known - own)
        more = self.condition(inside) if self.random.random() < 0.3 else goes_on
        results = [next_, kept] if kept else [next_]
        inputs = [_declared(iteration, 0, INT), _declared(goes_on, 0, BOOL), _declared(now.name, len(dims))]
        body, times = self.body(inside, inputs, results, more), self.times(scope)
        last = Value(self.fresh(), (self.fresh("d"), *dims[1:]) if grows else dims)
        scope.values.append(last)
        scope.collected += [Value(self.fresh(), (self.fresh("d"), *kept.dims))] if kept else []
        names = [last.name, *([scope.collected[-1].name] if kept else [])]
        scope.nodes.append(
            helper.make_node("Loop", [times, "", first.name], names, self.fresh("Loop"), body=body)
        )

    def scan(self, scope: Scope) -> None:
        state, x = self.pick(scope), self.pick(scope, lambda v: bool(v.dims))
        if x is None:
            return
        now, part = Value(self.fresh("now"), state.dims), Value(self.fresh("part"), x.dims[1:])
        inside = self.inner(scope, [now, part])
        next_ = self.pick(inside, lambda v: v.dims == state.dims)
        known = {d for v in scope.values for d in v.dims}
        made = self.pick(inside, lambda v: set(v.dims) <= known and len(v.dims) < 3)
        inputs = [_declared(v.name, len(v.dims)) for v in (now, part)]
        body = self.body(inside, inputs, [next_, made])
        outputs = [Value(self.fresh(), state.dims), Value(self.fresh(), (x.dims[0], *made.dims))]
        names = [v.name for v in outputs]
        direction = [self.random.randrange(2)]
        scope.nodes.append(
            helper.make_node(
                "Scan",
                [state.name, x.name],
                names,
                self.fresh("Scan"),
                body=body,
                num_scan_inputs=1,
                scan_input_directions=direction,
            )
        )
        scope.values += outputs


def _declared(name: str, rank: int, kind: int = FLOAT) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, kind, [None] * rank)


class Peer:
    """ONNX Runtime in a process of its own, which some of these models end."""

    def __init__(self) -> None:
        self.process = None

    def results(self, model: onnx.ModelProto, fed: list[dict[str, np.ndarray]]) -> list[dict] | None:
        """None where it fails."""
        if self.process is None:
            self.here, there = multiprocessing.Pipe()
            self.process = multiprocessing.get_context("fork").Process(
                target=_answer, args=(there,), daemon=True
            )
            self.process.start()
            there.close()
        try:
            self.here.send((model.SerializeToString(), fed))
            return self.here.recv()
        except (EOFError, OSError):
            self.process.join()
            self.process = None
            return None


def _answer(connection: Any) -> None:
    while True:
        content, fed = connection.recv()
        try:
            connection.send([on_onnx_runtime(onnx.ModelProto.FromString(content), feeds) for feeds in fed])
        except Exception:  # whatever ONNX Runtime raises
            connection.send(None)


def outcome(seed: int, peer: Peer) -> str:
    """ "" where both agree, "refused" where ONNX Runtime fails; otherwise what is wrong."""
    drawn = Drawn(seed)
    model, fed = drawn.model(), [drawn.feeds() for _ in range(2)]
    expected = peer.results(model, fed)
    try:
        loaded = headrace.load(model, device="cpu", threads=1)
        actual = [loaded(feeds) for feeds in fed]
    except ValueError as error:
        return f"ValueError: {error}" if expected else "refused"
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    if not expected:
        return "refused"
    for ours, theirs in zip(actual, expected, strict=True):
        for name, value in theirs.items():
            if value.size == 0 and ours[name].size == 0:
                continue
            try:
                assert_same(ours[name], value, 1e-4)
            except AssertionError as error:
                shapes = f"{ours[name].shape} and {value.shape}"
                return f"{name} differs, of shapes {shapes}: {str(error)[:200]}"
    return ""


def main() -> int:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--cases", type=int, default=10000)
    arguments.add_argument("--seed", type=int, default=0)
    given = arguments.parse_args()
    peer, wrong, refused = Peer(), 0, 0
    for seed in range(given.seed, given.seed + given.cases):
        found = outcome(seed, peer)
        refused += found == "refused"
        if found not in ("", "refused"):
            wrong += 1
            print(f"seed {seed}: {found[:400]}", flush=True)
    print(f"{given.cases} models of branches and loops, {refused} that ONNX Runtime refuses, {wrong} wrong")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
