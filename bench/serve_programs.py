"""The servers that bench/serve.py compares, as processes that stop while the other one is measured."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Sequence
from pathlib import Path

from raw_http import HOST

START_SECONDS = 120


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        return probe.getsockname()[1]


def environment() -> dict[str, str]:
    """The user's, without what would be options of either server."""
    return {name: value for name, value in os.environ.items() if not name.startswith("LLAMA_")}


def end_with_the_servers() -> None:
    """Lets SIGTERM raise SystemExit, so that no stopped server outlives the benchmark."""
    signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))


class Program:
    """A server that answers on `port` from its construction on; its output goes to `log`."""

    def __init__(self, name: str, command: Sequence[object], flags: Sequence[object], log: Path) -> None:
        self.name, self.log, self.port = name, log, free_port()
        arguments = [*command, *flags, "--host", HOST, "--port", self.port]
        with log.open("wb") as output:
            self.process = subprocess.Popen(
                [str(argument) for argument in arguments],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                env=environment(),
            )
        self._wait()

    def _wait(self) -> None:
        end = time.monotonic() + START_SECONDS
        while not self._is_ready():
            if self.process.poll() is not None or time.monotonic() > end:
                self.stop()
                tail = self.log.read_text(errors="replace")[-2000:]
                raise SystemExit(f"{self.name} does not listen; the end of its log:\n{tail}")
            time.sleep(0.1)

    def _is_ready(self) -> bool:
        """While it loads its model it says 503."""
        try:
            urllib.request.urlopen(f"http://{HOST}:{self.port}/health", timeout=5)
        except (OSError, urllib.error.HTTPError):
            return False
        return True

    def pause(self) -> None:
        """It keeps its memory and its connections, and takes no time of a processor."""
        self.process.send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        self.process.send_signal(signal.SIGCONT)

    def cpu_seconds(self) -> float:
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def resident_kib(self) -> int:
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(status.partition("VmRSS:")[2].split()[0])

    def descriptors(self) -> int:
        return len(os.listdir(f"/proc/{self.process.pid}/fd"))

    def threads(self) -> int:
        return len(os.listdir(f"/proc/{self.process.pid}/task"))

    def stop(self) -> int:
        """Its exit status, negative where a signal ended it."""
        if self.process.poll() is None:
            self.resume()
            self.process.terminate()
            try:
                return self.process.wait(timeout=60)
            except subprocess.TimeoutExpired:
                self.process.kill()
        return self.process.wait()
