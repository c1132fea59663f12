"""Broken and hostile recordings: a page that loads, or a line each that says why not."""

from __future__ import annotations

import gzip
import json
import resource
from typing import TYPE_CHECKING, Any

import pytest

import h3sim
from h3sim.importers import RecordingError, import_page
from h3sim.importers.html import scan
from h3sim.importers.source import BrokenJsonError, JsonCursor
from h3sim.values.errors import InputError
from tests.helpers import unworded
from tests.recordings import SAMPLES, SITE, entry, har, write_recording

if TYPE_CHECKING:
    from pathlib import Path

PAGE = entry("/", 0, 100, mime="text/html")
IMAGE = entry("/a.png", 120, 60, mime="image/png")
WHOLE = json.dumps(har(PAGE, IMAGE))


def issues_of(folder: Path, document: Any, **how: Any) -> list[str]:
    with pytest.raises(RecordingError) as caught:
        import_page(write_recording(folder, document), **how)
    return [str(problem) for problem in caught.value.problems]


def skipped_of(folder: Path, document: Any) -> list[str]:
    result = import_page(write_recording(folder, document))
    return [str(problem) for problem in result.skipped]


def outcome_of(folder: Path, document: Any) -> tuple[list[str], list[str]]:
    """Return the ids of the page that comes of a recording, or the mistakes for which none does."""
    try:
        page = import_page(write_recording(folder, document)).page
    except InputError as error:
        return [], error.lines()
    return [each.id for each in page.resources], []


@pytest.mark.parametrize(
    ("document", "flaw"),
    [
        ("", "is empty"),
        (b"\x89PNG", "begins with '\ufffd': it is not JSON"),
        ("{}", "is not a known recording format: its keys are nothing"),
        ('{"a": 1}', "is not a known recording format: its keys are 'a'"),
        ("[]", "contains no request with an HTTP response"),
        ("[{}]", "[0]: must have method, ph or objs, has none"),
        ('{"a": tru', "is cut off: Expecting value at character 6"),
        ('{"format": "a', "is cut off: Unterminated string starting at character 11"),
        (
            '{"format": "a\n' + " " * 99 + '"}',
            "is not JSON: Invalid control character at character 13",
        ),
        ('{"a" 1}', "is not JSON: expected ':', found '1' at character 5"),
        ('{"format": "h3sim-page/1"}', "is already a page file: use it directly"),
        (har(), "contains no request with an HTTP response"),
    ],
    ids=str,
)
def test_what_is_no_recording_is_refused_in_one_line(
    tmp_path: Path, document: Any, flaw: str
) -> None:
    assert issues_of(tmp_path, document) == [flaw]


def test_a_file_that_is_not_there_is_told(tmp_path: Path) -> None:
    for path, message in (
        (tmp_path / "no.har", r"no\.har: .*No such file"),
        (tmp_path, r"index\.html: .*No such file"),
        ("/dev/null", "is not a regular file"),
        ("a\0b", r"^a\\x00b: .*embedded null"),
    ):
        with pytest.raises(RecordingError, match=message):
            import_page(path)


def test_of_a_truncated_file_the_whole_entries_are_used(tmp_path: Path) -> None:
    cut = WHOLE[: WHOLE.index('"/a.png"') if '"/a.png"' in WHOLE else len(WHOLE) - 90]
    result = import_page(write_recording(tmp_path, cut))
    assert [each.id for each in result.page.resources] == ["/"]
    assert [problem.key for problem in result.skipped] == ["log"]
    assert "is cut off" in result.skipped[0].message
    assert issues_of(tmp_path, cut, strict=True) == [str(result.skipped[0])]


@pytest.mark.parametrize("end", range(0, len(WHOLE), 41))
def test_a_file_may_be_cut_anywhere(tmp_path: Path, end: int) -> None:
    ids, issues = outcome_of(tmp_path, WHOLE[:end])
    assert ids[:1] == ["/"] or len(issues) >= 1


def test_a_truncated_gzip_file_is_used_as_far_as_it_goes(tmp_path: Path) -> None:
    many = har(PAGE, *(entry(f"/{n * n * n}.png", 120 + n, 60) for n in range(2000)))
    packed = gzip.compress(json.dumps(many).encode())
    result = import_page(write_recording(tmp_path, packed[: len(packed) // 2]))
    assert 500 < len(result.page.resources) < 2000
    assert any("cannot be unpacked further" in str(problem) for problem in result.skipped)


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "utf-32"])
def test_encodings_are_told_by_themselves(tmp_path: Path, encoding: str) -> None:
    document = har(PAGE, entry("/\u00e9\u4e16.png", 120, 60))
    text = json.dumps(document, ensure_ascii=False)
    result = import_page(write_recording(tmp_path, text.encode(encoding)))
    assert [each.id for each in result.page.resources] == ["/", "\u00e9\u4e16.png"]
    assert result.skipped == ()


def test_bytes_that_are_not_utf_8_are_told(tmp_path: Path) -> None:
    text = json.dumps(har(PAGE, entry("/\u00e9.png", 120, 60)), ensure_ascii=False)
    result = import_page(write_recording(tmp_path, text.encode("latin-1")))
    assert result.page.resources[1].id == "\ufffd.png"
    assert unworded(result.skipped) == ["is not UTF-8 throughout: wrong bytes were read as U+FFFD"]


def test_each_malformed_entry_is_a_line_and_is_skipped_or_refused(tmp_path: Path) -> None:
    entries = [
        PAGE,
        7,
        None,
        {"request": {"method": "GET"}},
        {**IMAGE, "request": {"url": "/no-scheme.png"}},
        {**IMAGE, "response": "none", "startedDateTime": "yesterday"},
        entry("/b.png", 130, 60, response_bodySize=-7, time="long"),
    ]
    document = har(*entries)
    reported = [
        "log.entries[1]: skipped: is 7",
        "log.entries[2]: skipped: is None",
        "log.entries[3].request.url: skipped: is missing",
        "log.entries[5].response: is 'none'",
        "log.entries[5].startedDateTime: must be a date and time (ISO 8601), is 'yesterday'",
        "log.entries[6].time: is 'long'",
        "log.entries[6].response.bodySize: is -7",
        "log.entries[4]: skipped: its URL cannot be read",
    ]
    assert unworded(skipped_of(tmp_path, document)) == unworded(reported)
    assert unworded(issues_of(tmp_path, document, strict=True)) == unworded(reported)


def test_ten_thousand_malformed_entries_are_counted(tmp_path: Path) -> None:
    skipped = skipped_of(tmp_path, har(PAGE, *([7] * 10_000)))
    assert len(skipped) == 51
    assert skipped[-1] == "and 9,950 more"


def test_ten_thousand_entries_are_a_page_of_as_many(tmp_path: Path) -> None:
    entries = [
        entry(f"/{n}.js", n, 60, mime="text/javascript",
              _initiator={"type": "script", "url": f"{SITE}/{n * 7 // 11}.js"})
        for n in range(1, 10_000)
    ]  # fmt: skip
    page = import_page(write_recording(tmp_path, har(PAGE, *entries))).page
    assert len(page.resources) == 10_000
    assert page.resources[9999].discovered.by == f"{9999 * 7 // 11}.js"


@pytest.mark.parametrize(
    "deep",
    ["[" * 100_000, '{"log":' * 100_000, '{"log":{"entries":[' + "[" * 100_000, '{"a":' * 100_000],
)
def test_deep_nesting_is_told(tmp_path: Path, deep: str) -> None:
    (flaw,) = issues_of(tmp_path, deep)[:1]
    assert "nested too deeply" in flaw or "cut off" in flaw or "ends at" in flaw


def test_a_deep_entry_ends_the_reading_but_not_the_page(tmp_path: Path) -> None:
    text = WHOLE.replace('"timings"', '"x": ' + "[" * 50_000 + "]" * 50_000 + ', "timings"')
    last = text.rindex('"x"')
    text = WHOLE[: WHOLE.rindex('"timings"')] + text[last:]
    result = import_page(write_recording(tmp_path, text))
    assert [each.id for each in result.page.resources] == ["/"]
    assert "nested too deeply" in result.skipped[0].message


@pytest.mark.parametrize(
    "number", ["1e999", "-1e999", "NaN", "Infinity", "9" * 5000, "-" + "9" * 5000, "true", '"x"']
)
def test_numbers_that_are_none_are_told_and_not_used(tmp_path: Path, number: str) -> None:
    text = WHOLE.replace('"bodySize": 1000', f'"bodySize": {number}').replace(
        '"time": 60', f'"time": {number}'
    )
    page = import_page(write_recording(tmp_path, text)).page
    assert [each.size_bytes for each in page.resources] == [2000, 2000]


def test_times_of_years_are_cut_to_a_day(tmp_path: Path) -> None:
    late = {**IMAGE, "startedDateTime": "2036-01-01T00:00:00Z"}
    early = {**IMAGE, "startedDateTime": "0001-01-01T00:00:00+14:00"}
    caused = {**IMAGE, "_initiator": {"type": "script", "url": IMAGE["request"]["url"]}}
    result = import_page(write_recording(tmp_path, har(PAGE, late, early, caused)))
    assert result.inferred["times of more than a day, cut"] >= 1
    assert result.left_out == {"more than half an hour after the document": 1}


@pytest.mark.parametrize("name", ["har-chrome-har", "devtools-log", "wprofx", "epload", "facts"])
def test_any_part_of_a_recording_may_be_anything(tmp_path: Path, name: str) -> None:
    """Replace each value of each object by each of these; what comes loads or is refused."""
    for wrong in (None, -1, "\ud800\0", [[]], {"url": 3}):  # type: ignore[var-annotated]
        for document in _replaced(SAMPLES[name], wrong):
            ids, issues = outcome_of(tmp_path, document)
            assert ids or issues


def _replaced(document: Any, wrong: Any) -> Any:
    """Yield the document with one value of each key replaced, keys of equal name once."""
    seen: set[str] = set()
    waiting: list[tuple[Any, ...]] = [()]
    while waiting:
        path = waiting.pop()
        value = document
        for step in path:
            value = value[step]
        steps = (
            list(value)
            if isinstance(value, dict)
            else range(len(value))
            if isinstance(value, list)
            else []
        )
        waiting += [(*path, step) for step in steps]
        if path and str(path[-1]) not in seen:
            seen.add(str(path[-1]))
            yield _with(document, path, wrong)


def _with(document: Any, path: tuple[Any, ...], wrong: Any) -> Any:
    if not path:
        return wrong
    copy = dict(document) if isinstance(document, dict) else list(document)
    copy[path[0]] = _with(copy[path[0]], path[1:], wrong)
    return copy


@pytest.mark.parametrize("name", [name for name, it in SAMPLES.items() if isinstance(it, dict)])
def test_no_name_of_a_member_is_taken_for_a_position(tmp_path: Path, name: str) -> None:
    strange = ("x[0]", "resources[0]", "objs[0]", "entries[0]", "log.entries[0]", "[0]", "event 2")
    others: dict[str, Any] = {each: {"path": "/no.png", "method": "x"} for each in strange}
    path = write_recording(tmp_path, SAMPLES[name])
    page = import_page(path).page
    assert import_page(write_recording(tmp_path, others | SAMPLES[name])).page == page
    assert import_page(write_recording(tmp_path, SAMPLES[name] | others)).page == page


@pytest.mark.parametrize(
    "html",
    [b"<div>" * 20_000, b'<a "' * 50_000, b"<!--" * 50_000, b"<" * 200_000, b"<script>" * 20_000,
     b"</" * 50_000, b"<b a='" * 50_000, b"<style><!--" * 20_000, b"<!" * 50_000,
     b"<img srcset='" + b"a," * 50_000 + b"'>", b"<x" + b" a" * 100_000 + b">",
     b"<img sizes='" + b"(" * 5000 + b"' srcset='a 1w'>", b"\xff\xfe<\0i\0m\0g\0>\0"],
    ids=lambda html: repr(html[:8]),
)  # fmt: skip
def test_no_document_is_too_strange(tmp_path: Path, html: bytes) -> None:
    path = tmp_path / "index.html"
    path.write_bytes(html + b"<img src=a.png>")
    assert import_page(path).page.resources[0].id == "index.html"


@pytest.mark.parametrize(
    "css",
    ["{" * 20_000, "a{" * 20_000, "a:is(" * 20_000, '@import "' * 5000, "@media (" * 5000,
     "a{background:" + "url(" * 5000, "@font-face{src:" + "," * 20_000, "\0\ufffe", "a{b:c" * 5000,
     "@media all{" * 2000 + "a{background:url(x)}",
     "@font-face{font-family:A;src:url(a)}" * 5000 + "*{font:1px A;font-weight:100}" * 500],
    ids=lambda css: repr(css[:8]),
)  # fmt: skip
def test_no_stylesheet_is_too_strange(tmp_path: Path, css: str) -> None:
    (tmp_path / "index.html").write_text("<link rel=stylesheet href=a.css>")
    (tmp_path / "a.css").write_text(css, encoding="utf-8")
    ids = [each.id for each in import_page(tmp_path / "index.html").page.resources]
    assert ids == ["index.html", "a.css"]


def test_a_document_of_50_megabytes_takes_no_more_than_some_times_its_size() -> None:
    # Few tags, long texts: a test that also had millions of tags would take a minute.
    data = (b"<p>" + b"text " * 10_000 + b"<img src=a.png>") * 1000
    before_kb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert len(scan(data).tags) == 1000
    assert len(data) > 50_000_000
    grown_kb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before_kb
    assert grown_kb < 100_000


def test_bodies_do_not_stay_in_memory() -> None:
    """A cursor over a long list holds some entries, not the list."""
    text = json.dumps({"text": "x" * 100_000})
    pieces = iter(["[", *(f"{text}," for _ in range(2000)), f"{text}]"])
    before_kb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    cursor = JsonCursor(lambda _: next(pieces, ""))
    assert sum(len(cursor.value()["text"]) for _ in cursor.items()) == 2001 * 100_000
    grown_kb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before_kb
    assert grown_kb < 60_000


def test_one_value_without_end_is_refused() -> None:
    cursor = JsonCursor(lambda n_bytes: '"' if n_bytes < 0 else "x" * n_bytes)
    cursor._text = '"'
    with pytest.raises(BrokenJsonError, match="more than 64 million characters"):
        cursor.value()


def test_pages_of_hostile_recordings_load(tmp_path: Path) -> None:
    entries = [PAGE, entry("/a.css", 90, 60, mime="text/css"), IMAGE, IMAGE,
               entry("/b.js", 5, 1, mime="text/javascript", response_bodySize=-9)]  # fmt: skip
    page = import_page(write_recording(tmp_path, har(*entries))).page
    assert len(h3sim.simulate(page, scheme="fifo", network="cable").timings) == 5
