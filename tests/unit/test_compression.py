"""Header compression, worked by hand; and what may be wrong with sections and with files."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import pytest

from h3sim.headers import (
    CODEC_NAMES,
    CodecError,
    CodecSettings,
    DecodingEnd,
    EncodingEnd,
    make_codec,
)
from h3sim.headers.base import HeaderListError, parse_qif, read_qif
from h3sim.headers.qpack import EncoderStream, InstructionKind, required_insert_count
from h3sim.headers.wire import WireReader, encode_integer, encode_string
from h3sim.values.errors import MissingExtraError, UnknownNameError
from tests.effort import scaled

if TYPE_CHECKING:
    from pathlib import Path

HOST = (b":authority", b"www.example.com")
AGENT = (b"user-agent", b"h3sim")
TRACE = (b"x-trace", b"7")
ORDERLESS = ["qpack", "early-qpack", "early-qpack-safe", "early-qpack-keep", "qcram"]


def sent(name: str, sections: Any, **settings: Any) -> Any:
    """Return the encoder and what it makes of *sections*, of which nothing is acknowledged."""
    encoder = make_codec(name, CodecSettings(**settings)).encoder
    encoder.start()
    return encoder, [encoder.encode(4 * n, fields) for n, fields in enumerate(sections)]


def passed(name: str, sections: Any, **settings: Any) -> list[Any]:
    """Return what comes of *sections* that each arrive, and are acknowledged, before the next."""
    codec = make_codec(name, CodecSettings(**settings))
    sender, receiver = EncodingEnd(codec.encoder), DecodingEnd(codec.decoder)
    decoded = []
    for number, fields in enumerate(sections):
        for part in sender.encode(4 * number, fields):
            decoded += receiver.deliver(part)
        sender.encoder.on_acked(4 * number)
        feedback = receiver.take_feedback()
        if feedback is not None:
            sender.on_feedback(feedback)
    return [fields for _, fields in decoded]


def test_integers_are_those_of_rfc_7541_appendix_c_1() -> None:
    assert encode_integer(10, 5) == bytes.fromhex("0a")
    assert encode_integer(1337, 5) == bytes.fromhex("1f9a0a")
    assert encode_integer(42, 8) == bytes.fromhex("2a")
    assert [WireReader(encode_integer(n, 5)).integer(5) for n in (30, 31, 158, 159)] == [
        *(30, 31, 158, 159)
    ]


def test_strings_are_those_of_rfc_7541_appendix_c_4() -> None:
    assert encode_string(b"no-cache") == bytes.fromhex("86a8eb10649cbf")
    assert WireReader(encode_string(b"custom-value")).string() == b"custom-value"


def test_a_string_that_huffman_makes_longer_goes_as_it_is() -> None:
    assert encode_string(b"\xff\xff") == b"\x02\xff\xff"


def test_hpack_blocks_are_those_of_rfc_7541_appendix_c_4_behind_their_numbers() -> None:
    first = ((b":method", b"GET"), (b":scheme", b"http"), (b":path", b"/"), HOST)
    _, encoded = sent("hpack", [first, (*first, (b"cache-control", b"no-cache"))])
    assert encoded[0].section == b"\0" + bytes.fromhex("828684418cf1e3c2e5f23a6ba0ab90f4ff")
    assert encoded[1].section == b"\1" + bytes.fromhex("828684be5886a8eb10649cbf")


def test_hpack_waits_for_every_block_before() -> None:
    codec = make_codec("hpack")
    blocks = [codec.encoder.encode(4 * n, (AGENT,)).section for n in range(3)]
    assert codec.decoder.on_section(8, blocks[2]) == []
    assert codec.decoder.on_section(0, blocks[0]) == [(0, (AGENT,))]
    assert codec.decoder.waiting == (8,)
    assert codec.decoder.held == (len(blocks[2]), len(blocks[2]))
    assert codec.decoder.on_section(4, blocks[1]) == [(4, (AGENT,)), (8, (AGENT,))]


def test_the_required_insert_count_is_that_of_rfc_9204_section_4_5_1_1() -> None:
    # "if the dynamic table is 100 bytes, then the Required Insert Count will be encoded modulo 6"
    counts = [
        required_insert_count(bytes((encoded, 0)), max_table_bytes=100, inserted=10)
        for encoded in (4, 5, 1)
    ]
    assert counts == [9, 10, 12]
    assert required_insert_count(b"\0\0", max_table_bytes=0, inserted=0) == 0


def test_the_encoder_stream_is_read_as_rfc_9204_appendix_b_has_it() -> None:
    stream = EncoderStream()
    data = bytes.fromhex("3fbd01c00f7777772e6578616d706c652e636f6d c10c2f73616d706c652f70617468")
    more = bytes.fromhex("4a637573746f6d2d6b65790c637573746f6d2d76616c7565 02")
    found = [
        piece for at in range(len(data + more)) for piece in stream.feed((data + more)[at : at + 1])
    ]
    assert [(kind, number) for kind, number, _, _ in found] == [
        (InstructionKind.CAPACITY, 220),
        (InstructionKind.INSERT_STATIC_NAME, 0),
        (InstructionKind.INSERT_STATIC_NAME, 1),
        (InstructionKind.INSERT, 0),
        (InstructionKind.DUPLICATE, 2),
    ]
    assert found[3][2:] == (b"custom-key", b"custom-value")


def test_qpack_uses_inserts_that_it_knows_of_even_where_no_stream_may_be_blocked() -> None:
    codec = make_codec("qpack", CodecSettings(blocked_streams=0))
    sender, receiver = EncodingEnd(codec.encoder), DecodingEnd(codec.decoder)
    sizes = []
    for number in range(4):
        parts = sender.encode(4 * number, (AGENT, TRACE))
        sizes.append(len(parts[-1].data))
        for part in parts:
            receiver.deliver(part)
        feedback = receiver.take_feedback()
        if feedback is not None:
            sender.on_feedback(feedback)
    assert sizes[-1] == 4
    assert sizes[0] > 10


def test_static_qpack_sends_nothing_next_to_its_sections() -> None:
    _, encoded = sent("static", [(AGENT, TRACE)] * 9)
    assert {(len(e.section), e.instructions) for e in encoded} == {(len(encoded[0].section), b"")}


def test_qcram_refers_to_what_is_acknowledged_and_inserts_nothing_twice() -> None:
    encoder, (first, second) = sent("qcram", [(TRACE,), (TRACE,)])
    assert encoder.table_bytes == len(b"x-trace7") + 32
    assert len(second.section) == len(first.section)
    encoder.on_acked(0)
    third = encoder.encode(8, (TRACE,))
    assert third.section == bytes((2, 1, 0x80 | 62))


def test_qcram_counts_an_acknowledgement_only_once_all_before_it_have_come() -> None:
    encoder, _ = sent("qcram", [(TRACE,), (AGENT,)])
    encoder.on_acked(4)
    assert len(encoder.encode(8, (AGENT,)).section) > 3
    encoder.on_acked(0)
    assert len(encoder.encode(12, (AGENT,)).section) == 3


def test_qcram_takes_the_name_of_an_older_entry_where_the_newer_is_not_acknowledged() -> None:
    encoder, _ = sent("qcram", [(TRACE,)])
    encoder.on_acked(0)
    named = [encoder.encode(4 * n, ((b"x-trace", b"%d" % n),)).section for n in (1, 2, 3)]
    # An insert (01) with the name of entry 62, of 63 once another one is newer, of 64 then.
    assert named == [b"\1\1\x7e\x01\x31", b"\2\2\x7f\0\x01\x32", b"\3\3\x7f\1\x01\x33"]


def test_qcram_takes_the_name_of_what_is_left_where_the_oldest_entry_was_evicted() -> None:
    encoder, _ = sent("qcram", [((b"x-trace", b"%d" % n),) for n in range(3)], table_bytes=80)
    for stream_id in (0, 4, 8):
        encoder.on_acked(stream_id)
    # The first left for the third: what the second and the third brought is there.
    assert encoder.table_bytes == 80
    assert encoder.encode(12, (TRACE,)).section == b"\3\x83\x7e\x01\x37"


def test_qcram_with_packets_refers_to_what_the_same_packet_brings() -> None:
    encoder, (_, second) = sent("qcram-packets", [(TRACE,), (TRACE,)])
    assert second.section == bytes((1, 1, 0x80 | 62))
    encoder.on_packet_boundary()
    assert len(encoder.encode(8, (TRACE,)).section) > 3


def test_a_qcram_block_that_evicts_waits_for_all_before_it() -> None:
    codec = make_codec("qcram", CodecSettings(table_bytes=80))
    blocks = [codec.encoder.encode(4 * n, (f,)).section for n, f in enumerate((TRACE, AGENT))]
    assert codec.decoder.on_section(4, blocks[1]) == []
    assert [stream_id for stream_id, _ in codec.decoder.on_section(0, blocks[0])] == [0, 4]


def test_early_qpack_parks_a_field_and_not_a_section() -> None:
    codec = make_codec("early-qpack")
    blocks = [
        codec.encoder.encode(4 * number, fields).section
        for number, fields in enumerate([(TRACE,), (AGENT, TRACE), (AGENT,)])
    ]
    assert codec.decoder.on_section(4, blocks[1]) == []
    assert codec.decoder.held == (len(blocks[1]), len(b"user-agenth3sim"))
    # What the parked section brought is there for others.
    assert codec.decoder.on_section(8, blocks[2]) == [(8, (AGENT,))]
    assert [stream_id for stream_id, _ in codec.decoder.on_section(0, blocks[0])] == [0, 4]


def test_early_qpack_gives_a_place_away_once_the_decoder_has_read_all_references() -> None:
    codec = make_codec("early-qpack", CodecSettings(table_bytes=80))
    encode, decode = codec.encoder.encode, codec.decoder.on_section
    first, second, third = (
        encode(4 * n, (f,)).section for n, f in enumerate((TRACE, TRACE, AGENT))
    )
    assert codec.encoder.table_bytes == 40  # type: ignore[attr-defined]
    decode(8, third)
    decode(0, first)
    assert codec.decoder.take_feedback() == b""
    decode(4, second)
    codec.encoder.on_feedback(codec.decoder.take_feedback())
    assert codec.encoder.table_bytes == 0  # type: ignore[attr-defined]


def test_early_qpack_that_keeps_what_was_used_deletes_only_the_rest() -> None:
    for name, sizes in (("early-qpack", 1), ("early-qpack-keep", 0)):
        encoder, _ = sent(name, [(TRACE,), (TRACE,), (AGENT,)], table_bytes=80)
        assert len(encoder._deleted) == sizes


@pytest.mark.parametrize("name", CODEC_NAMES)
def test_a_field_larger_than_the_table_is_sent_and_comes(name: str) -> None:
    large = ((b"x-large", b"#" * 5000), AGENT, (b"x-large", b"#" * 5000))
    assert passed(name, [large] * 3, table_bytes=256) == [large] * 3


@pytest.mark.parametrize("name", CODEC_NAMES)
def test_empty_values_other_bytes_and_empty_sections_come_as_they_are(name: str) -> None:
    odd = [((b"a", b""), (b"b", bytes(range(256)))), (), ((b"a", b""), (b"a", b""))]
    assert passed(name, odd * 2) == odd * 2


@pytest.mark.parametrize("name", CODEC_NAMES)
def test_a_thousand_sections_come_through_a_small_table(name: str) -> None:
    kinds = [(b"accept", b"*/*"), (b"x-id", b"9" * 30), AGENT, TRACE, (b"x", b"y" * 90)]
    sections = [(kinds[n % 5], kinds[n % 3], (b"n", b"%d" % (n % 40))) for n in range(scaled(1000))]
    assert passed(name, sections, table_bytes=256) == sections


def test_a_field_without_a_name_is_refused_by_qpack() -> None:
    with pytest.raises(CodecError, match="stream 0: the header's name must not be empty"):
        sent("qpack", [((b"", b"x"),)])


def test_more_blocked_streams_than_allowed_are_an_error() -> None:
    codec = make_codec("qpack", CodecSettings(blocked_streams=2))
    strict = make_codec("qpack", CodecSettings(blocked_streams=1)).decoder
    codec.encoder.start()
    blocks = [codec.encoder.encode(4 * n, (TRACE,)).section for n in range(3)]
    strict.on_section(4, blocks[1])
    with pytest.raises(CodecError, match="stream 8"):
        strict.on_section(8, blocks[2])


def test_settings_are_not_negative() -> None:
    with pytest.raises(ValueError, match=r"table_bytes .*, is -1"):
        CodecSettings(table_bytes=-1)


def test_an_unknown_codec_is_named_with_its_likes() -> None:
    with pytest.raises(UnknownNameError, match=r"'qpak'.*qpack"):
        make_codec("qpak")


@pytest.mark.parametrize(("name", "package"), [("hpack", "hpack"), ("qpack", "pylsqpack")])
def test_an_error_names_the_extra_where_a_library_is_missing(
    monkeypatch: pytest.MonkeyPatch, name: str, package: Any
) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(
        MissingExtraError, match=rf"needs {package}: pip install 'h3sim\[headers\]'"
    ):
        make_codec(name)


def test_qif_holds_bytes_comments_and_lines_of_any_system() -> None:
    assert parse_qif(b"# c\r\na\t\xff\r\n\r\n\r\n# d\nb\tx\ty\n") == (
        (((b"a", b"\xff"),), None),
        (((b"b", b"x\ty"),), None),
    )


def test_every_line_that_is_no_field_is_reported(tmp_path: Path) -> None:
    path = tmp_path / "broken.qif"
    path.write_bytes(b"a\t1\nno tab\n\n\tno name\n")
    with pytest.raises(HeaderListError) as error:
        read_qif(path)
    assert error.value.lines() == [
        f"{path}: line 2: must be a name, a tab and a value, is 'no tab'",
        f"{path}: line 4: must be a name, a tab and a value, is '\\tno name'",
    ]


@pytest.mark.parametrize("data", [b"", b"\n\n", b"# nothing\n"])
def test_a_file_without_a_list_is_reported(data: Any) -> None:
    with pytest.raises(HeaderListError, match="no header list"):
        parse_qif(data)
