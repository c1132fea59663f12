"""A workload on which the mechanisms of `identify` differ: a page, URLs and files for a server."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from h3sim.identification.send_order import SendOrder, Step, StepKind
from h3sim.page import Page, page_from_dict
from h3sim.schema import write_atomically
from h3sim.signals import Eps, H2Priority, Signal
from h3sim.values.constants import STREAM_ID_STEP
from h3sim.values.errors import InputError
from h3sim.values.units import NS_PER_MS

if TYPE_CHECKING:
    from h3sim.identification.mechanism import Mechanism


@dataclass(frozen=True, kw_only=True)
class WorkloadRequest:
    """A request: its signal, its response's length, and when it is made."""

    path: str
    size_bytes: int
    signal: Signal
    at_ms: int = 0
    update: Signal | None = None
    """A later signal, at `_UPDATE_AT_MS`."""

    @property
    def description(self) -> str:
        """The signal in words."""
        return describe_signal(self.signal)


def describe_signal(signal: Signal) -> str:
    """Return a signal in words.

    >>> describe_signal(Eps(urgency=5)), describe_signal(H2Priority(weight=32))
    ('u=5', 'weight 32')
    """
    if isinstance(signal, H2Priority):
        below = "" if signal.depends_on is None else f" below stream {signal.depends_on}"
        return f"weight {signal.weight}{below}"
    if isinstance(signal, Eps):
        return f"u={signal.urgency}{', i' * signal.incremental}"
    return repr(signal)


_LARGE_BYTES, _SMALL_BYTES = 400_000, 20_000
"""Sizes of responses: large ones overlap for long, small ones only show when they are sent."""
_LATE_MS, _UPDATE_AT_MS = 60, 200
"""Times of later requests, when early responses are being sent, and of the changed priority."""


def _request(
    name: str, signal: Signal, *, size_bytes: int = _LARGE_BYTES, **fields: Any
) -> WorkloadRequest:
    return WorkloadRequest(path=f"{name}.bin", size_bytes=size_bytes, signal=signal, **fields)


def _pair(urgency: int, *, at_ms: int = 0) -> tuple[WorkloadRequest, WorkloadRequest]:
    """Return a request that is not incremental, and one that is."""
    sequential, incremental = Eps(urgency=urgency), Eps(urgency=urgency, incremental=True)
    size_bytes = _SMALL_BYTES
    return (
        _request(f"u{urgency}-pair", sequential, size_bytes=size_bytes, at_ms=at_ms),
        _request(f"u{urgency}-i-pair", incremental, size_bytes=size_bytes, at_ms=at_ms),
    )


_URGENT_INCREMENTAL, _URGENT = Eps(urgency=2, incremental=True), Eps(urgency=2)


_DOCUMENT = WorkloadRequest(path="index.html", size_bytes=2_000, signal=Eps(urgency=0))
"""Requested alone, so that its delay shows how long the server takes to answer."""
EPS_WORKLOAD = (
    _DOCUMENT,
    _request("u3-i-a", Eps(incremental=True)),
    _request("u3-a", Eps()),
    _request("u3-i-b", Eps(incremental=True)),
    _request("u3-b", Eps()),
    _request("u5-a", Eps(urgency=5)),
    _request("u5-i-a", Eps(urgency=5, incremental=True)),
    _request("u5-i-b", Eps(urgency=5, incremental=True)),
    _request("u6-to-u1", Eps(urgency=6), update=Eps(urgency=1)),
    *(_request(f"u2-i-late-{letter}", _URGENT_INCREMENTAL, at_ms=_LATE_MS) for letter in "abc"),
    # Incremental responses of the same urgency have begun by then: whether each of these waits
    # distinguishes how a server orders both kinds.
    *(
        _request(
            f"u2-later-{number}", _URGENT, size_bytes=_SMALL_BYTES, at_ms=_LATE_MS + 12 * number
        )
        for number in range(1, 9)
    ),
    *(
        _request(f"u2-i-later-{letter}", _URGENT_INCREMENTAL, at_ms=_LATE_MS + 40)
        for letter in "abc"
    ),
    # Both of a pair wait for more urgent ones, so that the first packet shows which kind begins.
    *_pair(4),
    *_pair(6),
    *_pair(7),
    _request("u0-late", Eps(urgency=0), size_bytes=_SMALL_BYTES, at_ms=2 * _LATE_MS),
    *_pair(1, at_ms=2 * _LATE_MS),
    _request("u1-last", Eps(urgency=1), at_ms=4 * _LATE_MS),
)
TREE_WORKLOAD = (
    replace(_DOCUMENT, signal=H2Priority()),
    _request("w16", H2Priority(weight=16)),
    _request("w32", H2Priority(weight=32)),
    _request("w200", H2Priority(weight=200)),
    _request("w7", H2Priority(weight=7)),
    _request("below-w16-a", H2Priority(weight=150, depends_on=4)),
    _request("below-w16-b", H2Priority(weight=70, depends_on=4)),
    _request("late-w256", H2Priority(weight=256), at_ms=_LATE_MS),
)
BASE_URL = "https://localhost:4433/"
WORKLOADS = {"eps": EPS_WORKLOAD, "h2": TREE_WORKLOAD}
_PACKET_BYTES = 1250
_PACKETS_PER_MS = 2
"""Pace of the simulated server by which a workload is checked to tell mechanisms apart."""
_DOCUMENT_MS = 1
"""Time that the document takes; the times of all other requests count from its end."""


def order_by(mechanism: Mechanism, requests: tuple[WorkloadRequest, ...]) -> SendOrder:
    """Return the order in which a server with that mechanism sends the responses."""
    scheduler = mechanism.new(_PACKET_BYTES)
    steps: list[Step] = []
    bytes_left: dict[int, int] = {}  # of the responses that have begun, by stream
    by_stream = {STREAM_ID_STEP * index: request for index, request in enumerate(requests)}
    updates = [stream_id for stream_id, each in by_stream.items() if each.update is not None]
    waiting = sorted(by_stream, key=lambda stream_id: by_stream[stream_id].at_ms)
    tick = 0

    def record(kind: StepKind, stream_id: int, **fields: Any) -> None:
        steps.append(Step(kind, tick * NS_PER_MS // _PACKETS_PER_MS, stream_id, **fields))

    while bytes_left or waiting:
        at_ms = tick // _PACKETS_PER_MS
        while waiting:
            request = by_stream[waiting[0]]
            # If the server is idle, time is skipped until the next request.
            if request.at_ms + _DOCUMENT_MS > at_ms and bytes_left:
                break
            stream_id = waiting.pop(0)
            bytes_left[stream_id] = request.size_bytes
            signal = mechanism.signal(request.signal)
            assert signal is not None  # noqa: S101 - each request has one
            scheduler.open(stream_id, signal)
            scheduler.activate(stream_id)
            record(StepKind.OPEN, stream_id, signal=request.signal)
            record(StepKind.ACTIVATE, stream_id)
            record(StepKind.READY, stream_id)
        while updates and at_ms >= _UPDATE_AT_MS:
            stream_id = updates.pop(0)
            update = by_stream[stream_id].update
            signal = mechanism.signal(update)
            if stream_id in bytes_left and signal is not None:
                record(StepKind.UPDATE, stream_id, signal=update)
                if mechanism.heeds_updates:
                    scheduler.update(stream_id, signal)
        picked = scheduler.pick()
        assert picked is not None  # noqa: S101 - shipped schedulers are work-conserving
        n_bytes = min(_PACKET_BYTES, bytes_left[picked])
        is_choice = len(bytes_left) > 1
        record(StepKind.SENT, picked, n_bytes=n_bytes, number=tick, is_choice=is_choice)
        scheduler.charge(picked, n_bytes)
        bytes_left[picked] -= n_bytes
        if not bytes_left[picked]:
            del bytes_left[picked]
            scheduler.deactivate(picked)
            record(StepKind.DEACTIVATE, picked)
        tick += 1
    return SendOrder(
        title=f"workload for {mechanism.name}",
        source="server",
        steps=tuple(steps),
        packet_bytes=_PACKET_BYTES,
        turn_bytes=_PACKET_BYTES,
        knows_losses=False,
        paths={stream_id: each.path for stream_id, each in by_stream.items()},
        unknown=(),
        signals={stream_id: each.signal for stream_id, each in by_stream.items()},
        has_signals=True,
        n_updates=sum(step.kind is StepKind.UPDATE for step in steps),
    )


def workload_page(requests: tuple[WorkloadRequest, ...] = EPS_WORKLOAD) -> Page:
    """Return the workload as a page, for the scheme `recorded` (EPS) or `recorded-firefox`."""
    first = requests[0]
    resources: list[dict[str, Any]] = []
    for request in requests:
        entry: dict[str, Any] = {"id": request.path, "bytes": request.size_bytes}
        entry["kind"] = "document" if request is first else "other"
        if request is not first:
            entry["discovered"] = {"by": first.path, "at": "complete"}
            if request.at_ms:
                entry["discovered"]["delay_ms"] = request.at_ms
        entry["recorded"] = [_recorded(request.signal, requests)]
        if request.update is not None:
            when = {"by": first.path, "at": "complete", "delay_ms": _UPDATE_AT_MS}
            entry["recorded"].append({**_recorded(request.update, requests), "when": when})
        resources.append(entry)
    name = "workload-h2" if isinstance(first.signal, H2Priority) else "workload-eps"
    return page_from_dict({"format": "h3sim-page/1", "name": name, "resources": resources})


def _recorded(signal: Signal, requests: tuple[WorkloadRequest, ...]) -> dict[str, Any]:
    """Return a signal as the recorded priority of a page file."""
    if isinstance(signal, Eps):
        return {"browser": "chrome", "urgency": signal.urgency, "incremental": signal.incremental}
    assert isinstance(signal, H2Priority)  # noqa: S101 - the two kinds of workloads
    parent = signal.depends_on
    parent_path = "" if parent is None else requests[parent // STREAM_ID_STEP].path
    return {"browser": "firefox", "weight": signal.weight, "depends_on": parent_path}


def check_base_url(base_url: str, *, key: str = "base_url") -> str:
    """Return *base_url*; *key* names it in errors.

    Raises:
        InputError: if *base_url* is not an http or https URL, or has a query or a fragment.
    """
    if re.fullmatch(r"(?i:https?)://[^/?#\s]+(/[^?#\s]*)?", base_url) is None:
        raise InputError.at(key, f"must be a URL like {BASE_URL}, is {base_url!r}")
    return base_url


def write_workload(
    folder: str | Path, *, signals: str = "eps", base_url: str = BASE_URL
) -> list[Path]:
    """Write a workload into *folder*: page.json, urls.txt, and www with a file for each response.

    Raises:
        InputError: if *base_url* is not an http or https URL, or the files cannot be written.
    """
    root, requests = Path(folder), WORKLOADS[signals]
    check_base_url(base_url)
    if root.exists() and not root.is_dir():
        raise InputError.at("folder", f"is a file: {str(root)!r}; a folder is needed")
    files = {"page.json": json.dumps(workload_page(requests).to_dict(), indent=1).encode() + b"\n"}
    files["urls.txt"] = _urls(requests, base_url).encode()
    files |= {f"www/{each.path}": b"." * each.size_bytes for each in requests}
    written = []
    for name, content in files.items():
        path = root / name
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InputError.at("folder", f"cannot be made: {error.strerror or error}") from error
        write_atomically(path, partial(_write_bytes, content), error=InputError)
        written.append(path)
    return written


def _write_bytes(content: bytes, file: BinaryIO) -> None:
    file.write(content)


def _urls(requests: tuple[WorkloadRequest, ...], base_url: str) -> str:
    """Return a line per request (time, priority, URL), and a line per changed priority."""
    base = base_url.rstrip("/")
    rows = [(each.at_ms, each.signal, f"{base}/{each.path}") for each in requests]
    rows += [
        (_UPDATE_AT_MS, each.update, f"PRIORITY_UPDATE {base}/{each.path}")
        for each in requests
        if each.update is not None
    ]
    rows.sort(key=lambda row: row[0])
    lines = [f"{at_ms} | {describe_signal(signal)} | {url}\n" for at_ms, signal, url in rows]
    return "".join(("# ms after index.html is complete | priority | URL\n", *lines))
