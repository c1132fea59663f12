"""Advice is given only where it changes something: to browsers that heed it, by loads that fit."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

import h3sim
from h3sim.advice.edits import edits_of
from h3sim.browser.clients import CAPABILITIES, BrowserFamily, Feature, supports
from h3sim.cli.main import main
from h3sim.page import Page, RecordedLoad
from h3sim.study.runner import LoadTask
from h3sim.values.units import ms
from tests.helpers import page_of

if TYPE_CHECKING:
    from pathlib import Path

KINDS = {
    "early hints": Feature.HINTED_PRELOAD,
    "preload": Feature.PRELOAD,
    "preconnect": Feature.PRECONNECT,
    "fetchpriority": Feature.FETCHPRIORITY,
    "lazy": Feature.LAZY,
}
SCHEMES = {
    "chrome-eps": BrowserFamily.CHROME,
    "chrome-h2": BrowserFamily.CHROME,
    "firefox-eps": BrowserFamily.FIREFOX,
    "firefox-h2": BrowserFamily.FIREFOX,
    "safari-eps": BrowserFamily.SAFARI,
    "safari-h2": BrowserFamily.SAFARI,
}


def page(**cdn: Any) -> Page:
    """Return a page that every kind of edit fits, with a file of another host."""

    def named(id_: str, kind: str, at_bytes: int, **more: Any) -> dict[str, Any]:
        found = {"by": "/", "at": "offset", "offset_bytes": at_bytes}
        return {"id": id_, "kind": kind, "bytes": 5000, "discovered": found, **more}

    late = {"by": "s.css", "at": "complete"}
    return page_of(
        {"id": "/", "kind": "document", "bytes": 9000},
        named("s.css", "stylesheet", 100, in_head=True, render_blocking=True),
        named("hero.jpg", "image", 5000, hero=True, viewport=0.4, above_the_fold=True),
        named("below.jpg", "image", 8000),
        {"id": "late.png", "kind": "image", "bytes": 5000, "discovered": late},
        named("cdn/x", "image", 200, host="cdn") | cdn,
    )


def edits(scheme: str, **cdn: Any) -> list[Any]:
    config = h3sim.LoadConfig(network="cable", connections="per-host")
    return edits_of(LoadTask(h3sim.load.resolve(page(**cdn), h3sim.load_scheme(scheme), config)))


@pytest.mark.parametrize(("scheme", "client"), SCHEMES.items())
def test_no_edit_is_tried_that_the_browser_of_the_scheme_ignores(
    scheme: str, client: BrowserFamily
) -> None:
    tried = {edit.kind for edit in edits(scheme)}
    for kind, feature in KINDS.items():
        assert (kind in tried) is (CAPABILITIES[client][feature].since is not None), kind


def test_without_a_browser_the_scheme_is_taken_for_chromes() -> None:
    assert h3sim.load_scheme("fifo").browser is None
    assert "early hints" in {edit.kind for edit in edits("fifo")}


def test_safari_connects_early_and_does_not_preload_from_a_103_response() -> None:
    assert not supports(BrowserFamily.SAFARI, Feature.HINTED_PRELOAD)
    assert supports(BrowserFamily.SAFARI, Feature.HINTED_PRECONNECT)
    assert CAPABILITIES[BrowserFamily.CHROME][Feature.HINTED_PRELOAD].since == "103"
    assert CAPABILITIES[BrowserFamily.FIREFOX][Feature.HINTED_PRELOAD].since == "123"


def test_every_capability_has_a_source_and_a_date() -> None:
    for client in BrowserFamily:
        assert [*CAPABILITIES[client]] == [*Feature]
        for capability in CAPABILITIES[client].values():
            assert capability.source
            assert len(capability.read) == len("2026-11-27")


@pytest.mark.parametrize(
    ("cdn", "links"),
    [
        ({"kind": "image"}, ["https://cdn"]),
        ({"kind": "stylesheet"}, ["https://cdn"]),
        ({"kind": "script"}, ["https://cdn"]),
        ({"kind": "script", "module": True}, ["https://cdn crossorigin"]),
        ({"kind": "font"}, ["https://cdn crossorigin"]),
        ({"kind": "fetch"}, ["https://cdn crossorigin"]),
    ],
)
def test_a_preconnect_link_has_crossorigin_only_where_requests_use_cors(
    cdn: dict[str, Any], links: list[str]
) -> None:
    """Requests with CORS use a connection of their own, which the other link does not open."""
    (edit,) = (each for each in edits("chrome-eps", **cdn) if each.kind == "preconnect")
    found = [
        line.partition('href="')[2].replace('"', "").rstrip(">")
        for line in edit.markup.splitlines()
    ]
    assert found == links


def test_a_host_of_fonts_and_images_needs_both_links() -> None:
    font = {"id": "cdn/w", "kind": "font", "bytes": 900, "host": "cdn"}
    found = {"by": "/", "at": "offset", "offset_bytes": 300}
    resources = [*page().resources, *page_of(
        {"id": "/", "kind": "document", "bytes": 900}, {**font, "discovered": found}
    ).resources[1:]]  # fmt: skip
    config = h3sim.LoadConfig(network="cable", connections="per-host")
    both = page().with_resources(resources)
    spec = h3sim.load.resolve(both, h3sim.load_scheme("chrome-eps"), config)
    tried = edits_of(LoadTask(spec))
    (edit,) = (each for each in tried if each.kind == "preconnect")
    assert [line.count("crossorigin") for line in edit.markup.splitlines()] == [0, 1]


def test_fonts_and_modules_are_hinted_with_cors() -> None:
    late = {"discovered": {"by": "s.css", "at": "complete"}, "above_the_fold": True}
    (hint,) = (
        edit
        for edit in edits("chrome-eps", kind="font", **late)
        if edit.kind == "early hints" and "cdn/x" in edit.text
    )
    assert "as=font; crossorigin" in hint.markup


# No verdict


def poor_page(folder: Path) -> str:
    """Write a page whose recording took far longer than any load of it, and return its path."""
    recorded = RecordedLoad(
        rtt_ns=ms(50),
        rate_bps=10_000_000,
        load_event_ns=ms(20_000),
        finished_ns=ms(20_000),
        completed_ns={each.id: ms(20_000) for each in page().resources},
    )
    file = folder / "poor.json"
    file.write_text(replace(page(), recorded_load=recorded).to_json(), encoding="utf-8")
    return str(file)


@pytest.mark.parametrize(
    "command",
    [
        ["hints", "--seeds", "3", "--effects"],
        ["recommend", "--seeds", "2"],
        ["search", "--seeds", "2", "--scheme", "fifo,rr"],
    ],
    ids=lambda command: command[0],
)
def test_what_fits_poorly_is_said_with_what_is_missing_and_nothing_follows(
    command: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    name, *options = command
    assert main([name, poor_page(tmp_path), *options]) == 0
    lines = capsys.readouterr().out.splitlines()
    text = " ".join(lines)
    assert "No verdict" in text
    assert "Missing: " in text
    assert len(lines) < 12
    for word in ("not judged", "These help", "ratio", "does not know"):
        assert word not in text
