"""Hosts that serve their devices by RPC: network namespaces of this machine, or its loopback.

Used by the tests and benchmarks of models over several hosts.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import signal
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).resolve().parent.parent
# Tests of a wheel set the variable: its own program serves.
HEADRACE = Path(os.environ.get("HEADRACE_PROGRAM") or ROOT / "build/bin/headrace")
SLOW_LINK = ROOT / "build/bin/tests/slow_link"
PORT = 50052


def ip(*arguments: object) -> subprocess.CompletedProcess:
    return subprocess.run(["ip", *map(str, arguments)], capture_output=True, text=True, check=False)


def tc(*arguments: object) -> subprocess.CompletedProcess:
    return subprocess.run(["tc", *map(str, arguments)], capture_output=True, text=True, check=False)


def why_no_namespaces() -> str:
    """Why this process can make no network namespaces with links; empty when it can."""
    if not shutil.which("ip"):
        return "there is no program ip (iproute2)"
    name = f"hrprobe{os.getpid()}"
    try:
        for step in (
            ("netns", "add", name),
            ("link", "add", f"{name[:14]}", "type", "veth", "peer", "netns", name),
        ):
            if (done := ip(*step)).returncode:
                return f"ip {' '.join(step)}: {done.stderr.strip()}"
    finally:
        ip("netns", "del", name)
    return ""


def why_no_netem() -> str:
    """Why links cannot be slowed down by the kernel; empty when they can."""
    if not shutil.which("tc"):
        return "there is no program tc (iproute2)"
    name = f"hrnetem{os.getpid()}"
    ip("link", "add", name[:14], "type", "veth")
    done = tc("qdisc", "add", "dev", name[:14], "root", "netem", "delay", "1ms")
    ip("link", "del", name[:14])
    return done.stderr.strip() if done.returncode else ""


def _remove_abandoned() -> None:
    """Namespaces of killed processes, which could not do it: their links hold our addresses."""
    for line in ip("netns", "list").stdout.splitlines():
        found = re.match(r"hr(\d+)-\d+", line)
        if found and not Path(f"/proc/{found[1]}").exists():
            for pid in ip("netns", "pids", found[0]).stdout.split():
                os.kill(int(pid), signal.SIGKILL)
            ip("netns", "del", found[0])


def _children(pid: int) -> list[int]:
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


class Host:
    """A machine's worth of network: a namespace with one link to us, or our loopback."""

    def __init__(self, number: int, in_namespace: bool) -> None:
        self.number = number
        self.namespace = f"hr{os.getpid()}-{number}" if in_namespace else ""
        self.link = f"hr{os.getpid() % 100000}-{number}"
        self.address = f"10.213.{number}.2" if in_namespace else "127.0.0.1"
        self.processes: list[subprocess.Popen] = []
        self.port = 0
        if in_namespace:
            self._connect()

    def _connect(self) -> None:
        _remove_abandoned()
        for step in (
            ("netns", "add", self.namespace),
            ("link", "add", self.link, "type", "veth", "peer", "name", "up0", "netns", self.namespace),
            ("addr", "add", f"10.213.{self.number}.1/30", "dev", self.link),
            ("link", "set", self.link, "up"),
            ("-n", self.namespace, "addr", "add", f"{self.address}/30", "dev", "up0"),
            ("-n", self.namespace, "link", "set", "up0", "up"),
            ("-n", self.namespace, "link", "set", "lo", "up"),
        ):
            if (done := ip(*step)).returncode:
                raise RuntimeError(f"ip {' '.join(step)}: {done.stderr.strip()}")

    @property
    def device(self) -> str:
        return f"rpc://{self.address}:{self.port}"

    def _start(self, *command: object) -> int:
        """Runs a program there; returns the port that it says it listens at."""
        inside = ["ip", "netns", "exec", self.namespace] if self.namespace else []
        process = subprocess.Popen(
            [*inside, *map(str, command)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        self.processes.append(process)
        said = []
        for line in process.stdout:
            said.append(line)
            if line.startswith("listening at "):
                return int(line.rsplit(":", 1)[1])
        raise RuntimeError("".join(said))

    def serve(self, *, delay_ms: float = 0, mbit: float = 0, loss: float = 0, threads: int = 1) -> None:
        """Starts the server, at the port that it had before; delay each way."""
        slow = delay_ms or mbit or loss
        relayed = slow and (not self.namespace or why_no_netem())
        own = not relayed and self.namespace
        self.port = self.port or (PORT if self.namespace else 0)
        port = self._start(
            HEADRACE, "serve-rpc", "--host", self.address if own else "127.0.0.1",
            "--port", PORT + 1 if relayed and self.namespace else 0 if relayed else self.port,
            "--threads", threads, *(["--allow-public"] if own else []),
        )  # fmt: skip
        if relayed:
            port = self._start(
                SLOW_LINK, "--listen", self.address, "--port", self.port, "--to-port", port,
                "--delay-ms", delay_ms, "--mbit", mbit, "--loss", loss,
            )  # fmt: skip
        elif slow:
            self.netem(delay_ms, mbit, loss)
        self.port = port

    def netem(self, delay_ms: float, mbit: float, loss: float) -> None:
        change = ["root", "netem", "delay", f"{delay_ms}ms", "loss", f"{100 * loss}%"]
        if mbit:
            change += ["rate", f"{mbit}mbit"]
        for command in (["dev", self.link], ["dev", "up0"]):
            inside = ["-n", self.namespace] if command[1] == "up0" else []
            done = tc(*inside, "qdisc", "replace", *command, *change)
            if done.returncode:
                raise RuntimeError(done.stderr.strip())

    def freeze(self) -> None:
        """The host hangs: its connections stay, and nothing comes from it."""
        self._signal(signal.SIGSTOP)

    def thaw(self) -> None:
        self._signal(signal.SIGCONT)

    def _signal(self, number: int) -> None:
        for process in self.processes:
            for pid in (process.pid, *_children(process.pid)):
                os.kill(pid, number)

    def plug(self, state: str) -> None:
        """Its end of the link is "up" or "down", as when somebody pulls the cable."""
        done = ip("-n", self.namespace, "link", "set", "up0", state)
        if done.returncode:
            raise RuntimeError(done.stderr.strip())

    def fail(self) -> None:
        """The host is gone at once, without a word."""
        for process in self.processes:
            process.kill()
            process.wait()
            process.stdout.close()
        self.processes = []

    def close(self) -> None:
        self.fail()
        if self.namespace:
            ip("link", "del", self.link)
            ip("netns", "del", self.namespace)


@contextlib.contextmanager
def hosts(count: int, *, in_namespaces: bool) -> Iterator[list[Host]]:
    """That many hosts that serve nothing yet."""
    made: list[Host] = []
    try:
        for number in range(count):
            made.append(Host(number, in_namespaces))
        yield made
    finally:
        for host in made:
            host.close()
