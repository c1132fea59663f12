"""Header lists out of HARs and QIF files."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from h3sim.headers.base import HeaderListError
from h3sim.importers.header_lists import read_exchanges

if TYPE_CHECKING:
    from pathlib import Path


def field(name: str, value: Any) -> dict[str, Any]:
    return {"name": name, "value": value}


def entry(
    at: Any,
    url: str = "https://h.example/a?b=1",
    sent: Any = (("Accept", "*/*"),),
    got: Any = (),
    **more: Any,
) -> dict[Any, Any]:
    return {
        "startedDateTime": f"2026-01-01T00:00:{at:06.3f}Z",
        "time": 50,
        "timings": {"receive": 20},
        "request": {"method": "GET", "url": url, "headers": [field(*pair) for pair in sent]},
        "response": {"status": 200, "headers": [field(*pair) for pair in got]},
        **more,
    }


def har(tmp_path: Path, *entries: Any) -> Any:
    path = tmp_path / "load.har"
    path.write_text(json.dumps({"log": {"version": "1.2", "pages": [], "entries": entries}}))
    return path


def test_requests_come_by_start_time_with_pseudo_fields_in_front(tmp_path: Path) -> None:
    late = entry(2.5, sent=[("Host", "h.example"), ("Cookie", "a=1; b=2"), ("X", "\u00e9")])
    first, second = read_exchanges(har(tmp_path, late, entry(1.0)), interval_ns=0)
    assert first.requested_at_ns == 0
    assert second.requested_at_ns == 1_500_000_000
    assert second.request == (
        (b":method", b"GET"),
        (b":scheme", b"https"),
        (b":authority", b"h.example"),
        (b":path", b"/a?b=1"),
        (b"cookie", b"a=1"),
        (b"cookie", b"b=2"),
        (b"x", "\u00e9".encode()),
    )


def test_an_authority_has_no_user_and_no_password(tmp_path: Path) -> None:
    path = har(tmp_path, entry(1.0, url="https://user:secret@h.example:8443/a"))
    (found,) = read_exchanges(path, interval_ns=0)
    assert dict(found.request)[b":authority"] == b"h.example:8443"


def test_pseudo_fields_that_were_recorded_are_kept_as_they_are(tmp_path: Path) -> None:
    sent = [("accept", "*/*"), (":path", "/x"), (":method", "POST")]
    (found,) = read_exchanges(har(tmp_path, entry(1.0, sent=sent)), interval_ns=0)
    assert found.request == ((b":path", b"/x"), (b":method", b"POST"), (b"accept", b"*/*"))


def test_responses_begin_after_their_wait(tmp_path: Path) -> None:
    got = [("Content-Type", "text/css"), ("Transfer-Encoding", "chunked")]
    (found,) = read_exchanges(har(tmp_path, entry(1.0, got=got)), interval_ns=0)
    assert found.responded_at_ns == 30_000_000
    assert found.response == ((b":status", b"200"), (b"content-type", b"text/css"))


def test_entries_without_fields_or_time_are_left_out(tmp_path: Path) -> None:
    broken = entry(1.0) | {"startedDateTime": "soon"}
    path = har(tmp_path, entry(1.0, sent=()), broken, "no entry", entry(3.0))
    assert len(read_exchanges(path, interval_ns=0)) == 1


def test_an_address_that_cannot_be_read_leaves_out_its_entry_alone(tmp_path: Path) -> None:
    path = har(tmp_path, entry(1.0), entry(2.0, url="https://["), entry(3.0))
    assert [each.requested_at_ns for each in read_exchanges(path, interval_ns=0)] == [
        0,
        2_000_000_000,
    ]


def test_a_har_is_read_wherever_it_lies(tmp_path: Path) -> None:
    folder = tmp_path / ("x" * 120) / ("y" * 120)
    folder.mkdir(parents=True)
    path = har(folder, entry(1.0)).rename(folder / "a\x1bb.har")
    assert len(read_exchanges(path, interval_ns=0)) == 1


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"log": {"entries": []}}', "has no log.entries"),
        ('{"other": 1}', "has no log.entries"),
        ('{"log": {"entries": [{"request": {}}]}}', "has 1 entry, and none of them header fields"),
        ('{"log": {"entries": [', "ends at character"),
    ],
)
def test_a_har_without_headers_is_reported_in_one_line(
    tmp_path: Path, text: Any, message: Any
) -> None:
    path = tmp_path / "load.har"
    path.write_text(text)
    with pytest.raises(HeaderListError, match=message) as error:
        read_exchanges(path, interval_ns=0)
    assert len(error.value.lines()) == 1


def test_lists_without_a_method_are_responses(tmp_path: Path) -> None:
    path = tmp_path / "lists.qif"
    path.write_text("server\th\n\n:status\t200\n\n:method\tGET\n\nx\ty\n\n")
    found = read_exchanges(path, interval_ns=0)
    assert [bool(each.request) for each in found] == [False, False, True, False]
    assert [bool(each.response) for each in found] == [True, True, False, True]


def test_lists_of_a_qif_file_follow_each_other(tmp_path: Path) -> None:
    path = tmp_path / "lists.qif"
    path.write_bytes(b":method\tGET\n\n:status\t200\n\n")
    asked, answered = read_exchanges(path, interval_ns=7)
    assert (asked.requested_at_ns, asked.response) == (0, ())
    assert (answered.responded_at_ns, answered.request) == (7, ())
