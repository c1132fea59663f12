"""PRIORITY frames of a recording: read, kept through edits, and played as they were, by hand."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

import h3sim
from h3sim.page import page_from_dict
from h3sim.schedulers import TreeScheduler
from h3sim.signals import H2Priority
from h3sim.values.errors import PageError
from tests.helpers import page_document

if TYPE_CHECKING:
    from pathlib import Path

FIREFOX = {"browser": "firefox"}
CHROME = {"browser": "chrome"}
ROOT = {"id": "/", "kind": "document", "bytes": 1400}
# As Firefox declares them on idle streams 3 to 11, with shares of this recording.
GROUPS = [
    {"name": "leaders", "weight": 200},
    {"name": "unblocked", "weight": 100},
    {"name": "background", "weight": 1},
    {"name": "speculative", "depends_on": "background", "weight": 1},
    {"name": "followers", "depends_on": "leaders", "weight": 5},
]


def child(id_: str, kind: str, *recorded: dict[str, Any], n_bytes: int = 1400) -> dict[str, Any]:
    found = {"by": "/", "at": "request"}
    return {"id": id_, "kind": kind, "bytes": n_bytes, "discovered": found, "recorded": [*recorded]}


def page(*children: Any, groups: Any = ()) -> Any:
    document = page_document(ROOT, *children)
    return page_from_dict({**document, "recorded_groups": [*groups]} if groups else document)


def below(parent: str, weight: int, **more: Any) -> dict[str, Any]:
    return {"depends_on": parent, "weight": weight, **more}


def reported(load: Any) -> list[Any]:
    return [(message.element_id, message.signal) for message in load.trace.signals]


class TestTheTreeOfFirefox:
    """Five groups, a leader, two followers of which one is below the other, and one at the root."""

    PAGE = page(
        child("a.css", "stylesheet", FIREFOX | below("leaders", 32), n_bytes=4200),
        child("b.png", "image", FIREFOX | below("followers", 22), n_bytes=4200),
        child("c.png", "image", FIREFOX | below("b.png", 12), n_bytes=1400),
        child("d.js", "script", FIREFOX | below("", 64), n_bytes=1400),
        groups=GROUPS,
    )

    def test_groups_and_places_are_reported_as_they_were_recorded(self) -> None:
        load = h3sim.simulate(self.PAGE, scheme="recorded-firefox")
        assert reported(load)[:5] == [
            (-1, H2Priority(weight=200)),
            (-2, H2Priority(weight=100)),
            (-3, H2Priority(weight=1)),
            (-4, H2Priority(weight=1, depends_on=-3)),
            (-5, H2Priority(weight=5, depends_on=-1)),
        ]
        # The scheme's urgent-start was not recorded; the document goes there by its rules.
        assert reported(load)[5:7] == [
            (-6, H2Priority(weight=241)),
            (0, H2Priority(weight=42, depends_on=-6)),
        ]
        assert reported(load)[7:] == [
            (4, H2Priority(weight=32, depends_on=-1)),
            (8, H2Priority(weight=22, depends_on=-5)),
            (12, H2Priority(weight=12, depends_on=8)),
            (16, H2Priority(weight=64)),
        ]

    def test_the_server_has_the_tree_of_the_recording(self) -> None:
        tree = TreeScheduler()
        for element_id, signal in reported(h3sim.simulate(self.PAGE, scheme="recorded-firefox")):
            tree.open(element_id, signal)
        assert str(tree).splitlines() == [
            "root",
            "├─ placeholder -1, weight 200",
            "│  ├─ placeholder -5, weight 5",
            "│  │  └─ stream 8, weight 22",
            "│  │     └─ stream 12, weight 12",
            "│  └─ stream 4, weight 32",
            "├─ placeholder -2, weight 100",
            "├─ placeholder -3, weight 1",
            "│  └─ placeholder -4, weight 1",
            "├─ placeholder -6, weight 241",
            "│  └─ stream 0, weight 42",
            "└─ stream 16, weight 64",
        ]

    def test_packets_leave_by_it(self) -> None:
        order = h3sim.simulate(self.PAGE, scheme="recorded-firefox").trace.order
        # The document is alone. Of leaders and the root's own stream, 200 to 64, three packets are
        # the leaders'; of these and their followers, 32 to 5, all three are those of a.css. Then
        # only the followers are left, and of them c.png waits for all of b.png.
        assert order == [0, 4, 4, 4, 16, 8, 8, 8, 12]

    def test_a_scheme_that_plays_nothing_recorded_takes_no_notice(self) -> None:
        bare = page(
            *(child(r.id, r.kind.value, n_bytes=r.size_bytes) for r in self.PAGE.resources[1:])
        )
        both = [h3sim.simulate(each, scheme="firefox-h2").trace for each in (self.PAGE, bare)]
        assert both[0] == both[1]


class TestChrome:
    def test_exclusive_frames_go_as_they_were(self) -> None:
        frames = page(
            child("a.png", "image", CHROME | below("/", 147, exclusive=True)),
            child("b.js", "script", CHROME | below("/", 220, exclusive=True)),
        )
        load = h3sim.simulate(frames, scheme="recorded-chrome-h2")
        assert reported(load)[1:] == [
            (4, H2Priority(weight=147, depends_on=0, exclusive=True)),
            (8, H2Priority(weight=220, depends_on=0, exclusive=True)),
        ]
        assert load.trace.order == [0, 8, 4]

    def test_a_later_frame_moves_the_stream(self) -> None:
        when = {"by": "b.png", "at": "request", "delay_ms": 25}
        later = CHROME | below("/", 220, exclusive=True, when=when)
        frames = page(
            child("a.png", "image", CHROME | below("/", 147), n_bytes=14_000),
            child("b.png", "image", CHROME | below("a.png", 147), later),
        )
        load = h3sim.simulate(frames, scheme="recorded-chrome-h2")
        assert load.trace.signals[-1] == (
            25_000_000,
            8,
            H2Priority(weight=220, depends_on=0, exclusive=True),
        )
        assert load.trace.order[:4] == [0, 4, 8, 4]

    def test_a_parent_that_was_not_requested_yet_is_the_root(self) -> None:
        frames = page(
            child("a.png", "image", CHROME | below("z.png", 9)),
            child("z.png", "image", CHROME | below("a.png", 7)),
        )
        load = h3sim.simulate(frames, scheme="recorded-chrome-h2")
        assert reported(load)[1:] == [
            (4, H2Priority(weight=9)),
            (8, H2Priority(weight=7, depends_on=4)),
        ]

    def test_urgencies_are_not_made_of_places(self) -> None:
        frames = page(child("a.png", "image", CHROME | below("/", 220), CHROME | {"level": "Low"}))
        load = h3sim.simulate(frames, scheme="recorded")
        assert load.trace.signals[-1].signal.field_value == "i"
        only = page(child("a.png", "image", CHROME | below("/", 220)))
        assert (
            h3sim.simulate(only, scheme="recorded").trace
            == h3sim.simulate(only, scheme="chrome-eps").trace
        )


class TestFiles:
    def test_a_page_is_read_as_it_was_written(self) -> None:
        again = h3sim.Page.from_json(TestTheTreeOfFirefox.PAGE.to_json())
        assert again == TestTheTreeOfFirefox.PAGE
        assert again.to_dict()["recorded_groups"] == GROUPS

    def test_groups_are_in_the_digest(self) -> None:
        bare = page(*page_entries(TestTheTreeOfFirefox.PAGE), groups=[{"name": "leaders"}])
        other = page(
            *page_entries(TestTheTreeOfFirefox.PAGE), groups=[{"name": "leaders", "weight": 7}]
        )
        assert bare.digest != other.digest

    def test_what_depended_on_what_is_gone_depends_on_the_root(self) -> None:
        without = TestTheTreeOfFirefox.PAGE.without("b.png")
        (entry,) = without.resources[2].recorded
        assert (entry.depends_on, entry.weight) == ("", 12)

    def test_errors_have_their_keys(self) -> None:
        groups = [
            {"name": "a"},
            {"name": "a"},
            {"name": "/", "depends_on": "b"},
            {"name": "b", "weight": 0},
        ]
        entries = [
            {"exclusive": True, "urgency": 1},
            below("nobody", 3),
            {"class": "leaders", "depends_on": "a"},
            below("x", 3),
        ]
        with pytest.raises(PageError) as reported:
            page(child("x", "image", *entries), groups=groups)
        assert {problem.key for problem in reported.value.problems} >= {
            "recorded_groups[1].name",
            "recorded_groups[2].name",
            "recorded_groups[2].depends_on",
            "recorded_groups[3].weight",
            "resources[1].recorded[0].exclusive",
            "resources[1].recorded[1].depends_on",
            "resources[1].recorded[2].depends_on",
            "resources[1].recorded[3].depends_on",
        }


def page_entries(complete: Any) -> list[dict[str, Any]]:
    """Return its resources but the root, without what was recorded of them."""
    return [child(each.id, each.kind.value) for each in complete.resources[1:]]


class TestReadingAHar:
    """WebPageTest says of each request which stream it had, and what that depends on."""

    @staticmethod
    def imported(tmp_path: Path, agent: str, *streams: tuple[str, Any, Any, Any, Any]) -> Any:
        entries = []
        for at, (path, number, parent, weight, exclusive) in enumerate(streams):
            sent = [{"name": "User-Agent", "value": agent}]
            request = {"method": "GET", "url": f"https://a.example{path}", "headers": sent}
            answer = {"status": 200, "headers": [], "content": {"mimeType": "text/html", "size": 9}}
            entry = {"request": request, "response": answer, "time": 5, "timings": {}}
            entry |= {"startedDateTime": f"2026-01-01T00:00:0{at}Z", "_http2_stream_id": number}
            entry |= {"_http2_stream_dependency": parent, "_http2_stream_weight": weight}
            entries.append(entry | {"_http2_stream_exclusive": exclusive})
        har = tmp_path / "wpt.har"
        har.write_text(json.dumps({"log": {"entries": entries}}), encoding="utf-8")
        page = h3sim.import_page(str(har)).page
        return {each.id: [*map(plain, each.recorded)] for each in page.resources}

    def test_parents_are_resources_of_the_page(self, tmp_path: Path) -> None:
        streams = [
            ("/", 1, 0, 256, 1),
            ("/a.html", 3, 1, "220", "True"),
            ("/b.html", 5, 99, 16, 0),
            ("/c.html", None, None, None, None),
        ]
        assert self.imported(tmp_path, "Chrome/80.0", *streams) == {
            "/": [("chrome", None, "", 256, True)],
            "a.html": [("chrome", None, "/", 220, True)],
            "b.html": [],  # nobody knows what stream 99 was
            "c.html": [],
        }

    def test_idle_streams_of_firefox_are_its_classes(self, tmp_path: Path) -> None:
        streams = [("/", 15, 13, 42, 0), ("/a.html", 17, 3, 32, 0), ("/b.html", 19, 17, 22, 0)]
        assert self.imported(tmp_path, "Gecko/20100101 Firefox/90.0", *streams) == {
            "/": [("firefox", "urgent-start", None, 42, None)],
            "a.html": [("firefox", "leaders", None, 32, None)],
            "b.html": [("firefox", None, "a.html", 22, None)],
        }


def plain(entry: Any) -> tuple[Any, ...]:
    group = None if entry.group is None else entry.group.value
    return entry.browser.value, group, entry.depends_on, entry.weight, entry.exclusive
