"""ONNX files as checked models, and their tensors as arrays."""

from __future__ import annotations

import itertools
import math
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx
from google.protobuf.message import DecodeError, EncodeError, Message
from onnx import TensorProto, defs, external_data_helper, numpy_helper

from .external import mapped
from .registry import MICROSOFT
from .stored import PACKED

OLDEST = 1
NEWEST = defs.onnx_opset_version()
DOMAINS = ("", "ai.onnx", MICROSOFT)
DTYPES = {
    TensorProto.FLOAT: "f32",
    TensorProto.FLOAT16: "f16",
    TensorProto.BFLOAT16: "bf16",
    TensorProto.DOUBLE: "f64",
    TensorProto.INT8: "i8",
    TensorProto.UINT8: "u8",
    TensorProto.INT16: "i16",
    TensorProto.INT32: "i32",
    TensorProto.UINT32: "u32",
    TensorProto.INT64: "i64",
    TensorProto.UINT64: "u64",
    TensorProto.INT4: "i4",
    TensorProto.UINT4: "u4",
    TensorProto.BOOL: "bool",
    TensorProto.UINT16: "u16",
    TensorProto.INT2: "i2",
    TensorProto.UINT2: "u2",
    TensorProto.FLOAT8E4M3FN: "f8e4m3fn",
    TensorProto.FLOAT8E4M3FNUZ: "f8e4m3fnuz",
    TensorProto.FLOAT8E5M2: "f8e5m2",
    TensorProto.FLOAT8E5M2FNUZ: "f8e5m2fnuz",
    TensorProto.FLOAT8E8M0: "f8e8m0",
    TensorProto.FLOAT4E2M1: "f4e2m1",
}
# What ONNX Runtime's optimiser writes into ONNX's own domain, up to the set that has it; None: no set has it.
_LENT = {"SimplifiedLayerNormalization": None, "LayerNormalization": 17}
_SMALL = 1024  # elements of tensors that stay in the model: shapes and axes
_DEEPEST = 100  # messages within one another that Protocol Buffers parse


def dtype_named(elem_type: int, what: str) -> str:
    if elem_type not in DTYPES:
        try:
            name = TensorProto.DataType.Name(elem_type)
        except ValueError:
            name = f"data type {elem_type}"
        known = ", ".join(TensorProto.DataType.Name(t) for t in DTYPES)
        raise ValueError(f"{what} is {name}; there are {known}")
    return DTYPES[elem_type]


@dataclass
class Source:
    """A checked model whose larger tensors are apart, so that what reads it need not move them about."""

    model: onnx.ModelProto
    tensors: list[TensorProto]
    folder: str  # of external data; "" where the model is no file
    title: str  # what messages call it

    @property
    def inputs(self) -> list[onnx.ValueInfoProto]:
        """What a caller gives: not the tensors, which may be listed as inputs, too."""
        tensors = {t.name for t in (*self.model.graph.initializer, *self.tensors)}
        return [info for info in self.model.graph.input if info.name not in tensors]


def read_model(source: Any) -> Source:
    """source: a path, a file's bytes or a ModelProto.

    Errors: OSError for a file that cannot be read (FileNotFoundError where there is none), and ValueError for
    what is no ONNX model, is invalid, or is of versions that are not read.
    """
    folder, title = "", "the ONNX model"
    if isinstance(source, onnx.ModelProto):
        model = source
    elif isinstance(source, (bytes, bytearray, memoryview)):
        model = _parsed(bytes(source), title)
    else:
        path = os.fspath(source)
        title, folder = str(path), os.path.dirname(os.path.abspath(path))
        with open(path, "rb") as file:
            model = _parsed(file.read(), title)
    _check_text(model, title)
    light, tensors = _without_tensors(model)
    check_operator_set(opsets(light.opset_import).get(""), title)
    try:
        onnx.checker.check_model(_as_checked(light), skip_opset_compatibility_check=True)
    except (onnx.checker.ValidationError, ValueError, RuntimeError, EncodeError) as error:
        raise ValueError(
            f"{title}: the model is invalid: {' '.join(str(error).split())[:600]}. "
            "onnx.checker.check_model tells its author the same"
        ) from None
    return Source(light, tensors, folder, title)


def opsets(imports: Any) -> dict[str, int]:
    """Version by domain; "" is ai.onnx. imports: of a model or a function."""
    return {domain_named(entry.domain): entry.version for entry in imports}


def domain_named(domain: str) -> str:
    return "" if domain == "ai.onnx" else domain


def check_operator_set(version: int | None, title: str) -> None:
    if version is None or not OLDEST <= version <= NEWEST:
        found = "no operator set" if version is None else f"operator set {version}"
        raise ValueError(
            f"{title}: it imports {found} of ai.onnx; {OLDEST} to {NEWEST} are read. "
            "onnx.version_converter.convert_version changes it"
        )


def _check_text(message: Message, title: str, depth: int = 0) -> None:
    """Names that are no UTF-8 come as bytes, which are in no table. Comments may be anything."""
    if depth > _DEEPEST:
        raise ValueError(f"{title}: its messages are nested more than {_DEEPEST} deep, which no file can be")
    for field, value in message.ListFields():
        if field.type == field.TYPE_STRING and field.name != "doc_string":
            for text in [value] if isinstance(value, (str, bytes)) else value:
                if isinstance(text, bytes):
                    raise ValueError(
                        f"{title}: the {field.name} {text[:60]!r} of a {message.DESCRIPTOR.name} is no "
                        "UTF-8; the file is damaged, or what wrote it has to encode its names"
                    )
        elif field.type == field.TYPE_MESSAGE and field.name != "metadata_props":
            for inner in [value] if isinstance(value, Message) else value:
                _check_text(inner, title, depth + 1)


def _without_tensors(model: onnx.ModelProto) -> tuple[onnx.ModelProto, list[TensorProto]]:
    """A copy where the larger initializers are inputs, and those."""
    light = onnx.ModelProto(ir_version=model.ir_version)
    light.opset_import.extend(model.opset_import)
    light.functions.extend(model.functions)
    graph = model.graph
    light.graph.name = graph.name
    light.graph.node.extend(graph.node)
    for field in ("input", "output", "value_info", "sparse_initializer"):
        getattr(light.graph, field).extend(getattr(graph, field))
    inputs, tensors = {info.name for info in graph.input}, []
    for tensor in graph.initializer:
        if math.prod(tensor.dims) < _SMALL and tensor.data_location != TensorProto.EXTERNAL:
            light.graph.initializer.append(tensor)
            continue
        tensors.append(tensor)
        if tensor.name not in inputs:
            info = onnx.helper.make_tensor_value_info(tensor.name, tensor.data_type, list(tensor.dims))
            light.graph.input.append(info)
    return light, tensors


def _as_checked(model: onnx.ModelProto) -> onnx.ModelProto:
    """For the checker, whose rules are stricter than what is read here.

    Results may lack a type or shape, since operators say what they are. Initializers need not be inputs, as
    IR version 3 wants. External data is looked for beside the model, not in the working directory. Operators
    that are ONNX Runtime's, whatever their domain, are not its.
    """
    complete = onnx.ModelProto()
    complete.CopyFrom(model)
    own = opsets(complete.opset_import)
    lent = [node for node in _nodes_of(complete.graph) if _is_lent(node, own[""])]
    for node in lent:
        node.domain = MICROSOFT
    if lent and MICROSOFT not in own:
        complete.opset_import.add(domain=MICROSOFT, version=1)
    complete.ir_version = 4 if model.ir_version == 3 else model.ir_version
    for value in [*complete.graph.output, *complete.graph.input]:
        if value.type.WhichOneof("value") in (None, "tensor_type"):
            tensor = value.type.tensor_type
            tensor.shape.SetInParent()
            tensor.elem_type = tensor.elem_type or TensorProto.FLOAT
    nodes = itertools.chain(complete.graph.node, *(f.node for f in complete.functions))
    for tensor in _tensors_of(nodes):
        if tensor.data_location == TensorProto.EXTERNAL:
            tensor.CopyFrom(TensorProto(name=tensor.name, data_type=tensor.data_type, dims=[0]))
    return complete


def _is_lent(node: onnx.NodeProto, opset: int) -> bool:
    first = _LENT.get(node.op_type, 0)
    return domain_named(node.domain) == "" and (first is None or opset < first)


def _nodes_of(graph: onnx.GraphProto) -> Iterator[onnx.NodeProto]:
    """With those of branches."""
    for node in graph.node:
        yield node
        for attribute in node.attribute:
            for inner in [attribute.g] if attribute.HasField("g") else attribute.graphs:
                yield from _nodes_of(inner)


def _tensors_of(nodes: Iterable[onnx.NodeProto]) -> Iterator[TensorProto]:
    """Every tensor of attributes and branches."""
    for attribute in (a for node in nodes for a in node.attribute):
        if attribute.HasField("t"):
            yield attribute.t
        if attribute.HasField("sparse_tensor"):
            yield from (attribute.sparse_tensor.values, attribute.sparse_tensor.indices)
        yield from attribute.tensors
        for graph in [attribute.g] if attribute.HasField("g") else attribute.graphs:
            yield from graph.initializer
            yield from _tensors_of(graph.node)


def _parsed(content: bytes, title: str) -> onnx.ModelProto:
    model = onnx.ModelProto()
    try:
        model.ParseFromString(content)
    except DecodeError:
        raise ValueError(f"{title}: this is no ONNX model, or it is cut off ({len(content)} bytes)") from None
    if not model.HasField("graph") or not model.graph.output:
        raise ValueError(
            f"{title}: this is no ONNX model: there is no graph with outputs in its {len(content)} bytes"
        )
    return model


def array_of(tensor: TensorProto, folder: str, what: str) -> tuple[np.ndarray, str]:
    """A tensor's elements and dtype. External data is mapped, not read."""
    dtype = dtype_named(tensor.data_type, what)
    if any(extent < 0 for extent in tensor.dims):
        raise ValueError(f"{what} has the shape {list(tensor.dims)}; extents are at least 0")
    try:
        if external_data_helper.uses_external_data(tensor):
            return _external(tensor, folder, dtype), dtype
        return numpy_helper.to_array(tensor), dtype
    except (ValueError, TypeError, OSError, OverflowError, onnx.checker.ValidationError) as error:
        raise ValueError(f"{what} cannot be read: {' '.join(str(error).split())[:400]}") from None


def _external(tensor: TensorProto, folder: str, dtype: str) -> np.ndarray:
    entries = {entry.key: entry.value for entry in tensor.external_data}
    location = entries.get("location", "")
    element = onnx.helper.tensor_dtype_to_np_dtype(tensor.data_type)
    bits = PACKED.get(dtype, element.itemsize * 8)
    needed = (math.prod(tensor.dims) * bits + 7) // 8
    offset, length = _whole(entries, "offset", 0), _whole(entries, "length", needed)
    if length != needed:
        raise ValueError(
            f"its shape {list(tensor.dims)} needs {needed} bytes, and {length} are said to be in '{location}'"
        )
    raw = mapped(location, folder, offset, needed)
    if bits < 8:
        packed = TensorProto(data_type=tensor.data_type, dims=tensor.dims, raw_data=raw.tobytes())
        return numpy_helper.to_array(packed)
    return raw.view(element).reshape(list(tensor.dims))


def _whole(entries: dict[str, str], key: str, default: int) -> int:
    text = entries.get(key, str(default))
    if not (text.isascii() and text.isdigit() and len(text) < 20):
        raise ValueError(f"the {key} of its external data is '{text[:40]}', which is no number of bytes")
    return int(text)
