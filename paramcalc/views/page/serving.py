"""The page served on this machine alone: loopback, one document, nothing else."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from paramcalc.errors import InputError

HOST = "127.0.0.1"
_HERE = re.compile(r"(127\.0\.0\.1|localhost)(:\d{1,5})?", re.ASCII | re.IGNORECASE)
"""This machine's names as a browser sends them: no port where it is 80, in any case."""


@contextmanager
def serving(text: str, port: int = 0) -> Iterator[ThreadingHTTPServer]:
    """Bind a page to a port of 127.0.0.1 (0: any free one); ``serve_forever`` then answers.

    Raises ``InputError`` where the port cannot be had.
    """
    if not 0 <= port <= 65_535:
        raise InputError(f"port = {port}: must be from 0 to 65,535; 0 takes a free one")
    body = text.encode("utf-8")

    class Handler(_Page):
        page = body

    try:
        server = ThreadingHTTPServer((HOST, port), Handler)
    except OSError as error:
        why = (error.strerror or str(error)).lower()
        raise InputError(f"port = {port}: {why}; take another, or 0 for a free one") from None
    try:
        yield server
    finally:
        server.server_close()


def address(server: ThreadingHTTPServer) -> str:
    """Return where the page is."""
    return f"http://{HOST}:{server.server_port}/"


class _Page(BaseHTTPRequestHandler):
    page = b""
    server_version = "paramcalc"
    sys_version = ""

    def do_GET(self) -> None:
        self._answer(with_body=True)

    def do_HEAD(self) -> None:
        self._answer(with_body=False)

    def _answer(self, *, with_body: bool) -> None:
        # a name that someone points at this machine is not this machine's: no page for it
        named = _HERE.fullmatch(self.headers.get("Host", "").strip()) is not None
        path = self.path.partition("?")[0]
        found = named and path == "/"
        body = self.page if found else b"not here\n"
        self.send_response(200 if found else 404 if named else 403)
        self.send_header("Content-Type", f"text/{'html' if found else 'plain'}; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        self.send_header("X-Content-Type-Options", "nosniff")
        self.send_header("Cache-Control", "no-store")
        self.end_headers()
        if with_body:
            self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing: one reader, one page."""
