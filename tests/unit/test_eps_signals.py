"""What is said of priorities in fields and frames: RFC 9218 by hand, section by section."""

from __future__ import annotations

import pickle
import re
from random import Random

import pytest

from h3sim.http import (
    PriorityFrameError,
    StreamPriorities,
    format_priority,
    merge_priority,
    parse_priority,
)
from h3sim.http.priority_field import is_well_formed
from h3sim.signals import Eps

BASE64 = ":MQ==:"
DEFAULT = Eps(urgency=3, incremental=False)


def eps(urgency: int, *, incremental: bool = False) -> Eps:
    return Eps(urgency=urgency, incremental=incremental)


# The field


@pytest.mark.parametrize(
    ("field", "expected"),
    [
        # § 4.1 and § 4.2: the RFC's examples.
        ("u=0", eps(0)),
        ("u=5, i", eps(5, incremental=True)),
        # § 6: its examples.
        ("u=7", eps(7)),
        # § 4.1: the default is 3. § 4.2: the default is false.
        ("", DEFAULT),
        ("i", eps(3, incremental=True)),
        # § 4.2 is a boolean of structured fields, so it may be written out.
        ("i=?1", eps(3, incremental=True)),
        ("u=1, i=?0", eps(1)),
    ],
)
def test_a_field_carries_urgency_and_incremental(field: str, expected: Eps) -> None:
    assert parse_priority(field) == expected


@pytest.mark.parametrize(
    ("field", "expected"),
    [
        # Unknown parameters.
        ("u=2, x, yy=5, visible=?1, i", eps(2, incremental=True)),
        # Values out of range.
        ("u=8", DEFAULT),
        ("u=-1, i", eps(3, incremental=True)),
        ("u=999999999999999", DEFAULT),
        # Values of another type: decimal, boolean, string, token, bytes, inner list; integer.
        ("u=1.0", DEFAULT),
        ("u", DEFAULT),
        ("u=?1, i", eps(3, incremental=True)),
        ('u="1"', DEFAULT),
        ("u=one", DEFAULT),
        ("u=:MQ==:", DEFAULT),
        ("u=(1 2)", DEFAULT),
        ("u=1, i=1", eps(1)),
        ("u=1\t", eps(1)),
        (" u=1 \t ", eps(1)),
        ("u=1, i=yes", eps(1)),
        ("u=1, i=()", eps(1)),
    ],
)
def test_what_is_unknown_out_of_range_or_of_another_type_is_ignored(
    field: str, expected: Eps
) -> None:
    """RFC 9218 § 4: MUST be ignored; the rest of the field counts."""
    assert parse_priority(field) == expected


@pytest.mark.parametrize(
    "field",
    [
        *("u=1,", ",u=1", "u=1 i", "u=1;", "u =1", "u= 1", "U=1", "u=1, i=", "u=1, =2", "u=(1"),
        *("u=1, I", "u=01.", "u=1.2345", "u=1234567890123456", "u=--1", 'u=1, x="', "u=1\n"),
        *("u=1, x=:a:", "u=1, x=?2", "u=1; X=2", "\tu=1", "u=1, é=2", 'u=1, x="é"', "u=1, x=@5"),
    ],
)
def test_a_field_that_is_not_a_dictionary_is_ignored_entirely(field: str) -> None:
    """RFC 8941 § 4.2: if parsing fails, the entire field value is ignored."""
    assert parse_priority(field) == DEFAULT
    assert not is_well_formed(field)


@pytest.mark.parametrize(
    ("field", "expected"),
    [
        # RFC 8941 § 4.2.2: of members with one key the last one counts, even one that is wrong.
        ("u=1, u=5", eps(5)),
        ("u=1, u=9", DEFAULT),
        # § 3.1.2: parameters of a member are part of it; no meaning is defined for any here.
        ("u=1;i", eps(1)),
        ("u=1;q=0.5;  r=a/b, i;x", eps(1, incremental=True)),
        # § 4.2: spaces around the field; § 4.2.2: spaces and tabs around commas.
        ("  u=1 \t,\t i  ", eps(1, incremental=True)),
        ("u=01", eps(1)),
    ],
)
def test_the_syntax_is_that_of_structured_fields(field: str, expected: Eps) -> None:
    assert parse_priority(field) == expected


@pytest.mark.parametrize(
    "expected", [eps(u, incremental=i) for u in range(8) for i in (True, False)]
)
def test_what_is_written_is_read(expected: Eps) -> None:
    assert parse_priority(format_priority(expected)) == expected


def test_defaults_are_left_out() -> None:
    assert format_priority(DEFAULT) == ""
    assert format_priority(eps(3, incremental=True)) == "i"
    assert format_priority(eps(5, incremental=True)) == "u=5, i"


def test_fields_are_well_formed_where_a_complete_parser_accepts_them() -> None:
    """10,000 fields from pieces of the grammar; of which some hundreds are well-formed."""
    http_sfv = pytest.importorskip("http_sfv")
    source = Random(9218)
    pieces = [
        *(
            "u",
            "i",
            "a*-_.",
            "*",
            "U",
            "=",
            "=",
            ",",
            ", ",
            "\t,",
            "\t",
            ";",
            "; ",
            " ",
            "?1",
            "?0",
            "?",
        ),
        *("0", "7", "12", "-1", "1.5", ".", "-", '"s"', '"', "\\", "tok/:x", BASE64, ":"),
        *("(", ")", "u=1", "i=?0", "x=(1 2);y", ";q=1", "é", "\n"),
    ]
    n_good = 0
    for _ in range(10_000):
        field = "".join(source.choices(pieces, k=source.randint(0, 7)))
        # Where http_sfv differs from RFC 8941: spaces alone are an empty dictionary (§ 4.2), and a
        # number does not end with a dot (§ 4.2.4). What base64 is, is up to the parser (§ 4.2.7).
        if not field.strip() or re.search(r"\d\.(?!\d)", field) or ":" in field.replace(BASE64, ""):
            continue
        parsed = http_sfv.Dictionary()
        try:
            parsed.parse(field.encode())
        except ValueError:
            assert not is_well_formed(field), field
            continue
        n_good += 1
        assert is_well_formed(field), field
        values = {key: getattr(member, "value", None) for key, member in parsed.items()}
        urgency, incremental = values.get("u"), values.get("i")
        assert parse_priority(field) == Eps(
            urgency=urgency if type(urgency) is int and 0 <= urgency <= 7 else 3,
            incremental=incremental if isinstance(incremental, bool) else False,
        ), field
    assert n_good > 300


# Merging


def test_the_origin_changes_the_urgency_and_keeps_the_rest() -> None:
    """RFC 9218 § 8: the RFC's example."""
    assert merge_priority(eps(5, incremental=True), "u=1") == eps(1, incremental=True)


@pytest.mark.parametrize(
    ("response", "merged"),
    [
        ("", eps(5, incremental=True)),
        ("i=?0", eps(5)),
        ("u=3", eps(3, incremental=True)),
        ("u=9", eps(5, incremental=True)),
        ("u=1,", eps(5, incremental=True)),
    ],
)
def test_what_a_response_leaves_out_stays_as_the_client_wants_it(
    response: str, merged: Eps
) -> None:
    """RFC 9218 § 8: absence is disinterest, and not the default."""
    assert merge_priority(eps(5, incremental=True), response) == merged


# Frames


def test_a_request_without_a_field_has_the_defaults() -> None:
    """RFC 9218 § 4."""
    assert StreamPriorities().on_request(0, None) == [(0, DEFAULT)]


def test_a_request_with_a_field_has_the_priority_of_the_field() -> None:
    assert StreamPriorities().on_request(4, "u=1, i") == [(4, eps(1, incremental=True))]


def test_a_frame_replaces_all_parameters() -> None:
    """RFC 9218 § 7: omitting a parameter is a signal to use its default value."""
    priorities = StreamPriorities()
    priorities.on_request(0, "u=1, i")
    assert priorities.on_priority_update(0, "u=2") == [(0, eps(2))]
    assert priorities.on_priority_update(0, "i") == [(0, eps(3, incremental=True))]
    assert priorities.on_priority_update(0, "") == [(0, DEFAULT)]


def test_a_frame_that_changes_nothing_is_no_change() -> None:
    priorities = StreamPriorities()
    priorities.on_request(0, "u=1, i")
    assert priorities.on_priority_update(0, "i, u=1") == []


def test_a_frame_before_the_request_overrides_its_field() -> None:
    """RFC 9218 § 7: buffered, and applied once the stream is opened."""
    priorities = StreamPriorities()
    assert priorities.on_priority_update(4, "u=6") == []
    assert priorities.on_request(0, "u=2") == [(0, eps(2))]
    assert priorities.on_request(4, "u=1, i") == [(4, eps(6))]
    assert priorities.buffered == ()


def test_of_frames_before_the_request_the_latest_counts() -> None:
    """RFC 9218 § 7: storing only the most recently received frame."""
    priorities = StreamPriorities()
    for field in ("u=6", "u=2, i", "u=5"):
        priorities.on_priority_update(4, field)
    assert priorities.buffered == (4,)
    assert priorities.on_request(4, None) == [(4, eps(5))]


def test_a_frame_is_used_once() -> None:
    priorities = StreamPriorities()
    priorities.on_priority_update(0, "u=6")
    assert priorities.on_request(0, None) == [(0, eps(6))]
    assert priorities.on_request(4, None) == [(4, DEFAULT)]


def test_a_response_is_merged_with_the_latest_word_of_the_client() -> None:
    """RFC 9218 § 8, after § 7."""
    priorities = StreamPriorities()
    priorities.on_request(0, "u=5")
    priorities.on_priority_update(0, "u=4, i")
    assert priorities.on_response(0, "u=1") == [(0, eps(1, incremental=True))]
    assert priorities.on_response(0, None) == []
    assert priorities.on_response(0, "") == []


def test_a_frame_after_the_response_overrides_the_origin() -> None:
    """RFC 9218 § 7: the most recent frame overrides any other signal."""
    priorities = StreamPriorities()
    priorities.on_request(0, "u=5")
    priorities.on_response(0, "u=1")
    assert priorities.on_priority_update(0, "u=6") == [(0, eps(6))]


def test_a_frame_that_is_not_well_formed_is_dropped() -> None:
    """RFC 9218 § 7: MAY be a connection error; here it is as if it had not come."""
    priorities = StreamPriorities()
    priorities.on_request(0, "u=1")
    assert priorities.on_priority_update(0, "u=2,") == []
    priorities.on_priority_update(4, "U=2")
    assert priorities.on_request(4, "u=6") == [(4, eps(6))]


def test_a_frame_for_a_closed_stream_is_dropped() -> None:
    """RFC 9218 § 7.1: servers can discard them. Nothing is kept for it."""
    priorities = StreamPriorities()
    for stream_id in (0, 4, 8):
        priorities.on_request(stream_id, None)
    priorities.on_closed(4)
    assert priorities.on_priority_update(4, "u=1") == []
    assert priorities.on_response(4, "u=1") == []
    assert priorities.buffered == ()
    assert priorities.on_priority_update(8, "u=1") == [(8, eps(1))]


def test_at_most_so_many_frames_are_kept_and_the_oldest_goes() -> None:
    """RFC 9218 § 7: bounded by local policy."""
    priorities = StreamPriorities(max_buffered=2)
    for stream_id in (0, 4, 0, 8):
        priorities.on_priority_update(stream_id, f"u={stream_id // 4}")
    # 0 was spoken of again after 4.
    assert priorities.buffered == (0, 8)
    assert priorities.on_request(4, "u=5") == [(4, eps(5))]
    assert priorities.on_request(0, "u=5") == [(0, eps(0))]


def test_of_itself_a_server_keeps_128_frames() -> None:
    priorities = StreamPriorities()
    for number in range(129):
        priorities.on_priority_update(4 * number, "u=1")
    assert priorities.buffered == tuple(range(4, 4 * 129, 4))


@pytest.mark.parametrize("stream_id", [1, 2, 3, -4])
def test_a_stream_that_carries_no_request_ends_the_connection(stream_id: int) -> None:
    """RFC 9218 § 7.2: MUST be treated as a connection error of type H3_ID_ERROR."""
    with pytest.raises(
        PriorityFrameError,
        match=r"^H3_ID_ERROR: PRIORITY_UPDATE for stream .* is not for a request",
    ) as caught:
        StreamPriorities().on_priority_update(stream_id, "u=1")
    assert caught.value.code == "H3_ID_ERROR"
    assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)


def test_a_stream_beyond_the_limit_ends_the_connection() -> None:
    """RFC 9218 § 7.2: SHOULD be treated as H3_ID_ERROR. Of 3 streams the last is 8."""
    priorities = StreamPriorities(max_streams=3)
    assert priorities.on_priority_update(8, "u=1") == []
    with pytest.raises(
        PriorityFrameError,
        match=r"^H3_ID_ERROR: PRIORITY_UPDATE for stream 12 is beyond the limit of 3",
    ) as caught:
        priorities.on_priority_update(12, "u=1")
    assert caught.value.code == "H3_ID_ERROR"


def test_open_streams_and_those_spoken_of_have_one_limit_in_http_2() -> None:
    """RFC 9218 § 7.1: together MUST NOT exceed SETTINGS_MAX_CONCURRENT_STREAMS."""
    priorities = StreamPriorities(max_concurrent=2)
    priorities.on_request(0, None)
    assert priorities.on_priority_update(4, "u=1") == []
    assert priorities.on_priority_update(4, "u=2") == []
    assert priorities.on_priority_update(0, "u=2") == [(0, eps(2))]
    with pytest.raises(
        PriorityFrameError,
        match=r"^PROTOCOL_ERROR: PRIORITY_UPDATE for stream 8 makes more than 2 streams",
    ) as caught:
        priorities.on_priority_update(8, "u=1")
    assert caught.value.code == "PROTOCOL_ERROR"
    priorities.on_closed(0)
    assert priorities.on_priority_update(8, "u=1") == []
