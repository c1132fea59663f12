"""Advice is given only where it changes something: to browsers that heed it, by loads that fit."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

import h3sim
from h3sim.advice.edits import edits_of, hints_in
from h3sim.browser.capabilities import Ability, Hint
from h3sim.catalog import load_client
from h3sim.cli.main import main
from h3sim.page import Page, RecordedLoad, with_early_hints
from h3sim.study.runner import LoadTask
from h3sim.values.errors import SchemeError
from h3sim.values.units import ms
from tests.helpers import page_of

if TYPE_CHECKING:
    from pathlib import Path

KINDS = {
    "early hints": Hint.HINTED_PRELOAD,
    "preload": Hint.PRELOAD,
    "preconnect": Hint.PRECONNECT,
    "fetchpriority": Hint.FETCHPRIORITY_IMAGE,
    "lazy": Hint.LAZY_IMAGE,
}
BROWSERS = ("chrome", "firefox", "safari")


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


@pytest.mark.parametrize("client", [*BROWSERS, "chrome-95", "chrome-50", "edge", "curl"])
def test_no_edit_is_tried_that_the_client_ignores(client: str) -> None:
    tried = {edit.kind for edit in edits(f"{client} before rfc9218")}
    for kind, hint in KINDS.items():
        assert (kind in tried) is load_client(client).has(hint), kind


def test_over_twenty_pages_no_browser_is_advised_to_do_what_its_table_denies() -> None:
    pages = [page for page in h3sim.list_pages() if len(page.resources) < 60][:20]
    assert len(pages) == 20
    config = h3sim.LoadConfig(network="cable", browser="parse")
    n_hints = 0
    for client in BROWSERS:
        table = {row.name: row for row in load_client(client).capabilities}
        scheme = h3sim.load_scheme(f"{client} before rfc9218")
        for page in pages:
            task = LoadTask(h3sim.load.resolve(page, scheme, config))
            for hint in (hint for edit in edits_of(task) for hint in hints_in(edit, page)):
                assert table[hint.value].since, (client, page.name, hint)
                n_hints += 1
    assert n_hints > 500


def test_without_a_client_of_its_own_the_scheme_is_taken_for_chromes() -> None:
    assert h3sim.load_scheme("fifo").ignores == ()
    assert "early hints" in {edit.kind for edit in edits("fifo")}


def test_capabilities_are_those_of_the_version() -> None:
    safari, chrome, old = map(load_client, ("safari", "chrome", "chrome-95"))
    assert not safari.has(Hint.HINTED_PRELOAD)
    assert safari.has(Hint.HINTED_PRECONNECT)
    assert chrome.has(Hint.HINTED_PRELOAD)
    assert chrome.has(Ability.PRIORITY_FIELD)
    assert old.has(Hint.LAZY_IMAGE)
    assert not old.has(Hint.HINTED_PRELOAD)
    assert not old.has(Hint.FETCHPRIORITY_IMAGE)
    assert not old.has(Ability.PRIORITY_FIELD)


def test_every_client_says_of_every_feature_whether_it_has_it_with_source_and_date() -> None:
    for client in h3sim.catalog.list_clients():
        rows = {row.name: row for row in client.capabilities}
        assert {*rows} == {each.value for each in (*Hint, *Ability)}, client.name
        for row in rows.values():
            assert row.source, (client.name, row.name)
            assert re.fullmatch(r"20\d\d-\d\d(-\d\d)?", row.date), (client.name, row.name)
        assert client.version
        assert re.fullmatch(r"20\d\d-\d\d(-\d\d)?", client.date), client.name


def test_every_server_says_what_it_reads_with_source_version_and_date() -> None:
    for server in h3sim.catalog.list_servers():
        assert server.source, server.name
        assert server.version, server.name
        assert re.fullmatch(r"20\d\d-\d\d(-\d\d)?", server.date), server.name


@pytest.mark.parametrize("lacking", ["source", "date"])
def test_a_capability_without_source_or_date_is_refused(lacking: str, tmp_path: Path) -> None:
    row = {"since": '"1"', "source": '"a file"', "date": '"2026-11"'} | {lacking: '""'}
    file = tmp_path / "mine.toml"
    keys = ", ".join(f"{key} = {value}" for key, value in row.items())
    file.write_text(
        'format = "h3sim-client/1"\nname = "mine"\ntitle = "x"\nversion = "1"\ndate = "2026-11"\n'
        f'source = "x"\n[capabilities]\npreload = {{{keys}}}\n',
        encoding="utf-8",
    )
    with pytest.raises(SchemeError, match=lacking):
        load_client(str(file))


# What a load does with a hint that its client ignores


def first_requests(page: Page, client: str) -> dict[str, float]:
    """Return when each resource of *page* is requested."""
    load = h3sim.simulate(page, client=client, server="rfc9218", network="cable", browser="parse")
    return {row.id: row.requested_ms for row in load.timings}


def test_a_file_of_a_103_response_is_requested_before_the_document_only_by_who_preloads_it() -> (
    None
):
    slow = page().with_("/", server_ms=500)
    hinted = with_early_hints(slow, "s.css")
    assert first_requests(hinted, "chrome")["s.css"] < 500
    assert first_requests(hinted, "safari")["s.css"] == first_requests(slow, "safari")["s.css"]


def test_a_client_from_before_fetchpriority_sends_what_it_would_without() -> None:
    raised = page().with_("below.jpg", fetchpriority="high")

    def said(subject: Page, client: str) -> object:
        load = h3sim.simulate(subject, client=client, server="rfc9218", network="cable")
        return load.trace.digest()

    assert said(raised, "chrome-95") == said(page(), "chrome-95")
    assert said(raised, "chrome") != said(page(), "chrome")


def test_a_client_without_lazy_loading_requests_what_is_below_at_once() -> None:
    lazy = page().with_("below.jpg", lazy=True)
    assert first_requests(lazy, "edge") == first_requests(page(), "edge")
    assert (
        first_requests(lazy, "chrome")["below.jpg"] > first_requests(page(), "chrome")["below.jpg"]
    )


def test_before_version_124_a_server_over_http2_gets_no_field_of_chrome() -> None:
    over_http2, over_any = "nghttp2-eps", "rfc9218"
    assert len(h3sim.load_scheme(f"chrome-116 before {over_any}").classes) > 1
    assert len(h3sim.load_scheme(f"chrome-116 before {over_http2}").classes) == 1
    assert len(h3sim.load_scheme(f"chrome before {over_http2}").classes) > 1


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
