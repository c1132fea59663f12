"""A local web server for a folder, with compression, caching and persistent connections."""

from __future__ import annotations

import mimetypes
import posixpath
import re
import sys
import threading
import zlib
from contextlib import contextmanager
from functools import lru_cache
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import quote, unquote

from h3sim.importers.content_encoding import gzipped, is_compressible, mime_of_extension
from h3sim.schema import resolved_within
from h3sim.values.errors import needing_extra

if TYPE_CHECKING:
    from collections.abc import Iterator


COMPRESSIONS = ("gzip", "br", "none")
_BROTLI_QUALITY = 5
"""Quality with which servers compress responses as they are requested."""
_MAX_BODY_BYTES = 64 * 2**20
"""Largest request body, which is read and discarded."""
_READ_SIZE_BYTES = 2**16
_INDEX_FILE = "index.html"
_IDLE_TIMEOUT_S = 60.0
"""Idle time after which a connection is closed."""
_CONTENT_LENGTH = re.compile(r"[0-9]{1,18}", re.ASCII)
"""A Content-Length (RFC 9110 § 8.6), of as many digits as any body has."""


class Answer(NamedTuple):
    """Response to one path: status, header fields and body as on the wire."""

    status: HTTPStatus
    fields: tuple[tuple[str, str], ...]
    body: bytes


class Site:
    """Static site: the files below *root*, compressed once with "gzip", "br" or "none".

    Nothing outside *root* is served, through paths or symbolic links.

    Raises:
        MissingExtraError: for "br", if no brotli library is installed.
    """

    def __init__(self, root: Path, compression: str = "gzip") -> None:
        self.root = root.resolve()
        self.compression = compression
        # Fail now, not in a server thread, if its library is missing.
        compressed(b"", compression)
        # Each file is read and compressed once: repeated loads must not wait for that.
        self._response_of_file = lru_cache(maxsize=None)(self._read_response)

    def answer(self, target: str, accepted: str = "gzip, br") -> Answer:
        """Return the response to a request target; for a folder that of its index.html."""
        codings = {coding.partition(";")[0].strip() for coding in accepted.split(",")}
        path = target.partition("#")[0].partition("?")[0]
        try:
            return self._answer_file(path, compress=self.compression in codings)
        except OSError:  # a name that is too long, an unreadable file
            return _not_found()

    def _answer_file(self, path: str, *, compress: bool) -> Answer:
        clean = posixpath.normpath(unquote(path).lstrip("/"))
        is_malformed = "\0" in clean or "\\" in clean or posixpath.isabs(clean)
        is_outside = is_malformed or clean.startswith("..")
        # It follows links, so that none leads outside.
        file = None if is_outside else resolved_within(self.root, self.root / clean)
        if file is not None and file.is_dir():
            if not path.endswith("/"):
                fields = (("Location", f"{path}/"), ("Content-Length", "0"))
                return Answer(HTTPStatus.MOVED_PERMANENTLY, fields, b"")
            path, file = f"{path}{_INDEX_FILE}", resolved_within(self.root, file / _INDEX_FILE)
        if file is None or not file.is_file():
            return _not_found()
        # By the requested name: a link's target may have another extension.
        return self._response_of_file(file, PurePosixPath(unquote(path)).suffix[1:], compress)

    def _read_response(self, file: Path, extension: str, compress: bool) -> Answer:
        plain = file.read_bytes()
        mime = mime_of_extension(extension) or mimetypes.guess_type(f"x.{extension}")[0]
        mime = mime or "application/octet-stream"
        compressible = is_compressible(mime)
        body = compressed(plain, self.compression) if compress and compressible else plain
        fields = [
            ("Content-Type", f"{mime}; charset=utf-8" if _is_utf8_text(mime, plain) else mime),
            ("Content-Length", str(len(body))),
            ("Cache-Control", "public, max-age=31536000"),
            ("ETag", f'"{zlib.crc32(plain):08x}"'),
        ]
        if compressible:
            fields.append(("Vary", "Accept-Encoding"))
        if compress and compressible:
            fields.append(("Content-Encoding", self.compression))
        return Answer(HTTPStatus.OK, tuple(fields), body)


def _not_found() -> Answer:
    body = b"<!DOCTYPE html><title>404</title><p>There is no such file."
    fields = (("Content-Type", "text/html"), ("Content-Length", str(len(body))))
    return Answer(HTTPStatus.NOT_FOUND, fields, body)


def _is_utf8_text(mime: str, plain: bytes) -> bool:
    """Return whether a text is UTF-8, so that declaring it is safe."""
    if not mime.startswith("text/"):
        return False
    try:
        plain.decode()
    except UnicodeDecodeError:
        return False
    return True


def compressed(plain: bytes, compression: str) -> bytes:
    """Encode *plain* as servers do: gzip at level 6, brotli at quality 5, or identity.

    Raises:
        MissingExtraError: for "br", if no brotli library is installed.

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
    """Serve *site* on a free local port; yield its URL without trailing slash.

    Requests for other hosts are refused, which prevents DNS rebinding attacks by web pages.
    """

    # One class per server, as handlers find the site in their class.
    class Handler(_Handler):
        pass

    Handler.site = site
    server = _Server(("127.0.0.1", 0), Handler)
    Handler.authority = f"127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield f"http://{Handler.authority}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def address_of(base: str, path: str) -> str:
    """Return the URL of a file of a site.

    >>> address_of("http://127.0.0.1:80", "a b/index.html")
    'http://127.0.0.1:80/a%20b/index.html'
    """
    return f"{base}/{quote(path)}"


class _Server(ThreadingHTTPServer):
    # Browsers with open connections must not delay the shutdown.
    daemon_threads = True
    block_on_close = False
    request_queue_size = 64

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignore connections closed by the browser, which are normal."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)


class _RefusedRequestError(Exception):
    """Request answered with an error (status and reason), after which the connection is closed."""


class _Handler(BaseHTTPRequestHandler):
    site: Site
    authority: str
    """Host and port that requests must name."""
    protocol_version = "HTTP/1.1"
    server_version = "h3sim"
    sys_version = ""
    timeout = _IDLE_TIMEOUT_S
    disable_nagle_algorithm = True
    wbufsize = -1  # header and body are sent together

    def parse_request(self) -> bool:
        """Read a request with its body; refuse malformed ones and those for other hosts."""
        if not super().parse_request():
            return False
        try:
            self._check_target()
            self._skip_body(self._body_bytes())
        except _RefusedRequestError as refused:
            # The start of the next request is unknown.
            self.close_connection = True
            self.send_error(*refused.args)
            self.wfile.flush()
            return False
        return True

    def do_GET(self) -> None:
        answer = self.site.answer(self.path, self.headers.get("Accept-Encoding", ""))
        self.send_response(answer.status)
        for name, value in answer.fields:
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(answer.body)

    do_HEAD = do_GET  # noqa: N815 - as the base calls it
    # Like a file server: posted bodies are read and discarded.
    do_POST = do_GET  # noqa: N815

    def _check_target(self) -> None:
        """Refuse a request with no host, several hosts or another host (RFC 9112 § 3.2)."""
        hosts = self.headers.get_all("Host", [])
        if len(hosts) != 1 or not self.path.startswith("/"):
            raise _RefusedRequestError(HTTPStatus.BAD_REQUEST, "must name one host and a path")
        if hosts[0].strip() != self.authority:
            raise _RefusedRequestError(HTTPStatus.MISDIRECTED_REQUEST, "no such host is served")

    def _body_bytes(self) -> int:
        """Return the length of the body (RFC 9112 § 6)."""
        if self.headers.get("Transfer-Encoding") is not None:
            raise _RefusedRequestError(HTTPStatus.LENGTH_REQUIRED, "only Content-Length is read")
        lengths = [length.strip(" \t") for length in self.headers.get_all("Content-Length", ["0"])]
        if len(lengths) != 1 or _CONTENT_LENGTH.fullmatch(lengths[0]) is None:
            raise _RefusedRequestError(HTTPStatus.BAD_REQUEST, "malformed Content-Length")
        n_bytes = int(lengths[0])
        if n_bytes > _MAX_BODY_BYTES:
            raise _RefusedRequestError(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "too large a body")
        return n_bytes

    def _skip_body(self, n_bytes: int) -> None:
        while n_bytes > 0:
            data = self.rfile.read(min(n_bytes, _READ_SIZE_BYTES))
            if not data:
                raise _RefusedRequestError(HTTPStatus.BAD_REQUEST, "the body is cut off")
            n_bytes -= len(data)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base's name
        """Log nothing."""
