"""Loads whose signals are late, lost or overtaken: they end, and nothing is heard out of order."""

from __future__ import annotations

from dataclasses import replace
from operator import attrgetter
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import h3sim
from h3sim.conformance import pages
from h3sim.engine.signalling import WireSignalling
from h3sim.load import resolve
from h3sim.schemes import Arrangement
from h3sim.schemes.rules import UPDATES
from h3sim.signals import Signalling
from h3sim.transport.link_profile import LinkJitter
from h3sim.values.errors import SchemeError
from h3sim.values.ranges import Ranges
from h3sim.values.units import ms
from h3sim.values.versions import build
from tests.effort import law
from tests.helpers import page_of
from tests.property import laws, signalling_laws
from tests.property.strategies import SCHEMES
from tests.property.test_connected_laws import networks, settings, unless_given_up

TREES = (
    *(Signalling.H2, Signalling.DRAFT_20, Signalling.DRAFT_20_CONTROL),
    *(Signalling.DRAFT_22, Signalling.DRAFT_22_ROOT),
)
SENT = (*TREES, Signalling.EPS, Signalling.METADATA)


def message(scheme: Any, signalling: Any) -> Any:
    """Return the scheme with that signalling, None where the two do not go together."""
    try:
        return replace(scheme, signalling=signalling)
    except SchemeError:
        return None


SAID = [made for row in SCHEMES.values() for way in SENT if (made := message(row, way)) is not None]
"""Every scheme with every signalling that it can have."""
ON_A_CONTROL_STREAM = [made for made in SAID if made.signalling is Signalling.DRAFT_22]
YIELDING = ("p+", "s+")
"""Groups that yield until the client has all of a class; the server's knowledge lasts longer."""
CHAINED = ("dfifo",)
"""Who has gone decides who stands above what (Quicker's chain): the same holds of these."""
AS_KNOWN = [
    made
    for made in SAID
    if made.name not in (*YIELDING, *CHAINED) or made.signalling is Signalling.METADATA
]


@st.composite
def disorderly(draw: Any) -> Any:
    """Draw a setting whose links lose up to 30 % both ways, and let packets overtake.

    The connection is there: what becomes of handshakes that are lost is another matter.
    """
    setting, network = draw(settings()), draw(networks())
    jitter = LinkJitter(mean_ns=ms(20), deviation_ns=ms(20), reorder=True)
    jitter = draw(st.sampled_from([None, jitter]))
    links = {way: getattr(network, way) for way in ("down", "up")}
    links = {
        way: link if link.hold is not None else replace(link, jitter=jitter)
        for way, link in links.items()
    }
    return replace(setting, handshake="none", network=replace(network, **links))


@law(100, usual=40)
@given(page=pages(), scheme=st.sampled_from(SAID), setting=disorderly())
def test_every_byte_comes_whatever_becomes_of_the_signals(
    page: Any, scheme: Any, setting: Any
) -> None:
    load = unless_given_up(resolve(page, scheme, setting))
    laws.check_the_load_ends(lambda: load)
    got: dict[Any, Any] = {}
    for _, arrived_at_ns, stream_id, offset, n_bytes, *_ in load.trace.packet_rows:
        if arrived_at_ns is not None:
            got.setdefault(stream_id, Ranges()).add(offset, offset + n_bytes)
    for request in load.trace.requests:
        assert got[request.stream_id].contiguous == request.length_bytes


@law(60)
@given(page=pages(), scheme=st.sampled_from(ON_A_CONTROL_STREAM), setting=disorderly())
def test_the_control_stream_keeps_its_order(page: Any, scheme: Any, setting: Any) -> None:
    signalling_laws.check_the_control_stream_keeps_its_order(
        unless_given_up(resolve(page, scheme, setting))
    )


@law(120, usual=50)
@given(page=pages(), scheme=st.sampled_from(AS_KNOWN), handshake=st.booleans())
def test_signals_without_delay_are_as_good_as_known(page: Any, scheme: Any, handshake: Any) -> None:
    known = replace(scheme, signalling=Signalling.SERVER)
    both = [
        h3sim.simulate(page, scheme=one, rtt_ms=0, handshake=handshake) for one in (scheme, known)
    ]
    signalling_laws.check_signals_without_delay_are_as_good_as_known(*both)


def test_the_chain_of_dfifo_lasts_longer_at_a_server_that_knows_by_itself() -> None:
    """A client has let go of the root when it asks for what that names; the server has not.

    The scripts have gone, and the parent of their last, the root, is the last of their class. So
    the server puts the next script right below the root, above the document that came before.
    """
    named = {"kind": "document", "bytes": 8000, "discovered": {"by": "/", "at": "complete"}}
    page = page_of(
        {"id": "/", "kind": "document", "bytes": 8000, "server_ms": 690},
        {"id": "a.js", "kind": "script", "bytes": 8000, "discovered": {"at": "time"}},
        {"id": "named", **named},
        {**named, "id": "b.js", "kind": "script", "discovered": {"by": "named", "at": "request"}},
    )
    scheme = h3sim.load_scheme("dfifo")
    last = []
    for way in (Signalling.H2, Signalling.SERVER):
        load = h3sim.simulate(page, scheme=replace(scheme, signalling=way), rtt_ms=0)
        last.append(max(load.timings, key=attrgetter("finished_ms")).id)
    assert last == ["b.js", "named"]


@law(120, usual=50)
@given(
    page=pages(min_resources=2),
    scheme=st.sampled_from([made for made in SAID if made.signalling is Signalling.METADATA]),
    hint=st.sampled_from(("high", "low")),
    at_ms=st.integers(0, 200),
    data=st.data(),
)
def test_metadata_without_delay_are_as_good_as_priorities_in_frames(
    page: Any, scheme: Any, hint: str, at_ms: int, data: Any
) -> None:
    id_ = data.draw(st.sampled_from([resource.id for resource in page.resources]))
    when = {"at": "time", "delay_ms": at_ms}
    page = page.with_(id_, priority_changes=[{"when": when, "fetchpriority": hint}])
    scheme = replace(scheme, updates=UPDATES)
    sent = () if scheme.name in YIELDING else (*TREES, Signalling.EPS)
    ways = [
        made for way in (*sent, Signalling.SERVER) if (made := message(scheme, way)) is not None
    ]
    signals_in = data.draw(st.sampled_from(ways))
    both = [h3sim.simulate(page, scheme=one, rtt_ms=0) for one in (scheme, signals_in)]
    signalling_laws.check_signals_without_delay_are_as_good_as_known(*both)


@pytest.mark.skipif(build() == "compiled", reason="its policies cannot be replaced")
@pytest.mark.parametrize("signalling", TREES)
@law(60)
@given(seed=st.integers(0, 2**32))
def test_in_the_end_the_server_has_the_last_word_about_each_stream(
    signalling: Any, seed: int
) -> None:
    signalling_laws.check_the_last_word_counts(WireSignalling, signalling, seed)


HINTS = ("high", "low", "auto")
EACH_BY_ITSELF = [
    replace(scheme, updates=UPDATES)
    for scheme in SCHEMES.values()
    if all(entry.arrangement is Arrangement.SIBLINGS for entry in scheme.classes)
]
"""In a chain it matters who came first to a class; a change comes to it when it is made."""
UPDATING = [replace(scheme, updates=UPDATES) for scheme in SCHEMES.values()]
send_buffers_kb = st.sampled_from([0, 0, 3])
rtts_ms = st.sampled_from([0, 20, 75.3])


@law(120, usual=50)
@given(
    page=pages(min_resources=2),
    scheme=st.sampled_from(EACH_BY_ITSELF),
    hint=st.sampled_from(HINTS),
    rtt_ms=rtts_ms,
    send_buffer_kb=send_buffers_kb,
    data=st.data(),
)
def test_a_change_before_the_first_byte_is_as_good_as_said_at_once(
    page: Any, scheme: Any, hint: str, rtt_ms: float, send_buffer_kb: float, data: Any
) -> None:
    id_ = data.draw(st.sampled_from([resource.id for resource in page.resources]))
    change = {"when": {"by": id_, "at": "request"}, "fetchpriority": hint}
    # The response is ready after the frame is there.
    page = page.with_(id_, server_ms=1, priority_changes=[change])
    load = h3sim.simulate(page, scheme=scheme, rtt_ms=rtt_ms, send_buffer_kb=send_buffer_kb)
    signalling_laws.check_an_early_change_equals_an_initial_one(load)


@law(120, usual=50)
@given(
    page=pages(min_resources=2),
    scheme=st.sampled_from(UPDATING),
    hint=st.sampled_from(HINTS),
    rtt_ms=rtts_ms,
    send_buffer_kb=send_buffers_kb,
    missing_bytes=st.sampled_from([None, 1, 1400, 4000]),
    data=st.data(),
)
def test_a_change_after_the_last_byte_changes_nothing(
    page: Any,
    scheme: Any,
    hint: str,
    rtt_ms: float,
    send_buffer_kb: float,
    missing_bytes: int | None,
    data: Any,
) -> None:
    resource = data.draw(st.sampled_from(page.resources))
    when: dict[str, Any] = {"by": resource.id, "at": "complete"}
    if missing_bytes is not None:  # all may be on its way already
        offset_bytes = max(0, resource.size_bytes - missing_bytes)
        when = {"by": resource.id, "at": "offset", "offset_bytes": offset_bytes}
    change = {"when": when, "fetchpriority": hint}
    page = page.with_(resource.id, priority_changes=[change])
    load = h3sim.simulate(page, scheme=scheme, rtt_ms=rtt_ms, send_buffer_kb=send_buffer_kb)
    heard_at_ns = signalling_laws.changed_at(load, resource.id)
    assume(heard_at_ns is None or heard_at_ns > max(signalling_laws.sent_at(load, resource.id)))
    signalling_laws.check_a_change_after_the_last_byte_changes_nothing(load)
