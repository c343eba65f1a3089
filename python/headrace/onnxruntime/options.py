"""What a session and a run are told: ONNX Runtime's options, and which of them say something to Headrace."""

from __future__ import annotations

import enum
import operator
from typing import Any

from .._argument_errors import with_article, wrong
from .entries import REFUSED, REFUSED_ENTRIES
from .errors import Fail, InvalidArgument, NotImplemented

#: Entries of SessionOptions.add_session_config_entry that are keyword arguments of headrace.load.
LOAD_ENTRIES = ("device", "weights", "memory", "precision", "power_preference", "packed_cache", "tuning")
_PREFIX = "headrace."
_LONGEST_KEY, _LONGEST_VALUE = 1024, 8192  # bytes


class _Choice(enum.Enum):
    """Prints and converts as ONNX Runtime's enumerations do; a number is none of them."""

    def __repr__(self) -> str:
        return f"<{self}: {self.value}>"

    def __int__(self) -> int:
        return self.value

    __index__ = __int__


class GraphOptimizationLevel(_Choice):
    ORT_DISABLE_ALL = 0
    ORT_ENABLE_BASIC = 1
    ORT_ENABLE_EXTENDED = 2
    ORT_ENABLE_LAYOUT = 3
    ORT_ENABLE_ALL = 99


class ExecutionMode(_Choice):
    ORT_SEQUENTIAL = 0
    ORT_PARALLEL = 1


class ExecutionOrder(_Choice):
    DEFAULT = 0
    PRIORITY_BASED = 1
    MEMORY_EFFICIENT = 2


class _Typed:
    """Attributes of fixed names and types; an object of another type is a TypeError, as in ONNX Runtime."""

    _defaults: dict[str, Any] = {}  # noqa: RUF012
    __slots__ = ("_values",)

    def __init__(self) -> None:
        self._values = dict(self._defaults)

    def __getattr__(self, name: str) -> Any:
        if name in type(self)._defaults:
            return self._values[name]
        raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")

    def __setattr__(self, name: str, value: Any) -> None:
        if name in type(self).__slots__ or name == "_values":
            object.__setattr__(self, name, value)
            return
        if name not in self._defaults:
            raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")
        wanted = type(self._defaults[name])
        if wanted is int and hasattr(type(value), "__index__") and not isinstance(value, _Choice):
            value = int(value)
        if wanted is bool and hasattr(type(value), "__bool__"):  # of numbers and None, not of texts and lists
            value = bool(value)
        if not isinstance(value, wanted):
            raise TypeError(wrong(f"{type(self).__name__}.{name}", value, with_article(wanted.__name__)))
        self._values[name] = value

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self._defaults]

    def _add_config(self, key: str, value: str) -> None:
        """With ONNX Runtime's limits."""
        if not 0 < len(key.encode()) <= _LONGEST_KEY:
            raise RuntimeError(f"Config key is empty or longer than maximum length {_LONGEST_KEY}")
        if len(value.encode()) > _LONGEST_VALUE:
            raise RuntimeError(f"Config value is longer than maximum length: {_LONGEST_VALUE}")
        self._entries[key] = value

    def _config(self, key: str) -> str:
        if key not in self._entries:
            raise RuntimeError(f"{type(self).__name__} does not have configuration with key: {key}")
        return self._entries[key]


class SessionOptions(_Typed):
    """Threads, profiling and dimensions are Headrace's, too; the rest is kept or refused, as entries.py says.

    add_session_config_entry("headrace.device", ...), "headrace.weights", "headrace.memory",
    "headrace.precision", "headrace.power_preference", "headrace.packed_cache" and "headrace.tuning" are what
    headrace.load takes by these names.
    """

    __slots__ = ("_dimensions", "_entries", "_providers")
    _defaults = {  # noqa: RUF012
        "enable_cpu_mem_arena": True,
        "enable_mem_pattern": True,
        "enable_mem_reuse": True,
        "enable_profiling": False,
        "execution_mode": ExecutionMode.ORT_SEQUENTIAL,
        "execution_order": ExecutionOrder.DEFAULT,
        "graph_optimization_level": GraphOptimizationLevel.ORT_ENABLE_ALL,
        "inter_op_num_threads": 0,
        "intra_op_num_threads": 0,
        "log_severity_level": -1,
        "log_verbosity_level": 0,
        "logid": "",
        "optimized_model_filepath": "",
        "profile_file_prefix": "onnxruntime_profile_",
        "use_deterministic_compute": False,
        "use_per_session_threads": True,
    }

    def __init__(self) -> None:
        super().__init__()
        self._entries: dict[str, str] = {}
        self._dimensions: dict[tuple[str, str], int] = {}
        self._providers: list[str] = []

    def copy(self) -> SessionOptions:
        """A session has options of its own, which later changes do not reach."""
        made = SessionOptions()
        made._values.update(self._values)
        made._entries.update(self._entries)
        made._dimensions.update(self._dimensions)
        made._providers += self._providers
        return made

    def add_session_config_entry(self, key: str, value: str) -> None:
        if not isinstance(key, str) or not isinstance(value, str):
            raise TypeError(f"add_session_config_entry takes two texts; it got {key!r} and {value!r}")
        if key.startswith(_PREFIX) and key.removeprefix(_PREFIX) not in LOAD_ENTRIES:
            known = ", ".join(_PREFIX + name for name in LOAD_ENTRIES)
            raise InvalidArgument.of(
                f"there is no configuration '{key}'; Headrace's own are {known}, and threads are "
                "intra_op_num_threads"
            )
        refused = REFUSED_ENTRIES.get(key)
        if refused is not None and refused.value == value:
            raise NotImplemented.of(f"configuration '{key}' cannot be '{value}' here: {refused.remedy}")
        self._add_config(key, value)

    def get_session_config_entry(self, key: str) -> str:
        return self._config(key)

    def add_free_dimension_override_by_name(self, name: str, size: int) -> None:
        self._override("name", name, size)

    def add_free_dimension_override_by_denotation(self, denotation: str, size: int) -> None:
        self._override("denotation", denotation, size)

    def _override(self, kind: str, name: str, size: int) -> None:
        if not isinstance(name, str) or not hasattr(size, "__index__"):
            raise TypeError(
                f"add_free_dimension_override_by_{kind} takes a text and an integer, not {name!r}, {size!r}"
            )
        self._dimensions[kind, name] = operator.index(size)

    def add_provider(self, name: str, options: dict[str, str]) -> None:
        from .providers import get_available_providers

        if name not in get_available_providers():
            raise InvalidArgument.of(
                f"Failed to add provider of type '{name}' to SessionOptions. Provider configuration is not "
                "supported."
            )
        self._providers.append(name)

    def has_providers(self) -> bool:
        return bool(self._providers)

    def add_initializer(self, name: str, value: Any) -> None:
        raise NotImplemented.of(
            f"the initializer '{name}' cannot be replaced: the model's own are packed while it is loaded; "
            f"{REFUSED['add_initializer']}"
        )

    def add_external_initializers(self, names: Any, values: Any) -> None:
        raise NotImplemented.of(
            "external initializers cannot be given as values; they are read from the model's folder: "
            f"{REFUSED['add_external_initializers']}"
        )

    add_external_initializers_from_files_in_memory = add_external_initializers

    def register_custom_ops_library(self, path: str) -> None:
        raise Fail.of(
            f"{path}: operators of ONNX Runtime's custom libraries cannot be loaded; "
            f"{REFUSED['register_custom_ops_library']}"
        )

    def load_options(self) -> dict[str, Any]:
        """Keyword arguments of headrace.load."""
        own = {key: self._entries[_PREFIX + key] for key in LOAD_ENTRIES if _PREFIX + key in self._entries}
        threads = {"threads": self.intra_op_num_threads} if self.intra_op_num_threads > 0 else {}
        return {"device": "cpu", **own, **threads}

    def dimension(self, name: str | None, denotation: str) -> int | None:
        """What an open dimension was fixed to."""
        by_name = self._dimensions.get(("name", name)) if name else None
        return self._dimensions.get(("denotation", denotation)) if by_name is None else by_name


class RunOptions(_Typed):
    """terminate ends a run before it begins; the rest is kept, and read by nobody."""

    __slots__ = ("_entries",)
    _defaults = {  # noqa: RUF012
        "log_severity_level": -1,
        "log_verbosity_level": 0,
        "logid": "",
        "only_execute_path_to_fetches": False,
        "terminate": False,
    }

    def __init__(self) -> None:
        super().__init__()
        self._entries: dict[str, str] = {}

    def add_run_config_entry(self, key: str, value: str) -> None:
        self._add_config(key, value)

    def get_run_config_entry(self, key: str) -> str:
        return self._config(key)
