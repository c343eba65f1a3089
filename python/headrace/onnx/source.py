"""ONNX files as checked models, and their tensors as arrays."""

from __future__ import annotations

import math
import os
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx
from google.protobuf.message import DecodeError
from onnx import TensorProto, defs, external_data_helper, inliner, numpy_helper

from .registry import MICROSOFT, OPERATORS

OLDEST = 7
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
}
_SMALL = 1024  # elements of tensors that stay in the model: shapes and axes


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


def read_model(source: Any) -> Source:
    """source: a path, a file's bytes or a ModelProto.

    Errors: FileNotFoundError, and ValueError for what is no ONNX model, is invalid, or is of versions that
    are not read.
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
    light, tensors = _without_tensors(model)
    opset = opsets(light).get("")
    if opset is None or not OLDEST <= opset <= NEWEST:
        found = "no operator set" if opset is None else f"operator set {opset}"
        raise ValueError(
            f"{title}: it imports {found} of ai.onnx; {OLDEST} to {NEWEST} are read. "
            "onnx.version_converter.convert_version changes it"
        )
    try:
        onnx.checker.check_model(_with_types(light), skip_opset_compatibility_check=True)
        light = _without_functions(light)
    except (onnx.checker.ValidationError, ValueError, RuntimeError, UnicodeError) as error:
        raise ValueError(f"{title}: the model is invalid: {' '.join(str(error).split())[:600]}") from None
    return Source(light, tensors, folder, title)


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


def _with_types(model: onnx.ModelProto) -> onnx.ModelProto:
    """For the checker: results may lack a type or shape here, since operators say what they are."""
    complete = onnx.ModelProto()
    complete.CopyFrom(model)
    for value in [*complete.graph.output, *complete.graph.input]:
        if value.type.WhichOneof("value") in (None, "tensor_type"):
            tensor = value.type.tensor_type
            tensor.shape.SetInParent()
            tensor.elem_type = tensor.elem_type or TensorProto.FLOAT
    return complete


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


def opsets(model: onnx.ModelProto) -> dict[str, int]:
    """Version by domain; "" is ai.onnx."""
    return {entry.domain.removeprefix("ai.onnx"): entry.version for entry in model.opset_import}


def _without_functions(model: onnx.ModelProto) -> onnx.ModelProto:
    """Functions of the model, and operators that ONNX itself defines by others, become their nodes."""
    if model.functions:
        model = inliner.inline_local_functions(model, convert_version=True)
    composed = sorted(_composed(model.graph, opsets(model)))
    if composed:
        typed = onnx.shape_inference.infer_shapes(model, data_prop=True)
        known = {info.name for info in (*typed.graph.input, *typed.graph.value_info)}
        for tensor in typed.graph.initializer:
            if tensor.name not in known:
                info = onnx.helper.make_tensor_value_info(tensor.name, tensor.data_type, list(tensor.dims))
                typed.graph.value_info.append(info)
        model = inliner.inline_selected_functions(
            typed, [("", name) for name in composed], inline_schema_functions=True
        )
    return model


def _composed(graph: onnx.GraphProto, versions: dict[str, int]) -> set[str]:
    found = set()
    for node in graph.node:
        for attribute in node.attribute:
            if attribute.HasField("g"):
                found |= _composed(attribute.g, versions)
        if node.domain.removeprefix("ai.onnx") or ("", node.op_type) in OPERATORS:
            continue
        if not defs.has(node.op_type, versions[""]):
            continue
        schema = defs.get_schema(node.op_type, versions[""])
        if schema.has_function or schema.has_context_dependent_function:
            found.add(node.op_type)
    return found


def array_of(tensor: TensorProto, folder: str, what: str) -> tuple[np.ndarray, str]:
    """A tensor's elements and dtype. External data is mapped, not read."""
    dtype = dtype_named(tensor.data_type, what)
    if any(extent < 0 for extent in tensor.dims):
        raise ValueError(f"{what} has the shape {list(tensor.dims)}")
    try:
        if external_data_helper.uses_external_data(tensor):
            return _external(tensor, folder, dtype, what), dtype
        return numpy_helper.to_array(tensor), dtype
    except (ValueError, TypeError, OSError, onnx.checker.ValidationError) as error:
        raise ValueError(f"{what} cannot be read: {' '.join(str(error).split())[:400]}") from None


def _external(tensor: TensorProto, folder: str, dtype: str, what: str) -> np.ndarray:
    entries = {entry.key: entry.value for entry in tensor.external_data}
    location = entries.get("location", "")
    if not folder:
        raise ValueError(f"its data is in the file '{location}'; load the model from its path")
    path = os.path.realpath(os.path.join(folder, location))
    if os.path.isabs(location) or not path.startswith(os.path.realpath(folder) + os.sep):
        raise ValueError(f"its data is in '{location}', which is outside the model's folder")
    if not os.path.isfile(path):
        raise ValueError(f"its data is in {path}, which does not exist; it belongs beside the model")
    element = onnx.helper.tensor_dtype_to_np_dtype(tensor.data_type)
    bits = 4 if dtype in ("i4", "u4") else element.itemsize * 8
    needed = (math.prod(tensor.dims) * bits + 7) // 8
    offset, length = int(entries.get("offset", 0)), int(entries.get("length", needed))
    if offset < 0 or length != needed or offset + needed > os.path.getsize(path):
        raise ValueError(
            f"its {needed} bytes are said to be {length} at {offset} of {path}, "
            f"which has {os.path.getsize(path)}"
        )
    if needed == 0:
        return np.zeros(list(tensor.dims), element)
    raw = np.memmap(path, np.uint8, "r", offset, (needed,))
    if bits == 4:
        packed = TensorProto(data_type=tensor.data_type, dims=tensor.dims, raw_data=raw.tobytes())
        return numpy_helper.to_array(packed)
    return raw.view(element).reshape(list(tensor.dims))
