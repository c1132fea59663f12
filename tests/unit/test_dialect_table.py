"""A dialect of recordings is a reader and a row."""

from __future__ import annotations

import ast
import io
import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from h3sim.importers import RecordingError, detect, import_page
from h3sim.importers.detect import FAMILIES, Family
from h3sim.importers.recorded_request import RecordedRequest, Recording, SizeSource
from h3sim.importers.source import Fields, JsonCursor, parts
from tests.recordings import SAMPLES, write_recording

if TYPE_CHECKING:
    from h3sim.importers.source import JsonPart


CAPTURE = Path(detect.__file__).parent


class VisitReader:
    """The reader that docs/importing.md points to."""

    def __init__(self, recording: Recording) -> None:
        self._recording = recording

    def add(self, part: JsonPart) -> None:
        is_visit = part.path == ("visits",) and isinstance(part.value, dict)
        if is_visit and self._recording.has_room():
            entry = Fields(part.value, part.key, self._recording.note)
            request = RecordedRequest(
                key=entry.key, url=entry.text("url"), start_ms=entry.duration("ms")
            )
            request.body_bytes, request.body_from = entry.size("bytes"), SizeSource.RECORDED
            self._recording.requests.append(request)

    def finish(self) -> None:
        self._recording.dialect = "visits"


VISITS = {
    "by": "us",
    "visits": [
        {"url": "https://shop.example/", "ms": 0, "bytes": 900},
        {"url": "https://cdn.example/a.png?id=7", "ms": 80, "bytes": 40},
    ],
}


def test_one_reader_and_one_row_make_a_dialect(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write_recording(tmp_path, VISITS)
    with pytest.raises(RecordingError, match=r"its keys are 'by', 'visits'$"):
        import_page(path)
    row = Family("visits", ("visits",), lambda part: part.path == ("visits",), VisitReader)
    monkeypatch.setattr(detect, "FAMILIES", (*FAMILIES, row))
    imported = import_page(path)
    assert imported.dialect == "visits"
    assert [(each.id, each.size_bytes) for each in imported.page.resources] == [
        ("/", 900),
        ("cdn.example/a.png", 40),
    ]
    last = imported.page.resources[1].discovered
    assert last is not None
    assert (last.by, last.delay_ns) == ("/", 80_000_000)


def test_only_the_assembly_makes_pages_of_recordings() -> None:
    makers = {
        path.relative_to(CAPTURE).as_posix()
        for path in CAPTURE.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id in ("Page", "Resource", "Discovery")
    }
    # Of recorded priorities each has a trigger of its own.
    assert makers == {"page_assembly.py", "recorded_request.py"}


def test_no_file_is_of_two_dialects() -> None:
    """Each sample has a sign of its own family and of no other."""
    names = {name: family.title for family in FAMILIES for name in family.names}
    for name, document in SAMPLES.items():
        found = {
            family.title
            for family in FAMILIES
            for part in parts(JsonCursor(io.StringIO(json.dumps(document)).read), lambda *_: None)
            if family.is_sign(part)
        }
        assert found == {names[name]}
