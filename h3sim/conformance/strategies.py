"""Hypothesis strategies: pages, signals, call sequences, dependency trees, losses."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any, TypeAlias

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from h3sim.conformance.call_sequences import PACKET_BYTES, Call, Event, History, valid_history
from h3sim.page import Discovery, Kind, Page, Resource, TriggerEvent, page_from_dict
from h3sim.page.resource import FLAGS
from h3sim.schema.arguments import Predicate
from h3sim.schemes import make_policy
from h3sim.signals import BucketPriority, Eps, H2Priority, Rank, StrictPriority, placeholder_id
from h3sim.values.constants import STREAM_ID_STEP

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from hypothesis.strategies import DrawFn

    from h3sim.schemes import Scheme
    from h3sim.signals import SignalChange


_BODY_SIZES: SearchStrategy[int] = st.one_of(
    st.integers(8000, 30_000),
    st.integers(0, 30_000),
    st.integers(1, 21).map(lambda n: n * PACKET_BYTES),
    st.just(0),
)
# Multiples of 2.5 ms fall on send ticks often enough for ties; by 500 ms most streams are done.
DELAYS_MS: SearchStrategy[float] = st.one_of(
    st.just(0),
    st.just(0),
    st.integers(0, 24).map(lambda n: n * 2.5),
    st.integers(0, 80).map(lambda n: n * 10),
)
"""Delays that lead to ties, and some that are long."""
_PACKED_FLAGS = st.integers(0, 2 ** len(FLAGS) - 1)
"""Sets of flags, each flag as a bit."""


@st.composite
def pages(
    draw: DrawFn,
    *,
    max_resources: int = 9,
    min_resources: int = 1,
    at: tuple[TriggerEvent, ...] = tuple(TriggerEvent),
    sizes: SearchStrategy[int] = _BODY_SIZES,
    bare: bool = False,
) -> Page:
    """Return a strategy of pages; each resource but the root depends on one drawn before it.

    *at* are the triggers that occur, *sizes* the sizes of bodies in bytes. The resources of a
    *bare* page have no headers, and take no time to be generated, parsed or run.
    """
    entries: list[dict[str, Any]] = []
    n_resources = draw(st.sampled_from(range(max_resources, min_resources - 1, -1)))
    for index in range(n_resources):
        entry = draw(_entries(index, sizes, bare=bare))
        if index:
            entry["discovered"] = draw(_discoveries(entries, at))
        entries.append(entry)
    document = {
        "format": "h3sim-page/1",
        "name": "random",
        "resources": draw(st.permutations(entries)),
    }
    return page_from_dict(document)


@st.composite
def _discoveries(
    draw: DrawFn, entries: list[dict[str, Any]], at: tuple[TriggerEvent, ...]
) -> dict[str, Any]:
    """Draw a trigger at one of *entries*, the resources before it."""
    event = draw(st.sampled_from(at))
    discovered: dict[str, Any] = {"at": event.value, "delay_ms": draw(DELAYS_MS)}
    if event is not TriggerEvent.TIME:
        parent = draw(st.sampled_from(entries))
        discovered["by"] = parent["id"]
        if event is TriggerEvent.OFFSET:
            discovered["offset_bytes"] = draw(st.integers(0, parent["bytes"]))
    return discovered


@st.composite
def _entries(draw: DrawFn, index: int, sizes: SearchStrategy[int], *, bare: bool) -> dict[str, Any]:
    """Draw a resource as in a page file, without a trigger; a bare one has only a body."""
    flags = draw(_PACKED_FLAGS)
    entry: dict[str, Any] = {
        "id": f"r{index}",
        "kind": draw(st.sampled_from(Kind)).value,
        "bytes": draw(sizes),
        **{flag: True for i, flag in enumerate(FLAGS) if flags >> i & 1},
    }
    if not bare and draw(st.booleans()):
        entry["header_bytes"] = draw(st.integers(0, 3000))
        entry["server_ms"] = draw(DELAYS_MS)
        entry["parse_ms"] = draw(DELAYS_MS)
        entry["execute_ms"] = draw(DELAYS_MS)
    return entry


STRATEGY = Predicate(
    "a strategy of Hypothesis, say signals(Eps)", lambda value: isinstance(value, SearchStrategy)
)
"""Accepts arguments that are strategies."""
STREAM_IDS = range(0, 12 * STREAM_ID_STEP, STREAM_ID_STEP)
"""The pool of stream ids: small, so that histories come back to the same streams."""
PLACEHOLDERS = (-1, -2, -3)
"""Ids of placeholders, which are negative: nodes of a tree that never send."""
_PARENTS = st.sampled_from([None, None, None, *STREAM_IDS[:8], *PLACEHOLDERS])
"""Parents of nodes in a tree; most often none."""
_CALL_BYTES = (PACKET_BYTES, PACKET_BYTES, PACKET_BYTES, 600, 1, 0, 20_000)
"""Bytes of a charge; most often those of a full packet."""

_SIGNALS: dict[type, Callable[[], SearchStrategy[Any]]] = {
    # Few buckets, so that several streams are in one.
    BucketPriority: lambda: st.builds(
        BucketPriority, bucket=st.sampled_from([31, 63, 0]), level=st.integers(1, 3)
    ),
    # All urgencies, and one often enough that several streams have it.
    Eps: lambda: st.builds(
        Eps, urgency=st.sampled_from([3, 3, 3, 3, *range(8)]), incremental=st.booleans()
    ),
    H2Priority: lambda: h2_signals(),
    Rank: lambda: st.builds(Rank, value=st.integers(-3, 3)),
    StrictPriority: lambda: st.builds(
        StrictPriority,
        weight=st.sampled_from([16, 16, 1, 256, 32]),
        strict=st.sampled_from([16, 16, 255, 0, 17]),
        depends_on=st.sampled_from([None, None, *PLACEHOLDERS]),
    ),
}


def h2_signals(*, min_weight: int = 1, max_weight: int = 256) -> SearchStrategy[H2Priority]:
    """Return a strategy of places in a tree, for trees with weights within these bounds."""
    frequent = [w for w in (16, 16, 1, 255, 0, 256, 32) if min_weight <= w <= max_weight]
    weights = st.one_of(st.sampled_from(frequent), st.integers(min_weight, max_weight))
    return st.builds(H2Priority, weight=weights, depends_on=_PARENTS, exclusive=st.booleans())


@cache
def signals(kind: type = H2Priority) -> SearchStrategy[Any]:
    """Return a strategy of signals of a type: h3sim's, or any that Hypothesis can make.

    A type of your own needs annotated fields, or `hypothesis.strategies.register_type_strategy`.
    Places in a tree name parents from the small pool of ids that `event_scripts` draws from.
    """
    make = _SIGNALS.get(kind)
    return st.from_type(kind) if make is None else make()


def event_scripts(
    signals: SearchStrategy[Any] | None = None,
    *,
    n_events: int = 48,
    placeholders: int = 0,
    rising: bool = False,
) -> SearchStrategy[History]:
    """Return a strategy of histories that keep the contract of `h3sim.schedulers.Scheduler`.

    Up to twelve streams and *placeholders* are opened, updated, activated, blocked, charged and
    closed in any order, with turns between. With *rising*, ids are opened in their order.
    *signals* draws the signals, by default `H2Priority`.
    """
    ids = (*STREAM_IDS, *PLACEHOLDERS[:placeholders])
    strategy = _SIGNALS[H2Priority]() if signals is None else signals
    signal_lists = st.lists(strategy, min_size=1, max_size=6)

    def history(drawn: tuple[list[_Code], list[Any]]) -> History:
        codes, drawn_signals = drawn
        return _decoded(codes, ids, drawn_signals, rising=rising)

    return st.tuples(_codes(n_events), signal_lists).map(history)


_OPEN_AND_ACTIVATE = "start"
_NO_CALL = "nothing"
_CALL_BY_CODE: tuple[Call | str, ...] = (
    _NO_CALL,
    _OPEN_AND_ACTIVATE,
    Call.SERVE,
    Call.DEACTIVATE,
    Call.ACTIVATE,
    Call.UPDATE,
    Call.OPEN,
    _OPEN_AND_ACTIVATE,
    Call.SERVE,
    Call.DEACTIVATE,
    Call.ACTIVATE,
    Call.UPDATE,
    Call.CLOSE,
    Call.CHARGE,
)
"""Call for each remainder of the first byte of a code; frequent calls come twice."""
_Code: TypeAlias = tuple[int, int, int]
"""Event as three bytes: its call, its stream, and its signal or numbers of bytes and turns."""


def _codes(n_events: int) -> SearchStrategy[list[_Code]]:
    """Return a strategy of codes, all from one draw, which is much faster than hundreds.

    A zero stands for no call. As Hypothesis looks for smaller bytes, it finds shorter histories.
    """
    size = 3 * n_events
    binary = st.binary(min_size=size, max_size=size)
    return binary.map(lambda text: list(zip(text[0::3], text[1::3], text[2::3], strict=True)))


def _decoded(
    codes: list[_Code], ids: Sequence[int], drawn_signals: list[Any], *, rising: bool
) -> History:
    """Return the history that codes stand for.

    The second byte selects one of the streams that the call may concern.
    """
    unopened = list(ids)
    is_open: list[int] = []
    events: list[Event] = []
    for first, second, third in codes:
        call = _CALL_BY_CODE[first % len(_CALL_BY_CODE)]
        if call in (_OPEN_AND_ACTIVATE, Call.OPEN) and unopened:
            stream_id = unopened.pop(0 if rising else second % len(unopened))
            is_open.append(stream_id)
            events.append(Event(Call.OPEN, stream_id, drawn_signals[third % len(drawn_signals)]))
            if call == _OPEN_AND_ACTIVATE:
                events.append(Event(Call.ACTIVATE, stream_id))
        elif call is Call.SERVE or (is_open and isinstance(call, Call)):
            events.append(_event_of_open_stream(call, is_open, second, third, drawn_signals))
            if call is Call.CLOSE:
                is_open.remove(events[-1].stream_id)
    return valid_history(events)


def _event_of_open_stream(
    call: Call, is_open: list[int], second: int, amount: int, drawn_signals: list[Any]
) -> Event:
    n_bytes, n_turns = _CALL_BYTES[amount % len(_CALL_BYTES)], 1 + amount // len(_CALL_BYTES) % 9
    if call is Call.SERVE:
        return Event(call, n_bytes=n_bytes, n_turns=n_turns)
    stream_id = is_open[second % len(is_open)]
    if call in (Call.UPDATE, Call.OPEN):
        return Event(Call.UPDATE, stream_id, drawn_signals[amount % len(drawn_signals)])
    return Event(call, stream_id, n_bytes=n_bytes)


def scheme_scripts(scheme: Scheme, *, n_events: int = 48) -> SearchStrategy[History]:
    """Return a strategy of histories as clients of *scheme* make them.

    Resources of all kinds and flags are requested, in the order of their streams, with the signals
    of the scheme's policy. Responses become ready, are blocked, served and closed.
    """
    return _codes(n_events).map(lambda codes: _requested(scheme, codes))


def _requested(scheme: Scheme, codes: list[_Code]) -> History:
    """Return the history of requests that codes stand for."""
    resources = _resources(codes)
    policy = make_policy(scheme, Page(name="asked for", resources=resources))
    events = [Event(Call.OPEN, *change) for change in policy.on_connected()]
    is_open: list[int] = []
    n_requests = 0
    for first, second, third in codes:
        call = _CALL_BY_CODE[first % len(_CALL_BY_CODE)]
        if call in (_OPEN_AND_ACTIVATE, Call.OPEN):
            stream_id = STREAM_ID_STEP * n_requests
            resource = resources[n_requests]
            n_requests += 1
            is_open.append(stream_id)
            events += _signal_events(policy.on_requested(stream_id, resource), opens=stream_id)
            if call == _OPEN_AND_ACTIVATE:
                events.append(Event(Call.ACTIVATE, stream_id))
        elif is_open and isinstance(call, Call) and call is not Call.UPDATE:
            events.append(_event_of_open_stream(call, is_open, second, third, []))
            if call is Call.CLOSE:
                is_open.remove(events[-1].stream_id)
                events += _signal_events(policy.on_closed(events[-1].stream_id))
    return valid_history(events)


def _signal_events(changes: list[SignalChange], opens: int | None = None) -> list[Event]:
    return [
        Event(Call.OPEN if element_id == opens else Call.UPDATE, element_id, signal)
        for element_id, signal in changes
    ]


def _resources(codes: list[_Code]) -> tuple[Resource, ...]:
    """Return the resources that the codes open, in order; there is always a root."""
    packed_flags_and_kinds = [
        256 * high + low
        for call, high, low in codes
        if _CALL_BY_CODE[call % len(_CALL_BY_CODE)] in (_OPEN_AND_ACTIVATE, Call.OPEN)
    ]
    # A load needs a root even if no code opens one; it then has no flags.
    return tuple(_resource(n, packed) for n, packed in enumerate(packed_flags_and_kinds or [0]))


def _resource(number: int, packed: int) -> Resource:
    """Return the resource with the packed flags and kind; number 0 is the root."""
    is_root = number == 0
    flags, index = divmod(packed, len(Kind))
    kind = Kind.DOCUMENT if is_root else list(Kind)[index]
    set_flags: dict[str, Any] = {
        attribute: True for i, attribute in enumerate(FLAGS.values()) if flags >> i & 1
    }
    discovered = None if is_root else Discovery(at=TriggerEvent.TIME)
    return Resource(id=f"r{number}", kind=kind, size_bytes=1, discovered=discovered, **set_flags)


@st.composite
def trees(draw: DrawFn, *, max_nodes: int = 12, placeholders: int = 3) -> tuple[SignalChange, ...]:
    """Return a strategy of dependency trees, as signals in an order with parents first.

    Each entry is an id and its `H2Priority`; the placeholders come first. Nodes may be exclusive,
    and so have other parents in the end than their signals name.
    """
    n_streams = draw(st.integers(1, max_nodes))
    n_placeholders = draw(st.integers(0, placeholders))
    ids = [placeholder_id(n) for n in range(n_placeholders)] + list(range(0, 4 * n_streams, 4))
    changes: list[SignalChange] = []
    for index, element_id in enumerate(ids):
        parent = draw(st.sampled_from([None, *ids[:index]]))
        is_exclusive = draw(st.booleans())
        weight = draw(st.integers(1, 256))
        signal = H2Priority(weight=weight, depends_on=parent, exclusive=is_exclusive)
        changes.append((element_id, signal))
    return tuple(changes)


def loss_patterns(*, max_packets: int = 40) -> SearchStrategy[dict[str, Any]]:
    """Return a strategy of losses, as fields of a `LinkProfile`.

    A pattern is no loss, a share lost at random or in bursts, or a list of lost packets, all among
    the first *max_packets*. Apply it by `dataclasses.replace(link, **pattern)`.
    """
    shares = st.sampled_from([0.0, 0.01, 0.05, 0.3])
    listed = st.lists(st.integers(0, max_packets - 1), unique=True, max_size=max_packets // 2)
    return st.one_of(
        st.fixed_dictionaries({"loss": shares}),
        st.fixed_dictionaries({"loss_list": listed.map(lambda packets: tuple(sorted(packets)))}),
        st.fixed_dictionaries({"loss": shares, "loss_burst": st.sampled_from([1.0, 2.5, 8.0])}),
    )


def register_types() -> None:
    """Teach `hypothesis.strategies.from_type` pages, resources, signals and events."""
    for kind, make in _SIGNALS.items():
        st.register_type_strategy(kind, make())
    st.register_type_strategy(Page, pages())
    st.register_type_strategy(Resource, pages().flatmap(lambda p: st.sampled_from(p.resources)))
