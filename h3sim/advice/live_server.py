"""The prioritization test of a live server over HTTP/2: in which order does it send responses?

The test decides when the server may send. A first response uses up the connection's window, and is
cancelled. Then several requests are sent at once, and the window is opened by one frame at a time:
each frame that arrives shows a pick of the server, whatever the network does in between.
"""

from __future__ import annotations

import socket
import ssl
import time
from dataclasses import dataclass
from itertools import combinations, groupby
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urlsplit

from h3sim._version import __version__
from h3sim.http import parse_priority
from h3sim.load.selection import resolve_schemes
from h3sim.schema.output import COUNT, TEXT, VERSION, OutputSchema, Property, rows_of
from h3sim.schema.values import ListOf, OrNone
from h3sim.schemes.registry import SignalKind
from h3sim.trace import Rows
from h3sim.values.constants import STREAM_ID_STEP
from h3sim.values.errors import H3SimError, InputError, needing_extra

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from h3sim.schemes import Scheme

PATTERNS: dict[str, tuple[str, ...]] = {
    "three requests": ("u=5", "u=1", "u=3"),
    "nine requests": (
        *("u=3", "u=3, i", "u=3", "u=3, i", "u=3", "u=3, i"),
        *("u=1", "u=5", "u=0"),
    ),
}
"""The Priority fields of requests that are sent at once, in their order."""
_GRANT_BYTES = 16_384
"""Bytes by which the window is opened at a time: a frame of the usual largest size."""
_GRANTS_PER_REQUEST = 3
"""Frames after which a response is cancelled: enough to see whether it shares."""
_SETTLE_S = 0.3
"""Time that the server has to read all requests before it may send the first byte."""
_WINDOW_BYTES = 2**30
"""The window of each stream, which must never decide."""
_MOST_READ_BYTES = 65_536


class LiveTestError(H3SimError):
    """A server that cannot be tested: the reason is the message."""


class OrderRow(NamedTuple):
    """Order in which a server sent the responses of a pattern.

    *fields* are those of the requests, *sent* the numbers of requests (from 1) by frame, and *like*
    the shipped servers that would send in that order.
    """

    pattern: str
    fields: tuple[str, ...]
    sent: tuple[int, ...]
    like: tuple[str, ...]


_TEXTS, _COUNTS = ListOf(TEXT, "texts"), ListOf(COUNT, "numbers")
LIVE_TEST = OutputSchema(
    "h3sim-live-test/1",
    "Order in which a live server sends responses",
    VERSION,
    Property("url", TEXT, "the URL that was requested"),
    Property("server", OrNone(TEXT, none=None), "the Server field of its responses"),
    Property("rows", rows_of(OrderRow, fields=_TEXTS, sent=_COUNTS, like=_TEXTS), "one a pattern"),
    Property("like", _TEXTS, "shipped servers that would send in all of these orders"),
)


@dataclass(frozen=True, kw_only=True)
class LiveTest:
    """Result of the test: a row for each pattern."""

    url: str
    server: str | None
    rows: Rows[OrderRow]
    version: str = __version__

    @property
    def like(self) -> tuple[str, ...]:
        """The shipped servers that would send in all of these orders."""
        first, *others = self.rows
        return tuple(name for name in first.like if all(name in row.like for row in others))

    def to_dict(self) -> dict[str, Any]:
        """Return the result as a document, h3sim-live-test/1."""
        return LIVE_TEST.write(self)


def probe_server(
    url: str,
    *,
    servers: Iterable[str | Scheme] = ("servers", "rr", "fifo"),
    timeout_s: float = 10.0,
    verify: bool = True,
) -> LiveTest:
    """Send both patterns of requests for *url* to its server, and compare the orders.

    The response should have 100 kB or more. Over `http`, the server must speak HTTP/2 at once.
    Without *verify*, any certificate is accepted.

    Raises:
        InputError: if the URL is not one of HTTP.
        LiveTestError: if the server cannot be reached, speaks no HTTP/2, or sends too little.
        MissingExtraError: if the library h2 is not installed.
    """
    schemes = resolve_schemes(servers)
    rows, server = [], None
    for pattern, fields in PATTERNS.items():
        with _Connection(url, timeout_s=timeout_s, verify=verify) as connection:
            connection.use_up_window()
            sent, n_bytes = connection.order_of(fields)
            server = connection.server
        predictions = ((scheme, _predicted(scheme, fields, n_bytes)) for scheme in schemes)
        like = [scheme.name for scheme, predicted in predictions if _agrees(sent, predicted)]
        rows.append(OrderRow(pattern, fields, tuple(n + 1 for n in sent), tuple(like)))
    return LiveTest(url=url, server=server, rows=Rows(OrderRow, rows))


def _predicted(scheme: Scheme, fields: Sequence[str], n_bytes: Sequence[int]) -> list[int]:
    """Return the frames that the scheduler of a shipped server would send of these responses.

    The list is empty if its clients send other signals than fields.
    """
    kind = scheme.mechanism.signal_kind
    if kind not in (SignalKind.EPS, SignalKind.NOTHING):
        return []
    scheduler = scheme.make_scheduler(turn_bytes=_GRANT_BYTES)
    left = {STREAM_ID_STEP * n: -(-each // _GRANT_BYTES) for n, each in enumerate(n_bytes)}
    for stream_id, field in zip(left, fields, strict=True):
        scheduler.open(stream_id, parse_priority(field))
        scheduler.activate(stream_id)
    picks: list[int] = []
    while (picked := scheduler.pick()) is not None:
        picks.append(picked // STREAM_ID_STEP)
        scheduler.charge(picked, _GRANT_BYTES)
        left[picked] -= 1
        if not left[picked]:
            scheduler.close(picked)
    return picks


def _agrees(sent: Sequence[int], predicted: Sequence[int]) -> bool:
    """Return whether each pair of responses is in the same relation in both orders."""
    numbers = sorted({*sent, *predicted})
    return bool(predicted) and all(
        _relation(a, b, sent) == _relation(a, b, predicted) for a, b in combinations(numbers, 2)
    )


def _relation(a: int, b: int, sent: Sequence[int]) -> str:
    """Return how two responses share: one before the other, alternately, or not at all.

    >>> _relation(0, 1, [0, 0, 1]), _relation(0, 1, [0, 1, 0]), _relation(0, 1, [1])
    ('first', 'shared', 'second')
    """
    runs = [number for number, _ in groupby(each for each in sent if each in (a, b))]
    if len(runs) > 2:
        return "shared"
    return "none" if not runs else "first" if runs[0] == a else "second"


class _Connection:
    """A connection over HTTP/2 whose window is opened by hand."""

    def __init__(self, url: str, *, timeout_s: float, verify: bool) -> None:
        with needing_extra("h2", "live"):
            from h2.config import H2Configuration
            from h2.connection import H2Connection
            from h2.settings import SettingCodes
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise InputError.at("URL", f"must begin with https:// or http://, is {url}")
        self._timeout_s = timeout_s
        self._path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        self._scheme, self._authority = parts.scheme, parts.netloc
        self.server: str | None = None
        address = parts.hostname, parts.port or (443 if parts.scheme == "https" else 80)
        try:
            self._socket: socket.socket = socket.create_connection(address, timeout_s)
            if parts.scheme == "https":
                self._socket = _secured(self._socket, parts.hostname, verify=verify)
        except OSError as error:
            raise LiveTestError(f"{parts.netloc} cannot be reached: {error}") from error
        self._http = H2Connection(H2Configuration(client_side=True, header_encoding="utf-8"))
        self._http.initiate_connection()
        no_tree = 0x9  # SETTINGS_NO_RFC7540_PRIORITIES (RFC 9218 § 2.1.1)
        values: dict[Any, int] = {
            SettingCodes.INITIAL_WINDOW_SIZE: _WINDOW_BYTES,
            SettingCodes.ENABLE_PUSH: 0,
        }
        self._http.update_settings({**values, no_tree: 1})
        self._ended: set[int] = set()
        self._answered: set[int] = set()

    def __enter__(self) -> _Connection:
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()

    def use_up_window(self) -> None:
        """Request the resource until the server may send nothing more, and cancel the last one."""
        while self._window:
            (stream_id,) = self._request([None])
            before = self._window
            while self._window and stream_id not in self._ended:
                self._receive()
            if self._window == before:
                raise LiveTestError("the response has no body: take the URL of a large file")
            if stream_id not in self._ended:
                self._cancel(stream_id)

    def order_of(self, fields: Sequence[str]) -> tuple[list[int], list[int]]:
        """Return the request of each frame, and the bytes that each request got.

        Frames of one response in a row that arrive after one grant count once, as they may be
        short. A response is cancelled after some frames, so that all have their turn.
        """
        numbers = {stream_id: n for n, stream_id in enumerate(self._request(fields))}
        settled_at = time.monotonic() + _SETTLE_S
        while (left_s := settled_at - time.monotonic()) > 0:
            self._receive(left_s)
        sent, n_bytes = list[int](), [0] * len(fields)
        while not numbers.keys() <= self._ended:
            self._http.increment_flow_control_window(_GRANT_BYTES - self._window)
            self._flush()
            runs: list[int] = []
            while self._window and not numbers.keys() <= self._ended:
                for stream_id, length in self._receive():
                    if stream_id in numbers:
                        runs.append(numbers[stream_id])
                        n_bytes[numbers[stream_id]] += length
            sent += [number for number, _ in groupby(runs)]
            for stream_id, number in numbers.items():
                is_enough = n_bytes[number] >= _GRANTS_PER_REQUEST * _GRANT_BYTES
                if is_enough and stream_id not in self._ended:
                    self._cancel(stream_id)
        if min(n_bytes) < 2 * _GRANT_BYTES:
            raise LiveTestError("the responses are too short: take the URL of a file of 100 kB")
        return sent, n_bytes

    def _cancel(self, stream_id: int) -> None:
        self._http.reset_stream(stream_id, error_code=8)  # CANCEL (RFC 9113 § 7)
        self._ended.add(stream_id)
        self._flush()

    @property
    def _window(self) -> int:
        """Bytes that the server may send."""
        return int(self._http.inbound_flow_control_window)

    def _request(self, fields: Sequence[str | None]) -> list[int]:
        """Send requests with these Priority fields in one write, and return their streams."""
        streams = []
        for field in fields:
            stream_id = self._http.get_next_available_stream_id()
            headers = [(":method", "GET"), (":scheme", self._scheme)]
            headers += [(":authority", self._authority), (":path", self._path)]
            headers += [("priority", field)] if field is not None else []
            self._http.send_headers(stream_id, headers, end_stream=True)
            streams.append(stream_id)
        self._flush()
        return streams

    def _flush(self) -> None:
        self._socket.sendall(self._http.data_to_send())

    def _receive(self, timeout_s: float | None = None) -> list[tuple[int, int]]:
        """Return stream and bytes of the DATA frames that arrive next; none after *timeout_s*."""
        from h2 import events
        from h2.exceptions import ProtocolError

        self._socket.settimeout(self._timeout_s if timeout_s is None else timeout_s)
        try:
            data = self._socket.recv(_MOST_READ_BYTES)
            found = self._http.receive_data(data)
        except TimeoutError:
            if timeout_s is not None:
                return []
            raise LiveTestError(f"sends nothing for {self._timeout_s:g} s") from None
        except (OSError, ProtocolError) as error:
            raise LiveTestError(f"the connection failed: {error}") from error
        if not data:
            raise LiveTestError("the server closed the connection")
        streams = []
        for event in found:
            if isinstance(event, events.DataReceived) and event.flow_controlled_length:
                streams.append((event.stream_id, event.flow_controlled_length))
            elif isinstance(event, events.ResponseReceived):
                fields: dict[Any, Any] = dict(event.headers)
                self.server = fields.get("server", self.server)
                if fields.get(":status") != "200":
                    raise LiveTestError(f"answers {fields.get(':status')}")
            elif isinstance(event, events.StreamReset):
                raise LiveTestError(f"resets a stream with error {event.error_code}")
            elif isinstance(event, events.ConnectionTerminated):
                raise LiveTestError(f"ends the connection with error {event.error_code}")
            if isinstance(event, events.StreamEnded):
                self._ended.add(event.stream_id)
        self._flush()
        return streams


def _secured(plain: socket.socket, host: str, *, verify: bool) -> ssl.SSLSocket:
    context = ssl.create_default_context()
    if not verify:
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    context.set_alpn_protocols(["h2"])
    secured = context.wrap_socket(plain, server_hostname=host)
    if secured.selected_alpn_protocol() != "h2":
        raise LiveTestError(f"{host} does not speak HTTP/2")
    return secured
