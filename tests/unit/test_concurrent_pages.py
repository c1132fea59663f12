"""Two pages over one connection, worked out by hand."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

import h3sim
from h3sim.cli import main
from h3sim.page import Page, merge_pages
from h3sim.values.errors import InputError
from h3sim.values.units import ms
from tests.helpers import page_document

if TYPE_CHECKING:
    from pathlib import Path

ROOT = {"id": "/", "kind": "document", "bytes": 14_000}
"""Ten packets of a constant rate: 100 ms."""
LATE = {"discovered": {"by": "/", "at": "complete"}}
ONE = Page.from_dict(
    page_document(ROOT, {"id": "a", "kind": "image", "bytes": 1400, **LATE}, name="one")
)
BEACON = {"id": "x", "kind": "other", "bytes": 0, "discovered": {"at": "time", "delay_ms": 30}}
TWO = Page.from_dict(page_document(ROOT, BEACON, name="two"))


def requested(page: Page, **options: Any) -> dict[str, float]:
    return {row.id: row.requested_ms for row in h3sim.simulate(page, **options).timings}


def test_the_other_page_is_requested_later_with_all_that_it_brings() -> None:
    both = merge_pages(ONE, TWO, after_ms=50)
    # The clock of the other starts with its own root.
    assert requested(both, scheme="fifo") == {"/": 0, "two:/": 50, "two:x": 80, "a": 100}
    assert both.provenance["beside"] == "two after 50 ms"
    assert both.name.startswith("one~")


def test_a_page_can_be_merged_with_itself_any_number_of_times() -> None:
    thrice = merge_pages(merge_pages(ONE, ONE), ONE, name="thrice")
    ids = [resource.id for resource in thrice.resources]
    assert ids == ["/", "a", "one:/", "one:a", "one (2):/", "one (2):a"]
    assert thrice.name == "thrice"
    assert len(h3sim.simulate(thrice).roots) == 3


def test_a_tab_in_the_background_waits_for_the_one_in_front() -> None:
    plain = TWO.without("x", name="two")
    loads = {
        opened: h3sim.simulate(merge_pages(ONE, plain, opened=opened), scheme="firefox-eps")
        for opened in ("beside", "background", "front")
    }
    ended = {
        opened: {row.id: row.requested_ms + row.finished_ms for row in load.roots}
        for opened, load in loads.items()
    }
    # Documents share the link, two of 100 ms; then the image takes ten.
    assert ended["beside"] == {"/": 210, "two:/": 200}
    assert ended["background"] == {"/": 110, "two:/": 210}
    # What goes to the background as it asks says so with its requests.
    assert ended["front"] == {"/": 210, "two:/": 100}


def test_a_page_that_goes_to_the_background_reprioritizes_its_open_streams() -> None:
    load = h3sim.simulate(merge_pages(ONE, TWO, after_ms=50, opened="front"), scheme="firefox-eps")
    message = [
        (reported.at_ns, reported.element_id, reported.signal.urgency)
        for reported in load.trace.signals
    ]
    assert message[:3] == [(0, 0, 0), (ms(50), 0, 6), (ms(50), 4, 0)]


def test_hosts_of_both_are_known_and_the_first_description_counts() -> None:
    shared = {"certificate": "c", "server": "192.0.2.1"}

    def from_hosts(name: str, rtt_ms: int, *hosts: str) -> Page:
        document = page_document({**ROOT, "host": "www"}, name=name)
        image = {"kind": "image", "bytes": 10, **LATE}
        document["resources"] += [{"id": host, "host": host, **image} for host in hosts]
        document["resources"].append({"id": "own", **image})
        return Page.from_dict(
            {**document, "hosts": {host: {**shared, "rtt_ms": rtt_ms} for host in ("www", *hosts)}}
        )

    both = merge_pages(from_hosts("one", 20, "img"), from_hosts("two", 24, "img", "font"))
    assert [(host.name, host.rtt_ns) for host in both.hosts] == [
        ("www", ms(20)),
        ("img", ms(20)),
        ("font", ms(20)),
    ]
    assert both.resources[both.index["two:own"]].host == "www"
    load = h3sim.simulate(both, connections="per-host", network="fibre")
    assert [connection.hosts for connection in load.connections] == [("www", "img", "font")]


def test_the_network_of_the_first_recording_is_kept_and_not_its_times() -> None:
    recorded = {"rtt_ms": 20, "rate_mbps": 5, "finished_ms": 700}
    page = Page.from_dict({**ONE.to_dict(), "recorded_load": recorded})
    kept = merge_pages(page, TWO).to_dict()["recorded_load"]
    assert kept == {"rtt_ms": 20, "rate_mbps": 5}
    assert merge_pages(TWO, page).recorded_load is None


@pytest.mark.parametrize(
    "wrong", [{"after_ms": -1}, {"after_ms": "soon"}, {"opened": "behind"}, {"other": "page"}]
)
def test_what_makes_no_sense_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(InputError, match=next(iter(wrong))):
        merge_pages(**{"page": ONE, "other": TWO, **wrong})


class TestTheCommand:
    def written(self, tmp_path: Path, *options: str) -> Page:
        for page in (ONE, TWO):
            (tmp_path / f"{page.name}.json").write_text(page.to_json(), encoding="utf-8")
        target = tmp_path / "both.json"
        assert main(["transform", str(tmp_path / "one.json"), *options, "-o", str(target)]) == 0
        return Page.from_file(target)

    @pytest.mark.parametrize(
        ("how", "expected"),
        [
            ("", {}),
            ("@500", {"after_ms": 500}),
            ("@2.5,background", {"after_ms": 2.5, "opened": "background"}),
            ("@0,front", {"opened": "front"}),
        ],
    )
    def test_it_writes_what_the_function_returns(
        self, tmp_path: Path, how: str, expected: dict[str, Any]
    ) -> None:
        written = self.written(tmp_path, "--with-page", f"{tmp_path / 'two.json'}{how}")
        assert written == merge_pages(ONE, TWO, **expected)

    @pytest.mark.parametrize("how", ["@soon", "@5,behind", "@"])
    def test_an_error_is_reported(
        self, tmp_path: Path, how: str, capsys: pytest.CaptureFixture[str]
    ) -> None:
        target = tmp_path / "both.json"
        assert (
            main(["transform", "http2rulez", "--with-page", f"http2rulez{how}", "-o", str(target)])
            == 2
        )
        assert "--with-page: must be PAGE@MS" in capsys.readouterr().err
        assert not target.exists()
