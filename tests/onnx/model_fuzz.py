"""Small models with one to three changes each; `make fuzz` makes as many as go into a time.

Whatever becomes of a model, headrace.load gives a model or a ValueError, and soon. --write only writes the
models, for the fuzzer in C++.
"""

from __future__ import annotations

import argparse
import hashlib
import random
import sys
import time
from pathlib import Path
from typing import Any

import headrace
import numpy as np
import onnx
import operator_cases
from google.protobuf.message import DecodeError
from onnx import AttributeProto, TensorProto, numpy_helper, parser

LARGEST = 8192  # bytes of a model that is written
SLOWEST = 20.0  # seconds; models of a few hundred bytes take milliseconds
NUMBERS = [0, 1, -1, 2, 3, 5, 7, -7, 255, 1000, 2**24, 2**31 - 1, -(2**31), 2**40, 2**63 - 1, -(2**63)]
REALS = [0.0, -1.0, 1.0, 0.5, 1e-7, 1e30, float("nan"), float("inf"), -float("inf")]
TEXTS = [b"", b"\xff\xfe", b"none", b"SAME_UPPER", b"linear", b"ij,jk->ik", b"...", b"a" * 300]
FUNCTIONS = """<ir_version: 10, opset_import: ["" : 21, "local" : 1]>
    g (float[n, 3] x, int64[2] i) => (float[a, b] y, float[c] z) {
        flag = Constant<value = bool {1}>()
        p = If (flag) <
            then_branch = t () => (float[n, 3] t1) { t1 = local.outer<factor = 3.0>(x) },
            else_branch = e () => (float[n, 3] e1) { e1 = Neg(x) }
        >
        s = Shape(p)
        two = Constant<value_ints = [1, 1]>()
        t = Mul(s, two)
        y = Reshape(p, t)
        size = Constant<value_int = 5>()
        z = HannWindow<periodic = 0>(size)
    }
    <domain: "local", opset_import: ["" : 21, "local" : 1]>
    outer <factor: float = 2.0> (x) => (y) { a = local.inner<factor: float = @factor>(x) y = local.inner(a) }
    <domain: "local", opset_import: ["" : 18]>
    inner <factor: float = 0.5> (x) => (y) { c = Constant<value_float: float = @factor>() y = Mul(x, c) }
"""


def seeds() -> list[onnx.ModelProto]:
    """Every operator with run-time, open and constant operands, and a model of functions and branches."""
    cases = operator_cases.CASES
    fixed = [
        operator_cases.Case(**(vars(c) | {"inputs": [_constant(v) for v in c.inputs]})) for c in cases[::3]
    ]
    made = [c.model() for c in cases] + [c.model(dims=True) for c in cases[::2]] + [c.model() for c in fixed]
    return made + [parser.parse_model(FUNCTIONS)] * (len(made) // 10)


def _constant(value: object) -> object:
    return operator_cases.Constant(value) if isinstance(value, np.ndarray) else value


class Mutation:
    """Changes of one model, drawn by a seed."""

    def __init__(self, seed: int, models: list[onnx.ModelProto]) -> None:
        self.random, self.models = random.Random(seed), models

    def content(self) -> bytes:
        model = onnx.ModelProto()
        model.CopyFrom(self.pick(self.models))
        often, seldom = (
            [self._attribute, self._attribute, self._extent, self._tensor],
            [self._node, self._edges],
        )
        for _ in range(self.random.randint(1, 3)):
            self.pick(often * 4 + seldom * 2 + [self._versions])(model)
        content = model.SerializeToString()
        if self.random.random() < 0.08:
            content = self._damaged(content)
        return content

    def pick(self, options: Any) -> Any:
        return options[self.random.randrange(len(options))]

    def _any_node(self, model: onnx.ModelProto) -> onnx.NodeProto | None:
        nodes = [*model.graph.node, *(n for f in model.functions for n in f.node)]
        return self.pick(nodes) if nodes else None

    def _attribute(self, model: onnx.ModelProto) -> None:
        """Gives one of the operator's attributes another value, another type, or none."""
        node = self._any_node(model)
        if node is None:
            return
        domain = "" if node.domain == "ai.onnx" else node.domain
        known = []
        if onnx.defs.has(node.op_type, domain):
            known = sorted(onnx.defs.get_schema(node.op_type, domain).attributes.items())
        if known and self.random.random() < 0.3:
            name, schema = self.pick(known)
            if all(a.name != name for a in node.attribute):
                node.attribute.add(name=name, type=int(schema.type.value))
        if not node.attribute:
            return
        attribute = self.pick(node.attribute)
        if self.random.random() < 0.1:
            attribute.type = self.random.randint(0, 14)
        elif self.random.random() < 0.1:
            node.attribute.remove(attribute)
            return
        if attribute.type == AttributeProto.INT:
            attribute.i = self.pick(NUMBERS)
        elif attribute.type == AttributeProto.FLOAT:
            attribute.f = self.pick(REALS)
        elif attribute.type == AttributeProto.STRING:
            attribute.s = self.pick(TEXTS)
        elif attribute.type == AttributeProto.INTS:
            count = self.random.choice([len(attribute.ints), self.random.randint(0, 6)])
            attribute.ints[:] = [self.pick(NUMBERS) for _ in range(count)]
        elif attribute.type == AttributeProto.FLOATS:
            attribute.floats[:] = [self.pick(REALS) for _ in range(self.random.randint(0, 5))]
        elif attribute.type == AttributeProto.TENSOR:
            self._changed(attribute.t)

    def _extent(self, model: onnx.ModelProto) -> None:
        if not model.graph.input:
            return
        tensor = self.pick(model.graph.input).type.tensor_type
        kind = self.random.randrange(5)
        if kind == 0:
            tensor.elem_type = self.random.randint(0, 30)
        elif kind == 1:
            tensor.shape.dim.add(dim_value=self.pick(NUMBERS))
        elif kind == 2 and tensor.shape.dim:
            del tensor.shape.dim[-1]
        elif tensor.shape.dim:
            dim = self.pick(tensor.shape.dim)
            if self.random.random() < 0.3:
                dim.dim_param = self.pick(["n", "n + m", "+", "", " ", "n*m"])
            else:
                dim.dim_value = self.pick(NUMBERS)

    def _tensor(self, model: onnx.ModelProto) -> None:
        if model.graph.initializer:
            self._changed(self.pick(model.graph.initializer))

    def _changed(self, tensor: TensorProto) -> None:
        kind = self.random.randrange(5)
        if kind == 0:
            tensor.data_type = self.random.randint(0, 30)
        elif kind == 1:
            tensor.dims[:] = [self.pick(NUMBERS) for _ in range(self.random.randint(0, 4))]
        elif kind == 2:
            tensor.data_location = TensorProto.EXTERNAL
            tensor.external_data.add(
                key="location", value=self.pick(["weights", "../weights", "", "/dev/zero"])
            )
        else:
            try:
                array = numpy_helper.to_array(tensor)
                values = np.array(
                    [self.pick(NUMBERS if array.dtype.kind in "iu" else REALS) for _ in range(array.size)],
                    object,
                )
                with np.errstate(all="ignore"):
                    tensor.CopyFrom(
                        numpy_helper.from_array(values.astype(array.dtype).reshape(array.shape), tensor.name)
                    )
            except Exception:  # whatever an unfit tensor makes of NumPy
                tensor.ClearField("raw_data")

    def _node(self, model: onnx.ModelProto) -> None:
        """Another operator in its place, twice the same, or none."""
        node = self._any_node(model)
        if node is None:
            return
        kind = self.random.randrange(4)
        if kind == 0 and len(model.graph.node) > 1:
            del model.graph.node[self.random.randrange(len(model.graph.node))]
        elif kind == 1:
            model.graph.node.add().CopyFrom(node)
        else:
            other = self.pick(self.models).graph.node[0]
            node.op_type, node.domain = other.op_type, other.domain

    def _edges(self, model: onnx.ModelProto) -> None:
        node = self._any_node(model)
        if node is None:
            return
        names = self.pick([node.input, node.output])
        kind = self.random.randrange(5)
        if kind == 0 and names:
            del names[self.random.randrange(len(names))]
        elif kind == 1:
            names.append(self.pick(["", "x0", "y0", "x", "absent"]))
        elif names:
            index = self.random.randrange(len(names))
            names[index] = self.pick(["", "x0", "x1", "x2", "y0", "y", "absent", *names])

    def _versions(self, model: onnx.ModelProto) -> None:
        if self.random.random() < 0.3:
            model.ir_version = self.pick([0, 1, 3, 4, 7, 9, 10, 99, 2**40])
        elif model.opset_import:
            entry = self.pick(model.opset_import)
            entry.version = self.pick([7, 8, 9, 10, 11, 12, 13, 16, 18, 21, 25, 28, *NUMBERS])

    def _damaged(self, content: bytes) -> bytes:
        """Bytes instead of names and lengths."""
        changed = bytearray(content)
        for _ in range(self.random.randint(1, 3)):
            if changed:
                changed[self.random.randrange(len(changed))] = self.pick([0, 1, 8, 127, 128, 254, 255])
        return bytes(changed)


def outcome(content: bytes) -> str:
    """ "" for a model or a clear error; otherwise what is wrong."""
    try:
        onnx.ModelProto.FromString(content)
    except DecodeError:
        return ""
    started, found = time.perf_counter(), ""
    try:
        headrace.load(content, device="cpu")
    except ValueError as error:
        clear = type(error) in (ValueError, headrace.UnsupportedError) and str(error).startswith(
            "the ONNX model: "
        )
        if not clear or "not enough memory" in str(error):
            found = f"{type(error).__name__}: {error}"
    except BaseException as error:
        if isinstance(error, (KeyboardInterrupt, SystemExit)):
            raise
        found = f"{type(error).__name__}: {error}"
    seconds = time.perf_counter() - started
    return found or (f"it takes {seconds:.1f} s" if seconds > SLOWEST else "")


def write(models: list[onnx.ModelProto], folder: Path) -> int:
    folder.mkdir(parents=True, exist_ok=True)
    contents = {model.SerializeToString(deterministic=True) for model in models}
    for content in contents:
        if len(content) < LARGEST:
            (folder / f"{hashlib.sha256(content).hexdigest()[:16]}.onnx").write_bytes(content)
    return 0


def main() -> int:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--seconds", type=float, default=60)
    arguments.add_argument("--seed", type=int, default=0)
    arguments.add_argument("--write", type=Path, metavar="FOLDER")
    given = arguments.parse_args()
    if given.write:
        return write(seeds(), given.write)
    models, end, seed, wrong = seeds(), time.monotonic() + given.seconds, given.seed, 0
    while time.monotonic() < end:
        content = Mutation(seed, models).content()
        found = outcome(content)
        if found:
            wrong += 1
            print(f"seed {seed}: {found[:300]}", flush=True)
        seed += 1
    print(f"{seed - given.seed} models, {wrong} with another end than a model or a ValueError")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
