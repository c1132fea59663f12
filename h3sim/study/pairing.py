"""Pairs of loads: the columns in which loads differ, and which loads may be compared.

This is the one place that decides what a pair is: two loads that agree in everything but the
compared axis, that is in the whole configuration, the digests of page, network, transport profile,
controller, header codec and scheme, and the version of h3sim.
`compare`, `relative_medians`, `to_xarray`, `join` and the figures of studies use it.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any, TypeAlias

from h3sim.browser import BROWSER_OPTIONS
from h3sim.load.network_path import NETWORK_WITHOUT_RECORDING, is_file_key
from h3sim.page.recording import RECORDED_NETWORK
from h3sim.schema import format_value
from h3sim.study.columns import Columns, Row
from h3sim.values.errors import InputError, ValidationIssue

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

LOAD_COLUMNS = ("page", "scheme", "seed")
"""Columns that rows need so that loads can be paired."""
AVERAGED = ("page", "seed")
"""Axes whose values are a sample, so that comparisons may average over them unasked."""

_CONSTANT_RATE = "(constant rate)"
"""Pseudo-column: whether the network is a constant rate, which has neither links nor endpoints."""
_RECORDED_PAGE = "(page of a recorded network)"
"""Pseudo-column: the page, if its recording determines rate and round-trip time."""
_NETWORK = ("network", "network_digest")
_ENDS = ("transport_profile", "profile_digest", *_NETWORK, _CONSTANT_RATE)
_SCHEME = ("scheme", "scheme_digest")
DETERMINED_BY: Mapping[str, tuple[str, ...]] = {
    "page": (),
    "page_digest": ("page",),
    "page_bytes": ("page", "page_digest"),
    "page_atf_bytes": ("page", "page_digest"),
    "of": ("page",),
    # By default the network of the page's recording; see `_is_of_recording`.
    "network": ("page",),
    "network_digest": ("network", _RECORDED_PAGE),
    "rate_mbps": (*_NETWORK, "interval_ms", "packet_bytes", _RECORDED_PAGE),
    "interval_ms": (
        *(*_NETWORK, "rate_mbps", "packet_bytes", _RECORDED_PAGE),
        # These turn a constant rate, which has an interval, into links.
        *("cc", "loss", "queue_bdp", "queue_bytes", "transport_profile"),
    ),
    "packet_bytes": (*_NETWORK, _CONSTANT_RATE, _RECORDED_PAGE),
    "rtt_ms": (*_NETWORK, _RECORDED_PAGE),
    "loss": (*_NETWORK, _CONSTANT_RATE, _RECORDED_PAGE),
    "mean_loss_burst": (*_NETWORK, "loss", _CONSTANT_RATE, _RECORDED_PAGE),
    "queue_bdp": (*_NETWORK, "queue_bytes", _CONSTANT_RATE, _RECORDED_PAGE),
    "queue_bytes": (*_NETWORK, "queue_bdp", _CONSTANT_RATE, _RECORDED_PAGE),
    "queue_packets": (*_NETWORK, "queue_bdp", "queue_bytes", _CONSTANT_RATE, _RECORDED_PAGE),
    "queue_discipline": (*_NETWORK, _CONSTANT_RATE, _RECORDED_PAGE),
    "reorder": (*_NETWORK, _CONSTANT_RATE, _RECORDED_PAGE),
    "transport_profile": ("transport", *_NETWORK, _CONSTANT_RATE, _RECORDED_PAGE),
    "profile_digest": (*_NETWORK, "transport_profile", _CONSTANT_RATE, _RECORDED_PAGE),
    "cc": (*_ENDS, _RECORDED_PAGE),
    "controller_digest": ("cc", *_ENDS, _RECORDED_PAGE),
    "ecn": (*_ENDS, _RECORDED_PAGE),
    "transport": (*_ENDS, _RECORDED_PAGE),
    "path_digest": (
        *(*_NETWORK, "rate_mbps", "interval_ms", "packet_bytes", "rtt_ms", "loss"),
        *("mean_loss_burst", "queue_bdp", "queue_bytes", "queue_packets", "queue_discipline"),
        *("reorder", "ecn", _CONSTANT_RATE, _RECORDED_PAGE),
    ),
    "handshake": (),
    "scheme": (),
    "scheme_digest": ("scheme",),
    "retransmission_order": (*_ENDS, *_SCHEME, _RECORDED_PAGE),
    "packet_threshold": (*_ENDS, "transport", _RECORDED_PAGE),
    "time_threshold": (*_ENDS, "transport", _RECORDED_PAGE),
    "max_placeholders": _SCHEME,
    "closed_stream_retention_ms": _SCHEME,
    "signalling": _SCHEME,
    "send_buffer_kb": (),
    "send_buffer_refill": ("send_buffer_kb",),
    "browser": (),
    **dict.fromkeys(BROWSER_OPTIONS, ("browser",)),
    "header_compression": (),
    "table_bytes": ("header_compression",),
    "blocked_streams": ("header_compression",),
    "codec_digest": ("header_compression", "table_bytes", "blocked_streams"),
    # Recordings with several hosts have a connection per host, except at a constant rate.
    "connections": ("page", *_NETWORK, _CONSTANT_RATE),
    "max_connections_per_host": ("transport",),
    "cross_traffic": _NETWORK,
    "dns_ms": ("connections", "page"),
    "time_limit_s": (_CONSTANT_RATE,),
    "processes": (),
    "seed": (),
    "version": (),
}
"""Every column of a row that is no metric, with the columns that may determine its value.

A column with the same value wherever these are equal follows from them: the rate from the network,
for example. Any other column that varies is an axis, whether or not a study declares it. The order
decides which of several columns that determine each other is the axis.
"""


def columns_of(
    rows: Iterable[Row] | Columns, *names: object, axes: Sequence[str] | None = None
) -> Columns:
    """Return the columns of *rows* that pairing needs, and those called *names*.

    The axes are those of the rows, if they have any; columns are returned as they are.
    """
    if isinstance(rows, Columns):
        return rows
    own_axes = tuple(getattr(rows, "axes", ()) if axes is None else axes)
    wanted = (name for name in names if isinstance(name, str))
    return Columns.read(rows, (*own_axes, *DETERMINED_BY, *wanted), axes=own_axes)


def varying(
    rows: Iterable[Row] | Columns, axes: Sequence[str] = (), *, over: str | None = None
) -> tuple[str, ...]:
    """Return the columns in which loads differ: the declared *axes* that vary, then any others.

    Columns that follow from others are left out (`DETERMINED_BY`). Where pages are compared
    (*over* is "page"), a network does not follow from the page.

    >>> rr = {"page": "p", "scheme": "rr", "seed": 0, "network": "4g", "rtt_ms": 60}
    >>> varying([rr, rr | {"scheme": "fifo", "network": "dsl", "rtt_ms": 20}], ["scheme"])
    ('scheme', 'network')
    """
    columns = columns_of(rows, *axes, over)
    names = tuple(dict.fromkeys((*axes, *DETERMINED_BY)))
    varied = {name for name in names if not columns.is_constant(name)}
    # Without seeds there are far fewer combinations than rows.
    settings = [name for name in names if name in varied and name != "seed"]
    same = columns.constants()
    combinations = dict.fromkeys(columns.tuples(settings))
    distinct = [{**same, **dict(zip(settings, own, strict=True))} for own in combinations]
    # What follows from the compared axis is no difference besides it.
    found = [name for name in dict.fromkeys((*axes, over)) if name in varied]
    explained = {_CONSTANT_RATE, *found, *(name for name in names if name not in varied)}
    explained |= set() if over == "page" else {_RECORDED_PAGE}
    for name in DETERMINED_BY:
        if name in explained:
            continue
        parents = [parent for parent in DETERMINED_BY[name] if parent in explained]
        if "network" in DETERMINED_BY[name]:
            parents += filter(is_file_key, found)
        if name == "network" and (over == "page" or not all(map(_is_of_recording, distinct))):
            parents = []
        if name == "seed" or not _follows(name, parents, distinct):
            found.append(name)
        explained.add(name)
    return tuple(found)


def _is_of_recording(row: Row) -> bool:
    """Return whether the network may be that of the page's recording, or its replacement."""
    network = row.get("network")
    return network == NETWORK_WITHOUT_RECORDING or str(network).startswith(RECORDED_NETWORK)


def _follows(name: str, parents: Sequence[str], rows: Iterable[Row]) -> bool:
    """Return whether rows that agree in *parents* agree in the column *name*."""
    values: dict[tuple[Any, ...], Any] = {}
    for row in rows:
        key = tuple(_value(row, parent) for parent in parents)
        if values.setdefault(key, row.get(name)) != row.get(name):
            return False
    return True


def _value(row: Row, name: str) -> Any:
    if name == _CONSTANT_RATE:
        return row.get("interval_ms") is not None
    if name == _RECORDED_PAGE:
        return row.get("page") if str(row.get("network")).startswith(RECORDED_NETWORK) else None
    return row.get(name)


_REMEDIES = {
    "page_digest": "pages of one name have different contents (page_digest): give them different"
    " names, or filter",
    "version": "the rows are of different versions of h3sim (version): run the older loads again,"
    " or filter",
}
"""Errors on columns that are no options of a load, with what to do."""
_NAMED_BY_DIGEST = {
    "page_digest": ("page", "the page {}"),
    "network_digest": ("network", "the network {}"),
    "path_digest": ("network", "the network {} as options change it"),
    "profile_digest": ("transport_profile", "the transport profile {}"),
    "controller_digest": ("cc", "the congestion controller {}"),
    "codec_digest": ("header_compression", "the settings of {}"),
    "scheme_digest": ("scheme", "the scheme {}"),
}
"""Column of the name of what a digest identifies, and its description."""
_MAX_DESCRIBED_NAMES = 3
_UNKNOWN_VERSION = "at least one of them unknown: rows of an older h3sim have no digest"


def describe_columns(names: Iterable[str], columns: Columns) -> list[str]:
    """Return what differs among rows in the columns *names*, in words where these are digests.

    >>> rows = [{"network": "4g", "network_digest": digest} for digest in ("a1", "b2")]
    >>> describe_columns(["loss", "network_digest"], columns_of(rows))
    ['loss', 'the network 4g (network_digest: 2 versions of it)']
    """
    names = list(names)
    versions: dict[tuple[str, Any], set[Any]] = {}
    for digest in names:
        if digest in _NAMED_BY_DIGEST:
            for of, own in columns.tuples([_NAMED_BY_DIGEST[digest][0], digest]):
                versions.setdefault((digest, of), set()).add(own)
    return [
        text
        for name in names
        for text in _describe_versions(
            name, {of: found for (digest, of), found in versions.items() if digest == name}
        )
    ]


def _describe_versions(name: str, versions: Mapping[Any, set[Any]]) -> list[str]:
    """Return a text for each name of which there are several *versions*, else the column *name*."""
    several = {of: found for of, found in versions.items() if len(found) > 1}
    texts = []
    for of, found in [*several.items()][:_MAX_DESCRIBED_NAMES]:
        what = _NAMED_BY_DIGEST[name][1].format(of)
        unknown = f", {_UNKNOWN_VERSION}" if None in found else ""
        texts.append(f"{what} ({name}: {len(found)} versions of it{unknown})")
    return texts or [name]


NAME_POOLED = "name what is averaged over in pool=, or filter"


def check_pooled(
    rows: Iterable[Row] | Columns,
    differing: Sequence[str],
    *,
    named: Iterable[str],
    key: str = "pool",
    remedy: str = NAME_POOLED,
) -> None:
    """Refuse to average over columns in which loads differ, except pages, seeds and those *named*.

    *differing* is the result of `varying` for *rows*, *remedy* says what to do.

    Raises:
        InputError: listing these columns, and what to do.
    """
    refused = [name for name in differing if name not in (*AVERAGED, *named)]
    messages = [_REMEDIES[name] for name in refused if name in _REMEDIES]
    if others := [name for name in refused if name not in _REMEDIES]:
        differences = ", ".join(describe_columns(others, columns_of(rows)))
        messages.insert(0, f"the loads differ in {differences}, too: {remedy}")
    if messages:
        raise InputError(ValidationIssue(key=key, message=message) for message in messages)


def distinct_loads(
    columns: Columns, key: Sequence[str], value: str
) -> dict[tuple[Any, ...], tuple[Any, int]]:
    """Return the *value* of each load that has it, and the hash of its other metrics.

    Loads are found by their values of the columns *key*, in the order of the rows.

    Raises:
        InputError: if loads that agree in *key* have different values.
    """
    loads: dict[tuple[Any, ...], tuple[Any, int]] = {}
    for where, own, others in zip(columns.tuples(key), columns[value], columns.others, strict=True):
        if own is not None and loads.setdefault(where, (own, others))[0] != own:
            raise InputError([_ambiguous_issue(dict(zip(key, where, strict=True)), key)])
    return loads


def _ambiguous_issue(row: Row, key: Sequence[str]) -> ValidationIssue:
    """Return the issue that several different loads have the values of *row* in *key*."""
    common = ", ".join(f"{name} {format_value(row.get(name))}" for name in key)
    message = (
        f"several different loads have {common}: compare them separately, or name the column in"
        " which they differ as an axis"
    )
    return ValidationIssue(key="axes", message=message)


def reason_without_pairs(
    columns: Columns, key: Sequence[str], over: str, baseline: Any, value: str
) -> str:
    """Return why no load has a partner of the *baseline* that agrees in the columns *key*.

    >>> rows = [{"scheme": "rr", "loss": 0, "ms": 1}, {"scheme": "x", "loss": 0.1, "ms": 2}]
    >>> reason_without_pairs(columns_of(rows, "ms"), ["loss"], "scheme", "rr", "ms")
    'no load has ms together with one of rr: they never agree in loss'
    """
    level = baseline if over == "scheme" else f"{over} {baseline}"
    reason = f"no load has {value} together with one of {level}"
    known = columns.take([at for at, own in enumerate(columns[value]) if own is not None])
    sides = {
        is_baseline: known.take(
            [at for at, own in enumerate(known[over]) if (own == baseline) == is_baseline]
        )
        for is_baseline in (True, False)
    }
    if not all(sides.values()):
        return reason
    apart = [
        name for name in key if not {*sides[True].distinct(name)} & {*sides[False].distinct(name)}
    ]
    if not apart:
        return reason
    return f"{reason}: they never agree in {', '.join(describe_columns(apart, known))}"


# Rows of several studies together

Identity: TypeAlias = bytes


def identity_of(row: Row, axes: Iterable[str]) -> Identity | None:
    """Return the digest of what identifies a load among rows; None for rows of other tables.

    It covers every setting, all digests, the version, and the columns *axes*.
    """
    if not all(name in row for name in LOAD_COLUMNS):
        return None
    names = dict.fromkeys((*DETERMINED_BY, *axes))
    return _digest((name, row[name]) for name in names if row.get(name) is not None)


def _digest(cells: Iterable[tuple[str, Any]]) -> bytes:
    """Return a digest of names and values, in which 1 and 1.0 are equal, as in data frames."""
    plain = [(name, float(value) if isinstance(value, int) else value) for name, value in cells]
    return hashlib.blake2b(repr(plain).encode(), digest_size=16).digest()


class Merger:
    """Merging of rows of several studies: each load once.

    Loads with the same identity have the same metrics, because a load is deterministic; the rows
    may have different columns of metrics.
    """

    def __init__(self, rows: Iterable[Row], axes: Sequence[str]) -> None:
        self._axes = axes
        self.n_merged = 0
        """Number of rows that repeat a load."""
        self._additional: dict[Identity, dict[str, Any]] = {}
        contents: dict[Identity, bytes] = {}
        differing: set[Identity] = set()
        for row in rows:
            identity = identity_of(row, axes)
            if identity is None:
                continue
            digest = _digest(sorted(row.items()))
            if identity not in contents:
                contents[identity] = digest
                continue
            self.n_merged += 1
            if contents[identity] != digest:
                differing.add(identity)
        if differing:
            self._merge(rows, differing)

    def _merge(self, rows: Iterable[Row], differing: set[Identity]) -> None:
        """Merge the columns of rows that differ.

        Raises:
            InputError: if two rows of one load have different values in a column.
        """
        merged: dict[Identity, dict[str, Any]] = {}
        for row in rows:
            identity = identity_of(row, self._axes)
            if identity is None or identity not in differing:
                continue
            known = merged.setdefault(identity, dict(row))
            if contradicting := [
                name
                for name in row
                if known.get(name, row[name]) not in (None, row[name]) and row[name] is not None
            ]:
                raise InputError([_contradiction(row, contradicting, self._axes)])
            known.update({name: row[name] for name in row if known.get(name) is None})
        self._additional = merged

    def pieces(self, rows: Iterable[Row]) -> Iterator[Row | None]:
        """Yield for each of *rows* the merged row, or None if the load came before."""
        seen: set[Identity] = set()
        for row in rows:
            identity = identity_of(row, self._axes)
            if identity is None:
                yield row
            elif identity in seen:
                yield None
            else:
                seen.add(identity)
                yield self._additional.get(identity, row)


def _contradiction(row: Row, columns: Sequence[str], axes: Sequence[str]) -> ValidationIssue:
    """Return the issue that two rows of one load differ in *columns*."""
    names = dict.fromkeys((*LOAD_COLUMNS, *axes))
    load = ", ".join(f"{name} {format_value(row.get(name))}" for name in names if name in row)
    message = (
        f"two loads of {load} have the same settings, but differ in {', '.join(columns[:3])}: name"
        " the column in which they differ as an axis, Results.of(rows, axes=[...]), or leave one"
        " out"
    )
    return ValidationIssue(key="rows", message=message)
