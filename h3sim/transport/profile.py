"""Transport profiles: how a stack sends, acknowledges and recovers, as rows of a table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any

from h3sim.schema import parse_toml, read_text
from h3sim.schema.arguments import refuse_keywords
from h3sim.schema.fields import FileDisplay, Record, declare, read_document, validate, write_table
from h3sim.schema.values import Choice, Flag, Integer, Number, Text
from h3sim.transport.congestion.registry import MAX_WINDOW_BYTES, controller_named
from h3sim.transport.network import Protocol
from h3sim.transport.quic import QuicSettings
from h3sim.transport.tcp import TcpSettings
from h3sim.values.errors import InputError, ValidationIssue

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path

    from h3sim.transport.congestion import CongestionController, ControllerSettings


FORMAT = "h3sim-profile/1"
_CLIENT_TABLES = {"quic": "quic_client", "tcp": "tcp_client"}
"""The tables of servers, and the tables in which their clients differ."""
_RETRANSMISSION_ORDERS = ("first", "priority", "turn")
"""The values of `h3sim.schedulers.Retransmit`."""


class ProfileError(InputError):
    """A transport profile cannot be used."""


@dataclass(frozen=True, kw_only=True, repr=False)
class TransportProfile(FileDisplay):
    """Settings of a server and its client, for either protocol.

    The declaration of each field describes it; docs/networks.md has them as a table.

    Raises:
        ProfileError: listing every value that is out of range.
    """

    name: str = field(metadata=declare(Text(is_needed=True), "its name in results"))
    title: str = field(default="", metadata=declare(Text(), "a short description"))
    source: str = field(default="", metadata=declare(Text(), "the source of its values"))
    protocol: Protocol = field(
        default=Protocol.QUIC,
        metadata=declare(
            Choice(Protocol), "`quic`, `tcp`, `http1` or `qmux`, unless `--transport` is given"
        ),
    )
    cc: str = field(default="cubic", metadata=declare(Text(), "the server's congestion controller"))
    controller: Callable[[ControllerSettings], CongestionController] | None = None
    """Factory of the controller if it is not a registered one; *cc* is then its display name."""
    own_cubic: str = field(
        default="cubic",
        metadata=declare(Text(), "the controller that `--cc cubic` selects for this stack"),
    )
    beta: float | None = field(
        default=None,
        metadata=declare(
            Number(low=0, high=1, is_above=True, is_below=True),
            "the factor of a reduction after loss, such as 0.7; by default the controller's",
        ),
    )
    initial_window_bytes: int | None = field(
        default=None,
        metadata=declare(
            Integer(low=1, high=MAX_WINDOW_BYTES), "the initial window; by default the controller's"
        ),
    )
    hystart: bool = field(
        default=False,
        metadata=declare(
            Flag(),
            "HyStart++ in slow start, with `cubic` and `newreno`; HyStart with `cubic-linux`",
        ),
    )
    search: bool = field(
        default=False,
        metadata=declare(
            Flag(),
            "SEARCH in slow start (draft-chung-ccwg-search-09, as Firefox has it since May 2026), "
            "with `cubic` and `newreno`, in place of `hystart`",
        ),
    )
    ecn: bool = field(
        default=False,
        metadata=declare(
            Flag(),
            "packets are ECN-capable, both ways, if the controller responds to marks: `cubic`, "
            "`cubic-linux` and `newreno` do",
        ),
    )
    retransmit: str = field(
        default="first",
        metadata=declare(
            Choice(_RETRANSMISSION_ORDERS),
            "the order of retransmissions (docs/networks.md)",
        ),
    )
    requeues: bool = field(
        default=False,
        metadata=declare(
            Flag(),
            "a stream is requeued when some of its bytes were acknowledged or lost (h2o over "
            "HTTP/3): round robin moves it behind the waiting streams, a chain does not change",
        ),
    )
    quic: QuicSettings = field(
        default_factory=QuicSettings,
        metadata=declare(Record(QuicSettings), "a table with the settings of the server over QUIC"),
    )
    quic_client: QuicSettings = field(
        default_factory=QuicSettings,
        metadata=declare(
            Record(QuicSettings),
            "the same keys for the client, by default with the values of the server",
        ),
    )
    tcp: TcpSettings = field(
        default_factory=TcpSettings,
        metadata=declare(Record(TcpSettings), "a table with the settings of the server over TCP"),
    )
    tcp_client: TcpSettings = field(
        default_factory=TcpSettings,
        metadata=declare(Record(TcpSettings), "the same keys for the client"),
    )

    def __post_init__(self) -> None:
        validate(self, ProfileError, self.name)

    def __repr__(self) -> str:
        return f"<TransportProfile {self.name}: {self.title or 'without a title'}>"

    def with_(self, **changes: Any) -> TransportProfile:
        """Return this profile with other values of its fields, named after them unless *name* is.

        *cc* is the name of a controller, or a class or function that makes one. *quic*,
        *quic_client*, *tcp* and *tcp_client* may be tables of the settings that change. A client
        that has the settings of its server keeps doing so.

        Raises:
            ProfileError: listing every invalid value.
            UnknownOptionError: if there is no such argument, listing all.
            UnknownNameError: if there is no such controller.

        >>> from h3sim.catalog import load_profile
        >>> profile = load_profile("default").with_(cc="newreno", quic={"datagram_bytes": 1200})
        >>> profile.name, profile.quic_client.datagram_bytes
        ('default with cc=newreno, quic.datagram_bytes=1200', 1200)
        """
        known = [entry.name for entry in fields(self)]
        refuse_keywords("with_", changes, known)
        words: list[str] = []
        values: dict[str, Any] = {}
        for key, value in changes.items():
            if isinstance(getattr(self, key), QuicSettings | TcpSettings) and isinstance(
                value, Mapping
            ):
                settings = getattr(self, key)
                refuse_keywords(
                    f"with_({key}=...)", value, [each.name for each in fields(settings)]
                )
                values[key] = replace(settings, **value)
                words += [f"{key}.{name}={value[name]}" for name in value]
            elif key == "cc":
                values["cc"], values["controller"] = controller_named(value)
                words.append(f"cc={values['cc']}")
            else:
                values[key] = value
                words.append(f"{key}={value}")
        for server, client in _CLIENT_TABLES.items():
            is_valid = isinstance(values.get(server), QuicSettings | TcpSettings)
            if is_valid and getattr(self, client) == getattr(self, server):
                values.setdefault(client, values[server])
        name = f"{self.name} with {', '.join(words)}" if words else self.name
        return replace(self, **{"name": name} | values)

    def issues(self) -> Iterator[ValidationIssue]:
        """Yield inconsistencies between its values."""
        is_tcp = self.protocol.is_over_tcp
        packet_bytes = self.tcp.mss_bytes if is_tcp else self.quic.datagram_bytes
        window = self.initial_window_bytes
        if window is not None and window < packet_bytes:
            message = f"must be at least a packet ({packet_bytes:,}), is {window:,}"
            yield ValidationIssue(key="initial_window_bytes", message=message)
        if self.hystart and self.search:
            message = "cannot be combined with hystart, which is on"
            yield ValidationIssue(key="search", message=message)
        # Each end would wait for messages of TLS that the other never sends.
        server, client = self.tcp.tls, self.tcp_client.tls
        if server is not client:
            message = f"must be that of the server ({server.value!r}), is {client.value!r}"
            yield ValidationIssue(key="tcp_client.tls", message=message)


def read_profile(path: str | Path) -> TransportProfile:
    """Return the profile that the file at *path* describes.

    Raises:
        ProfileError: if the file cannot be read, or listing every error in it.
    """
    text = read_text(path, ProfileError)
    return profile_from_toml(text, source=str(path))


def profile_from_toml(text: str, *, source: str) -> TransportProfile:
    """Return the profile that *text* describes.

    Raises:
        ProfileError: listing every error in it.
    """
    return profile_from_dict(parse_toml(text, ProfileError, source=source), source=source)


def profile_from_dict(document: dict[str, Any], *, source: str = "profile") -> TransportProfile:
    """Return the profile that *document*, a parsed profile file, describes.

    Raises:
        ProfileError: listing every error in it.
    """
    tables: Any = document
    if isinstance(document, dict):
        tables = {**document, **_client_tables(document)}
    try:
        return read_document(TransportProfile, tables, ProfileError, source=source, format_=FORMAT)
    except ProfileError as error:
        raise ProfileError(_without_inherited(document, error.problems), source) from error


def profile_to_dict(profile: TransportProfile) -> dict[str, Any]:
    """Return *profile* in the form of a profile file; reading it back gives an equal profile.

    >>> quic = QuicSettings(ack_every=4)
    >>> profile_to_dict(TransportProfile(name="x", quic=quic))["quic"]
    {'ack_every': 4}
    """
    document = {"format": FORMAT, **write_table(profile)}
    for name in _CLIENT_TABLES:
        server, client = getattr(profile, name), getattr(profile, _CLIENT_TABLES[name])
        if server != client:  # keys missing at the client default to the server's
            client_table = write_table(client, include_defaults=True)
            # The server's keys as well: a client with the default value, where the server has
            # another, must state it.
            keys = (*write_table(server), *write_table(client))
            document[_CLIENT_TABLES[name]] = {key: client_table[key] for key in keys}
        else:
            document.pop(_CLIENT_TABLES[name], None)
    return document


def _client_tables(document: Mapping[str, Any]) -> dict[str, Any]:
    """Return the tables of clients, completed from those of their servers."""
    tables: dict[str, Any] = {}
    for server, client in _CLIENT_TABLES.items():
        defaults, changes = document.get(server, {}), document.get(client, {})
        if isinstance(defaults, dict) and isinstance(changes, dict):
            tables[client] = {**defaults, **changes}
    return tables


def _without_inherited(
    document: Mapping[str, Any], problems: Iterable[ValidationIssue]
) -> Iterator[ValidationIssue]:
    """Yield the problems except those of a server's table that its client only inherited."""
    for problem in problems:
        table, _, key = problem.key.partition(".")
        if table not in _CLIENT_TABLES.values() or not key or key in document.get(table, {}):
            yield problem
