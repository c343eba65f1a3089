"""The checkout over HTTP on this machine, for pages that are cross-origin isolated or not."""

import socket
import threading
from contextlib import contextmanager, suppress
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer

from provision.base import BUILD, ROOT

WPT = ROOT.parent / "shared/wpt"
#: Other folders by the beginnings of paths.
FOLDERS = {"/wpt/": WPT, "/models/": BUILD / "models", "/shared/facts/": ROOT.parent / "shared/facts"}
ISOLATION = {"Cross-Origin-Opener-Policy": "same-origin", "Cross-Origin-Embedder-Policy": "require-corp"}
TYPES = {".mjs": "text/javascript", ".wasm": "application/wasm"}


class Handler(SimpleHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    extensions_map = SimpleHTTPRequestHandler.extensions_map | TYPES

    def __init__(self, headers, *arguments, **more):
        self._headers = headers
        super().__init__(*arguments, directory=str(ROOT), **more)

    def translate_path(self, path):
        for beginning, folder in FOLDERS.items():
            if path.startswith(beginning):
                self.directory = str(folder)
                return super().translate_path(path[len(beginning) - 1 :])
        self.directory = str(ROOT)
        return super().translate_path(path)

    def end_headers(self):
        for name, value in self._headers.items():
            self.send_header(name, value)
        self.send_header("Service-Worker-Allowed", "/")
        self.send_header("Cache-Control", "no-cache")  # a checkout changes
        super().end_headers()

    def log_message(self, *_):
        pass


class Server(ThreadingHTTPServer):
    """Ends its connections with it: a browser asks by those that it has."""

    def __init__(self, *arguments):
        self._open = set()
        super().__init__(*arguments)

    def process_request(self, request, client_address):
        self._open.add(request)
        super().process_request(request, client_address)

    def shutdown_request(self, request):
        self._open.discard(request)
        super().shutdown_request(request)

    def server_close(self):
        for request in list(self._open):
            with suppress(OSError):
                request.shutdown(socket.SHUT_RDWR)
        super().server_close()


@contextmanager
def serving(*, isolated=True, port=0, policy=None):
    """The address, until the block ends. policy: the Content-Security-Policy of every answer."""
    headers = dict(ISOLATION) if isolated else {}
    if policy:
        headers["Content-Security-Policy"] = policy
    server = Server(("127.0.0.1", port), partial(Handler, headers))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://localhost:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()
