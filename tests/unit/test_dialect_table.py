"""A dialect of recordings is a reader and a row."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from h3sim.capture import RecordingError, import_page, importer
from h3sim.capture.dialects.table import FAMILIES, Family
from h3sim.capture.inference.observed import Observed, Recording, Size
from h3sim.capture.source.fields import Fields
from tests.recordings import SAMPLES, write_recording

if TYPE_CHECKING:
    from pathlib import Path


class VisitReader:
    """The reader of docs/architecture.md."""

    def __init__(self, recording: Recording) -> None:
        self._recording = recording

    def add(self, key: str, value: Any) -> None:
        if key.startswith("visits[") and isinstance(value, dict) and self._recording.has_room():
            entry = Fields(value, key, self._recording.note)
            request = Observed(key=key, url=entry.text("url"), start_ms=entry.duration("ms"))
            request.body_bytes, request.body_from = entry.size("bytes"), Size.RECORDED
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
    row = Family("visits", ("visits",), lambda key, _: key == "visits", VisitReader)
    monkeypatch.setattr(importer, "FAMILIES", (*FAMILIES, row))
    imported = import_page(path)
    assert imported.dialect == "visits"
    assert [(each.id, each.size_bytes) for each in imported.page.resources] == [
        ("/", 900),
        ("cdn.example/a.png", 40),
    ]
    last = imported.page.resources[1].discovered
    assert last is not None
    assert (last.by, last.delay_ns) == ("/", 80_000_000)


def test_no_file_is_of_two_dialects() -> None:
    """Each sample has a sign of its own family and of no other."""
    names = {name: family.title for family in FAMILIES for name in family.names}
    for name, document in SAMPLES.items():
        found = {
            family.title
            for family in FAMILIES
            for key, value in _first_parts(document)
            if family.is_sign(key, value)
        }
        assert found == {names[name]}


def _first_parts(document: Any) -> list[tuple[str, Any]]:
    if isinstance(document, list):
        return [(f"[{index}]", value) for index, value in enumerate(document)][:1]
    return list(document.items())
