"""What the server's scheduler knew at an instant, replayed from the trace of a load."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from h3sim.schedulers import TreeScheduler
from h3sim.schedulers.tree.options import DEFAULT_TURN_BYTES
from h3sim.schedulers.tree.views import ROOT
from h3sim.schemes.kinds import SignalKind
from h3sim.signals import ORPHANS, BucketPriority, Eps, Rank, StrictPriority

if TYPE_CHECKING:
    from collections.abc import Iterator

    from h3sim.results import Load
    from h3sim.signals import Signal

__all__ = ["PrioritizedElement", "busiest_ns", "elements_of"]


class PrioritizedElement(NamedTuple):
    """A stream, a placeholder, or a group of streams that the scheduler treats alike.

    *parent* is the index of another element, which stands before this one. *state* is "waits"
    (it has bytes to send), "done" (kept for what is placed relative to it), "idle" (asked for, and
    nothing to send yet) or "group". *resource* is an index in the page, *sent* the share of its
    response that was sent.
    """

    id: int | None
    parent: int | None
    label: str
    state: str
    resource: int | None = None
    sent: float = 0.0


class _Stream(NamedTuple):
    resource: int
    requested_at_ns: int
    ready_at_ns: int
    sent: list[tuple[int, int]]
    """When it had been sent up to where, for the first time."""
    length_bytes: int

    def sent_bytes(self, at_ns: int) -> int:
        return max((end for sent_at_ns, end in self.sent if sent_at_ns <= at_ns), default=0)

    @property
    def done_at_ns(self) -> int:
        return self.sent[-1][0] if self.sent else self.ready_at_ns

    def state(self, at_ns: int) -> str:
        if at_ns < self.ready_at_ns:
            return "idle"
        return "waits" if at_ns < self.done_at_ns else "done"


def busiest_ns(load: Load) -> int:
    """Return the first instant at which most responses had bytes to send."""
    changes = [
        change
        for stream in _streams_of(load).values()
        for change in ((stream.ready_at_ns, 1), (stream.done_at_ns, -1))
    ]
    most, best_ns, count = 0, 0, 0
    # What ends at an instant ends before others begin.
    for at_ns, step in sorted(changes, key=lambda change: (change[0], change[1])):
        count += step
        if count > most:
            most, best_ns = count, at_ns
    return best_ns


def elements_of(load: Load, at_ns: int) -> list[PrioritizedElement]:
    """Return what the scheduler knew at *at_ns*, parents before what is below them.

    A tree as it stands, without what was done with and holds nothing up; or, where there is none,
    the groups of streams in the order in which they are served, of which a stream leaves when all
    of its bytes were sent.
    """
    streams = _streams_of(load)
    if load.scheme.mechanism.signal_kind is SignalKind.TREE:
        return list(_tree(load, streams, at_ns))
    return list(_groups(load, streams, at_ns))


def _streams_of(load: Load) -> dict[int, _Stream]:
    resources = load.page.resources
    streams = {
        request.stream_id: _Stream(
            request.resource,
            request.requested_at_ns,
            request.arrived_at_ns + resources[request.resource].server_ns,
            [],
            request.length_bytes,
        )
        for request in load.trace.requests
    }
    for sent_at_ns, _, stream_id, offset, n_bytes, *_ in load.trace.packet_rows:
        sent, end = streams[stream_id].sent, offset + n_bytes
        # What is sent again brings the response no further.
        if not sent or end > sent[-1][1]:
            sent.append((sent_at_ns, end))
    return streams


def _tree(load: Load, streams: dict[int, _Stream], at_ns: int) -> Iterator[PrioritizedElement]:
    graph = _replayed(load, streams, at_ns).to_networkx()
    order: dict[Any, int] = {}
    kept = {node: None for node in graph if _is_shown(graph, node, streams, at_ns)}

    def walk(node: Any, parent: int | None) -> Iterator[PrioritizedElement]:
        # Without recursion: an exclusive chain is as long as the page has resources.
        waiting = [(node, parent)]
        while waiting:
            current, above = waiting.pop()
            number = order[current] = len(order)
            yield _element(graph, current, above, streams, at_ns)
            below = [child for child in graph.successors(current) if child in kept]
            below.sort(key=lambda child: graph.nodes[child]["place"], reverse=True)
            waiting += [(child, number) for child in below]

    yield from walk(ROOT, None)


def _replayed(load: Load, streams: dict[int, _Stream], at_ns: int) -> TreeScheduler:
    """Return the tree after all that was said, and was closed, up to that instant."""
    made = load.scheme.make_scheduler(turn_bytes=DEFAULT_TURN_BYTES)
    # Somebody's own scheduler may show no tree: then it is the one of RFC 7540 § 5.3.
    tree = made if isinstance(made, TreeScheduler) else TreeScheduler()
    retention_ns = load.scheme.resolved_retention_ns
    happened: list[tuple[int, int, int, int, Signal | None]] = [
        (told.at_ns, 0, number, told.element_id, told.signal)
        for number, told in enumerate(load.trace.signals)
    ]
    happened += [
        (stream.done_at_ns + retention_ns, 1, stream_id, stream_id, None)
        for stream_id, stream in streams.items()
    ]
    # What is said at an instant comes before what is closed then.
    happened.sort(key=lambda entry: entry[:3])
    is_open: dict[int, bool] = {}
    for now_ns, _, _, element_id, signal in happened:
        if now_ns > at_ns:
            break
        if signal is None:
            if is_open.get(element_id):
                is_open[element_id] = False
                tree.close(element_id)
        elif element_id not in is_open:
            is_open[element_id] = True
            tree.open(element_id, signal)
        elif is_open[element_id]:
            tree.update(element_id, signal)
    return tree


def _is_shown(graph: Any, node: Any, streams: dict[int, _Stream], at_ns: int) -> bool:
    """Return whether a node matters: it, or something below it, is not done with."""
    waiting = [node]
    while waiting:
        current = waiting.pop()
        if current == ROOT or current < 0:
            return True
        if current not in streams or streams[current].state(at_ns) != "done":
            return True
        waiting += graph.successors(current)
    return False


def _element(
    graph: Any, node: Any, parent: int | None, streams: dict[int, _Stream], at_ns: int
) -> PrioritizedElement:
    if node == ROOT:
        return PrioritizedElement(None, None, "root", "group")
    if node == ORPHANS:
        return PrioritizedElement(node, parent, "orphan placeholder", "group")
    weight = graph.nodes[node]["weight"]
    if node < 0:
        return PrioritizedElement(node, parent, f"placeholder {-1 - node}, w={weight}", "group")
    if node not in streams:
        return PrioritizedElement(node, parent, f"stream {node}, w={weight}", "idle")
    return _of_stream(node, parent, f"w={weight}", streams[node], at_ns)


def _of_stream(
    stream_id: int, parent: int | None, label: str, stream: _Stream, at_ns: int
) -> PrioritizedElement:
    share = stream.sent_bytes(at_ns) / stream.length_bytes if stream.length_bytes else 1.0
    return PrioritizedElement(stream_id, parent, label, stream.state(at_ns), stream.resource, share)


def _groups(load: Load, streams: dict[int, _Stream], at_ns: int) -> Iterator[PrioritizedElement]:
    """Yield the groups, the first to be served first, each with its streams."""
    said = {
        element_id: signal
        for told_ns, element_id, signal in load.trace.signals
        if told_ns <= at_ns and element_id >= 0
    }
    groups: dict[tuple[tuple[int, ...], str], list[int]] = {}
    for stream_id, signal in said.items():
        if streams[stream_id].state(at_ns) != "done":
            groups.setdefault(_group(signal), []).append(stream_id)
    yield PrioritizedElement(None, None, f"scheduler: {load.scheme.mechanism.value}", "group")
    n = 1
    for (_, label), members in sorted(groups.items()):
        yield PrioritizedElement(None, 0, label, "group")
        number = n
        for stream_id in sorted(members):
            yield _of_stream(stream_id, number, _word(said[stream_id]), streams[stream_id], at_ns)
        n += 1 + len(members)


def _group(signal: Signal) -> tuple[tuple[int, ...], str]:
    """Return the group of a stream: where in the order it is served, and what it is called."""
    match signal:
        case Eps():
            how = "incremental" if signal.incremental else "one by one"
            return (signal.urgency, signal.incremental), f"u={signal.urgency}, {how}"
        case BucketPriority():
            how = {3: "before all others", 2: "one by one", 1: "in turn"}[signal.level]
            return (
                (-signal.bucket, -signal.level),
                f"bucket {signal.bucket}.{signal.level}, {how}",
            )
        case StrictPriority():
            return (-signal.strict,), f"strict {signal.strict}"
        case Rank():
            return (0,), "by rank"
    return (0,), "no priorities"


def _word(signal: Signal) -> str:
    """Return what tells a stream from others of its group."""
    match signal:
        case StrictPriority():
            return f"w={signal.weight}"
        case Rank():
            return f"rank {signal.value}"
    return ""
