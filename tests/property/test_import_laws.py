"""Laws of reading recordings, on some broken ones; `make fuzz` looks at more of them."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

import pytest
from hypothesis import given, settings

from h3sim import importers
from tests.fuzz import broken, laws
from tests.recordings import SAMPLES

SAMPLE = json.dumps(SAMPLES["har-devtools"]).encode()
few = settings(max_examples=60)


@few
@given(broken.broken_recordings())
def test_a_broken_recording_is_a_page_or_a_line_and_keeps_no_secret(text: str) -> None:
    laws.check_a_page_or_a_line_comes(text.encode(), "recording.har")
    laws.check_no_secret_is_kept(text.encode(), "recording.har")


@few
@given(broken.broken_bytes())
def test_broken_bytes_are_a_page_or_a_line(data: bytes) -> None:
    laws.check_a_page_or_a_line_comes(data, "recording.har")


@few
@given(broken.markup(), broken.sheets())
def test_any_markup_is_a_page(html: str, css: str) -> None:
    laws.check_a_page_or_a_line_comes(f"{html}<style>{css}</style>".encode(), "index.html")


@few
@given(broken.markup())
def test_the_tags_that_are_found_are_those_of_a_parser(html: str) -> None:
    laws.check_tags_are_found(html)


@pytest.mark.parametrize("name", SAMPLES)
def test_no_sample_leaves_a_secret_in_its_page(name: str) -> None:
    assert b"SECRET" in json.dumps(SAMPLES[name]).encode()
    laws.check_no_secret_is_kept(json.dumps(SAMPLES[name]).encode(), "recording.har")


def leaky(path: Any) -> Any:
    """Keep a query string in an id, as a careless reader would."""
    imported = importers.import_page(path)
    first = dataclasses.replace(imported.page.resources[0], id="/?q=SECRET")
    page = dataclasses.replace(imported.page, resources=(first,))
    return dataclasses.replace(imported, page=page)


def unwritable(path: Any) -> Any:
    """Count what JSON cannot hold, as a careless reader would."""
    return dataclasses.replace(leaky(path), found={"requests": float("nan")})


def test_the_laws_fail_where_they_are_broken() -> None:
    with pytest.raises(AssertionError):
        laws.check_no_secret_is_kept(SAMPLE, "recording.har", leaky)
    with pytest.raises(ValueError, match="not JSON compliant"):
        laws.check_a_page_or_a_line_comes(SAMPLE, "recording.har", unwritable)
    with pytest.raises(AssertionError):
        laws.check_tags_are_found("<!-- <img src=a> -->", lambda _: [("img", "a")])
