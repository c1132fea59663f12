"""Serves a folder on this machine as a web server would: compressed, cacheable, kept alive."""

from __future__ import annotations

import mimetypes
import posixpath
import sys
import threading
import zlib
from contextlib import contextmanager
from functools import lru_cache
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import quote, unquote, urlsplit

from h3sim.capture.markup.compression import gzipped, is_compressible, mime_of_extension
from h3sim.errors import needing_extra

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

__all__ = ["COMPRESSIONS", "Answer", "Site", "address_of", "compressed", "served"]

COMPRESSIONS = ("gzip", "br", "none")
_BROTLI_QUALITY = 5


class Answer(NamedTuple):
    """What a site answers to one path: status, header fields and body as on the wire."""

    status: HTTPStatus
    fields: tuple[tuple[str, str], ...]
    body: bytes


class Site:
    """The files below *root*, each compressed once with *compression* ("gzip", "br" or "none").

    Raises:
        MissingExtraError: for "br", if there is no brotli library.
    """

    def __init__(self, root: Path, compression: str = "gzip") -> None:
        self.root = root.resolve()
        self.compression = compression
        # Now, and not in a thread of the server, if there is no library for it.
        compressed(b"", compression)
        self._answer = lru_cache(maxsize=None)(self._read)

    def answer(self, target: str, accepted: str = "gzip, br") -> Answer:
        """Return the answer to a request target; a folder answers with its index.html."""
        codings = {coding.partition(";")[0].strip() for coding in accepted.split(",")}
        return self._answer(urlsplit(target).path, self.compression in codings)

    def _read(self, path: str, compress: bool) -> Answer:
        file = self._file(unquote(path))
        if file is not None and file.is_dir():
            if not path.endswith("/"):
                fields = (("Location", f"{path}/"), ("Content-Length", "0"))
                return Answer(HTTPStatus.MOVED_PERMANENTLY, fields, b"")
            file = file / "index.html"
        if file is None or not file.is_file():
            body = b"<!DOCTYPE html><title>404</title><p>There is no such file."
            fields = (("Content-Type", "text/html"), ("Content-Length", str(len(body))))
            return Answer(HTTPStatus.NOT_FOUND, fields, body)
        return self._found(file, compress)

    def _file(self, path: str) -> Path | None:
        """Return the file that *path* names, None where it leads out of the site."""
        clean = posixpath.normpath(path.lstrip("/"))
        if clean.startswith("..") or "\0" in clean or posixpath.isabs(clean):
            return None
        return self.root / clean

    def _found(self, file: Path, compress: bool) -> Answer:
        plain = file.read_bytes()
        mime = mime_of_extension(file.suffix[1:]) or mimetypes.guess_type(file.name)[0]
        mime = mime or "application/octet-stream"
        worth = is_compressible(mime)
        body = compressed(plain, self.compression) if compress and worth else plain
        fields = [
            ("Content-Type", f"{mime}; charset=utf-8" if _is_ours(mime, plain) else mime),
            ("Content-Length", str(len(body))),
            ("Cache-Control", "public, max-age=31536000"),
            ("ETag", f'"{zlib.crc32(plain):08x}"'),
        ]
        if worth:
            fields.append(("Vary", "Accept-Encoding"))
        if compress and worth:
            fields.append(("Content-Encoding", self.compression))
        return Answer(HTTPStatus.OK, tuple(fields), body)


def _is_ours(mime: str, plain: bytes) -> bool:
    """Whether a text is UTF-8, so that saying so does not break it."""
    if not mime.startswith("text/"):
        return False
    try:
        plain.decode()
    except UnicodeDecodeError:
        return False
    return True


def compressed(plain: bytes, compression: str) -> bytes:
    """Return *plain* as a server sends it: gzip at level 6, brotli at quality 5, or as it is.

    Raises:
        MissingExtraError: for "br", if there is no brotli library.

    >>> len(compressed(bytes(1000), "gzip")), len(compressed(bytes(1000), "none"))
    (29, 1000)
    """
    if compression == "gzip":
        return gzipped(plain)
    if compression == "br":
        with needing_extra("brotli", "record"):
            import brotli  # type: ignore[import-untyped]
        packed: bytes = brotli.compress(plain, quality=_BROTLI_QUALITY)
        return packed
    return plain


@contextmanager
def served(site: Site) -> Iterator[str]:
    """Serve *site* on a free port of this machine; yield its address, with no slash behind."""

    # Of each server its own, as handlers find the site at their class.
    class Handler(_Handler):
        pass

    Handler.site = site
    server = _Server(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def address_of(base: str, path: str) -> str:
    """Return the address of a file of a site.

    >>> address_of("http://127.0.0.1:80", "a b/index.html")
    'http://127.0.0.1:80/a%20b/index.html'
    """
    return f"{base}/{quote(path)}"


class _Server(ThreadingHTTPServer):
    # A browser that keeps its connections open must not hold up the end.
    daemon_threads = True
    block_on_close = False
    request_queue_size = 64

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing of a browser that hung up: one that is ended, or wants no more, does."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)


class _Handler(BaseHTTPRequestHandler):
    site: Site
    protocol_version = "HTTP/1.1"
    server_version = "h3sim"
    sys_version = ""
    disable_nagle_algorithm = True
    wbufsize = -1  # header and body leave together

    def do_GET(self) -> None:
        answer = self.site.answer(self.path, self.headers.get("Accept-Encoding", ""))
        self.send_response(answer.status)
        for name, value in answer.fields:
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(answer.body)

    do_HEAD = do_GET  # noqa: N815 - as the base calls it

    def do_POST(self) -> None:
        """Answer like a file server: a body that is posted is read and forgotten."""
        self.rfile.read(int(self.headers.get("Content-Length") or 0))
        self.do_GET()

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base's name
        """Say nothing."""
