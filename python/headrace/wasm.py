"""`headrace wasm`: runs a WebAssembly guest that uses language models through WASI-NN, under wasmtime.

The imports of `wasi_ephemeral_nn` are served by libwasi_nn_llamacpp.so, which reads and writes the guest's
memory where it is. Every pointer of a guest is checked against that memory; a wrong one gets an error code.
"""

from __future__ import annotations

import argparse
import ctypes
import itertools
import json
import os
import signal
import struct
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from ._wasi_nn import Array, Bytes, Tensor, find_library

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    import wasmtime

INVALID_ARGUMENT = 1


class OutOfBoundsError(Exception):
    """A guest's pointer and size reach outside its memory."""


class GuestMemory:
    """The linear memory of the guest that calls, for the length of one call."""

    def __init__(self, caller: wasmtime.Caller) -> None:
        import wasmtime

        memory = caller.get("memory")
        if not isinstance(memory, wasmtime.Memory):
            raise OutOfBoundsError("the guest exports no memory")
        self._size = memory.data_len(caller)
        self._address = ctypes.addressof(memory.data_ptr(caller).contents) if self._size else 0

    def at(self, pointer: int, size: int) -> int:
        """The address of `size` bytes."""
        if pointer + size > self._size:
            raise OutOfBoundsError(f"{size} bytes at {pointer} of {self._size}")
        return self._address + pointer

    def words(self, pointer: int, count: int) -> tuple[int, ...]:
        return struct.unpack(f"<{count}I", ctypes.string_at(self.at(pointer, 4 * count), 4 * count))

    def put_word(self, address: int, value: ctypes.c_uint32) -> None:
        ctypes.memmove(address, ctypes.byref(value), 4)


class WasiNn:
    """One backend of libwasi_nn_llamacpp.so, and the functions that a guest imports."""

    #: Each import and the number of its i32 parameters.
    IMPORTS: Mapping[str, int] = {
        "load": 5,
        "load_by_name": 3,
        "load_by_name_with_config": 5,
        "unload": 1,
        "init_execution_context": 2,
        "set_input": 3,
        "compute": 1,
        "get_output": 5,
        "compute_single": 1,
        "get_output_single": 5,
        "fini_single": 1,
    }

    def __init__(
        self,
        library: Path,
        config: Mapping[str, object],
        on_failed_load: Callable[[str], None] | None = None,
    ) -> None:
        """on_failed_load: gets the name that a guest could not load."""
        self._library = ctypes.CDLL(os.fspath(library))
        self._on_failed_load = on_failed_load
        self._context = ctypes.c_void_p()
        text = json.dumps(config).encode()
        code = self._library.init_backend_with_config(ctypes.byref(self._context), text, len(text))
        if code:
            raise ValueError(f"the configuration {text.decode()} was refused with {code}; the log says why")

    def close(self) -> None:
        self._library.deinit_backend(self._context)

    def define(self, linker: wasmtime.Linker) -> None:
        """Gives the imports of `wasi_ephemeral_nn` to a linker."""
        import wasmtime

        i32 = wasmtime.ValType.i32()
        for name, parameters in self.IMPORTS.items():
            signature = wasmtime.FuncType([i32] * parameters, [i32])
            function = self._checked(getattr(self, f"_{name}"))
            linker.define_func("wasi_ephemeral_nn", name, signature, function, access_caller=True)

    @staticmethod
    def _checked(function: Callable[..., int]) -> Callable[..., int]:
        # WebAssembly's i32 has no sign; wasmtime gives it one.
        def call(caller: wasmtime.Caller, *arguments: int) -> int:
            try:
                return function(GuestMemory(caller), *(argument & 0xFFFFFFFF for argument in arguments))
            except OutOfBoundsError:
                return INVALID_ARGUMENT

        return call

    def _returning_word(self, memory: GuestMemory, pointer: int, name: str, *arguments: object) -> int:
        """Calls a function whose last parameter is a pointer to a number that only success writes."""
        address, value = memory.at(pointer, 4), ctypes.c_uint32()
        code = getattr(self._library, name)(self._context, *arguments, ctypes.byref(value))
        if code == 0:
            memory.put_word(address, value)
        return code

    def _load(
        self, memory: GuestMemory, parts: int, count: int, encoding: int, target: int, graph: int
    ) -> int:
        pointer, size = memory.words(parts, 2)
        part = Bytes(memory.at(pointer, size), size)
        array = Array(ctypes.pointer(part), count)  # the library reads one, and refuses several
        numbers = (ctypes.c_uint32(encoding), ctypes.c_uint32(target))
        return self._returning_word(memory, graph, "load", ctypes.byref(array), *numbers)

    def _load_by_name(self, memory: GuestMemory, name: int, size: int, graph: int) -> int:
        return self._load_by_name_with_config(memory, name, size, 0, 0, graph)

    def _load_by_name_with_config(
        self, memory: GuestMemory, name: int, name_size: int, config: int, config_size: int, graph: int
    ) -> int:
        texts = (
            (ctypes.c_void_p(memory.at(pointer, size)), ctypes.c_uint32(size))
            for pointer, size in ((name, name_size), (config, config_size))
        )
        code = self._returning_word(memory, graph, "load_by_name_with_config", *itertools.chain(*texts))
        if code and self._on_failed_load:
            text = ctypes.string_at(memory.at(name, name_size), min(name_size, 200))
            self._on_failed_load(text.decode(errors="replace"))
        return code

    def _unload(self, _: GuestMemory, graph: int) -> int:
        return self._library.unload(self._context, ctypes.c_uint32(graph))

    def _init_execution_context(self, memory: GuestMemory, graph: int, context: int) -> int:
        return self._returning_word(memory, context, "init_execution_context", ctypes.c_uint32(graph))

    def _set_input(self, memory: GuestMemory, context: int, index: int, tensor: int) -> int:
        dimensions, dimension_count, kind, data, size = memory.words(tensor, 5)
        shape = Bytes(memory.at(dimensions, 4 * dimension_count), dimension_count)
        value = Tensor(ctypes.pointer(shape), kind & 0xFF, Bytes(memory.at(data, size), size))
        numbers = (ctypes.c_uint32(context), ctypes.c_uint32(index))
        return self._library.set_input(self._context, *numbers, ctypes.byref(value))

    def _compute(self, _: GuestMemory, context: int) -> int:
        return self._library.compute(self._context, ctypes.c_uint32(context))

    def _compute_single(self, _: GuestMemory, context: int) -> int:
        return self._library.compute_single(self._context, ctypes.c_uint32(context))

    def _fini_single(self, _: GuestMemory, context: int) -> int:
        return self._library.fini_single(self._context, ctypes.c_uint32(context))

    def _get_output(self, memory: GuestMemory, *arguments: int) -> int:
        return self._output(memory, self._library.get_output, *arguments)

    def _get_output_single(self, memory: GuestMemory, *arguments: int) -> int:
        return self._output(memory, self._library.get_output_single, *arguments)

    def _output(
        self,
        memory: GuestMemory,
        function: Callable[..., int],
        context: int,
        index: int,
        buffer: int,
        capacity: int,
        written: int,
    ) -> int:
        output, address = Bytes(memory.at(buffer, capacity), capacity), memory.at(written, 4)
        size = ctypes.c_uint32()  # stays 0 unless the call writes or says what it needs
        numbers = (ctypes.c_uint32(context), ctypes.c_uint32(index))
        code = function(self._context, *numbers, ctypes.byref(output), ctypes.byref(size))
        memory.put_word(address, size)
        return code


def run_guest(
    guest: Path,
    arguments: list[str],
    aliases: Mapping[str, str],
    config: Mapping[str, object] | None = None,
    library: Path | None = None,
    environment: Mapping[str, str] | None = None,
    folders: Mapping[str, str] | None = None,
) -> int:
    """Runs a WASI program and returns its exit status.

    aliases: names that the guest may load, and the models' paths. Others are looked for in
    HEADRACE_MODEL_ROOT or the root that HEADRACE_CONFIG names; without either there are none.
    config: as init_backend_with_config takes it, see docs/parameters.md.
    environment: the guest's variables, all of them.
    folders: the guest's names of folders, and the folders; it may read and write in them.
    """
    import wasmtime

    engine = wasmtime.Engine()
    module = wasmtime.Module.from_file(engine, os.fspath(guest))
    store = wasmtime.Store(engine)
    wasi = wasmtime.WasiConfig()
    wasi.argv = [guest.name, *arguments]
    wasi.inherit_stdin()
    wasi.inherit_stdout()
    wasi.inherit_stderr()
    wasi.env = list((environment or {}).items())
    for name, folder in (folders or {}).items():
        wasi.preopen_dir(folder, name)
    store.set_wasi(wasi)
    linker = wasmtime.Linker(engine)
    linker.define_wasi()
    with tempfile.TemporaryDirectory(prefix="headrace-no-models-") as empty:
        confined = os.environ.setdefault("HEADRACE_MODEL_ROOT", empty) != empty
        try:
            names = {"model_aliases": dict(aliases)} if aliases else {}

            def explain(name: str) -> None:
                if confined or name in aliases:
                    return  # the log has what is wrong with the file
                option = "--model FILE" if name == "default" else f"--alias {name}=FILE"
                print(f"headrace wasm: no option names the guest's model {name!r}: {option}", file=sys.stderr)

            nn = WasiNn(library or find_library(), {**(config or {}), **names}, explain)
            try:
                nn.define(linker)
                start = linker.instantiate(store, module).exports(store).get("_start")
                if not isinstance(start, wasmtime.Func):
                    raise ValueError("it exports no _start, and so is no WASI program")
                start(store)
            except wasmtime.ExitTrap as exit_trap:
                return exit_trap.code
            finally:
                nn.close()
        finally:
            if not confined:
                del os.environ["HEADRACE_MODEL_ROOT"]
    return 0


def _alias(text: str) -> tuple[str, str]:
    name, equals, path = text.partition("=")
    if not (name and equals and path):
        raise argparse.ArgumentTypeError(f"must be NAME=PATH, not {text!r}")
    return name, path


def _variable(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not (name and equals):
        raise argparse.ArgumentTypeError(f"must be NAME=VALUE, not {text!r}")
    return name, value


def _folder(text: str) -> tuple[str, str]:
    """The guest's name and the folder, as wasmtime's own --dir has them the other way round."""
    path, _, name = text.partition("::")
    if not Path(path).is_dir():
        raise argparse.ArgumentTypeError(f"{path!r} is no folder")
    return name or path, path


def _json_object(text: str) -> dict[str, object]:
    try:
        value = json.loads(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"is no JSON: {error}") from None
    if not isinstance(value, dict):
        raise argparse.ArgumentTypeError(f"must be a JSON object, not {text!r}")
    return value


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="headrace wasm",
        description="Run a WebAssembly guest that uses language models through WASI-NN.",
        usage="%(prog)s GUEST.wasm --model M.gguf [--alias NAME=PATH] [--config JSON] [--env NAME=VALUE] "
        "[--dir FOLDER[::NAME]] [-- ARGUMENT ...]",
        epilog="What follows -- is the guest's.",
    )
    parser.add_argument("guest", type=Path, metavar="GUEST.wasm")
    parser.add_argument("--model", metavar="M.gguf", help="the model that the guest loads as 'default'")
    parser.add_argument(
        "--alias",
        type=_alias,
        action="append",
        default=[],
        metavar="NAME=PATH",
        help="another name and model",
    )
    parser.add_argument(
        "--config", type=_json_object, default={}, metavar="JSON", help="parameters, see docs/parameters.md"
    )
    parser.add_argument(
        "--env",
        type=_variable,
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="a variable of the guest's environment, which is empty otherwise",
    )
    parser.add_argument(
        "--dir",
        type=_folder,
        action="append",
        default=[],
        metavar="FOLDER[::NAME]",
        help="a folder in which the guest may read and write, and its name for it",
    )
    parser.add_argument("--library", type=Path, metavar="FILE", help="another libwasi_nn_llamacpp.so")
    return parser


def main(arguments: list[str]) -> int:
    """The command line after `headrace wasm`; returns the exit status."""
    end = arguments.index("--") if "--" in arguments else len(arguments)
    options = _parser().parse_args(arguments[:end])
    aliases = dict(options.alias)
    if options.model:
        aliases["default"] = options.model
    for name, path in aliases.items():
        if not Path(path).exists():
            option = f"--model {path}" if options.model and name == "default" else f"--alias {name}={path}"
            print(f"headrace wasm: {option}: there is no such file", file=sys.stderr)
            return 2
    # Python's own handler would wait for the end of the guest's call.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    os.environ.setdefault("HEADRACE_LOG", "warn")  # what is printed is the guest's
    try:
        import wasmtime
    except ImportError:
        print("headrace wasm needs the package wasmtime: pip install wasmtime", file=sys.stderr)
        return 2
    try:
        return run_guest(
            options.guest,
            arguments[end + 1 :],
            aliases,
            options.config,
            options.library,
            dict(options.env),
            dict(options.dir),
        )
    except (OSError, ValueError, wasmtime.WasmtimeError, wasmtime.Trap) as error:
        print(f"headrace wasm: {options.guest}: {error}", file=sys.stderr)
        return 1
