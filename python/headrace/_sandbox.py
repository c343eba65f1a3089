"""What a guest of `headrace wasm` gets of the machine: folders, variables, memory and time."""

from __future__ import annotations

import threading
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ._wasm_binary import contents_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    import wasmtime

    from ._component import Memories

#: Bytes of a table's element, and the part of a guest's memory that its tables may grow to.
ELEMENT, TABLES_PART = 8, 8
#: Seconds that a guest has to come back from its host after its time.
GRACE = 0.5


class OverrunError(Exception):
    """The guest ran longer than it may."""


@dataclass(frozen=True)
class Room:
    """How a guest's bytes are divided: those of all its memories; tables, and the elements of each."""

    memories: int
    tables: int = 0
    elements: int = 0


def divided(most_bytes: int, binary: bytes) -> Room:
    """Its tables get what they begin with, and may grow within their part; the rest is its memories'.

    Errors: ValueError where the tables alone are beyond the bytes.
    """
    tables = contents_of(binary).tables
    if not tables:
        return Room(most_bytes)
    least = max(least for least, _ in tables)
    part = most_bytes // TABLES_PART // ELEMENT // len(tables)
    elements = max(least, *(part if most is None else min(most, part) for _, most in tables))
    of_tables = len(tables) * elements * ELEMENT
    if of_tables > most_bytes:
        raise ValueError(
            f"its {len(tables)} tables of up to {elements} elements need {of_tables} bytes of memory, and "
            f"--max-memory is {most_bytes}"
        )
    return Room(max(most_bytes - of_tables, 1), len(tables), elements)


@dataclass(frozen=True)
class Sandbox:
    """What a guest gets of the machine."""

    arguments: Sequence[str] = ()
    #: Its variables, all of them.
    environment: Mapping[str, str] = field(default_factory=dict)
    #: Its names of folders, and the folders; it may read and write in them.
    folders: Mapping[str, str] = field(default_factory=dict)
    #: Bytes of its memories and tables, and again as many of a component's tensors; seconds until its end.
    max_memory: int | None = None
    max_time: float | None = None

    def room(self, binary: bytes) -> Room | None:
        return None if self.max_memory is None else divided(self.max_memory, binary)

    def engine(self, memories: Memories | None = None, *, caches: bool = False) -> wasmtime.Engine:
        """memories: which the guest's are of; caches: what is compiled is kept in wasmtime's own folder: an
        interpreter takes half a minute."""
        import wasmtime

        config = wasmtime.Config()
        config.epoch_interruption = self.max_time is not None
        if self.max_memory is not None:
            config.wasm_gc = False  # whose objects are in no memory that is counted
        if memories is not None:
            memories.define(config)
        if caches:
            config.cache = True
        return wasmtime.Engine(config)

    def store(self, engine: wasmtime.Engine, name: str, room: Room | None) -> wasmtime.Store:
        import wasmtime

        store = wasmtime.Store(engine)
        if room is not None:
            store.set_limits(memory_size=room.memories, table_elements=room.elements, tables=room.tables)
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
    def clock(
        self, engine: wasmtime.Engine, cancel: Callable[[], None], give_up: Callable[[str], None] | None
    ) -> Iterator[None]:
        """Ends what runs in the engine when its time is over. cancel: ends what the guest computes. give_up:
        what is left to do with a guest that waits in a call of WASI, which nothing can end; it is told why.

        Errors: OverrunError, whatever the guest made of its end.
        """
        if self.max_time is None:
            yield
            return
        is_over, has_ended = threading.Event(), threading.Event()
        why = f"it ran longer than {self.max_time:g} seconds, its --max-time, and was ended"

        def end() -> None:
            is_over.set()
            engine.increment_epoch()
            cancel()
            if give_up is not None and not has_ended.wait(GRACE):
                give_up(why)

        timer = threading.Timer(self.max_time, end)
        timer.daemon = True
        timer.start()
        try:
            yield
        finally:
            has_ended.set()
            timer.cancel()
            if is_over.is_set():
                raise OverrunError(why) from None
