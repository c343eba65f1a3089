"""headrace.load: a model file as something that is called with arrays."""

from __future__ import annotations

import errno
import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ._core import Graph, OnnxModel, compile, load_graph, open_onnx
from ._options import OptionError, check_names, checked
from .model import Model

if TYPE_CHECKING:
    from .onnx.outputs import Outputs
    from .structured import StructuredModel


_OPTIONS = (
    "device",
    "accelerated",
    "device_type",
    "power_preference",
    "weights",
    "host_timeout_ms",
    "dimensions",
    "most_iterations",
)  # load's own; the rest is compile's


def load(
    path: Any,
    *,
    device: str | None = None,
    accelerated: bool = True,
    device_type: str = "auto",
    power_preference: str = "default",
    weights: str = "",
    host_timeout_ms: int = 60000,
    dimensions: Mapping[str, Any] | None = None,
    most_iterations: int | None = None,
    **options: Any,
) -> Model | StructuredModel:
    """A model that can be called: an ONNX model (`.onnx`) or a graph file (`.hrg`, `.webnn`, `.json`).

    path: the file, which nobody must shorten or write anew while the model is used; of ONNX models also its
    bytes or an onnx.ModelProto. device: a name of headrace.devices();
    None takes the best GPU, or else the CPU, which accelerated=False or device_type="cpu" takes at once.
    weights: how constant matrices of products are stored: "as-given", "q8_0" or "q4_0" (blocks of 32), with
    which products round their other operand to 8 bits, too; "" is as given, or for the power preference
    "low-power" "q8_0" and products in float32. host_timeout_ms: a remote host that is silent for that long is
    lost. dimensions: numbers for an ONNX model's named dimensions, which otherwise stay open until the model
    is called, or an input's whole shape by its name. Of an input that is a sequence: the shapes of its
    tensors, [[2, "n"], [2, 3]]; else the model is a StructuredModel, which takes any; so is one that can be
    read with known dimensions only, for the shapes of each call. most_iterations: of all loops of a call
    together; one that would go on after that is an error (default: 10,000,000). options: others
    of headrace.compile, such as threads=2.

    Errors: OSError for a file that cannot be read, FileNotFoundError where there is none; ValueError for what
    is no valid model, or for what it has that cannot be expressed, with the node, its operator and what to
    do; ValueError and TypeError for an option, before the model is read; MemoryError where the machine has
    not enough.
    """
    check_names(options, own=_OPTIONS)
    if most_iterations is not None and most_iterations < 1:
        raise OptionError(f"load: most_iterations is {most_iterations}; at least 1 is needed")
    hints = {
        "power_preference": power_preference,
        "accelerated": accelerated,
        "device_type": device_type,
        "device": "" if device is None else "cpu" if str(device).lower() == "cpu" else device,
        "host_timeout_ms": host_timeout_ms,
        "weights": weights,
    }
    options = checked(hints, options)
    is_path = isinstance(path, (str, os.PathLike))
    title = os.path.basename(os.fspath(path)) if is_path else "the ONNX model"
    if is_onnx(path):
        path = open_model(path)
        if _has_structured_inputs(path, dimensions):
            from . import structured

            return structured.StructuredModel(path, title, dimensions, most_iterations, options)
    try:
        return loaded(path, title, dimensions, most_iterations, options)
    except ValueError as error:
        found = None
        if is_onnx(path):
            from . import structured

            found = structured.of_each_shape(
                path, title, dimensions, most_iterations, options, why_not_open=str(error)
            )
        if found is None:
            raise
        return found


def _has_structured_inputs(source: OnnxModel, dimensions: Mapping[str, Any] | None) -> bool:
    """Whether an input is no tensor, and its form is not given."""
    return any(info.kind != "tensor" and info.name not in (dimensions or {}) for info in source.inputs)


def open_model(source: Any) -> OnnxModel:
    """What a model declares, and graphs of it.

    source: a path, a file's bytes or an onnx.ModelProto. Errors: OSError for a file that cannot be read,
    FileNotFoundError where there is none; ValueError for what is no valid model.
    """
    if isinstance(source, OnnxModel):
        return source
    if hasattr(source, "SerializeToString"):
        return open_onnx(_serialized(source))
    if isinstance(source, (str, os.PathLike)) and not os.path.exists(source):
        raise FileNotFoundError(errno.ENOENT, "there is no such ONNX model", os.fspath(source))
    try:
        return open_onnx(source)
    except TypeError:
        from ._argument_errors import wrong

        wanted = "a path, the bytes of an ONNX model or an onnx.ModelProto"
        raise TypeError(f"load: {wrong('path', source, wanted)}") from None


def _serialized(model: Any) -> bytes:
    try:
        return model.SerializeToString()
    except Exception as error:  # of the package protobuf, which need not be there
        raise ValueError(
            f"the ONNX model is no single message: {error}. Save it with onnx.save(..., "
            "save_as_external_data=True), and load it from its path"
        ) from error


def loaded(
    path: Any,
    title: str,
    dimensions: Mapping[str, Any] | None,
    most_iterations: int | None,
    options: dict[str, Any],
) -> Model:
    """path: of an ONNX model also what open_model takes. options: headrace.compile's."""
    graph, outputs = _read(path, dimensions)
    executable = compile(graph, **options)
    # Where weights are quantised, nothing shall hold the others.
    is_as_given = options["weights"] == "as-given"
    return Model(executable, graph if is_as_given else executable.graph, title, outputs, most_iterations)


def is_onnx(path: Any) -> bool:
    """Whether load() reads it as an ONNX model."""
    is_path = isinstance(path, (str, os.PathLike))
    return not is_path or os.path.splitext(os.fspath(path))[1].lower() == ".onnx"


def _read(path: Any, dimensions: Mapping[str, Any] | None) -> tuple[Graph, Outputs | None]:
    """The graph, and of an ONNX model whose outputs are made of a run's results what they are."""
    if is_onnx(path):
        graph, outputs, declared = open_model(path).read(dict(dimensions or {}))
        if not declared and all(o.kind == "tensor" and o.tensor == o.name for o in outputs):
            return graph, None  # what a run gives is what the model has
        from .onnx.outputs import Outputs

        return graph, Outputs(outputs, declared)
    if dimensions:
        raise ValueError(
            f"{path}: dimensions are for ONNX models; a graph file keeps those it was saved with"
        )
    if not os.path.exists(path):
        raise FileNotFoundError(f"{path} does not exist")
    return load_graph(path), None
