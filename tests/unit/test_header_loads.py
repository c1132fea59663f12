"""Loads whose headers are compressed, worked by hand: sizes, and what waits for what."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

import h3sim
from h3sim import engine
from h3sim.headers import CODEC_NAMES, CodecSettings, HeaderCompression, make_codec
from h3sim.headers.synthetic_headers import response_section
from h3sim.load.run import run_spec
from h3sim.transport import HandshakeMode, LinkProfile, Network, Protocol
from h3sim.values.errors import InputError
from h3sim.values.units import mbps, ms
from tests.helpers import page_of

LINK = LinkProfile(rate_bps=mbps(100), queue_bytes=1_000_000)
NETWORK = Network(name="hand", rtt_ns=ms(100), down=LINK, up=LINK)
PAGE = page_of(
    {"id": "/", "kind": "document", "bytes": 300, "header_bytes": 99},
    {"id": "a" * 120, "kind": "image", "bytes": 300, "discovered": {"at": "time", "delay_ms": 400}},
    {"id": "b" * 120, "kind": "image", "bytes": 300, "discovered": {"at": "time", "delay_ms": 410}},
)


def loaded(
    codec: Any, *, network: Any = NETWORK, blocks: bool = True, page: Any = PAGE, **options: Any
) -> Any:
    return run_spec(
        engine.LoadSpec(
            page,
            scheme=h3sim.load_scheme("fifo"),
            network=network,
            mode=HandshakeMode.NONE,
            header_compression=HeaderCompression(codec=codec, blocks=blocks),
            **options,
        )
    )


def losing(direction: Any, number: Any, from_bytes: int) -> Any:
    """Return the network that loses one packet, counted from 0 among those of so many bytes."""
    link = replace(LINK, loss_list=(number,), loss_list_from_bytes=from_bytes)
    return replace(NETWORK, **{direction: link})  # type: ignore[arg-type]


def finished(load: Any) -> list[Any]:
    return [row.finished_ms for row in load.timings]


@pytest.mark.parametrize("codec", ["static", "hpack", "early-qpack"])
def test_a_stream_carries_what_the_codec_makes_of_its_section_and_the_body(codec: Any) -> None:
    encoder = make_codec(codec).encoder
    encoder.start()
    sizes = []
    for number, resource in enumerate(PAGE.resources):
        sizes.append(len(encoder.encode(4 * number, response_section(resource)).section))
        encoder.on_acked(4 * number)
    assert [r.length_bytes for r in loaded(codec).trace.requests] == [300 + n for n in sizes]


def test_headers_that_are_not_compressed_take_what_the_page_states() -> None:
    load = h3sim.simulate(PAGE, network=NETWORK, header_compression="none")
    assert load.trace == h3sim.simulate(PAGE, network=NETWORK).trace
    assert [request.length_bytes for request in load.trace.requests] == [399, 300, 300]


@pytest.mark.parametrize(("codec", "waits"), [("hpack", True), ("qcram", False), ("static", False)])
def test_a_lost_response_holds_up_the_next_one_with_hpack_alone(codec: Any, waits: Any) -> None:
    # Of packets of 200 bytes or more the second down is that with the response of a.
    network = losing("down", 1, 200)
    blocking = finished(loaded(codec, network=network))
    free = finished(loaded(codec, network=network, blocks=False))
    assert free[2] < free[1]
    assert blocking[1] == free[1]
    assert blocking[2] == (free[1] if waits else free[2])


@pytest.mark.parametrize(("codec", "waits"), [("hpack", True), ("qcram", False), ("static", False)])
def test_a_lost_request_holds_up_the_next_one_with_hpack_alone(codec: Any, waits: Any) -> None:
    network = losing("up", 1, 100)
    blocking = loaded(codec, network=network).trace.requests
    free = loaded(codec, network=network, blocks=False).trace.requests
    assert free[2].arrived_at_ns < free[1].arrived_at_ns
    late = free[1].arrived_at_ns if waits else free[2].arrived_at_ns
    assert blocking[2].arrived_at_ns == late


def test_over_tcp_hpack_holds_up_nothing_that_tcp_does_not() -> None:
    network = losing("down", 1, 200)
    blocking, free = (
        loaded("hpack", network=network, protocol=Protocol.TCP, blocks=b) for b in (True, False)
    )
    assert blocking.trace == free.trace


@pytest.mark.parametrize("codec", CODEC_NAMES)
def test_every_codec_is_an_option_of_loads(codec: Any) -> None:
    load = h3sim.simulate("creative", network="4g", loss=0.02, header_compression=codec)
    assert load.configuration["header_compression"] == codec
    assert len(load.timings) == len(load.page.resources)


def test_streams_of_header_compression_are_not_in_the_trace() -> None:
    load = loaded("qpack", page=h3sim.load_page("creative"))
    requested = {request.stream_id for request in load.trace.requests}
    assert {row[2] for row in load.trace.packet_rows} == requested


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"header_compression": "hpak", "loss": 0.1},
            "header_compression: 'hpak' is not one of none, hpack, qpack",
        ),
        ({"header_compression": "hpack"}, "header_compression: needs links: at a constant rate"),
    ],
)
def test_what_cannot_be_compressed_is_reported(options: Any, message: Any) -> None:
    with pytest.raises(InputError, match=message):
        h3sim.simulate(PAGE, **options)


def test_an_encoder_learns_which_part_of_its_table_has_arrived() -> None:
    # Where no stream may be blocked it refers to nothing else: what the first response inserts is
    # acknowledged by the decoder's stream, and saves 32 bytes from the third response on.
    images = [
        {"id": f"{letter * 120}", "kind": "image", "bytes": 300}
        | {"discovered": {"at": "time", "delay_ms": delay_ms}}
        for letter, delay_ms in (("a", 400), ("b", 800), ("c", 1200))
    ]
    page = page_of({"id": "/", "kind": "document", "bytes": 300}, *images)
    lengths = {}
    for codec in ("static", "qpack"):
        headers = HeaderCompression(codec=codec, settings=CodecSettings(blocked_streams=0))
        load = run_spec(
            engine.LoadSpec(
                page,
                scheme=h3sim.load_scheme("fifo"),
                network=NETWORK,
                mode=HandshakeMode.NONE,
                header_compression=headers,
            )
        )
        lengths[codec] = [request.length_bytes for request in load.trace.requests]
    saved = [a - b for a, b in zip(lengths["static"], lengths["qpack"], strict=True)]
    assert saved == [0, 0, 32, 32]
