"""`headrace wasm`: runs a WebAssembly guest that uses models through WASI-NN, under wasmtime.

A guest is a core module, whose imports of `wasi_ephemeral_nn` are served by libwasi_nn_llamacpp.so, or a
component, whose imports of `wasi:nn` and `headrace:nn` are (_component.py). The library reads and writes a
module's memory where it is, and checks every pointer of a guest against it (_module_functions.py).
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
import tempfile
import threading
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from ._wasi_nn import Backend, find_library

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    import wasmtime

    from ._component import Components
    from ._module_functions import Functions


class WasiNn:
    """One backend of libwasi_nn_llamacpp.so, and the functions that a guest imports."""

    def __init__(
        self,
        library: Path,
        config: Mapping[str, object],
        on_failed_load: Callable[[str], None] | None = None,
    ) -> None:
        """on_failed_load: gets the name that a guest could not load."""
        self.backend = Backend(library, config)
        self._on_failed_load = on_failed_load
        self._functions: list[Functions] = []

    def close(self) -> None:
        self.backend.close()

    def define(self, linker: wasmtime.Linker) -> None:
        """Gives the imports of `wasi_ephemeral_nn` to a linker, which needs them as long as this lives."""
        from ._module_functions import Functions

        self._functions.append(Functions(self.backend, self._on_failed_load))
        self._functions[-1].define(linker)

    def components(self, most_bytes: int | None = None) -> Components:
        """What a component imports, for one guest; most_bytes: of its tensors, which are in the host."""
        from ._component import Components

        return Components(self.backend, self._on_failed_load, most_bytes)


@dataclass(frozen=True)
class Sandbox:
    """What a guest gets of the machine."""

    arguments: Sequence[str] = ()
    #: Its variables, all of them.
    environment: Mapping[str, str] = field(default_factory=dict)
    #: Its names of folders, and the folders; it may read and write in them.
    folders: Mapping[str, str] = field(default_factory=dict)
    #: Bytes of its memory, and again as many of a component's tensors; seconds until it is ended.
    max_memory: int | None = None
    max_time: float | None = None

    def engine(self, *, caches: bool = False) -> wasmtime.Engine:
        """caches: what is compiled is kept in wasmtime's own folder: an interpreter takes half a minute."""
        import wasmtime

        config = wasmtime.Config()
        config.epoch_interruption = self.max_time is not None
        if caches:
            config.cache = True
        return wasmtime.Engine(config)

    def store(self, engine: wasmtime.Engine, name: str) -> wasmtime.Store:
        import wasmtime

        store = wasmtime.Store(engine)
        if self.max_memory is not None:
            store.set_limits(memory_size=self.max_memory)
        if self.max_time is not None:
            store.set_epoch_deadline(1)
        wasi = wasmtime.WasiConfig()
        wasi.argv = [name, *self.arguments]
        wasi.inherit_stdin()
        wasi.inherit_stdout()
        wasi.inherit_stderr()
        wasi.env = list(self.environment.items())
        for guests_name, folder in self.folders.items():
            wasi.preopen_dir(folder, guests_name)
        store.set_wasi(wasi)
        return store

    @contextmanager
    def clock(self, engine: wasmtime.Engine) -> Iterator[None]:
        """Ends what runs in the engine when its time is over."""
        if self.max_time is None:
            yield
            return
        timer = threading.Timer(self.max_time, engine.increment_epoch)
        timer.daemon = True
        timer.start()
        try:
            yield
        finally:
            timer.cancel()


def is_component(guest: Path) -> bool:
    """Whether a file is a component; else it is a core module, or none of both."""
    with guest.open("rb") as file:
        return file.read(8) == b"\0asm\x0d\0\1\0"


def _run_module(guest: Path, sandbox: Sandbox, nn: WasiNn) -> int:
    import wasmtime

    engine = sandbox.engine()
    module = wasmtime.Module.from_file(engine, os.fspath(guest))
    store = sandbox.store(engine, guest.name)
    linker = wasmtime.Linker(engine)
    linker.define_wasi()
    nn.define(linker)
    with sandbox.clock(engine):
        start = linker.instantiate(store, module).exports(store).get("_start")
        if not isinstance(start, wasmtime.Func):
            raise ValueError("it exports no _start, and so is no WASI program")
        try:
            start(store)
        except wasmtime.ExitTrap as exit_trap:
            return exit_trap.code
    return 0


def _run_component(guest: Path, sandbox: Sandbox, nn: WasiNn) -> int:
    import wasmtime
    from wasmtime import component as model

    engine = sandbox.engine(caches=True)
    component = model.Component.from_file(engine, guest)
    store = sandbox.store(engine, guest.name)
    linker = model.Linker(engine)
    linker.add_wasip2()
    imports = nn.components(sandbox.max_memory)
    imports.define(linker)
    commands = [name for name in component.type.exports(engine) if name.startswith("wasi:cli/run@")]
    if not commands:
        raise ValueError("it exports no wasi:cli/run, and so is no command")
    with sandbox.clock(engine):
        try:
            instance = linker.instantiate(store, component)
            run = instance.get_func(
                store, instance.get_export_index(store, "run", instance.get_export_index(store, commands[0]))
            )
            result = run(store)
        except wasmtime.ExitTrap as exit_trap:
            return exit_trap.code
        except wasmtime.WasmtimeError:
            if imports.failure:
                raise ValueError(imports.failure) from None
            raise
    return 1 if isinstance(result, model.Variant) and result.tag == "err" else 0


def run_guest(
    guest: Path,
    aliases: Mapping[str, str],
    config: Mapping[str, object] | None = None,
    library: Path | None = None,
    sandbox: Sandbox | None = None,
) -> int:
    """Runs a WASI program, a core module or a component, and returns its exit status.

    aliases: names that the guest may load, and the models' paths. Others are looked for in
    HEADRACE_MODEL_ROOT or the root that HEADRACE_CONFIG names; without either there are none.
    config: as init_backend_with_config takes it, see docs/parameters.md.
    """
    sandbox = sandbox or Sandbox()
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
                if is_component(guest):
                    return _run_component(guest, sandbox, nn)
                return _run_module(guest, sandbox, nn)
            finally:
                nn.close()
        finally:
            if not confined:
                del os.environ["HEADRACE_MODEL_ROOT"]


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


def _bytes(text: str) -> int:
    if not text.isdecimal() or int(text) == 0:
        raise argparse.ArgumentTypeError(f"takes a number of bytes, at least 1, not {text!r}")
    return int(text)


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds < float("inf"):
        raise argparse.ArgumentTypeError(f"takes a number of seconds above 0, not {text!r}")
    return seconds


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="headrace wasm",
        description="Run a WebAssembly guest, a module or a component, that uses models through WASI-NN.",
        usage="%(prog)s GUEST.wasm --model FILE [--alias NAME=PATH] [--config JSON] [--env NAME=VALUE] "
        "[--dir FOLDER[::NAME]] [--max-memory BYTES] [--max-time SECONDS] [-- ARGUMENT ...]",
        epilog="What follows -- is the guest's.",
    )
    parser.add_argument("guest", type=Path, metavar="GUEST.wasm")
    parser.add_argument("--model", metavar="FILE", help="the model that the guest loads as 'default'")
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
    parser.add_argument(
        "--max-memory", type=_bytes, metavar="BYTES", help="of the guest, which cannot grow beyond them"
    )
    parser.add_argument(
        "--max-time", type=_seconds, metavar="SECONDS", help="until the guest is ended, whatever it does"
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
    if not options.guest.is_file():
        found = "is no file" if options.guest.exists() else "there is no such file"
        print(f"headrace wasm: {options.guest}: {found}", file=sys.stderr)
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
        sandbox = Sandbox(
            arguments[end + 1 :], dict(options.env), dict(options.dir), options.max_memory, options.max_time
        )
        return run_guest(options.guest, aliases, options.config, options.library, sandbox)
    except (OSError, ValueError, wasmtime.WasmtimeError, wasmtime.Trap) as error:
        print(f"headrace wasm: {options.guest}: {error}", file=sys.stderr)
        return 1
