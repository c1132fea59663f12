"""Tables of real page loads: they import and load."""

from __future__ import annotations

from typing import Any

import h3sim
from validation.data import PAGES
from validation.fact_table import facts_from_dict
from validation.pages import facts_of, load_under


def test_counts_bytes_and_parents_of_real_pages_survive() -> None:
    for path in PAGES:
        recorded, imported = facts_of(path)
        assert imported == recorded, path.name


def test_real_pages_load_each_under_one_scheme() -> None:
    """`make validate-pages` loads all under all."""
    schemes = h3sim.list_schemes()
    for number, path in enumerate(PAGES[::4]):
        recorded, _ = facts_of(path)
        expected = (len(recorded), sum(n_bytes for _, n_bytes, _ in recorded))
        assert load_under(path, schemes[number % len(schemes)].name) == expected, path.name


def test_think_times_and_shared_connections_come_from_sent_times_and_connections() -> None:
    known = {"body_bytes": 5000, "protocol": "h2", "connection": "c0"}
    first = {"id": "r0", "parent": None, "type": "html", "host": "a", "start_ms": 0, "sent_ms": 0}
    second = {"id": "r1", "parent": "r0", "type": "js", "host": "b", "start_ms": 90, "sent_ms": 90}
    rows: list[dict[str, Any]] = [
        {**known, **first, "connect_ms": 20, "first_byte_ms": 25, "end_ms": 80},
        {**known, **second, "first_byte_ms": 150, "end_ms": 160},
    ]
    page = facts_from_dict({"name": "two", "resources": rows}).page
    assert [resource.server_ns for resource in page.resources] == [5_000_000, 40_000_000]
    assert len({host.server for host in page.hosts}) == 1
