"""InferenceSession: a model that runs by Headrace, called as ONNX Runtime's is."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from headrace._core import OnnxModel
from headrace.onnx import open_model

from .binding import IOBinding
from .declared import Declared, Interface
from .element_types import element_number, type_string
from .entries import REFUSED
from .errors import Fail, InvalidArgument, InvalidProtobuf, NoSuchFile, NotImplemented, of_opening, what_of
from .feeds import fed
from .options import RunOptions, SessionOptions
from .profile import Profile
from .program import Program
from .providers import CPU, chosen_providers
from .values import OrtMemoryInfo, OrtValue

_NO_VERSION = 2**63 - 1  # what ONNX Runtime says of a model without one


@dataclass(frozen=True)
class NodeArg:
    """An input or output. shape: numbers, names, and None for an extent without either."""

    name: str
    type: str
    shape: list[int | str | None]

    def __str__(self) -> str:
        return f"NodeArg(name={self.name!r}, type={self.type!r}, shape={self.shape})"


@dataclass(frozen=True)
class ModelMetadata:
    producer_name: str
    graph_name: str
    domain: str
    description: str
    graph_description: str
    version: int
    custom_metadata_map: dict[str, str]


class InferenceSession:
    """path_or_bytes: an ONNX model's file, or its bytes without external data.

    Threads may run it at the same time. Errors: TypeError; NoSuchFile, InvalidProtobuf for what is no model,
    InvalidGraph, InvalidArgument and Fail for one that is wrong; NotImplemented for what headrace.load does
    not read, with the node and what to do.
    """

    def __init__(
        self,
        path_or_bytes: str | bytes | os.PathLike[str],
        sess_options: SessionOptions | None = None,
        providers: Sequence[Any] | None = None,
        provider_options: Sequence[Any] | None = None,
        **kwargs: Any,
    ) -> None:
        """kwargs: enable_fallback and disabled_optimizers, which say nothing here."""
        self._source = _source_of(path_or_bytes)
        if sess_options is not None and not isinstance(sess_options, SessionOptions):
            raise TypeError(f"sess_options is a {type(sess_options).__name__}; it must be SessionOptions")
        self._options = SessionOptions() if sess_options is None else sess_options.copy()
        self._is_fallback_enabled = int(kwargs.get("enable_fallback", 1)) == 1
        self._providers = self._providers_or_cpu(providers, provider_options)
        self._profile = Profile()
        self._profiles = self._options.enable_profiling
        self._open()

    def _open(self) -> None:
        if self._options.optimized_model_filepath:
            raise NotImplemented.of(
                f"{self._options.optimized_model_filepath}: optimised models are not written as ONNX; "
                f"{REFUSED['optimized_model_filepath'].replace('`', '')}"
            )
        begin = self._profile.now_us()
        model = _opened(self._source)
        self._metadata, self._interface = model.metadata, Interface(model)
        inputs, outputs = self._interface.inputs, self._interface.outputs
        dimensions = _fix_dimensions(self._interface, self._options)
        kind = "array" if isinstance(self._source, bytes) else "uri"
        self._profile.add(f"model_loading_{kind}", begin)
        begin = self._profile.now_us()
        self._program = Program(model, inputs, dimensions, self._options.load_options())
        self._profile.add("session_initialization", begin)
        _add_inferred(self._interface, self._program.model)
        self._by_name = {info.name: info for info in inputs}
        self._output_names = [info.name for info in outputs]

    # What the model is.

    def get_inputs(self) -> list[NodeArg]:
        return _node_args(self._interface.inputs)

    def get_outputs(self) -> list[NodeArg]:
        return _node_args(self._interface.outputs)

    def get_overridable_initializers(self) -> list[NodeArg]:
        return _node_args(self._interface.overridable)

    def get_modelmeta(self) -> ModelMetadata:
        said = self._metadata
        return ModelMetadata(
            producer_name=said.producer,
            graph_name=said.graph_name,
            domain=said.domain,
            description=said.description,
            graph_description=said.graph_description,
            version=_NO_VERSION if said.version is None else said.version,
            custom_metadata_map=said.properties,
        )

    def get_session_options(self) -> SessionOptions:
        return self._options

    def get_input_memory_infos(self) -> list[OrtMemoryInfo]:
        return [OrtMemoryInfo() for _ in self._interface.inputs]

    def get_output_memory_infos(self) -> list[OrtMemoryInfo]:
        return [OrtMemoryInfo() for _ in self._interface.outputs]

    # Where it runs.

    def get_providers(self) -> list[str]:
        return list(self._providers)

    def get_provider_options(self) -> dict[str, dict[str, str]]:
        return {name: {} for name in self._providers}

    def set_providers(self, providers: Any = None, provider_options: Any = None) -> None:
        """Warns about those that there are not here, and raises for what is no provider."""
        self._providers = chosen_providers(providers, provider_options)

    def _providers_or_cpu(self, providers: Any, options: Any) -> list[str]:
        try:
            return chosen_providers(providers, options)
        except (ValueError, RuntimeError) as error:
            if not self._is_fallback_enabled:
                raise
            print(f"EP Error {error} when using {providers}\nFalling back to ['{CPU}'] and retrying.")
            return [CPU]

    def disable_fallback(self) -> None:
        self._is_fallback_enabled = False

    def enable_fallback(self) -> None:
        self._is_fallback_enabled = True

    # Runs.

    def run(
        self,
        output_names: Sequence[str] | None,
        input_feed: Mapping[str, Any],
        run_options: RunOptions | None = None,
    ) -> list[Any]:
        """Arrays, lists of arrays and None, in the order of output_names; all outputs where there are none.

        Errors: ValueError for an input that is missing; InvalidArgument for a name, an element type or a
        shape that the model does not have; RuntimeError for what is no array; Fail for what goes wrong in a
        node.
        """
        self._check_inputs_are_there(input_feed)
        return self._run(output_names or self._output_names, input_feed, run_options)

    def _check_inputs_are_there(self, feed: Mapping[str, Any]) -> None:
        names = list(feed.keys())
        missing = [i.name for i in self._interface.inputs if i.name not in feed and not i.is_optional]
        if missing:
            raise ValueError(f"Required inputs ({missing}) are missing from input feed ({names}).")

    def _run(
        self,
        output_names: Sequence[str],
        feed: Mapping[str, Any],
        options: RunOptions | None,
        into: dict[str, Any] | None = None,
    ) -> list[Any]:
        """into: Program.run's."""
        _check_arguments(output_names, feed, options)
        feeds = self._checked(feed)
        unknown = next((name for name in output_names if name not in self._output_names), None)
        if unknown is not None:
            raise InvalidArgument.of(f"Invalid output name:{unknown}")
        if options is not None and options.terminate:
            raise Fail.of("Exiting due to terminate flag being set to true.")
        if not self._profiles:
            results, _ = self._program.run(feeds, into=into)
            return [results[name] for name in output_names]
        begin = self._profile.now_us()
        results, nodes = self._program.run(feeds, profiles=True)
        self._profile.add_nodes(begin, nodes)
        self._profile.add("model_run", begin)
        return [results[name] for name in output_names]

    def _checked(self, feed: Mapping[str, Any]) -> dict[str, Any]:
        feeds = {}
        for name, value in feed.items():
            if name not in self._by_name:
                self._refuse_input(name)
            feeds[name] = fed(self._by_name[name], value)
        for name in self._by_name:
            if name not in feeds:
                feeds[name] = fed(self._by_name[name], None)
        return feeds

    def _refuse_input(self, name: str) -> None:
        if any(info.name == name for info in self._interface.overridable):
            raise NotImplemented.of(
                f"input '{name}' is an initializer of the model, whose value is packed when it is loaded; "
                "write the value into the model"
            )
        raise InvalidArgument.of(f"Invalid input name: {name}")

    def run_async(
        self,
        output_names: Sequence[str] | None,
        input_feed: Mapping[str, Any],
        callback: Callable[[list[Any], Any, str], None],
        user_data: Any,
        run_options: RunOptions | None = None,
    ) -> None:
        """Calls callback(results, user_data, "") on another thread, or callback([], user_data, error). The
        program does not end before. Errors: TypeError, and ValueError for an input that is missing.
        """
        if not callable(callback):
            raise TypeError(f"run_async calls its third argument; it got a {type(callback).__name__}")
        self._check_inputs_are_there(input_feed)

        def work() -> None:
            try:
                results, error = self.run(output_names, input_feed, run_options), ""
            except Exception as raised:
                results, error = [], what_of(raised)
            callback(results, user_data, error)

        threading.Thread(target=work).start()

    def run_with_ort_values(
        self,
        output_names: Sequence[str] | None,
        input_dict_ort_values: Mapping[str, OrtValue],
        run_options: RunOptions | None = None,
    ) -> list[OrtValue]:
        names = output_names or self._output_names
        feeds = {name: value._get_c_value() for name, value in input_dict_ort_values.items()}
        results = self.run(names, feeds, run_options)
        return [OrtValue(r, self._element_type(name)) for name, r in zip(names, results, strict=True)]

    def io_binding(self) -> IOBinding:
        return IOBinding(self)

    def run_with_iobinding(self, iobinding: IOBinding, run_options: RunOptions | None = None) -> None:
        """Errors: ValueError for another session's; RuntimeError for what run() refuses."""
        if iobinding._session is not self:
            raise ValueError("IOBinding must be used with the session that created it.")
        if not iobinding._outputs:
            raise RuntimeError("Error in execution: At least one output should be requested.")
        try:
            places = iobinding._places()
            iobinding._finish(self._run(list(iobinding._outputs), iobinding._inputs, run_options, places))
        except Exception as error:
            raise RuntimeError(f"Error in execution: {what_of(error)}") from error

    # Profiling.

    def end_profiling(self) -> str:
        """The name of the file with the events since the session was made; "" where none were recorded."""
        if not self._profiles:
            return ""
        self._profiles = False
        return self._profile.write(self._options.profile_file_prefix)

    def get_profiling_start_time_ns(self) -> int:
        """The start by time.time_ns(), as ONNX Runtime has it on Linux; 0 without profiling."""
        return self._profile.start_ns if self._options.enable_profiling else 0

    # For IOBinding.

    def _is_input(self, name: str) -> bool:
        return name in self._by_name

    def _output(self, name: str) -> Declared:
        return self._interface.outputs[self._output_names.index(name)]

    def _element_type(self, name: str) -> int:
        return self._output(name).element_type


def _source_of(path_or_bytes: Any) -> str | bytes:
    if isinstance(path_or_bytes, bytes):
        return path_or_bytes
    if not isinstance(path_or_bytes, (str, os.PathLike)):
        raise TypeError(f"Unable to load from type '{type(path_or_bytes)}'")
    path = os.fspath(path_or_bytes)
    if not path:
        raise TypeError("Unable to load from a path that is empty")
    if path.endswith(".ort"):
        raise NotImplemented.of(
            f"{path}: ONNX Runtime's own format is not read; use the ONNX model that it is of"
        )
    return path


def _node_args(declared: list[Declared]) -> list[NodeArg]:
    shapes = ([] if info.is_sequence else list(info.shape or []) for info in declared)
    return [
        NodeArg(info.name, type_string(info), shape) for info, shape in zip(declared, shapes, strict=True)
    ]


def _opened(source: str | bytes) -> OnnxModel:
    """A file may have any name; external data lies beside it."""
    try:
        return open_model(source)
    except FileNotFoundError:
        raise NoSuchFile.of(f"Load model from {source} failed. File doesn't exist") from None
    except OSError as error:
        raise InvalidProtobuf.of(f"Load model from {source} failed: {error}") from None
    except ValueError as error:
        raise of_opening(error) from error


def _fix_dimensions(file: Interface, options: SessionOptions) -> dict[str, int]:
    """Writes numbers that were given for open dimensions into what is declared; returns those of inputs."""
    fixed = {}
    for info in (*file.inputs, *file.outputs):
        for axis, extent in enumerate(info.shape or ()):
            if isinstance(extent, int):
                continue
            size = options.dimension(extent, info.denotations[axis])
            if size is not None:
                info.shape[axis] = size
                if info in file.inputs:
                    fixed[extent or f"{info.name}.{axis}"] = size
    return fixed


def _add_inferred(file: Interface, model: Any) -> None:
    """Adds what the model's graph knows of outputs, and the file does not say."""
    names = {extent for info in file.inputs for extent in info.shape or () if isinstance(extent, str)}
    found = {} if model is None else {info.name: info for info in model.outputs}
    for info in file.outputs:
        inferred = found.get(info.name)
        is_open = info.kinds == ("without a type",)
        if not (info.is_tensor or is_open) or inferred is None or inferred.shape is None:
            continue
        if info.element_type == 0:
            info.kinds, info.element_type = ("tensor",), element_number(inferred.dtype) or 0
        if info.shape is None:
            info.shape = [d if isinstance(d, int) or d in names else None for d in inferred.shape]
        elif len(info.shape) == len(inferred.shape):
            pairs = zip(info.shape, inferred.shape, strict=True)
            info.shape = [b if isinstance(b, int) and not isinstance(a, int) else a for a, b in pairs]


def _check_arguments(output_names: Any, feed: Mapping[Any, Any], options: Any) -> None:
    is_list = isinstance(output_names, Sequence) and not isinstance(output_names, (str, bytes))
    if not is_list or not all(isinstance(name, str) for name in output_names):
        raise TypeError(f"run(): output_names is {output_names!r}; it must be a sequence of texts or None")
    wrong = next((name for name in feed if not isinstance(name, str)), None)
    if wrong is not None:
        raise TypeError(f"run(): input_feed has the name {wrong!r}; names are texts")
    if options is not None and not isinstance(options, RunOptions):
        raise TypeError(f"run(): run_options is a {type(options).__name__}; it must be RunOptions")
