"""The two halves of a scheme: what a client asks for, and what a server does with it.

`pair_document` puts them together; `h3sim.catalog` finds them by name.
"""

from __future__ import annotations

import enum
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from h3sim.browser.capabilities import Ability, Hint
from h3sim.schema import format_choices, parse_toml
from h3sim.schema.fields import Named, Record, declare, read_document, validate, write_table
from h3sim.schema.values import Choice, Integer, ListOf, OneOrMore, Text
from h3sim.schemes.model import FORMAT as SCHEME
from h3sim.schemes.model import Scheme, resolve_scheduler
from h3sim.schemes.registry import CustomScheduler, SchedulerKind, SignalKind
from h3sim.schemes.rules import Placeholder, PriorityClass, Rule, ServerHint
from h3sim.signals import DEFAULT_URGENCY, MAX_URGENCY, Signalling, WithoutSignal
from h3sim.values.errors import SchemeError, UnknownNameError, ValidationIssue

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from h3sim.browser.model import TightMode
    from h3sim.schedulers import Mixed, Quantum, Retransmit
    from h3sim.schemes.model import RecordedBy
    from h3sim.schemes.ranks import RankBy
    from h3sim.transport.tcp.settings import FlowControl

CLIENT = "h3sim-client/1"
SERVER = "h3sim-server/1"


class Reads(enum.Enum):
    """The signals that a server reads."""

    EPS = "eps"
    """The Priority field and PRIORITY_UPDATE frames (RFC 9218)."""
    TREE = "tree"
    """PRIORITY frames, a position in the dependency tree (RFC 7540)."""
    BUCKETS = "buckets"
    """A bucket and a level (Marx 2019)."""
    STRICT = "strict"
    """A strict priority and a weight (base-drafts PR 2700)."""
    NOTHING = "none"
    """None: the server decides alone."""


class Over(enum.Enum):
    """The only protocol of a server."""

    HTTP2 = "http/2"
    HTTP3 = "http/3"


_READS_BY_KIND = {
    SignalKind.EPS: Reads.EPS,
    SignalKind.TREE: Reads.TREE,
    SignalKind.BUCKETS: Reads.BUCKETS,
    SignalKind.STRICT: Reads.STRICT,
}
"""The signals that each mechanism reads; the others read none."""
_SIGNALLING = {Reads.EPS: Signalling.EPS, Reads.TREE: Signalling.H2}
"""The signalling of a client whose file has none."""
_IN_A_SCHEME = "2026-11"
"""The date of what a scheme says that its client ignores."""
_SHARED_KEYS = ("name", "title", "version", "date", "source", "notes", "caveat")
"""The keys that describe a half."""
BEFORE = " before "
"""Between the client and the server in the name of a pair."""
_ALL_CLASS = "all"
"""The only class of a client that sends no signals of the kind that the server reads."""
_LEVEL_OF_INCREMENTAL, _LEVEL_OF_OTHERS = 1, 3
"""The levels in a bucket of what is incremental, and of what is not."""


def as_in_scheme(name: str) -> Any:
    """Return the declaration of an optional field of `Scheme`, for a half that has it, too."""
    entry = Scheme.__dataclass_fields__[name]
    return field(default=entry.default, metadata=entry.metadata)


@dataclass(frozen=True, slots=True, kw_only=True)
class SignalClass(PriorityClass):
    """The signal of the classes *of*, by default of the one that has its name."""

    of: tuple[str, ...] = field(
        default=(), metadata=declare(OneOrMore(Text(), "classes"), "the classes that it signals")
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class SignalTable:
    """The signals of a client's classes over one protocol."""

    signalling: Signalling | None = field(
        default=None, metadata=declare(Choice(Signalling), "how the server learns priorities")
    )
    updates: tuple[str, ...] = as_in_scheme("updates")
    http2_updates: bool = as_in_scheme("http2_updates")
    placeholders: tuple[Placeholder, ...] = as_in_scheme("placeholders")
    classes: tuple[SignalClass, ...] = field(
        metadata=declare(Named(SignalClass), "the signals of classes")
    )

    def __post_init__(self) -> None:
        validate(self, SchemeError)

    @property
    def signal_names(self) -> dict[str, str]:
        """The signal of each class, by name."""
        return {name: entry.name for entry in self.classes for name in entry.of or (entry.name,)}


_FEATURES = (*(hint.value for hint in Hint), *(ability.value for ability in Ability))
_DATE = re.compile(r"\d{4}-\d\d(-\d\d)?")


@dataclass(frozen=True, slots=True, kw_only=True)
class Capability:
    """A row of a client's table: since which version it has a feature, or how much of it.

    Without *since* and *value* it has none.
    """

    name: str = field(metadata=declare(Choice(_FEATURES), "the feature"))
    since: str = field(
        default="", metadata=declare(Text(), "the first version of the browser that has it")
    )
    value: str = field(default="", metadata=declare(Text(), "how much of it"))
    source: str = field(metadata=declare(Text(is_needed=True), "where that is said"))
    date: str = field(metadata=declare(Text(is_needed=True), "when the source was read"))

    def __post_init__(self) -> None:
        validate(self, SchemeError)

    def issues(self) -> Iterator[ValidationIssue]:
        """Yield a date that is none."""
        yield from _date_issues(self.date)

    def is_in(self, version: str) -> bool:
        """Return whether that version of the browser has it.

        >>> row = Capability(name="preload", since="11.1", source="x", date="2026-11")
        >>> row.is_in("9"), row.is_in("26.1")
        (False, True)
        """
        return bool(self.value) or (bool(self.since) and _number(version) >= _number(self.since))


def _number(version: str) -> list[int]:
    """Return the numbers of a version, for comparisons."""
    return [int(part) for part in re.findall(r"\d+", version)]


def _date_issues(date: str) -> Iterator[ValidationIssue]:
    if date and not _DATE.fullmatch(date):
        message = f"must be a date such as 2026-11-28, or its month, is {date!r}"
        yield ValidationIssue(key="date", message=message)


def signals_of(about: str) -> Any:
    """Return the declaration of a table of signals."""
    return field(default=None, metadata=declare(Record(SignalTable), about))


@dataclass(frozen=True, kw_only=True)
class Client:
    """A row of `models/clients/`: the classes of resources, and how it signals each.

    *version* is that of the browser, *date* when its *source* was read. A file has the rows of the
    *capabilities* of the client that it is *like*, and without *rules* all keys that it does not
    have itself. *eps* and *tree* are its signals over RFC 9218 and RFC 7540; *buckets* and *strict*
    those of proposals. Without a table a client says nothing to a server that reads it.

    Raises:
        SchemeError: listing every class without a signal.
    """

    name: str = field(metadata=declare(Text(is_needed=True), "its unique name"))
    title: str = field(metadata=declare(Text(), "a one-line description"))
    version: str = field(metadata=declare(Text(), "the version of the browser"))
    date: str = field(metadata=declare(Text(), "when its source was read"))
    source: str = field(metadata=declare(Text(), "the source of its rules"))
    notes: str = as_in_scheme("notes")
    caveat: str = as_in_scheme("caveat")
    knows: tuple[str, ...] = as_in_scheme("knows")
    like: str = field(default="", metadata=declare(Text(), "the client that it resembles"))
    tight_mode: TightMode | None = as_in_scheme("tight_mode")
    client_windows: FlowControl | None = as_in_scheme("client_windows")
    recorded: RecordedBy | None = as_in_scheme("recorded")
    capabilities: tuple[Capability, ...] = field(
        default=(), metadata=declare(Named(Capability), "the features that it has, or lacks")
    )
    otherwise: str = field(default=_ALL_CLASS, metadata=declare(Text(), "the class of the rest"))
    eps: SignalTable | None = signals_of("its urgencies (RFC 9218)")
    tree: SignalTable | None = signals_of("its dependency tree (RFC 7540)")
    buckets: SignalTable | None = signals_of("its buckets")
    strict: SignalTable | None = signals_of("its strict priorities")
    rules: tuple[Rule, ...] = as_in_scheme("rules")

    def __post_init__(self) -> None:
        validate(self, SchemeError, self.name)

    def issues(self) -> Iterator[ValidationIssue]:
        """Yield every class of a rule that a table of signals lacks."""
        yield from _date_issues(self.date)
        for key, table in self.tables.items():
            known = table.signal_names
            for index, rule in enumerate(self.rules):
                if rule.class_name not in known:
                    message = f"{key}: {format_choices(rule.class_name, known)}"
                    yield ValidationIssue(key=f"rules[{index}].class", message=message)
            if self.otherwise not in known:
                message = f"{key}: {format_choices(self.otherwise, known)}"
                yield ValidationIssue(key="otherwise", message=message)

    @property
    def tables(self) -> dict[str, SignalTable]:
        """The tables of signals that it has, by name."""
        tables = {"eps": self.eps, "tree": self.tree, "buckets": self.buckets}
        return {key: each for key, each in (tables | {"strict": self.strict}).items() if each}

    def has(self, feature: Hint | Ability) -> bool:
        """Return whether it has a feature, as those do of which its table has no row."""
        rows = (row for row in self.capabilities if row.name == feature.value)
        return all(row.is_in(self.version) for row in rows)

    def classifies(self) -> dict[str, Any]:
        """Return its keys of a scheme without signals, for a scheme with signals of its own."""
        own = ("knows", "tight_mode", "client_windows", "recorded", "rules", "otherwise")
        ignored = [hint.value for hint in Hint if not self.has(hint)]
        keys = {key: value for key, value in write_table(self).items() if key in own}
        return keys | ({"ignores": ignored} if ignored else {})

    def asks(self, reads: Reads, *, over: Over | None = None) -> dict[str, Any]:
        """Return its keys of a scheme before a server that reads these signals, *over* HTTP/2."""
        own = self.classifies()
        rules, otherwise = own.pop("rules", []), own.pop("otherwise", _ALL_CLASS)
        table = self.tables.get(reads.value)
        if reads is Reads.EPS and over is Over.HTTP2 and not self.has(Ability.PRIORITY_FIELD):
            table = None
        if table is None:
            # Over RFC 9218 a request that has the default priorities has no field.
            signalling = Signalling.EPS if reads is Reads.EPS else Signalling.NONE
            own.pop("recorded", None)
            return own | {"signalling": signalling.value, "classes": {_ALL_CLASS: {}}}
        names = table.signal_names
        document = write_table(table)
        for entry in document["classes"].values():
            entry.pop("of", None)
        signalling = table.signalling or _SIGNALLING.get(reads, Signalling.SERVER)
        return {
            **own,
            **document,
            "signalling": signalling.value,
            "otherwise": names[otherwise],
            "rules": [{**rule, "class": names[rule["class"]]} for rule in rules],
        }


@dataclass(frozen=True, kw_only=True)
class Server:
    """A row of `models/servers/`: which signals it reads, and whose turn it is next.

    *version* is that of the software, *date* when its *source* was read. The settings are those of
    `Scheme`, or of the server that it is *like*. A server with buckets that *reads* urgencies has
    *urgency_buckets*, one for each; in it, what is incremental shares. A client that has no
    Priority field over HTTP/2 says nothing to a server that is *over* HTTP/2 alone.

    Raises:
        SchemeError: if the mechanism needs other signals.
    """

    name: str = field(metadata=declare(Text(is_needed=True), "its unique name"))
    title: str = field(metadata=declare(Text(), "a one-line description"))
    version: str = field(metadata=declare(Text(), "the version of the software"))
    date: str = field(metadata=declare(Text(), "when its source was read"))
    source: str = field(metadata=declare(Text(), "the source of its rules"))
    notes: str = as_in_scheme("notes")
    caveat: str = as_in_scheme("caveat")
    knows: tuple[str, ...] = as_in_scheme("knows")
    like: str = field(default="", metadata=declare(Text(), "the server that it resembles"))
    mechanism: SchedulerKind | CustomScheduler = field(
        metadata=Scheme.__dataclass_fields__["mechanism"].metadata
    )
    reads: Reads = field(metadata=declare(Choice(Reads), "the signals that it reads"))
    over: Over | None = field(
        default=None, metadata=declare(Choice(Over), "its only protocol, if it has one")
    )
    urgency_buckets: tuple[int, ...] = field(
        default=(),
        metadata=declare(
            ListOf(Integer(low=0, high=63), "numbers"), "the bucket of each urgency, 0 to 7"
        ),
    )
    rank_by: RankBy | None = as_in_scheme("rank_by")
    mixed: Mixed | None = as_in_scheme("mixed")
    turn: Quantum | None = as_in_scheme("turn")
    retransmission: Retransmit | None = as_in_scheme("retransmission")
    without_signal: WithoutSignal = as_in_scheme("without_signal")
    hints: tuple[ServerHint, ...] = as_in_scheme("hints")
    validates_client_priorities: bool = as_in_scheme("validates_client_priorities")
    max_placeholders: int | None = as_in_scheme("max_placeholders")
    retention_ns: int | None = as_in_scheme("retention_ns")
    server_windows: FlowControl | None = as_in_scheme("server_windows")

    def __post_init__(self) -> None:
        validate(self, SchemeError, self.name)

    def issues(self) -> Iterator[ValidationIssue]:
        """Yield signals that the mechanism cannot use."""
        yield from _date_issues(self.date)
        needed = reads_of(self.mechanism)
        maps = needed is Reads.BUCKETS and self.reads is Reads.EPS
        if self.reads is not needed and not maps:
            message = f"must be {needed.value!r} with the mechanism {self.mechanism.value!r}"
            yield ValidationIssue(key="reads", message=message)
        if len(self.urgency_buckets) != (maps and MAX_URGENCY + 1):
            message = "must have a bucket for each urgency where buckets read eps; else none"
            yield ValidationIssue(key="urgency_buckets", message=message)

    def settings(self) -> dict[str, Any]:
        """Return its keys of a scheme."""
        left_out = (*_SHARED_KEYS, "like", "reads", "over", "urgency_buckets")
        return {key: value for key, value in write_table(self).items() if key not in left_out}

    def adapted(self, asked: dict[str, Any]) -> dict[str, Any]:
        """Return what a client asks for as the mechanism takes it."""
        if self.mechanism.signal_kind is SignalKind.BUCKETS and not self.urgency_buckets:
            silent = {"bucket": 0, "level": _LEVEL_OF_INCREMENTAL}
            entries = asked["classes"]
            return asked | {"classes": {name: entries[name] or silent for name in entries}}
        if not self.urgency_buckets:
            return asked
        classes = {name: self._bucket(entry) for name, entry in asked["classes"].items()}
        return asked | {"classes": classes, "signalling": Signalling.SERVER.value}

    def _bucket(self, entry: Mapping[str, Any]) -> dict[str, int]:
        level = _LEVEL_OF_INCREMENTAL if entry.get("incremental") else _LEVEL_OF_OTHERS
        return {
            "bucket": self.urgency_buckets[entry.get("urgency", DEFAULT_URGENCY)],
            "level": level,
        }


def reads_of(mechanism: SchedulerKind | CustomScheduler) -> Reads:
    """Return the signals that a mechanism needs."""
    return _READS_BY_KIND.get(mechanism.signal_kind, Reads.NOTHING)


def client_of(scheme: Scheme) -> Client:
    """Return the clients of *scheme* alone."""
    reads = reads_of(scheme.mechanism)
    keys = {entry.name for entry in SignalClass.__dataclass_fields__.values()} - {"of"}
    classes = tuple(
        SignalClass(**{key: getattr(entry, key) for key in keys}) for entry in scheme.classes
    )
    table = SignalTable(
        signalling=scheme.signalling,
        updates=scheme.updates,
        http2_updates=scheme.http2_updates,
        placeholders=scheme.placeholders,
        classes=classes,
    )
    tables: dict[str, Any] = {} if reads is Reads.NOTHING else {reads.value: table}
    return Client(
        **_described(scheme),
        **tables,
        knows=scheme.knows if tables else (),
        tight_mode=scheme.tight_mode,
        client_windows=scheme.client_windows,
        recorded=scheme.recorded if tables else None,
        capabilities=tuple(
            Capability(name=hint.value, source=scheme.source, date=_IN_A_SCHEME)
            for hint in scheme.ignores
        ),
        rules=scheme.rules,
        otherwise=scheme.otherwise,
    )


def server_of(scheme: Scheme) -> Server:
    """Return the server of *scheme* alone."""
    own = [name for name in Server.__dataclass_fields__ if name in Scheme.__dataclass_fields__]
    settings = {name: getattr(scheme, name) for name in own if name not in _SHARED_KEYS}
    # What a mechanism by ranks knows; of other schemes the clients know it.
    settings["knows"] = scheme.knows if scheme.rank_by is not None else ()
    return Server(**_described(scheme), **settings, reads=reads_of(scheme.mechanism))


def _described(scheme: Scheme) -> dict[str, Any]:
    described = {key: getattr(scheme, key, "") for key in _SHARED_KEYS}
    return described | {"title": scheme.title, "version": "", "date": ""}


def _none_is_shipped(name: str) -> str:
    raise UnknownNameError("like", name, [])


def _merged(document: dict[str, Any], shipped: Callable[[str], str]) -> dict[str, Any]:
    """Return the keys of a half with those of the one that it is like."""
    name = document.get("like")
    if not isinstance(name, str):
        return document
    base = _merged(parse_toml(shipped(name), SchemeError, source=name), shipped)
    rows = {**base.get("capabilities", {}), **document.get("capabilities", {})}
    # With rules of its own a client has classes of its own, which other signals do not fit.
    left_out = base if "rules" in document else _SHARED_KEYS
    shared = {key: value for key, value in base.items() if key not in left_out}
    return {**shared, **document, **({"capabilities": rows} if rows else {})}


def client_from_toml(
    text: str, *, source: str, shipped: Callable[[str], str] = _none_is_shipped
) -> Client:
    """Return the client in *text*; *shipped* returns the text of the one that it is like.

    Raises:
        SchemeError: listing every error.
    """
    document = _merged(parse_toml(text, SchemeError, source=source), shipped)
    return read_document(Client, document, SchemeError, source=source, format_=CLIENT)


def server_from_toml(
    text: str, *, source: str, shipped: Callable[[str], str] = _none_is_shipped
) -> Server:
    """Return the server in *text*; *shipped* returns the text of the one that it is like.

    Raises:
        SchemeError: listing every error.
    """
    document = _merged(parse_toml(text, SchemeError, source=source), shipped)
    if "mechanism" in document:
        document = {**document, "mechanism": resolve_scheduler(document)}
    return read_document(Server, document, SchemeError, source=source, format_=SERVER)


def pair_document(
    client: Client | None, server: Server | None, own: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """Return the content of the scheme file of a *client* before a *server*.

    The keys of *own* take precedence; a half that is None has all of its keys there.
    """
    given = dict(own or {})
    document: dict[str, Any] = {"format": SCHEME}
    if server is not None:
        document |= server.settings()
    mechanism = resolve_scheduler({**document, **given})
    if client is not None and not isinstance(mechanism, str):
        reads = reads_of(mechanism) if server is None or "mechanism" in given else server.reads
        has_own = "classes" in given and reads.value not in client.tables
        over = None if server is None else server.over
        asked = client.classifies() if has_own else client.asks(reads, over=over)
        document |= asked if server is None else server.adapted(asked)
    return document | given


def name_of_pair(client: Client, server: Server) -> dict[str, Any]:
    """Return the keys that describe a pair that no file names.

    >>> from h3sim.catalog import load_scheme
    >>> load_scheme("firefox before quic-go").name
    'firefox before quic-go'
    """
    described = {"name": f"{client.name}{BEFORE}{server.name}"}
    described["title"] = f"{client.title}; {server.title}"
    for key in ("source", "notes", "caveat"):
        texts = (getattr(client, key), getattr(server, key))
        described[key] = "; ".join(text.rstrip(". ") for text in texts if text)
    return {key: text for key, text in described.items() if text or key == "source"}
