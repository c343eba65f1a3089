"""`headrace wasm`: runs a WebAssembly guest that uses models through WASI-NN, under wasmtime.

A guest is a core module, whose imports of `wasi_ephemeral_nn` are served by libwasi_nn_llamacpp.so, or a
component, whose imports of `wasi:nn` and `headrace:nn` are (_component.py). The library reads and writes a
module's memory where it is, and checks every pointer of a guest against it (_module_functions.py).
"""

from __future__ import annotations

import argparse
import difflib
import json
import os
import re
import shutil
import signal
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ._bytes_in_place import has_one_memory, with_bytes_in_place
from ._sandbox import OverrunError, Sandbox
from ._wasi_nn import Backend, find_library
from ._wasm_binary import check_is_guest, is_component

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import NoReturn

    import wasmtime

    from ._component import Components, Memories
    from ._module_functions import Functions

    GiveUp = Callable[[str], None]


class WasiNn:
    """The functions of libwasi_nn_llamacpp.so that guests import. Each guest has a backend of its own: others
    know none of its handles, and its limits are its own."""

    def __init__(
        self,
        library: Path,
        config: Mapping[str, object],
        on_failed_load: Callable[[str], None] | None = None,
    ) -> None:
        """on_failed_load: gets the name that a guest could not load."""
        self.library = library
        self._config = config
        self._on_failed_load = on_failed_load
        self._backends: list[Backend] = []
        self._functions: list[Functions] = []

    def close(self) -> None:
        """Ends what guests compute, from any thread."""
        for backend in self._backends:
            backend.close()

    def _backend(self) -> Backend:
        self._backends.append(Backend(self.library, self._config))
        return self._backends[-1]

    def define(self, linker: wasmtime.Linker) -> None:
        """Gives the imports of `wasi_ephemeral_nn` to a linker of one guest, which needs them as long as this
        lives. Calls from another store are refused."""
        from ._module_functions import Functions

        self._functions.append(Functions(self._backend(), self._on_failed_load))
        self._functions[-1].define(linker)

    def components(self, most_bytes: int | None = None, memories: Memories | None = None) -> Components:
        """What a component imports, for one guest; most_bytes: of its tensors, which are in the host;
        memories: the guest's, where its imports were changed to pass bytes in place."""
        from ._component import Components

        return Components(self._backend(), self._on_failed_load, most_bytes, memories)


def _memories(nn: WasiNn, most_bytes: int | None) -> Memories:
    from ._component import Memories

    return Memories(nn.library, most_bytes)


def _run_module(binary: bytes, name: str, sandbox: Sandbox, nn: WasiNn, give_up: GiveUp | None) -> int:
    import wasmtime

    room = sandbox.room(binary)
    engine = sandbox.engine(_memories(nn, room.memories) if room else None)
    module = wasmtime.Module(engine, binary)
    store = sandbox.store(engine, name, room)
    linker = wasmtime.Linker(engine)
    linker.define_wasi()
    nn.define(linker)
    with sandbox.clock(engine, nn.close, give_up):
        start = linker.instantiate(store, module).exports(store).get("_start")
        if not isinstance(start, wasmtime.Func):
            raise ValueError("it exports no _start, and so is no WASI program")
        try:
            start(store)
        except wasmtime.ExitTrap as exit_trap:
            return exit_trap.code
    return 0


def _compiled(engine: wasmtime.Engine, binary: bytes, *, is_in_place: bool) -> tuple[bool, Any]:
    """A component, and whether it passes bytes in place."""
    import wasmtime
    from wasmtime import component as model

    if is_in_place:
        try:
            return True, model.Component(engine, with_bytes_in_place(binary))
        except wasmtime.WasmtimeError:
            pass  # one that hands its imports on to a component inside, which wants lists
    return False, model.Component(engine, binary)


def _run_component(binary: bytes, name: str, sandbox: Sandbox, nn: WasiNn, give_up: GiveUp | None) -> int:
    import wasmtime
    from wasmtime import component as model

    room = sandbox.room(binary)
    memories = _memories(nn, room.memories if room else None)
    engine = sandbox.engine(memories, caches=True)
    # Where there are several memories, nothing says which one an import's bytes are in.
    is_in_place, component = _compiled(engine, binary, is_in_place=has_one_memory(binary))
    store = sandbox.store(engine, name, room)
    linker = model.Linker(engine)
    linker.add_wasip2()
    imports = nn.components(sandbox.max_memory, memories if is_in_place else None)
    imports.define(linker)
    commands = [name for name in component.type.exports(engine) if name.startswith("wasi:cli/run@")]
    if not commands:
        raise ValueError("it exports no wasi:cli/run, and so is no command")
    with sandbox.clock(engine, nn.close, give_up):
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


def _with_aliases(
    config: Mapping[str, object], aliases: Mapping[str, str]
) -> tuple[dict[str, object], set[str]]:
    """A configuration with aliases beside its own, which it may have in its group; and the names of all."""
    group = config.get("service")
    for key, own in config.items():
        if key.replace("-", "_") != "model_aliases":
            continue
        if not isinstance(own, dict):
            return dict(config), set(aliases)  # which the library refuses
        return {**config, key: {**own, **aliases}}, {*own, *aliases}
    if isinstance(group, dict) and any(key.replace("-", "_") == "model_aliases" for key in group):
        made, names = _with_aliases(group, aliases)
        return {**config, "service": made}, names
    return ({**config, "model_aliases": dict(aliases)} if aliases else dict(config)), set(aliases)


def _with_memory(config: Mapping[str, object], most_bytes: int | None) -> Mapping[str, object]:
    """A configuration that bounds language models, too, where it does not say so itself."""
    group = config.get("service")
    own = {*config, *(group if isinstance(group, dict) else ())}
    if most_bytes is None or any(key.replace("-", "_") == "max_memory_bytes" for key in own):
        return config
    return {**config, "max_memory_bytes": most_bytes}


def run_guest(
    guest: Path,
    aliases: Mapping[str, str],
    config: Mapping[str, object] | None = None,
    library: Path | None = None,
    sandbox: Sandbox | None = None,
    give_up: GiveUp | None = None,
) -> int:
    """Runs a WASI program, a core module or a component, and returns its exit status.

    aliases: names that the guest may load, and the models' paths, beside those that are configured. Others
    are looked for in HEADRACE_MODEL_ROOT or the root that HEADRACE_CONFIG names; without either there are
    none.
    config: as init_backend_with_config takes it, see docs/parameters.md.
    give_up: called with the reason, in another thread, when the guest's time is over and it waits in a call
    of WASI, which nothing but the end of the process ends.
    """
    sandbox = sandbox or Sandbox()
    with tempfile.TemporaryDirectory(prefix="headrace-no-models-") as empty:
        confined = os.environ.setdefault("HEADRACE_MODEL_ROOT", empty) != empty
        try:
            configured, known = _with_aliases(config or {}, aliases)

            def explain(name: str) -> None:
                if confined or name in known:
                    return  # the log has what is wrong with the file
                option = "--model FILE" if name == "default" else f"--alias {name}=FILE"
                print(f"headrace wasm: no option names the guest's model {name!r}: {option}", file=sys.stderr)

            def end(why: str) -> None:
                shutil.rmtree(empty, ignore_errors=True)
                give_up(why)

            configured = _with_memory(configured, sandbox.max_memory)
            nn = WasiNn(library or find_library(), configured, explain)
            try:
                binary = guest.read_bytes()
                check_is_guest(binary)
                run = _run_component if is_component(binary) else _run_module
                return run(binary, guest.name, sandbox, nn, end if give_up else None)
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


_EPILOG = """What follows -- is the guest's.

Examples:
    headrace wasm guest.wasm --model model.gguf -- 'What is 2+3?'
    headrace wasm guest.wasm --alias small=a.gguf --alias large=b.gguf --max-time 60 --max-memory 1073741824

Exit status: that of the guest, 1 it failed or was ended, 2 the command line is wrong"""


class _Parser(argparse.ArgumentParser):
    """Says what is wrong in one line, as the other commands do."""

    def error(self, message: str) -> NoReturn:
        unknown = re.match(r"unrecognized arguments: (--[\w-]+)", message)
        near = difflib.get_close_matches(unknown[1], self._option_string_actions) if unknown else []
        meant = f"; did you mean '{near[0]}'?" if near else ""
        self.exit(2, f"{self.prog}: {message}{meant}; {self.prog} --help explains\n")


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="headrace wasm",
        description="Run a WebAssembly guest, a module or a component, that uses models through WASI-NN.",
        usage="%(prog)s GUEST.wasm --model FILE [OPTIONS] [-- ARGUMENT ...]",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
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
        "--max-memory",
        type=_bytes,
        metavar="BYTES",
        help="of the guest's memories and tables, and again of its language models",
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
            return 1
    if not options.guest.is_file():
        found = "is no file" if options.guest.exists() else "there is no such file"
        print(f"headrace wasm: {options.guest}: {found}", file=sys.stderr)
        return 1

    def tell(why: str) -> None:
        print(f"headrace wasm: {options.guest}: {why}", file=sys.stderr, flush=True)

    def give_up(why: str) -> None:
        tell(why)
        os._exit(1)

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
        return run_guest(options.guest, aliases, options.config, options.library, sandbox, give_up)
    except (OSError, ValueError, OverrunError, wasmtime.WasmtimeError, wasmtime.Trap) as error:
        tell(str(error))
        return 1
