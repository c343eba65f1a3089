"""HTTP by the byte, for clients that no library would be."""

from __future__ import annotations

import json
import re
import socket
import time


def request(method: str, path: str, body: bytes = b"", headers: str = "") -> bytes:
    length = f"Content-Length: {len(body)}\r\n" if body or method == "POST" else ""
    kind = "Content-Type: application/json\r\n" if body else ""
    return f"{method} {path} HTTP/1.1\r\nHost: localhost\r\n{kind}{length}{headers}\r\n".encode() + body


def exchange(port: int, data: bytes, seconds: float = 20.0, closes: bool = False) -> bytes:
    """Sends bytes and reads until the server closes, or for so long. closes: the client sends no more."""
    with socket.create_connection(("127.0.0.1", port), timeout=seconds) as client:
        received = b""
        try:
            client.sendall(data)
            if closes:
                client.shutdown(socket.SHUT_WR)
            end = time.monotonic() + seconds
            while piece := client.recv(1 << 16):
                received += piece
                client.settimeout(max(0.01, end - time.monotonic()))
        except (TimeoutError, ConnectionError):
            pass  # it was refused before all was sent
        return received


def statuses(received: bytes) -> list[int]:
    """The statuses of the responses on one connection."""
    return [int(code) for code in re.findall(rb"(?:^|[^\n]*)HTTP/1\.1 (\d+) ", received)]


def body_of(received: bytes) -> dict:
    """The body of the only response."""
    return json.loads(received.partition(b"\r\n\r\n")[2])
