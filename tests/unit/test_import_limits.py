"""Small files that would fill the memory, and what a file holds beside what is read."""

from __future__ import annotations

import gzip
import json
from typing import TYPE_CHECKING, Any

import pytest

from h3sim.importers import RecordingError, detect, import_page, recorded_request, source
from h3sim.importers.css import read_declarations, read_sheet
from h3sim.importers.source import BrokenJsonError, JsonCursor
from tests.recordings import SAMPLES, entry, har, write_recording

if TYPE_CHECKING:
    from pathlib import Path

PAGE = entry("/", 0, 100, mime="text/html")
IMAGE = entry("/a.png", 120, 60, mime="image/png")


def skipped_of(folder: Path, document: Any) -> list[str]:
    result = import_page(write_recording(folder, document))
    return [str(problem) for problem in result.skipped]


def test_what_unpacks_to_more_than_any_recording_is_read_up_to_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(source, "_MAX_UNPACKED_BYTES", 3 << 20)
    many = har(PAGE, *({**IMAGE, "x": " " * 100_000} for _ in range(50)))
    path = write_recording(tmp_path, gzip.compress(json.dumps(many).encode()))
    assert path.stat().st_size < 100_000
    result = import_page(path)
    assert 20 < len(result.page.resources) < 40
    reported = [str(problem) for problem in result.skipped]
    assert "is longer than 3 MiB: reading stopped there" in reported
    with pytest.raises(RecordingError, match="is longer than 3 MiB"):
        import_page(path, strict=True)


def test_requests_without_end_are_read_up_to_a_number(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recorded_request, "_MAX_REQUESTS", 5)
    result = import_page(write_recording(tmp_path, har(PAGE, *[IMAGE] * 10)))
    assert len(result.page.resources) == 5
    assert [str(problem) for problem in result.skipped] == [
        "has more than 5 requests: the rest is not read"
    ]


def test_entries_without_end_are_read_up_to_a_number(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(detect, "_MAX_FILE_PARTS", 6)
    reported = skipped_of(tmp_path, har(PAGE, *[7] * 10))
    assert reported[-1] == "has more than 6 parts: the rest is not read"
    assert len(reported) < 6


@pytest.mark.parametrize(
    "dialect",
    [
        *("devtools-log", "chrome-trace", "lighthouse", "webpagetest", "net-log"),
    ],
)
def test_no_dialect_takes_up_more_than_that(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, dialect: str
) -> None:
    monkeypatch.setattr(recorded_request, "_MAX_REQUESTS", 1)
    result = import_page(write_recording(tmp_path, SAMPLES[dialect]))
    assert len(result.page.resources) == 1
    assert any("more than 1 requests" in str(problem) for problem in result.skipped)


def _cursor(text: str) -> JsonCursor:
    pieces = iter([text[at : at + 1000] for at in range(0, len(text), 1000)])
    return JsonCursor(lambda _: next(pieces, ""))


@pytest.mark.parametrize("value", ["[" + "1," * 400 + "1]", '{"a":' * 400 + "1" + "}" * 400])
def test_a_value_of_too_many_parts_is_refused_before_it_is_made(
    value: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert _cursor(value).value()
    monkeypatch.setattr(source, "_MAX_VALUE_PARTS", 300)
    with pytest.raises(BrokenJsonError, match="one value has more than 300 parts"):
        _cursor(value).value()


def test_commas_in_a_text_and_parts_of_other_values_do_not_count(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(source, "_MAX_VALUE_PARTS", 300)
    texts = json.dumps(["," * 5000, '"[{' * 500])
    assert _cursor(texts).value() == json.loads(texts)
    cursor = _cursor("[" + "[1, 2, 3]," * 1000 + "4]")
    assert [cursor.value() for _ in cursor.items()] == [*[[1, 2, 3]] * 1000, 4]


DEEP = 3000


@pytest.mark.parametrize(
    "css",
    [
        "a" + ":is(" * DEEP + "b" + ")" * DEEP + "{background:url(x)}",
        "@media " + "(" * DEEP + ")" * DEEP + "{a{background:url(x)}}",
        "@import url(x) " + "(" * DEEP + ")" * DEEP + ";",
        "@font-face{font-family:A;src:url(a);unicode-range:" + "[" * DEEP + "]" * DEEP + "}",
        "a{background:" + "image-set(" * DEEP + "url(x)" + ")" * DEEP + "}",
    ],
    ids=lambda css: repr(css[:8]),
)
def test_a_stylesheet_that_nests_too_deeply_is_not_looked_into(tmp_path: Path, css: str) -> None:
    sheet = read_sheet(css.encode())
    assert (sheet.is_read, sheet.imports, sheet.rules, sheet.faces) == (False, [], [], [])
    assert read_declarations(css).urls == ()
    (tmp_path / "index.html").write_text(f"<style>{css}</style>", encoding="utf-8")
    counts = import_page(tmp_path / "index.html").inferred
    assert counts["stylesheets nested too deeply, not looked into"] == 1


@pytest.mark.parametrize(
    "css",
    [
        "/* " + "(" * 500 + " */ a{background:url(x)}",
        "a::before{content:'" + "([{" * 500 + "';background:url(x)}",
        'a{quotes:"\\"' + "(" * 500 + '";background:url(x)}',
        "a" + "\\(" * 500 + "{background:url(x)}",
        ")" * 500 + "a{background:url(x)}",
    ],
    ids=lambda css: repr(css[:8]),
)
def test_brackets_in_comments_texts_and_escapes_do_not_nest(css: str) -> None:
    sheet = read_sheet(css.encode())
    assert sheet.is_read
    assert [rule.urls for rule in sheet.rules] == [("x",)]


def test_what_stands_beside_and_behind_the_log_of_a_har_is_told(tmp_path: Path) -> None:
    text = json.dumps(har(PAGE, IMAGE))
    second = text[:-1] + ', "log": ' + json.dumps(har(IMAGE)["log"]) + "}"
    assert skipped_of(tmp_path, second) == ["log: stands twice: only the first is read"]
    others = text[:-1] + ', "extra": {"a": 1}}'
    assert skipped_of(tmp_path, others) == ["extra: is not read: a HAR is its log"]
    behind = text + text
    assert skipped_of(tmp_path, behind) == ["data after the recording is ignored"]
    broken = text[:-1] + ', "log": tru'
    assert "the data before is used" in skipped_of(tmp_path, broken)[-1]
    for document in (second, others, behind, broken):
        with pytest.raises(RecordingError):
            import_page(write_recording(tmp_path, document), strict=True)


def test_what_stands_behind_any_recording_is_told(tmp_path: Path) -> None:
    text = json.dumps(SAMPLES["lighthouse"])
    assert skipped_of(tmp_path, text + " {}") == ["data after the recording is ignored"]


def test_a_byte_order_mark_is_passed_over_in_every_dialect(tmp_path: Path) -> None:
    for document in SAMPLES.values():
        text = "\ufeff" + json.dumps(document)
        assert import_page(write_recording(tmp_path, text)).skipped == ()


def test_mistakes_without_end_are_read_up_to_a_number(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(detect, "_MAX_FILE_PROBLEMS", 6)
    reported = skipped_of(tmp_path, har(PAGE, *[{}] * 100))
    assert reported[-1] == "has 6 mistakes or more: the rest is not read"
    assert len(reported) == 7
