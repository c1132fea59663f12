"""Files that are no page files: those that `h3sim import` may read are said to be such."""

from __future__ import annotations

import gzip
import json
from typing import TYPE_CHECKING, Any

import pytest

from h3sim import load_page
from h3sim.values.errors import PageError
from tests.recordings import SAMPLES, write_recording

if TYPE_CHECKING:
    from pathlib import Path

LINES = "".join(f"{json.dumps(event)}\n" for event in SAMPLES["devtools-log"])
PAGE = {"format": "h3sim-page/1", "name": "x", "resources": []}


@pytest.mark.parametrize(
    "document",
    [
        *(pytest.param(sample, id=name) for name, sample in SAMPLES.items()),
        pytest.param({"lhr": SAMPLES["lighthouse"]}, id="wrapped"),
        pytest.param(LINES, id="lines"),
        pytest.param(LINES[:-70], id="cut off"),
        pytest.param(json.dumps(SAMPLES["net-log"])[:-200], id="cut off, one value"),
        pytest.param(gzip.compress(LINES.encode()), id="packed"),
        pytest.param("\ufeff" + json.dumps(SAMPLES["webpagetest"]), id="byte order mark"),
    ],
)
def test_a_recording_is_said_to_need_an_import(tmp_path: Path, document: Any) -> None:
    path = write_recording(tmp_path, document, "recording.json")
    with pytest.raises(PageError, match=r"`h3sim import .*recording\.json -o page\.json`"):
        load_page(path)


@pytest.mark.parametrize(
    ("document", "what"),
    [
        (PAGE, "resources"),
        ({"nam": "x", "resources": [{}]}, "nam: unknown key"),
        ({**PAGE, "format": "h3sim-results/2"}, "format"),
        (json.dumps(PAGE)[:-1], "is not JSON"),
        ("", "is not JSON"),
        ({}, "name"),
    ],
)
def test_a_page_file_with_errors_has_its_errors_listed(
    tmp_path: Path, document: Any, what: str
) -> None:
    path = write_recording(tmp_path, document, "page.json")
    with pytest.raises(PageError, match=what) as caught:
        load_page(path)
    assert "h3sim import" not in str(caught.value)
