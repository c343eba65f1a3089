"""Gives MLGraphBuilder a method per operator, from the signatures that the op catalog yields."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from headrace._arrays import as_array
from headrace._core import MLGraphBuilder, MLOperand, MLTensor, Signature, signatures

from . import _descriptors, _shorthands

_SCALAR_TYPES = (int, float, bool, np.generic)


def _python_signature(signature: Signature) -> inspect.Signature:
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    parameters = [inspect.Parameter("self", kind)]
    for p in signature.parameters:
        default = inspect.Parameter.empty if p.required else _default(p.default_text)
        parameters.append(inspect.Parameter(p.name, kind, default=default, annotation=p.type_text))
    parameters.append(inspect.Parameter("label", inspect.Parameter.KEYWORD_ONLY, default=""))
    return inspect.Signature(parameters)


def _default(text: str) -> Any:
    """The default value that a signature writes as Python text."""
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return None


def _method(signature: Signature) -> Callable[..., Any]:
    rows = [(p.name, p.target, p.is_operand, p.is_list, p.is_data_type) for p in signature.parameters]
    binding = _python_signature(signature)
    # The specification's spelling, and its name where pywebnn has another ("padding" for "pads").
    spelling = {_camel_case(p.name): p.name for p in signature.parameters}
    for p in signature.parameters:
        spelling |= {p.target: p.name, _camel_case(p.target): p.name}

    def method(self: MLGraphBuilder, *args: Any, **kwargs: Any) -> Any:
        if args and isinstance(args[-1], Mapping):  # as JavaScript has it: conv2d(x, w, {"padding": ...})
            args, kwargs = args[:-1], {**args[-1], **kwargs}
        try:
            options_given = {spelling.get(name, name): value for name, value in kwargs.items()}
            given = binding.bind(self, *args, **options_given).arguments
        except TypeError as error:
            raise TypeError(f"{signature.name}(): {error}") from None
        operands: list[MLOperand | None] = []
        options = []
        for name, target, is_operand, is_list, is_data_type in rows:
            value = given.get(name)
            if is_list:
                operands.extend(value)
            elif is_operand:
                operands.append(value)
            elif value is not None:
                options.append((target, value, is_data_type))
        results = self._op(signature.name, operands, options, given.get("label", ""))
        return results if signature.returns_list else results[0]

    method.__name__ = signature.name
    method.__qualname__ = f"MLGraphBuilder.{signature.name}"
    method.__signature__ = binding
    lines = [signature.summary, ""] + [f"{p.name}: {p.doc}" for p in signature.parameters]
    method.__doc__ = "\n".join(lines)
    return method


def _camel_case(name: str) -> str:
    head, *tail = name.split("_")
    return head + "".join(part.capitalize() for part in tail)


def input(self: MLGraphBuilder, name: str, shape: Any, data_type: str | None = None) -> MLOperand:
    """An input: input("x", [2, 3], "float32").

    shape: extents, of which dynamic ones are {"name": "seq", "maxSize": 512}; or the specification's
    descriptor, a dict with "dataType" and "shape". data_type: WebNN's name, or NumPy's dtype.
    """
    if isinstance(shape, Mapping):
        if data_type is not None:
            raise TypeError("input: the descriptor brings its own data type")
        shape, data_type = _descriptors.operand("input", shape)
    elif data_type is None:
        raise TypeError("input: data_type is missing")
    if not isinstance(data_type, str):
        data_type = np.dtype(data_type).name
    for i, extent in enumerate(_descriptors.dimensions("input", shape)):
        if isinstance(extent, str):
            raise TypeError(
                f"input: shape[{i}] is {extent!r}; it must be a number, or for a dynamic dimension "
                f'{{"name": "{extent}", "maxSize": 512}}'
            )
    return self._input(name, shape, data_type)


def constant(self: MLGraphBuilder, value: Any, shape: Any = None, data_type: str | None = None) -> MLOperand:
    """A constant from an array, nested lists, a number or a tensor of create_constant_tensor.

    shape: defaults to the value's; its elements must number the same. data_type: defaults to the array's,
    float32 for Python numbers. A read-only array is used where it is; a writable one is copied.
    The specification's two forms are taken as well: constant({"dataType": "float32", "shape": [2]}, data) and
    constant("float32", 1.0).
    """
    if isinstance(value, Mapping):
        if shape is None or data_type is not None:
            raise TypeError("constant: after a descriptor comes the data, and nothing else")
        extents, data_type = _descriptors.operand("constant", value)
        value, shape = _descriptors.elements("constant", shape, extents, data_type), None
    elif _descriptors.is_data_type(value):
        if shape is None or data_type is not None:
            raise TypeError(f"constant: after the data type {value} comes a number, and nothing else")
        value, shape, data_type = shape, None, value
    if isinstance(value, MLTensor):
        if shape is not None or data_type is not None:
            raise ValueError("constant: a tensor brings its own shape and data type")
        return self._constant_tensor(value)
    if data_type is None:
        array = as_array(value)
        is_python_value = not (isinstance(value, (np.ndarray, np.generic)) or hasattr(value, "__dlpack__"))
        data_type = "float32" if is_python_value and array.dtype.kind in "fiub" else array.dtype.name
        if data_type == "bfloat16":  # not a WebNN type; float32 holds every value
            data_type = "float32"
        elif not _descriptors.is_data_type(data_type):
            raise ValueError(
                f"constant: the array is {data_type}, which WebNN does not have; name another by data_type=, "
                'or convert it: array.astype("float32")'
            )
    return self._constant(value, shape, data_type)


def install(builder: type[MLGraphBuilder]) -> None:
    """Adds every operator, the shorthands, and the camelCase aliases."""
    for signature in signatures():
        method = _method(signature)
        setattr(builder, signature.name, method)
        setattr(builder, signature.idl, method)
    builder._input = builder.input
    builder.input = input
    builder.constant = constant
    _shorthands.install(builder)
