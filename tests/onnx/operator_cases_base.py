"""How cases of single ONNX operators are written: case(operator, *inputs, opset=..., **attributes).

Arrays become inputs of the model, Constant(array) initializers, None an input that is left out.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper

F32, F16, F64 = np.float32, np.float16, np.float64
I8, U8, I32, U32, I64, U64 = np.int8, np.uint8, np.int32, np.uint32, np.int64, np.uint64
# Largest int8 weight for uint8 inputs: without VNNI, ONNX Runtime adds pairs of larger products in 16 bits.
LARGEST_I8 = 63
MICROSOFT = "com.microsoft"


@dataclass
class Constant:
    value: np.ndarray


@dataclass
class Case:
    op: str
    inputs: list[Any]
    opset: int = 21
    outputs: int = 1
    domain: str = ""
    attributes: dict[str, Any] = field(default_factory=dict)
    tolerance: float = 1e-5
    ulps: int = 0  # steps of integer results that may differ: rounding of products of scales

    @property
    def feeds(self) -> dict[str, np.ndarray]:
        return {f"x{i}": v for i, v in enumerate(self.inputs) if isinstance(v, np.ndarray)}

    def model(self, dims: bool = False) -> onnx.ModelProto:
        """A model of just this node. dims: the inputs' extents are named dimensions, one for each value."""
        names = ["" if v is None else f"x{i}" for i, v in enumerate(self.inputs)]
        results = [f"y{i}" for i in range(self.outputs)]
        node = helper.make_node(
            self.op, names, results, self.op.lower(), domain=self.domain, **self.attributes
        )
        declared = [
            helper.make_tensor_value_info(
                name,
                helper.np_dtype_to_tensor_dtype(v.dtype),
                [f"d{d}" if d > 1 else d for d in v.shape] if dims else v.shape,
            )
            for name, v in self.feeds.items()
        ]
        constants = [
            numpy_helper.from_array(np.asarray(v.value), f"x{i}")
            for i, v in enumerate(self.inputs)
            if isinstance(v, Constant)
        ]
        given = [helper.make_empty_tensor_value_info(name) for name in results]
        graph = helper.make_graph([node], "case", declared, given, constants)
        imports = [helper.make_opsetid("", self.opset)]
        if self.domain:
            imports.append(helper.make_opsetid(self.domain, 1))
        return typed(helper.make_model(graph, opset_imports=imports, ir_version=10))

    @property
    def label(self) -> str:
        options = " ".join(f"{key}={value}" for key, value in self.attributes.items())
        types = ",".join(
            "-" if v is None else f"{getattr(v, 'value', v).dtype}{list(np.shape(getattr(v, 'value', v)))}"
            for v in self.inputs
        )
        return f"{self.op}-{self.opset} {types} {options}"[:140]


def typed(model: onnx.ModelProto) -> onnx.ModelProto:
    """With the outputs' types, where ONNX infers them."""
    inferred = onnx.shape_inference.infer_shapes(model)
    del model.graph.output[:]
    model.graph.output.extend(inferred.graph.output)
    return model


CASES: list[Case] = []


def case(
    op: str,
    *inputs: Any,
    opset: int = 21,
    outputs: int = 1,
    domain: str = "",
    tolerance: float = 1e-5,
    ulps: int = 0,
    **attributes: Any,
) -> None:
    CASES.append(Case(op, list(inputs), opset, outputs, domain, attributes, tolerance, ulps))


def values(*shape: int, dtype: Any = F32, low: float = -3, high: float = 3, seed: int = 0) -> np.ndarray:
    """Reproducible numbers; integers are drawn from the whole range given."""
    rng = np.random.default_rng([seed, len(shape), *shape])
    if np.dtype(dtype).kind == "f":
        return np.asarray(rng.uniform(low, high, shape)).astype(dtype)
    if np.dtype(dtype) == bool:
        return np.asarray(rng.integers(0, 2, shape)).astype(bool)
    low = max(low, 0) if np.dtype(dtype).kind == "u" else low
    return np.asarray(rng.integers(int(low), int(high) + 1, shape)).astype(dtype)


def ints(*numbers: int) -> Constant:
    return Constant(np.array(numbers, np.int64))


def scalar(number: Any, dtype: Any = np.int64) -> Constant:
    return Constant(np.array(number, dtype))
