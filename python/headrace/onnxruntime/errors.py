"""ONNX Runtime's exceptions, and which of them an error of Headrace is."""

from __future__ import annotations

import re
from collections.abc import Collection

from headrace._core import UnsupportedError

_HOME = "onnxruntime.capi.onnxruntime_pybind11_state"
# Operators of ONNX that headrace.load does not read: their models are valid.
NOT_READ = frozenset(("ImageDecoder", "RegexFullMatch", "StringConcat", "StringNormalizer", "StringSplit"))


class OnnxRuntimeError(Exception):
    """Base of what follows; ONNX Runtime's own have none in common but Exception."""

    number, title = 0, ""

    @classmethod
    def of(cls, what: str) -> OnnxRuntimeError:
        return cls(f"{cls._prefix()}{what}")

    @classmethod
    def _prefix(cls) -> str:
        return f"[ONNXRuntimeError] : {cls.number} : {cls.title} : "

    @property
    def what(self) -> str:
        """The message alone, as callbacks and bindings pass it on."""
        return str(self).removeprefix(self._prefix())


def what_of(error: Exception) -> str:
    return error.what if isinstance(error, OnnxRuntimeError) else str(error)


def _made(name: str, number: int, title: str) -> type[OnnxRuntimeError]:
    return type(name, (OnnxRuntimeError,), {"__module__": _HOME, "number": number, "title": title})


Fail = _made("Fail", 1, "FAIL")
InvalidArgument = _made("InvalidArgument", 2, "INVALID_ARGUMENT")
NoSuchFile = _made("NoSuchFile", 3, "NO_SUCHFILE")
NoModel = _made("NoModel", 4, "NO_MODEL")
EngineError = _made("EngineError", 5, "ENGINE_ERROR")
RuntimeException = _made("RuntimeException", 6, "RUNTIME_EXCEPTION")
InvalidProtobuf = _made("InvalidProtobuf", 7, "INVALID_PROTOBUF")
ModelLoaded = _made("ModelLoaded", 8, "MODEL_LOADED")
NotImplemented = _made("NotImplemented", 9, "NOT_IMPLEMENTED")  # ONNX Runtime's name
InvalidGraph = _made("InvalidGraph", 10, "INVALID_GRAPH")
EPFail = _made("EPFail", 11, "EP_FAIL")
ModelLoadCanceled = _made("ModelLoadCanceled", 12, "MODEL_LOAD_CANCELED")
ModelRequiresCompilation = _made("ModelRequiresCompilation", 13, "MODEL_REQUIRES_COMPILATION")
NotFound = _made("NotFound", 14, "NOT_FOUND")
DeviceReset = _made("DeviceReset", 15, "DEVICE_RESET")

# What headrace.load says, and what ONNX Runtime calls such a model; the first that is found counts.
_OF_LOADING = (
    (r"it imports no operator set|attribute '.*' is (not known|missing)|[Rr]equired attribute", InvalidGraph),
    (r"it has \d+ (inputs?|outputs?); .* in this operator set", InvalidGraph),
    (r"attribute '.*' is of the type .*; it must be of", InvalidGraph),
    (r"computed by no node before it", InvalidArgument),
    (r"input: the name '.*' is already taken|it is UNDEFINED; there are", Fail),
    (r"must have the same dtype|Incompatible shapes|whose inner extents", Fail),
)
_OPERATOR = re.compile(r"\((\w+), [^)]*\): this operator is not read")
_DOMAIN = re.compile(r"operators of the domain '(.*?)' are not read")
_OF_INDICES = re.compile(r"checked_indices|outside the extent|sequence(?! is empty)")


def of_loading(error: Exception, domains: Collection[str]) -> OnnxRuntimeError:
    """What ONNX Runtime raises for a model that headrace.load refuses with `error`.

    domains: of which the model imports operators.
    """
    text = str(error)
    if found := _OPERATOR.search(text):
        return (NotImplemented if found[1] in NOT_READ else InvalidGraph).of(text)
    if found := _DOMAIN.search(text):
        return (Fail if found[1] in domains else InvalidGraph).of(text)
    otherwise = NotImplemented if isinstance(error, UnsupportedError) else Fail
    kind = next((kind for words, kind in _OF_LOADING if re.search(words, text)), otherwise)
    return kind.of(_with_overrides(text))


# headrace.load's advice: dimensions={'n': 1} (--dimension NAME=N); not of whole shapes.
_ADVICE = re.compile(r"dimensions=\{([^{}\[\]]*)\}(?: \(--dimension [^)]*\))?")


def _with_overrides(text: str) -> str:
    """The advice to fix dimensions, in ONNX Runtime's words."""

    def in_its_words(advice: re.Match[str]) -> str:
        fixes = re.findall(r"('[^']*'): (\d+)", advice[1]) or [("NAME", "NUMBER")]
        return " and ".join(f"add_free_dimension_override_by_name({name}, {size})" for name, size in fixes)

    return _ADVICE.sub(in_its_words, text)


_OF_OPENING = (
    (r"there is no graph in", InvalidArgument),
    (r"damaged|cut off|no UTF-8", InvalidProtobuf),
    (r"it imports operator set 0 ", InvalidGraph),
)


def of_opening(error: Exception) -> OnnxRuntimeError:
    """What ONNX Runtime raises for what headrace.onnx.open_model refuses with `error`."""
    kind = next((kind for words, kind in _OF_OPENING if re.search(words, str(error))), Fail)
    return kind.of(str(error))


def of_running(error: Exception) -> OnnxRuntimeError:
    """For a run that ended with `error`."""
    kind = InvalidArgument if _OF_INDICES.search(str(error)) else Fail
    return kind.of(_with_overrides(str(error)))
