"""Transport profiles: how a stack sends, acknowledges and recovers, as rows of a table."""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any

from h3sim.documents import DocumentReader, not_one_of, parse_toml, read_text, shown
from h3sim.errors import InputError, Problem
from h3sim.transport.congestion.base import MAX_WINDOW_BYTES
from h3sim.transport.network import Protocol
from h3sim.transport.quic import QuicSettings
from h3sim.transport.tcp import TcpSettings
from h3sim.units import ms

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

__all__ = [
    "FORMAT",
    "ProfileError",
    "TransportProfile",
    "profile_from_dict",
    "profile_from_toml",
    "read_profile",
]

FORMAT = "h3sim-profile/1"
_MAY_BE_NONE = ("pacing_gain", "notsent_lowat_bytes")
_RETRANSMIT = ("first", "priority", "turn")


class ProfileError(InputError):
    """A transport profile cannot be used."""


@dataclass(frozen=True, kw_only=True)
class TransportProfile:
    """What a server and its client do, for either protocol.

    *cc* names the controller; *beta*, *initial_window_bytes* and *hystart* set it up (None keeps
    its own). *retransmit* says when lost bytes go again: first, priority or turn. With *requeues* a
    stream joins the scheduler anew when some of its bytes were acknowledged or lost (h2o).

    Raises:
        ProfileError: listing every value that is out of range.
    """

    name: str
    title: str = ""
    source: str = ""
    protocol: Protocol = Protocol.QUIC
    cc: str = "cubic"
    own_cubic: str = "cubic"
    """What `cubic` means where it is asked for with this stack."""
    beta: float | None = None
    initial_window_bytes: int | None = None
    hystart: bool = False
    retransmit: str = "first"
    requeues: bool = False
    quic: QuicSettings = field(default_factory=QuicSettings)
    quic_client: QuicSettings = field(default_factory=QuicSettings)
    tcp: TcpSettings = field(default_factory=TcpSettings)
    tcp_client: TcpSettings = field(default_factory=TcpSettings)

    def __post_init__(self) -> None:
        problems = list(self._problems())
        if problems:
            raise ProfileError(problems, self.name)

    def _problems(self) -> Iterator[Problem]:
        if self.beta is not None and not 0 < self.beta < 1:
            yield Problem(key="beta", message=f"must be above 0 and below 1, is {self.beta}")
        is_tcp = self.protocol is Protocol.TCP
        least = self.tcp.mss_bytes if is_tcp else self.quic.datagram_bytes
        window = self.initial_window_bytes
        if window is not None and not least <= window <= MAX_WINDOW_BYTES:
            message = f"must be {least:,} (a packet) to {MAX_WINDOW_BYTES:,}, is {window:,}"
            yield Problem(key="initial_window_bytes", message=message)


def read_profile(path: str | Path) -> TransportProfile:
    """Return the profile that the file at *path* describes.

    Raises:
        ProfileError: if the file cannot be read, or listing every mistake in it.
    """
    text = read_text(path, ProfileError)
    return profile_from_toml(text, source=str(path))


def profile_from_toml(text: str, *, source: str) -> TransportProfile:
    """Return the profile that *text* describes.

    Raises:
        ProfileError: listing every mistake in it.
    """
    return profile_from_dict(parse_toml(text, ProfileError, source=source), source=source)


def profile_from_dict(document: dict[str, Any], *, source: str = "profile") -> TransportProfile:
    """Return the profile that *document*, a parsed profile file, describes.

    Raises:
        ProfileError: listing every mistake in it.
    """
    reader = DocumentReader()
    profile = _profile(reader, document)
    if reader.problems:
        raise ProfileError(reader.problems, source)
    return profile


def _profile(reader: DocumentReader, document: dict[str, Any]) -> TransportProfile:
    if document.get("format") != FORMAT:
        reader.report("format", f"must be {FORMAT!r}, is {shown(document.get('format'))}")
    plain = (
        "name",
        "title",
        "source",
        "protocol",
        "cc",
        "own_cubic",
        "beta",
        "initial_window_bytes",
        "hystart",
        "retransmit",
        "requeues",
    )
    tables = ("quic", "quic_client", "tcp", "tcp_client")
    reader.keys("", document, ("format", *plain, *tables))
    values: dict[str, Any] = {
        name: reader.text(name, document.get(name, "")) for name in ("name", "title", "source")
    }
    defaults = (("cc", "cubic"), ("own_cubic", "cubic"), ("retransmit", "first"))
    for name, default in defaults:
        values[name] = reader.text(name, document.get(name, default))
    if values["retransmit"] not in _RETRANSMIT:
        reader.report("retransmit", not_one_of(values["retransmit"], _RETRANSMIT))
    values["protocol"] = reader.choice("protocol", document.get("protocol", "quic"), Protocol)
    for name in ("hystart", "requeues"):
        values[name] = reader.flag(name, document.get(name, False))
    if "beta" in document:
        values["beta"] = reader.number("beta", document["beta"])
    if "initial_window_bytes" in document:
        values["initial_window_bytes"] = reader.whole(
            "initial_window_bytes", document["initial_window_bytes"], low=1
        )
    for name, made in (("quic", QuicSettings()), ("tcp", TcpSettings())):
        server = _settings(reader, name, document.get(name, {}), made)
        client_name = f"{name}_client"
        values[name] = server
        values[client_name] = _settings(reader, client_name, document.get(client_name, {}), server)
    try:
        return TransportProfile(**values)
    except ProfileError as error:
        reader.add(error.problems)
        return TransportProfile(name=values["name"])


def _settings(reader: DocumentReader, key: str, entry: Any, base: Any) -> Any:
    """Return *base* with what the table changes; `_ms` keys set `_ns` fields."""
    table: Mapping[str, Any] = reader.table(key, entry)
    known = {item.name.replace("_ns", "_ms"): item.name for item in fields(base)}
    reader.keys(key, table, known)
    changes: dict[str, Any] = {}
    for name, value in table.items():
        attribute = known.get(name)
        if attribute is None:
            continue
        before = getattr(base, attribute)
        where = f"{key}.{name}"
        if value == "none" and (before is None or attribute in _MAY_BE_NONE):
            changes[attribute] = None
        elif attribute.endswith("_ns"):
            changes[attribute] = ms(reader.number(where, value))
        elif isinstance(before, bool):
            changes[attribute] = reader.flag(where, value)
        elif isinstance(before, str):
            changes[attribute] = reader.text(where, value)
        elif isinstance(before, int):
            changes[attribute] = reader.whole(where, value, low=0)
        else:
            changes[attribute] = reader.number(where, value)
    try:
        return replace(base, **changes)
    except InputError as error:
        for problem in error.problems:
            reader.report(f"{key}.{problem.key}", problem.message)
        return base
