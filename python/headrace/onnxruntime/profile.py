"""A trace of a session in the form that ONNX Runtime writes and chrome://tracing and Perfetto read."""

from __future__ import annotations

import json
import os
import threading
import time
from datetime import datetime
from typing import Any

from .providers import CPU


class Profile:
    """Events since it was made. Threads may add some at the same time."""

    def __init__(self) -> None:
        self.start_ns = time.time_ns()
        self._begin = time.perf_counter()
        self._events: list[dict[str, Any]] = []

    def now_us(self) -> float:
        return (time.perf_counter() - self._begin) * 1e6

    def add(
        self, name: str, begin_us: float, kind: str = "Session", end_us: float | None = None, **args: str
    ):
        end_us = self.now_us() if end_us is None else end_us
        self._events.append(
            {
                "cat": kind,
                "pid": os.getpid(),
                "tid": threading.get_native_id(),
                "dur": round(end_us - begin_us),
                "ts": round(begin_us),
                "ph": "X",
                "name": name,
                "args": args,
            }
        )

    def add_nodes(self, begin_us: float, nodes: list[dict[str, Any]]) -> None:
        """nodes: of a Headrace session's statistics; their times count from the run's begin."""
        for index, node in enumerate(nodes):
            begin = begin_us + node["start_us"]
            self.add(
                f"{node['label'] or node['title']}_kernel_time",
                begin,
                "Node",
                begin + node["duration_us"],
                op_name=node["title"].removesuffix(f" ({node['label']})"),
                provider=CPU,
                node_index=str(index),
                implementation=node["implementation"],
                device=node["device"],
            )

    def write(self, prefix: str) -> str:
        """The file's name."""
        moment = datetime.now()
        path = f"{prefix}_{moment:%Y-%m-%d_%H-%M-%S}_{moment.microsecond // 1000:03}.json"
        with open(path, "w") as file:
            file.write("[\n" + ",\n".join(map(json.dumps, self._events)) + "\n]\n")
        return path
