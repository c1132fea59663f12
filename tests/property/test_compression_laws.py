"""Laws of header compression, tried on every scheme."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from h3sim.headers import CODEC_NAMES, CodecSettings, make_codec
from tests.effort import law
from tests.property import compression_laws as laws

NEVER_WAITING = ["static", "qcram", "early-qpack-safe"]
"""Schemes whose sections refer to nothing that may be missing, where nothing is evicted."""
OWN = ["early-qpack", "early-qpack-safe", "early-qpack-keep", "qcram", "qcram-packets"]

USUAL = [
    *((b":path", b"/"), (b":path", b"/a.css"), (b"cookie", b""), (b"cookie", b"a" * 70)),
    *((b"x-name", b"\xff\x00\xc3\xa9"), (b"x-name", b"text/html"), (b"content-length", b"7")),
    *((b"a", b"GET"), (b"b", b"z" * 20), (b"accept", b"*/*"), (b"large", b"Z" * 300)),
]
"""So few that they come again, and so large that small tables lose some in between."""
_RARE, _END = len(USUAL), len(USUAL) + 2
few_or_many = st.binary(max_size=40) | st.binary(min_size=120, max_size=250)
"""Lists alone would be short: tables would seldom be full."""


def sections_of(data: Any) -> Any:
    """Return sections, drawn as a byte a field: most of them usual, some rare, and ends."""
    sections: list[Any] = []
    fields: list[Any] = []
    for byte in data:
        kind = byte % 16
        if kind >= _END:
            sections.append(tuple(fields))
            fields = []
        else:
            fields.append(USUAL[kind] if kind < _RARE else (b"rare", bytes((byte,)) * (byte // 4)))
    return (*sections, tuple(fields))


@st.composite
def scripts(
    draw: Any, *, tables: Any = (0, 64, 100, 256, 512, 4096), blocked: Any = (0, 1, 3, 100)
) -> Any:
    """Sections out of a few fields, so that tables are used, and what happens to them."""
    return laws.Script(
        sections=sections_of(draw(few_or_many)),
        settings=CodecSettings(
            table_bytes=draw(st.sampled_from(tables)),
            blocked_streams=draw(st.sampled_from(blocked)),
        ),
        choices=tuple(draw(few_or_many)),
    )


@pytest.mark.parametrize("name", CODEC_NAMES)
@law(120, usual=40)
@given(script=scripts())
def test_sections_decode_to_what_was_encoded_in_any_order(name: str, script: Any) -> None:
    laws.check_sections_decode_to_what_was_encoded(make_codec(name, script.settings), script)


@pytest.mark.parametrize("name", CODEC_NAMES)
@law(60, usual=30)
@given(script=scripts())
def test_nothing_waits_where_everything_arrives_in_order(name: str, script: Any) -> None:
    laws.check_nothing_waits_in_order(make_codec(name, script.settings), script)


@pytest.mark.parametrize("name", NEVER_WAITING)
@law(80)
@given(script=scripts(tables=(65536,)))
def test_nothing_waits_that_refers_to_what_is_acknowledged_only(name: str, script: Any) -> None:
    laws.check_nothing_ever_waits(make_codec(name, script.settings), script)


@law(60)
@given(script=scripts(blocked=(0,)))
def test_qpack_never_waits_where_no_stream_may_be_blocked(script: Any) -> None:
    laws.check_nothing_ever_waits(make_codec("qpack", script.settings), script)


@pytest.mark.parametrize("name", OWN)
@law(60)
@given(script=scripts())
def test_an_encoder_keeps_within_its_table(name: str, script: Any) -> None:
    laws.check_the_table_keeps_its_limit(make_codec(name, script.settings), script)


@pytest.mark.parametrize("name", OWN)
@law(60)
@given(script=scripts())
def test_a_decoder_keeps_within_its_table_where_everything_arrives_in_order(
    name: str, script: Any
) -> None:
    laws.check_the_decoder_keeps_no_more_than_the_encoder(make_codec(name, script.settings), script)


@law(80)
@given(script=scripts())
def test_the_encoder_stream_of_qpack_keeps_within_the_table(script: Any) -> None:
    laws.check_the_encoder_stream_keeps_its_limit(make_codec("qpack", script.settings), script)


@law(80)
@given(script=scripts())
def test_no_more_streams_can_block_than_may(script: Any) -> None:
    laws.check_few_streams_can_block(make_codec("qpack", script.settings), script)
