"""The recorder's web server under requests that no browser makes, byte by byte over sockets."""

from __future__ import annotations

import socket
import threading
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

import pytest

from h3sim.importers.chromium import web_server
from h3sim.importers.chromium.web_server import Site, served

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

SECRET = b"SECRET"


@pytest.fixture
def site(tmp_path: Path) -> Site:
    """Return a site with links of every kind, beside a secret."""
    (tmp_path / "secret.txt").write_bytes(SECRET)
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "index.html").write_bytes(SECRET)
    root = tmp_path / "site"
    (root / "sub").mkdir(parents=True)
    (root / "linked").mkdir()
    (root / "index.html").write_bytes(b"<p>home")
    (root / "sub" / "data.bin").write_bytes(b"p { color: red }")
    (root / "inside.css").symlink_to(root / "sub" / "data.bin")
    (root / "out.txt").symlink_to(tmp_path / "secret.txt")
    (root / "up").symlink_to(tmp_path)
    (root / "chain").symlink_to(root / "out.txt")
    (root / "loop").symlink_to(root / "loop")
    (root / "linked" / "index.html").symlink_to(tmp_path / "secret.txt")
    return Site(root, "none")


@contextmanager
def connected(base: str) -> Iterator[socket.socket]:
    host, _, port = base.removeprefix("http://").partition(":")
    with socket.create_connection((host, int(port)), timeout=10) as connection:
        yield connection


def answered(base: str, request: bytes) -> tuple[int, bytes]:
    """Return status and body of the answer, after which the server has closed the connection."""
    with connected(base) as connection:
        connection.sendall(request.replace(b"HOST", base.removeprefix("http://").encode()))
        answer = b""
        # What a refused request still had to say is not read, so that the end may be a reset.
        with suppress(ConnectionResetError):
            while received := connection.recv(65_536):
                answer += received
    head, _, body = answer.partition(b"\r\n\r\n")
    return int(head.split()[1]), body


def get(base: str, target: bytes) -> tuple[int, bytes]:
    return answered(base, b"GET %b HTTP/1.1\r\nHost: HOST\r\nConnection: close\r\n\r\n" % target)


@pytest.mark.parametrize(
    "target",
    [
        b"/out.txt",
        b"/chain",
        b"/up/secret.txt",
        b"/up/other/",
        b"/linked/",
        b"/loop",
        b"/../secret.txt",
        b"/%2e%2e/secret.txt",
        b"/%2e%2e%2fsecret.txt",
        b"/sub/..%2f..%2fsecret.txt",
        b"/..%5csecret.txt",
        b"/%252e%252e/secret.txt",
        b"//etc/passwd",
        b"/%2fetc/passwd",
        b"/index.html%00.txt",
        b"/" + b"a" * 5000,
        b"/" + b"a/" * 5000,
        b"/%ff%fe",
    ],
)
def test_nothing_outside_the_folder_is_served(site: Site, target: bytes) -> None:
    with served(site) as base:
        status, body = get(base, target)
        assert (status, SECRET in body, b"root:" in body) == (404, False, False)
        assert get(base, b"/index.html") == (200, b"<p>home")


def test_a_link_within_the_folder_is_followed_and_has_its_own_type(site: Site) -> None:
    with served(site) as base:
        assert get(base, b"/inside.css") == (200, b"p { color: red }")
    assert dict(site.answer("/inside.css").fields)["Content-Type"].startswith("text/css")


@pytest.mark.parametrize(
    ("head", "status"),
    [
        (b"GET / HTTP/1.1\r\nHost: rebound.example\r\n", 421),
        (b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n", 421),
        (b"GET / HTTP/1.1\r\nHost: 127.0.0.1:1\r\n", 421),
        (b"GET / HTTP/1.1\r\nHost: HOST.rebound.example\r\n", 421),
        (b"GET / HTTP/1.1\r\n", 400),
        (b"GET / HTTP/1.0\r\n", 400),
        (b"GET / HTTP/1.1\r\nHost: HOST\r\nHost: rebound.example\r\n", 400),
        (b"GET http://rebound.example/ HTTP/1.1\r\nHost: HOST\r\n", 400),
        (b"OPTIONS * HTTP/1.1\r\nHost: HOST\r\n", 400),
        (b"GET x HTTP/1.1\r\nHost: HOST\r\n", 400),
        (b"GET /" + b"a" * 70_000 + b" HTTP/1.1\r\nHost: HOST\r\n", 414),
        (b"GET / HTTP/1.1\r\nHost: HOST\r\nX: " + b"a" * 70_000 + b"\r\n", 431),
        (b"GET / HTTP/1.1\r\nHost: HOST\r\n" + b"X: a\r\n" * 500, 431),
    ],
)
def test_requests_for_another_host_or_in_another_form_are_refused(
    site: Site, head: bytes, status: int
) -> None:
    with served(site) as base:
        assert answered(base, head + b"\r\n")[0] == status
        assert get(base, b"/index.html") == (200, b"<p>home")


@pytest.mark.parametrize("method", [b"POST", b"GET", b"HEAD"])
@pytest.mark.parametrize(
    ("fields", "status"),
    [
        (b"Content-Length: x", 400),
        (b"Content-Length: -1", 400),
        (b"Content-Length: +3", 400),
        (b"Content-Length: 1_0", 400),
        (b"Content-Length: 0x10", 400),
        (b"Content-Length: \xb2", 400),
        (b"Content-Length:", 400),
        (b"Content-Length: 3, 4", 400),
        (b"Content-Length: 3\r\nContent-Length: 4", 400),
        (b"Content-Length: " + b"9" * 5000, 400),
        (b"Content-Length: 999999999999", 413),
        (b"Transfer-Encoding: chunked", 411),
    ],
)
def test_a_malformed_length_is_refused_at_once(
    site: Site, method: bytes, fields: bytes, status: int
) -> None:
    with served(site) as base:
        request = b"%b / HTTP/1.1\r\nHost: HOST\r\n%b\r\n\r\n" % (method, fields)
        assert answered(base, request)[0] == status


def test_a_body_is_read_and_is_not_the_next_request(site: Site) -> None:
    smuggled = b"GET /sub/data.bin HTTP/1.1\r\nHost: HOST\r\n\r\n"
    with served(site) as base:
        host = base.removeprefix("http://").encode()
        smuggled = smuggled.replace(b"HOST", host)
        for method in (b"POST", b"GET"):
            head = b"%b /index.html HTTP/1.1\r\nHost: HOST\r\nConnection: close\r\n" % method
            request = head + b"Content-Length: %d\r\n\r\n" % len(smuggled) + smuggled
            assert answered(base, request) == (200, b"<p>home")


def test_a_client_that_sends_nothing_more_holds_no_thread(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(web_server._Handler, "timeout", 0.2)
    before = set(threading.enumerate())
    head = b"POST / HTTP/1.1\r\nHost: %b\r\nContent-Length: 1000\r\n\r\nabc"
    with served(site) as base:
        server = set(threading.enumerate()) - before
        for start in (b"", b"GET / HT", b"GET / HTTP/1.1\r\nHost", head % base[7:].encode()):
            with connected(base) as connection:
                connection.sendall(start)
                assert connection.recv(1000) == b""  # closed by the server, without an answer
        for thread in set(threading.enumerate()) - before - server:
            thread.join(10)
            assert not thread.is_alive()


def test_only_this_machine_is_listened_to(site: Site) -> None:
    with served(site) as base:
        assert base.startswith("http://127.0.0.1:")
