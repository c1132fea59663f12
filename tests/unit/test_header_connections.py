"""Header lists over QUIC, next to response bodies."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from h3sim.catalog import load_scheme
from h3sim.headers import CODEC_NAMES
from h3sim.headers.base import DEFAULT_BODY_BYTES, Exchange, HeaderLists
from h3sim.load import LoadConfig, resolve
from h3sim.study import sweep
from h3sim.study.header_models import send_headers
from h3sim.values.units import ms

TRACE = (b"x-trace", b"7")
NO_LENGTH = ((b":status", b"200"),)
OK = ((b":status", b"200"), (b"content-length", b"3000"))


def exchanges(n: int = 20, interval_ms: float = 10.0) -> list[Any]:
    return [
        Exchange(
            requested_at_ns=ms(interval_ms * number + 5),
            request=((b":method", b"GET"), TRACE, (b"n", b"%d" % number)),
            response=OK if number % 2 else (),
        )
        for number in range(n)
    ]


def carried(codec: Any, *, loss: float = 0.0, seed: int = 0, n: int = 20) -> Any:
    """Return what comes of requests, and of responses where each exchange has one."""
    config = LoadConfig(
        network="4g",
        rtt_ms=100,
        loss=loss,
        header_compression=codec,
        handshake=False,
        seed=seed,
    )
    complete = [replace(entry, response=entry.response or NO_LENGTH) for entry in exchanges(n)]
    both = [
        HeaderLists(exchanges=tuple(complete), of_responses=of_responses)
        for of_responses in (False, True)
    ]
    return [send_headers(lists, resolve(lists, load_scheme("rr"), config)) for lists in both]


def test_requests_are_made_at_their_times_and_responses_have_their_lengths() -> None:
    page = HeaderLists(exchanges=tuple(exchanges(3))).page
    delays = [0 if r.discovered is None else r.discovered.delay_ns for r in page.resources]
    assert delays == [0, ms(10), ms(20)]
    assert [r.size_bytes for r in page.resources] == [DEFAULT_BODY_BYTES, 3000, DEFAULT_BODY_BYTES]


@pytest.mark.parametrize("codec", CODEC_NAMES)
def test_without_loss_nothing_waits_and_all_is_decoded(codec: Any) -> None:
    requests, responses = carried(codec)
    for run in (requests, responses):
        assert len(run.sections) == 20
        assert all(s.encoded_at_ns < s.arrived_at_ns for s in run.sections)
        assert [s.hol_ns for s in run.sections] == [0] * 20
        assert run.max_held == (0, 0)
        assert run.n_lost == 0


def test_sizes_are_those_of_the_codec() -> None:
    requests, responses = carried("static")
    assert requests.uncompressed_bytes == sum(10 + 8 + len(b"n%d" % n) for n in range(20))
    assert responses.uncompressed_bytes == 10 * 10 + 10 * (10 + len(b"content-length3000"))
    assert requests.n_bytes < requests.uncompressed_bytes + 20 * 8
    assert responses.n_bytes < responses.uncompressed_bytes


def test_losses_hold_up_hpack_and_static_qpack_not() -> None:
    hpack, static = (
        [
            sum(s.hol_ns for s in carried(codec, loss=0.1, seed=seed)[0].sections)
            for seed in range(4)
        ]
        for codec in ("hpack", "static")
    )
    assert any(hpack)
    assert not any(static)


def test_rows_state_what_came_of_either_direction() -> None:
    both = [
        sweep(
            HeaderLists(exchanges=tuple(exchanges()), of_responses=of_responses),
            schemes="rr",
            network="4g",
            header_compression="hpack",
            rtt_ms=50,
            loss=0.05,
            handshake=False,
            executor="serial",
        )[0]
        for of_responses in (False, True)
    ]
    # Every other exchange has no list of its response: then it is not carried either.
    assert [row["sections"] for row in both] == [20, 10]
    assert both[0]["n_bytes"] != both[1]["n_bytes"]
    assert both[0]["n_packets"] > both[1]["n_packets"] > 10
