"""The field sections of pages, held against those that the recorder took from Chromium."""

from __future__ import annotations

from typing import Any

import pytest

import h3sim
from h3sim.catalog.resources import root
from h3sim.headers import field_bytes
from h3sim.headers.synthetic_headers import request_section, response_section
from h3sim.importers.header_lists import read_exchanges
from tests.helpers import page_of

RECORDED = ("creative", "gentelella-index", "material-dashboard", "sneat-cards", "tabler-gallery")
LOADS_OWN = {b"date", b"etag"}
"""What is another in each load."""


def recorded(name: str, kind: Any) -> Any:
    path = root("corpora") / "headers" / f"{name}.{kind}.qif"
    return read_exchanges(str(path), interval_ns=0)


@pytest.mark.parametrize("name", RECORDED)
def test_requests_are_those_that_chromium_made(name: str) -> None:
    page = h3sim.load_page(name)
    made = [request_section(page, resource) for resource in page.resources]
    assert sorted(made) == sorted(entry.request for entry in recorded(name, "req"))


@pytest.mark.parametrize("name", RECORDED)
def test_responses_are_those_that_the_server_of_the_recorder_gave(name: str) -> None:
    page = h3sim.load_page(name)
    made = [response_section(resource) for resource in page.resources]
    given = [entry.response for entry in recorded(name, "resp")]

    def steady(sections: Any) -> list[Any]:
        return sorted(tuple(f for f in section if f[0] not in LOADS_OWN) for section in sections)

    assert steady(made) == steady(given)
    assert sorted(map(field_bytes, made)) == sorted(map(field_bytes, given))


def test_a_page_that_has_little_data_has_sections_too() -> None:
    page = page_of(
        {"id": "/", "kind": "document", "bytes": 10},
        {"id": "\u00e9.js", "kind": "fetch", "bytes": 0, "discovered": {"at": "time"}},
    )
    fields = dict(request_section(page, page.resources[1]))
    assert fields[b":path"] == "/\u00e9.js".encode()
    assert fields[b"referer"] == b"https://h3sim.example/"
    assert dict(response_section(page.resources[1]))[b"content-type"] == b"application/json"
