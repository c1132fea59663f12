"""Files that are no page files: those that `h3sim import` may read are said to be such."""

from __future__ import annotations

import gzip
import json
from typing import TYPE_CHECKING, Any

import pytest

from h3sim import load_page
from h3sim.advice.recommendation import read_subject
from h3sim.schema import write_atomically
from h3sim.values.errors import PageError
from tests.recordings import SAMPLES, write_recording

if TYPE_CHECKING:
    from pathlib import Path

LINES = "".join(f"{json.dumps(event)}\n" for event in SAMPLES["devtools-log"])
PAGE = {"format": "h3sim-page/1", "name": "x", "resources": []}


@pytest.mark.parametrize(
    "document",
    [
        *(pytest.param(sample, id=name) for name, sample in SAMPLES.items() if name != "facts"),
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
        (SAMPLES["facts"], "format"),
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


def test_a_page_file_may_be_compressed_with_gzip(tmp_path: Path) -> None:
    page = load_page("creative")
    packed = gzip.compress(page.to_json().encode())
    path = tmp_path / "page.json.gz"
    path.write_bytes(packed)
    assert load_page(path) == page
    assert read_subject(path) == (page, None)
    path.write_bytes(packed[: len(packed) // 2])
    with pytest.raises(PageError, match="is damaged or cut off"):
        load_page(path)


def test_what_a_compressed_page_file_contains_is_limited_once_unpacked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("h3sim.schema.files._MAX_FILE_BYTES", 2**20)
    path = tmp_path / "page.json.gz"
    path.write_bytes(gzip.compress(b" " * 2**21))
    with pytest.raises(PageError, match="is larger than 1 MiB"):
        load_page(path)


def test_a_page_file_whose_name_says_so_is_written_compressed(tmp_path: Path) -> None:
    path = tmp_path / "page.json.gz"
    write_atomically(path, load_page("davies-meenan").to_json())
    assert json.loads(gzip.decompress(path.read_bytes()))["name"] == "davies-meenan"
    assert load_page(path).digest == load_page("davies-meenan").digest
