"""The prioritization test of a live server: in which order does it send responses?

The test decides when the server may send. A first response uses up the connection's window, and is
cancelled. Then several requests are sent at once, and the window is opened by little at a time:
over HTTP/2 by one frame, as TCP's buffers would hide the server's picks (HTTP/3: `live_http3`). So
each frame that arrives shows a pick of the server, whatever the network does in between.
"""

from __future__ import annotations

import enum
import socket
import ssl
import time
from abc import ABC, abstractmethod
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import combinations, groupby
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urlsplit

from h3sim._version import __version__
from h3sim.catalog import list_servers
from h3sim.http import parse_priority
from h3sim.load.selection import resolve_schemes
from h3sim.schema.output import COUNT, TEXT, VERSION, OutputSchema, Property, rows_of
from h3sim.schema.values import Choice, ListOf, OrNone
from h3sim.schemes.halves import BEFORE, Over
from h3sim.schemes.registry import SchedulerKind, SignalKind
from h3sim.trace import Rows
from h3sim.values.constants import STREAM_ID_STEP
from h3sim.values.errors import H3SimError, InputError, needing_extra

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from h3sim.schemes import Scheme

PATTERNS: dict[str, tuple[str, ...]] = {
    "three requests": ("u=5", "u=1", "u=3"),
    "nine requests": (
        *("u=3", "u=3, i", "u=3", "u=3, i", "u=3", "u=3, i"),
        *("u=1", "u=5", "u=0"),
    ),
    "three requests, updated": ("u=5", "u=1", "u=3"),
}
"""The Priority fields of requests that are sent at once, in their order."""
_UPDATED = "three requests, updated"
UPDATES = {0: "u=0"}
"""What PRIORITY_UPDATE frames say of its requests, by number from 0, before any byte is sent."""
_CLIENT = "chrome"
"""Before which client a server's model stands matters not: what is sent, is the test's."""
GRANT_BYTES = 16_384
"""Bytes by which the window is opened at a time: a frame of the usual largest size."""
SHOWN_BYTES = 5 * GRANT_BYTES
"""The window of each stream: enough to use up that of a connection, and to see what shares.

No response is cancelled, as what is under way then would come on top of it.
"""
_UNUSED_BYTES = 4096
"""What a server may leave of a window."""
SETTLE_S = 0.3
"""Time that the server has to read all requests before it may send the first byte."""
MOST_READ_BYTES = 65_536


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


class Updates(enum.Enum):
    """Effect on a server of PRIORITY_UPDATE frames that come before it may send."""

    FOLLOWED = "followed"
    IGNORED = "ignored"
    NEITHER = "neither"
    """Its order is neither that of the frames nor that of the fields alone."""


LIVE_TEST = OutputSchema(
    "h3sim-live-test/1",
    "Order in which a live server sends responses",
    VERSION,
    Property("url", TEXT, "the URL that was requested"),
    Property("protocol", Choice(Over), "the protocol of the requests"),
    Property("server", OrNone(TEXT, none=None), "the Server field of its responses"),
    Property("rows", rows_of(OrderRow, fields=_TEXTS, sent=_COUNTS, like=_TEXTS), "one a pattern"),
    Property("like", _TEXTS, "shipped servers that would send in the orders without updates"),
    Property("updates", Choice(Updates), "what it does with PRIORITY_UPDATE frames"),
)


@dataclass(frozen=True, kw_only=True)
class LiveTest:
    """Result of the test: a row for each pattern."""

    url: str
    protocol: Over
    server: str | None
    rows: Rows[OrderRow]
    updates: Updates
    version: str = __version__

    @property
    def like(self) -> tuple[str, ...]:
        """The shipped servers that would send in all orders of requests without updates."""
        first, *others = (row for row in self.rows if row.pattern != _UPDATED)
        return tuple(name for name in first.like if all(name in row.like for row in others))

    def to_dict(self) -> dict[str, Any]:
        """Return the result as a document, h3sim-live-test/1."""
        return LIVE_TEST.write(self)


def probe_server(
    url: str,
    *,
    servers: Iterable[str | Scheme] | None = None,
    over: Over = Over.HTTP2,
    timeout_s: float = 10.0,
    verify: bool = True,
) -> LiveTest:
    """Send the patterns of requests for *url* to its server, and compare the orders.

    They are compared with those of *servers*, or else of the shipped servers over that protocol,
    and of `rr` and `fifo`. The response should have 100 kB or more. Over `http`, the server must
    speak HTTP/2 at once. Without *verify*, any certificate is accepted.

    Raises:
        InputError: if the URL is not one of HTTP.
        LiveTestError: if the server cannot be reached, does not speak the protocol, or sends too
            little.
        MissingExtraError: if the library h2, or aioquic, is not installed.
    """
    connect: type[LiveConnection] = Http2Connection
    if over is Over.HTTP3:
        with needing_extra("aioquic", "live"):
            from h3sim.advice.live_http3 import Http3Connection as connect  # noqa: N813
    schemes = {
        scheme.name.removeprefix(_CLIENT + BEFORE): scheme
        for scheme in resolve_schemes(servers or _shipped(over))
    }
    rows, server, updates = [], None, Updates.NEITHER
    for pattern, fields in PATTERNS.items():
        changes = UPDATES if pattern == _UPDATED else {}
        with connect(url, timeout_s=timeout_s, verify=verify) as connection:
            connection.use_up_window()
            sent, n_bytes = connection.order_of(fields, changes)
            server = connection.server
        like = _alike(schemes, fields, changes, sent, n_bytes, connection.unit_bytes)
        if changes:
            unchanged = _alike(schemes, fields, {}, sent, n_bytes, connection.unit_bytes)
            if {*like} - {*unchanged}:
                updates = Updates.FOLLOWED
            elif unchanged:
                updates = Updates.IGNORED
        rows.append(OrderRow(pattern, fields, tuple(n + 1 for n in sent), like))
    return LiveTest(
        url=url, protocol=over, server=server, rows=Rows(OrderRow, rows), updates=updates
    )


def _shipped(over: Over) -> list[str]:
    """Return the shipped servers over that protocol behind a client, and both plain orders."""
    halves = (server for server in list_servers() if server.over in (over, None))
    return [*(f"{_CLIENT}{BEFORE}{server.name}" for server in halves), "rr", "fifo"]


def _alike(
    schemes: Mapping[str, Scheme],
    fields: Sequence[str],
    updates: Mapping[int, str],
    sent: Sequence[int],
    n_bytes: Sequence[int],
    unit_bytes: int,
) -> tuple[str, ...]:
    """Return the schemes by whose order these frames may have been sent."""
    like = []
    for name, scheme in schemes.items():
        is_ring = scheme.mechanism is SchedulerKind.EPS_RINGS
        starts = range(len(fields)) if is_ring else (None,)
        predictions = (_predicted(scheme, fields, updates, n_bytes, unit_bytes, n) for n in starts)
        if any(_agrees(sent, predicted) for predicted in predictions):
            like.append(name)
    return tuple(like)


def _predicted(
    scheme: Scheme,
    fields: Sequence[str],
    updates: Mapping[int, str],
    n_bytes: Sequence[int],
    unit_bytes: int,
    last_head: int | None,
) -> list[int]:
    """Return the frames that the scheduler of a shipped server would send of these responses.

    Where HEADERS take part, those of *last_head* were sent last. The list is empty if the clients
    of the server send other signals than fields.
    """
    kind = scheme.mechanism.signal_kind
    if kind not in (SignalKind.EPS, SignalKind.NOTHING):
        return []
    scheduler = scheme.make_scheduler(turn_bytes=unit_bytes)
    left = {STREAM_ID_STEP * n: -(-each // unit_bytes) for n, each in enumerate(n_bytes)}
    for stream_id, field in zip(left, fields, strict=True):
        scheduler.open(stream_id, parse_priority(field))
    if last_head is not None:
        scheduler.activate(STREAM_ID_STEP * last_head)
        scheduler.charge(STREAM_ID_STEP * last_head, unit_bytes)
    for stream_id in left:
        scheduler.activate(stream_id)
    for number, field in updates.items():
        scheduler.update(STREAM_ID_STEP * number, parse_priority(field))
    picks: list[int] = []
    while (picked := scheduler.pick()) is not None:
        picks.append(picked // STREAM_ID_STEP)
        scheduler.charge(picked, unit_bytes)
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


class LiveConnection(ABC):
    """A connection whose window is opened by hand; what differs by protocol is abstract.

    *ended* are the streams of which nothing more is awaited, *server* is the Server field.
    """

    unit_bytes: int
    """Bytes that one pick of the server sends: a frame over HTTP/2, a packet over HTTP/3."""
    n_early = 0
    """Picks that a server may have made before it knew all requests, which do not count."""

    def __init__(self, url: str, *, timeout_s: float, verify: bool) -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise InputError.at("URL", f"must begin with https:// or http://, is {url}")
        self.timeout_s = timeout_s
        self.authority = parts.netloc
        self.address = parts.hostname, parts.port or (443 if parts.scheme == "https" else 80)
        path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        self.headers = [(":method", "GET"), (":scheme", parts.scheme)]
        self.headers += [(":authority", parts.netloc), (":path", path)]
        self.server: str | None = None
        self.ended: set[int] = set()
        self.socket: socket.socket | ssl.SSLSocket
        with ExitStack() as on_error:
            on_error.callback(lambda: self.socket.close() if hasattr(self, "socket") else None)
            try:
                self.connect(verify=verify)
            except OSError as error:
                raise LiveTestError(f"{parts.netloc} cannot be reached: {error}") from error
            on_error.pop_all()

    def __enter__(self) -> LiveConnection:
        return self

    def __exit__(self, *_: object) -> None:
        self.socket.close()

    def use_up_window(self) -> None:
        """Request the resource until the server may send nothing more, and cancel the last one."""
        while self.window:
            (stream_id,) = self.request([None])
            before = self.window
            while self.window and stream_id not in self.ended and self.awaits(self.window < before):
                pass
            if self.window == before:
                raise LiveTestError("the response has no body: take the URL of a large file")
            if stream_id not in self.ended:
                self.cancel(stream_id)
                return

    def order_of(
        self, fields: Sequence[str], updates: Mapping[int, str]
    ) -> tuple[list[int], list[int]]:
        """Return the request of each frame, and the bytes that each request got.

        Frames of one response in a row that arrive after one grant count once, as they may be
        short. Each response ends with its window.
        """
        streams = self.request(fields)
        self._settle()
        for number, field in updates.items():
            self.update(streams[number], field)
        if updates:
            self._settle()
        numbers = {stream_id: n for n, stream_id in enumerate(streams)}
        sent, n_bytes = list[int](), [0] * len(fields)

        def is_done() -> bool:
            counted = zip(streams, n_bytes, strict=True)
            enough = SHOWN_BYTES - _UNUSED_BYTES
            return all(each in self.ended or n >= enough for each, n in counted)

        while not is_done():
            runs: list[int] = []
            for stream_id, length in self.granted(is_done):
                if stream_id in numbers:
                    runs.append(numbers[stream_id])
                    n_bytes[numbers[stream_id]] += length
            sent += [number for number, _ in groupby(runs)]
        if min(n_bytes) < 2 * GRANT_BYTES:
            raise LiveTestError("the responses are too short: take the URL of a file of 100 kB")
        return sent[self.n_early :], n_bytes

    def _settle(self) -> None:
        """Give the server time to read what was sent."""
        settled_at = time.monotonic() + SETTLE_S
        while (left_s := settled_at - time.monotonic()) > 0:
            self.receive(left_s)

    def learn(self, fields: Mapping[Any, Any]) -> None:
        """Read the header fields of a response."""
        self.server = fields.get("server", self.server)
        if fields.get(":status") != "200":
            raise LiveTestError(f"answers {fields.get(':status')}")

    @property
    @abstractmethod
    def window(self) -> int:
        """Bytes that the server may send."""

    @abstractmethod
    def connect(self, *, verify: bool) -> None:
        """Connect `socket` to `address`."""

    @abstractmethod
    def request(self, fields: Sequence[str | None]) -> list[int]:
        """Send requests with these Priority fields at once, and return their streams."""

    @abstractmethod
    def update(self, stream_id: int, field: str) -> None:
        """Send a PRIORITY_UPDATE frame (RFC 9218 § 7)."""

    @abstractmethod
    def cancel(self, stream_id: int) -> None:
        """Ask for no more of a response."""

    @abstractmethod
    def granted(self, is_done: Callable[[], bool]) -> Iterator[tuple[int, int]]:
        """Open the window, and yield stream and bytes of the frames that arrive by this."""

    @abstractmethod
    def awaits(self, has_begun: bool) -> bool:
        """Wait for more of the first response, and return whether still more may come."""

    @abstractmethod
    def receive(self, timeout_s: float | None = None) -> list[tuple[int, int]]:
        """Return stream and bytes of the frames that arrive next; none after *timeout_s*."""


class Http2Connection(LiveConnection):
    """A connection over HTTP/2."""

    unit_bytes = GRANT_BYTES

    def __init__(self, url: str, *, timeout_s: float, verify: bool) -> None:
        with needing_extra("h2", "live"):
            from h2.config import H2Configuration
            from h2.connection import H2Connection
            from h2.settings import SettingCodes, Settings
        super().__init__(url, timeout_s=timeout_s, verify=verify)
        self._http = H2Connection(H2Configuration(client_side=True, header_encoding="utf-8"))
        no_tree = 0x9  # SETTINGS_NO_RFC7540_PRIORITIES, in the first frame (RFC 9218 § 2.1.1)
        values: dict[Any, int] = {
            SettingCodes.INITIAL_WINDOW_SIZE: SHOWN_BYTES,
            SettingCodes.ENABLE_PUSH: 0,
            no_tree: 1,
        }
        self._http.local_settings = Settings(client=True, initial_values=values)
        self._http.initiate_connection()

    def connect(self, *, verify: bool) -> None:
        """Connect over TCP, and TLS if it is https."""
        self.socket = socket.create_connection(self.address, self.timeout_s)
        if dict(self.headers)[":scheme"] == "https":
            self.socket = _secured(self.socket, self.address[0], verify=verify)

    def cancel(self, stream_id: int) -> None:
        """Reset the stream."""
        self._http.reset_stream(stream_id, error_code=8)  # CANCEL (RFC 9113 § 7)
        self.ended.add(stream_id)
        self._flush()

    @property
    def window(self) -> int:
        """Bytes that the server may send."""
        return int(self._http.inbound_flow_control_window)

    def request(self, fields: Sequence[str | None]) -> list[int]:
        """Send requests with these Priority fields in one write, and return their streams."""
        streams = []
        for field in fields:
            stream_id = self._http.get_next_available_stream_id()
            headers = [*self.headers, *([("priority", field)] if field is not None else [])]
            self._http.send_headers(stream_id, headers, end_stream=True)
            streams.append(stream_id)
        self._flush()
        return streams

    def update(self, stream_id: int, field: str) -> None:
        """Send a PRIORITY_UPDATE frame, which the library does not know (RFC 9218 § 7.1)."""
        payload = stream_id.to_bytes(4, "big") + field.encode()
        self.socket.sendall(len(payload).to_bytes(3, "big") + b"\x10\0\0\0\0\0" + payload)

    def granted(self, is_done: Callable[[], bool]) -> Iterator[tuple[int, int]]:
        """Open the window to the size of a frame, and yield what arrives until it is used."""
        self._http.increment_flow_control_window(GRANT_BYTES - self.window)
        self._flush()
        while self.window and not is_done():
            yield from self.receive()

    def awaits(self, has_begun: bool) -> bool:  # noqa: ARG002
        """Wait for more: a server uses up the whole window."""
        self.receive()
        return True

    def _flush(self) -> None:
        self.socket.sendall(self._http.data_to_send())

    def receive(self, timeout_s: float | None = None) -> list[tuple[int, int]]:
        """Return stream and bytes of the DATA frames that arrive next; none after *timeout_s*."""
        from h2 import events
        from h2.exceptions import ProtocolError

        self.socket.settimeout(self.timeout_s if timeout_s is None else timeout_s)
        try:
            data = self.socket.recv(MOST_READ_BYTES)
            found = self._http.receive_data(data)
        except TimeoutError:
            if timeout_s is not None:
                return []
            raise LiveTestError(f"sends nothing for {self.timeout_s:g} s") from None
        except (OSError, ProtocolError) as error:
            raise LiveTestError(f"the connection failed: {error}") from error
        if not data:
            raise LiveTestError("the server closed the connection")
        streams = []
        for event in found:
            if isinstance(event, events.DataReceived) and event.flow_controlled_length:
                streams.append((event.stream_id, event.flow_controlled_length))
            elif isinstance(event, events.ResponseReceived):
                self.learn(dict(event.headers))
            elif isinstance(event, events.StreamReset):
                raise LiveTestError(f"resets a stream with error {event.error_code}")
            elif isinstance(event, events.ConnectionTerminated):
                raise LiveTestError(f"ends the connection with error {event.error_code}")
            if isinstance(event, events.StreamEnded):
                self.ended.add(event.stream_id)
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
