"""Recorded priorities: read, played, and held against the rules."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

import h3sim
from h3sim.cli.main import main
from h3sim.importers.recorded_request import RecordedRequest, browser_named, priorities_of
from h3sim.page import Discovery, Level, RecordedPriority, TriggerEvent
from h3sim.signals import Eps, H2Priority
from h3sim.values.errors import InputError, PageError
from tests.helpers import page_file, page_of, with_updates
from validation.fact_table import facts_from_dict

if TYPE_CHECKING:
    from pathlib import Path

ROOT = {"id": "/", "kind": "document", "bytes": 1400}
CHROME = {"browser": "chrome"}


def child(id_: str, kind: str, *recorded: dict[str, Any], n_bytes: int = 1400) -> dict[str, Any]:
    found = {"by": "/", "at": "request"}
    return {"id": id_, "kind": kind, "bytes": n_bytes, "discovered": found, "recorded": [*recorded]}


def message(page: Any, scheme: str) -> list[Any]:
    load = h3sim.simulate(page, scheme=scheme)
    return [s.signal for s in load.trace.signals if s.element_id > 0]


class TestPlaying:
    @pytest.mark.parametrize(
        ("level", "urgency"),
        [("VeryHigh", 0), ("High", 1), ("Medium", 2), ("Low", 3), ("VeryLow", 4)],
    )
    def test_levels_are_urgencies_and_kinds_share(self, level: str, urgency: int) -> None:
        page = page_of(
            ROOT, *(child(kind, kind, CHROME | {"level": level}) for kind in ("font", "image"))
        )
        assert message(page, "recorded-chrome") == [
            Eps(urgency=urgency),
            Eps(urgency=urgency, incremental=True),
        ]

    def test_over_http_2_levels_are_a_chain(self) -> None:
        page = page_of(
            ROOT,
            child("a", "image", CHROME | {"level": "Low"}),
            child("b", "image", CHROME | {"level": "High"}),
        )
        assert message(page, "recorded-chrome-h2") == [
            H2Priority(weight=147, depends_on=0, exclusive=True),
            H2Priority(weight=220, depends_on=0, exclusive=True),
        ]

    @pytest.mark.parametrize(
        ("group", "weight", "urgency"),
        [
            ("leaders", 32, 1),
            ("leaders", 22, 2),
            ("followers", 42, 2),
            ("leaders", 2, 4),
            ("unblocked", 12, 4),
            ("background", 2, 6),
            ("background", 32, 5),
            ("urgent-start", 42, 0),
        ],
    )
    def test_classes_of_firefox_are_urgencies(self, group: str, weight: int, urgency: int) -> None:
        entry = {"browser": "firefox", "class": group, "weight": weight}
        page = page_of(ROOT, child("a", "script", entry))
        assert message(page, "recorded-firefox-eps") == [Eps(urgency=urgency)]

    def test_classes_of_firefox_are_groups_of_its_tree(self) -> None:
        entry = {"browser": "firefox", "class": "unblocked", "weight": 12}
        page = page_of(ROOT, child("a", "image", entry), child("b", "image"))
        # What was not recorded follows the rules: a follower.
        assert message(page, "recorded-firefox") == [
            H2Priority(weight=12, depends_on=-2),
            H2Priority(weight=22, depends_on=-5),
        ]

    def test_a_scheme_plays_its_own_browser_and_the_plain_one_any(self) -> None:
        entries = (CHROME | {"level": "VeryLow"}, {"browser": "firefox", "urgency": 5})
        page = page_of(ROOT, child("a", "script", *entries))
        assert message(page, "recorded-chrome") == [Eps(urgency=4)]
        assert message(page, "recorded-firefox-eps") == [Eps(urgency=5)]
        assert message(page, "recorded") == [Eps(urgency=5)]
        assert message(page, "chrome-eps") == [Eps(urgency=1)]

    def test_a_later_change_is_sent(self) -> None:
        when = {"by": "a", "at": "request", "delay_ms": 25}
        entries = (CHROME | {"level": "Low"}, CHROME | {"level": "High", "when": when})
        page = page_of(ROOT, child("a", "image", *entries, n_bytes=14_000))
        load = h3sim.simulate(page, scheme=with_updates("recorded-chrome"))
        reported = [(s.at_ns / 10**6, s.signal) for s in load.trace.signals if s.element_id]
        assert reported == [
            (0, Eps(urgency=3, incremental=True)),
            (25, Eps(urgency=1, incremental=True)),
        ]
        # The rules of Chrome do not listen to records.
        assert len(message(page, "chrome-eps")) == 1

    def test_without_a_record_the_rules_hold(self) -> None:
        page = h3sim.load_page("davies-meenan")
        recorded, ruled = (h3sim.simulate(page, scheme=name) for name in ("recorded", "chrome-eps"))
        assert recorded.trace == ruled.trace


class TestReading:
    def test_a_level_a_field_and_a_later_level(self) -> None:
        request = RecordedRequest(key="k", url="u", start_ms=100)
        request.priority, request.priority_field, request.browser = "low", "u=4, i", "chrome"
        request.later_priorities = ((180.5, "high"), (90, "veryhigh"), (300, "whatever"))
        first, field, later, early = priorities_of(request, "a.png")
        assert first == RecordedPriority(browser="chrome", level="Low")  # type: ignore[arg-type]
        assert (field.urgency, field.incremental) == (4, True)
        when = Discovery(at=TriggerEvent.REQUEST, by="a.png", delay_ns=80_500_000)
        assert (later.level, later.when) == (Level.HIGH, when)
        assert early.when == replace(when, delay_ns=0)

    def test_what_is_not_understood_is_left_out(self) -> None:
        request = RecordedRequest(key="k", url="u", priority="soon", priority_field="U=1")
        assert priorities_of(request, "a") == ()

    @pytest.mark.parametrize(
        ("agent", "name"),
        [
            ("Mozilla/5.0 AppleWebKit/537.36 Chrome/126.0 Safari/537.36", "chrome"),
            ("Mozilla/5.0 Gecko/20100101 Firefox/127.0", "firefox"),
            ("Mozilla/5.0 AppleWebKit/605.1 Version/17.5 Safari/605.1", "safari"),
            ("curl/8", ""),
        ],
    )
    def test_browsers_are_known_by_their_user_agents(self, agent: str, name: str) -> None:
        assert browser_named(agent) == name

    def test_a_har_keeps_priorities(self, tmp_path: Path) -> None:
        request: dict[str, Any] = {"method": "GET", "url": "https://a.example/"}
        request["headers"] = [
            {"name": "priority", "value": "u=0, i"},
            {"name": "User-Agent", "value": "Mozilla/5.0 Firefox/127.0"},
        ]
        response = {"status": 200, "headers": [], "content": {"mimeType": "text/html", "size": 9}}
        entry = {"request": request, "response": response, "time": 5, "_priority": "VeryHigh"}
        entry |= {"startedDateTime": "2026-01-01T00:00:00Z", "timings": {}}
        path = tmp_path / "a.har"
        path.write_text(json.dumps({"log": {"entries": [entry]}}), encoding="utf-8")
        page = h3sim.import_page(str(path)).page
        assert page.to_dict()["resources"][0]["recorded"] == [
            {"browser": "chrome", "level": "VeryHigh"},
            {"browser": "firefox", "urgency": 0, "incremental": True},
        ]
        assert h3sim.Page.from_json(page.to_json()) == page

    def test_a_log_of_devtools_keeps_later_changes(self, tmp_path: Path) -> None:
        def event(name: str, at_s: float, **params: Any) -> dict[str, Any]:
            params = {"requestId": "1", "timestamp": at_s, **params}
            return {"method": f"Network.{name}", "params": params}

        asked = {"url": "https://a.example/", "method": "GET", "headers": {}}
        asked["initialPriority"] = "Low"
        answer = {"status": 200, "mimeType": "text/html", "headers": {}}
        events = [
            event("requestWillBeSent", 10, request=asked, type="Document"),
            event("resourceChangedPriority", 10.25, newPriority="High"),
            event("responseReceived", 10.5, response=answer, type="Document"),
            event("loadingFinished", 11, encodedDataLength=700),
        ]
        path = tmp_path / "a.devtoolslog.json"
        path.write_text(json.dumps(events), encoding="utf-8")
        (root,) = h3sim.import_page(str(path)).page.resources
        first, later = root.recorded
        assert (first.level, later.level) == (Level.LOW, Level.HIGH)
        assert later.when == Discovery(at=TriggerEvent.REQUEST, by=root.id, delay_ns=250_000_000)

    def test_errors_have_their_keys(self) -> None:
        entries: list[dict[str, Any]] = [
            {},
            {"weight": 3, "urgency": 1},
            {"urgency": 8},
            {"level": "Highest"},
        ]
        with pytest.raises(PageError) as reported:
            page_of(ROOT, child("a", "image", *entries))
        assert [problem.key for problem in reported.value.problems] == [
            "resources[1].recorded[0]",
            "resources[1].recorded[1].weight",
            "resources[1].recorded[2].urgency",
            "resources[1].recorded[3].level",
        ]


class TestRules:
    PAGE = (
        ROOT | {"recorded": [CHROME | {"level": "VeryHigh"}]},
        child("a.css", "stylesheet", CHROME | {"level": "VeryHigh"}),
        child("b.js", "script", CHROME | {"level": "Low"}),
        child("c.js", "script", CHROME | {"level": "High"}),
        *(child(f"{n}.png", "image", CHROME | {"level": "Medium"}) for n in range(6)),
        child("d.json", "fetch"),
    )

    def test_agreement_is_counted_by_kind(self) -> None:
        check = h3sim.advice.validate_scheme(page_of(*self.PAGE))
        assert [tuple(row) for row in check.rows] == [
            ("document", 1, 1),
            ("stylesheet", 1, 1),
            ("script", 2, 1),
            ("image", 6, 5),  # the sixth is Low by the rules
        ]
        assert [(row.id, row.recorded, row.rules) for row in check.disagreements] == [
            ("b.js", "u=3", "u=1"),
            ("5.png", "u=2, i", "i"),
        ]
        assert check.total == ("all", 10, 8)

    def test_levels_are_compared_over_http_2_too(self) -> None:
        check = h3sim.advice.validate_scheme(page_of(*self.PAGE), scheme="chrome-h2")
        assert [(row.id, row.recorded, row.rules) for row in check.disagreements] == [
            ("b.js", "low", "high"),
            ("5.png", "normal", "low"),
        ]

    def test_a_scheme_without_rules_is_refused(self) -> None:
        with pytest.raises(InputError, match="has no rules"):
            h3sim.advice.validate_scheme("davies-meenan", scheme="rr")

    def test_the_command_shows_kinds_and_disagreements(
        self, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        path = page_file(tmp_path, *self.PAGE)
        assert main(["validate-scheme", path, "davies-meenan"]) == 0
        out = capsys.readouterr().out
        assert "1 of 2 pages with recorded priorities" in out
        assert "image              6      5     83.3" in out
        assert "5.png" in out
        assert main(["validate-scheme", path, "--json"]) == 0
        document = json.loads(capsys.readouterr().out)
        assert document["format"] == "h3sim-rule-check/1"
        assert len(document["disagreements"]) == 2

    def test_the_command_states_how_to_record(self, capsys: pytest.CaptureFixture[str]) -> None:
        assert main(["validate-scheme", "davies-meenan"]) == 0
        assert "`h3sim import` keeps those of a HAR" in capsys.readouterr().out.replace("\n", " ")

    def test_the_command_reports_errors(self, capsys: pytest.CaptureFixture[str]) -> None:
        assert main(["validate-scheme", "nobody", "--scheme", "nothing"]) == 2
        assert len(capsys.readouterr().err.splitlines()) == 2
        assert main(["validate-scheme", "davies-meenan", "--scheme", "fifo"]) == 2


def test_a_fact_table_brings_along_what_chrome_stated() -> None:
    rows = [
        {"id": "r0", "parent": None, "type": "html", "body_bytes": 900, "start_ms": 0,
         "chrome_priority": "VeryHigh"},
        {"id": "r1", "parent": "r0", "type": "image", "body_bytes": 40, "start_ms": 85},
    ]  # fmt: skip
    page = facts_from_dict({"name": "two", "resources": rows}).page
    assert [[message.level for message in each.recorded] for each in page.resources] == [
        [Level.VERY_HIGH],
        [],
    ]
