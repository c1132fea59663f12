"""Laws of bodies in pieces: they are sent once they exist, and a paused stream keeps its turn."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hypothesis import given
from hypothesis import strategies as st

import h3sim
from h3sim.values.units import ms
from tests.effort import law
from tests.helpers import page_of

if TYPE_CHECKING:
    from collections.abc import Iterator

LINKS = h3sim.load_network("fibre").with_(rate_mbps=5, rtt_ms=20, loss=0.02)
SETTINGS: tuple[dict[str, Any], ...] = (
    {"network": "marx-2019"},
    {"network": "marx-2019", "send_buffer_kb": 4},
    *({"network": LINKS, "transport": each} for each in ("quic", "tcp", "qmux")),
)


@st.composite
def produced_pages(draw: st.DrawFn) -> h3sim.Page:
    """Draw a page whose responses are produced in one to four pieces."""
    resources = []
    for number in range(draw(st.integers(2, 5))):
        times = draw(st.lists(st.integers(0, 600), min_size=1, max_size=4, unique=True))
        pieces = [[at_ms, draw(st.integers(1, 20_000))] for at_ms in sorted(times)]
        resources.append(
            {
                "id": f"r{number}" if number else "/",
                "kind": "image" if number else "document",
                "bytes": sum(n_bytes for _, n_bytes in pieces),
                "body": pieces,
                "server_ms": draw(st.integers(0, 50)),
                **({"discovered": {"by": "/", "at": "request"}} if number else {}),
            }
        )
    return page_of(*resources)


def existing(load: h3sim.Load, stream_id: int) -> Iterator[tuple[int, int]]:
    """Yield from when on the bytes of a response exist, up to which offset."""
    request = next(each for each in load.trace.requests if each.stream_id == stream_id)
    resource = load.page.resources[request.resource]
    end = request.length_bytes - resource.size_bytes
    for at_ns, n_bytes in resource.body:
        end += n_bytes
        yield request.arrived_at_ns + resource.server_ns + at_ns, end


def check_nothing_is_sent_before_it_exists(load: h3sim.Load) -> None:
    """No packet has bytes that its server had not produced when it left."""
    known = {each.stream_id: [*existing(load, each.stream_id)] for each in load.trace.requests}
    for row in load.trace.packet_rows:
        sent_ns, _, stream_id, offset, n_bytes, *_ = row
        produced = [end for at_ns, end in known[stream_id] if at_ns <= sent_ns]
        header = load.trace.requests[0].length_bytes - load.page.resources[0].size_bytes
        assert offset + n_bytes <= max(produced, default=header), row


def check_a_paused_stream_keeps_its_turn(load: h3sim.Load) -> None:
    """First in, first out: no later stream sends while an earlier one has what it may send."""
    known = {each.stream_id: [*existing(load, each.stream_id)] for each in load.trace.requests}
    sent = dict.fromkeys(known, 0)
    for row in load.trace.packet_rows:
        sent_ns, _, stream_id, offset, n_bytes, *_ = row
        for other, pieces in known.items():
            produced = max((end for at_ns, end in pieces if at_ns < sent_ns), default=0)
            assert other >= stream_id or sent[other] >= produced, (other, row)
        sent[stream_id] = offset + n_bytes


@law(20)
@given(
    page=produced_pages(), setting=st.sampled_from(SETTINGS), scheme=st.sampled_from(("fifo", "rr"))
)
def test_nothing_is_sent_before_it_exists(
    page: h3sim.Page, setting: dict[str, Any], scheme: str
) -> None:
    check_nothing_is_sent_before_it_exists(h3sim.simulate(page, scheme=scheme, **setting))


@law(20)
@given(page=produced_pages())
def test_a_paused_stream_keeps_its_turn(page: h3sim.Page) -> None:
    check_a_paused_stream_keeps_its_turn(h3sim.simulate(page, scheme="fifo", network="marx-2019"))


def test_the_server_pauses_in_these_pages() -> None:
    page = page_of({"id": "/", "kind": "document", "bytes": 9, "body": [[0, 4], [200, 5]]})
    load = h3sim.simulate(page, scheme="fifo", network="marx-2019")
    assert load.trace.packet_rows[-1][0] >= ms(200)
