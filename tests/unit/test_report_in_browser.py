"""Reports in a real Chromium: nothing fetched, nothing wrong, and markup in names is text.

axe-core looks as well where $AXE_CORE names its file; `make check-report` brings it.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tools.check_report import mistakes_in, subjects
from tools.open_page import browser

pytestmark = pytest.mark.chromium


def axe() -> str | None:
    path = os.environ.get("AXE_CORE")
    return None if path is None else Path(path).read_text("utf-8")


def test_reports_and_animations_have_no_mistake_in_a_browser(tmp_path: Path) -> None:
    with browser() as open_page:
        found = {
            path.name: list(mistakes_in(open_page(path), axe())) for path in subjects(tmp_path)
        }
    assert len(found) == 7
    assert found == {name: [] for name in found}


def test_mistakes_are_found_where_there_are_some(tmp_path: Path) -> None:
    path = tmp_path / "bad.html"
    path.write_text(
        "<!DOCTYPE html><title>bad</title><style>.wide { overflow-x: auto; width: 9rem }</style>"
        "<img src='https://example.org/a.png' onerror=\"document.title = 'taken'\">"
        f"<div class=wide>{'x' * 400}</div><script>unheard.of()</script>"
    )
    with browser() as open_page:
        found = "\n".join(mistakes_in(open_page(path), axe()))
    assert "unheard is not defined" in found
    assert "asks for https://example.org/a.png" in found
    assert "a name was taken for markup" in found
    assert "something cannot be reached by keyboard" in found
    assert axe() is None or "axe: image-alt" in found
