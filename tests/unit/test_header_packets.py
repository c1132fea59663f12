"""Sections of header compression that share a packet, and what a codec makes of that."""

from __future__ import annotations

import pytest

from h3sim.engine.header_compression import HeaderLayer
from h3sim.headers import HeaderCompression
from tests.helpers import page_of

PAGE = page_of({"id": "/", "kind": "document", "bytes": 300})
FIELD = ((b"x-shared", b"s" * 60),)


def layer(*requests: tuple[tuple[bytes, bytes], ...]) -> HeaderLayer:
    """Return both directions of a connection; a response has the fields of its request."""
    lists = tuple((fields, fields) for fields in requests)
    headers = HeaderCompression(codec="qcram-packets", lists=lists)
    return HeaderLayer(PAGE, headers, send_up=_no_stream, send_down=_no_stream)


def _no_stream(stream_id: int, n_bytes: int) -> None:
    raise AssertionError("QCRAM has no encoder stream")


def test_requests_of_one_instant_share_a_packet_and_refer_to_each_other() -> None:
    sent = layer(FIELD, FIELD, FIELD, FIELD)
    times = (5, 5, 6, 6)
    sizes = [sent.encode_request(4 * n, n, at) for n, at in enumerate(times)]
    # At 6 nothing is acknowledged: the field is sent again, and not inserted a second time.
    first, second, third, fourth = sizes
    assert second < 10 < first
    assert third > 10
    assert fourth > 10


@pytest.mark.parametrize(("excess", "shares"), [(0, True), (1, False)])
def test_they_do_so_up_to_a_thousand_bytes(excess: int, shares: bool) -> None:
    def filled(n_bytes: int) -> HeaderLayer:
        filler = ((b"x-fill", b"\xff" * n_bytes),)
        return layer(FIELD, filler, FIELD)

    probe = filled(500)
    used = probe.encode_request(0, 0, 5) + probe.encode_request(4, 1, 5)
    sent = filled(500 + 1000 - used + excess)
    both = sent.encode_request(0, 0, 5) + sent.encode_request(4, 1, 5)
    assert both == 1000 + excess
    assert (sent.encode_request(8, 2, 5) < 10) == shares


def test_a_packet_that_was_full_begins_another_that_is_empty() -> None:
    filler = ((b"x-fill", b"\xff" * 1100),)
    small = ((b"x-small", b"t" * 60),)
    sent = layer(filler, small, small)
    sizes = [sent.encode_request(4 * n, n, 5) for n in range(3)]
    assert sizes[2] < 10 < sizes[1]


def test_each_response_has_a_packet_of_its_own() -> None:
    sent = layer(FIELD, FIELD)
    first, second = (sent.encode_response(4 * n, n, 5) for n in range(2))
    assert second > 10
    assert first > 10


def test_what_a_decoder_holds_is_recorded() -> None:
    """A block that refers to one that has not arrived waits, and its bytes are held."""
    sent = layer(FIELD, FIELD)
    sizes = [sent.encode_request(4 * n, n, 5) for n in range(2)]
    assert sent.requests.on_section(4, 9) == []
    assert sent.requests.run.max_held.compressed == sizes[1]
    assert sent.requests.on_section(0, 9) == [0, 4]
    assert sent.requests.run.max_held.compressed == sizes[1]
