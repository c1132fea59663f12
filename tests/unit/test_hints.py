"""Hints: edits of a page, tried one by one and in pairs, with what is sure about each."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

import h3sim
from h3sim.advice.edits import Edit, edits_of
from h3sim.advice.hints import Hints, hints
from h3sim.browser import TightMode
from h3sim.cli.main import main
from h3sim.page import Discovery, Kind, Page, Resource, TriggerEvent, transforms
from h3sim.study.runner import LoadTask
from h3sim.values.errors import H3SimError, InputError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

RTT_MS = 100.0
FAST: dict[str, Any] = {
    "network": "marx-2019",
    "rate_mbps": 1000.0,
    "rtt_ms": RTT_MS,
    "commit_ms": 0.0,
    "paint_ms": 0.0,
}
"""A network on which only round trips take time."""
ALIKE: dict[str, Any] = {"network_within": 1, "n_seeds": 3, "progress": False}


def in_document(id_: str, kind: Kind, offset: int, **more: Any) -> Resource:
    found = Discovery(at=TriggerEvent.OFFSET, by="/", offset_bytes=offset)
    return Resource(id=id_, kind=kind, size_bytes=1000, discovered=found, **more)


ROOT = Resource(id="/", kind=Kind.DOCUMENT, size_bytes=1000)
SCRIPT = in_document("a.js", Kind.SCRIPT, 100, in_head=True)
HERO = Resource(
    id="hero.jpg",
    kind=Kind.IMAGE,
    size_bytes=1000,
    above_the_fold=True,
    hero=True,
    viewport=0.5,
    discovered=Discovery(at=TriggerEvent.EXECUTED, by="a.js"),
)
PAGE = Page(name="late hero", resources=(ROOT, SCRIPT, HERO))
"""The hero is inserted by a script: its request leaves one round trip after that of the script."""


def edit(text: str, change: Callable[[Page], Page]) -> Edit:
    def changed(task: LoadTask) -> LoadTask:
        return task._replace(spec=replace(task.spec, page=change(task.spec.page)))

    return Edit(text, "own", "", changed, frozenset({text}))


def of_size(n_bytes: int) -> Edit:
    return edit(f"{n_bytes} bytes", lambda page: page.with_("a.js", bytes=n_bytes))


PRELOAD = edit("preload", lambda page: page.with_("hero.jpg", preload=True))
LARGER = edit("larger", lambda page: page.with_("a.js", bytes=200_000))


def test_a_preload_saves_the_round_trip_of_the_script_that_inserts_the_image() -> None:
    found = h3sim.hints(PAGE, **FAST, **ALIKE)
    best = next(row for row in found.effects if row.metric == "LCP" and "preload" in row.edit)
    assert best.edit == "preload hero.jpg"
    assert best.before_ms - best.after_ms == pytest.approx(RTT_MS, abs=1)
    hint = next(row for row in found.rows if row.edit == best.edit)
    assert hint.verdict == "helps"
    assert '<link rel="preload" as="image" href="hero.jpg">' in hint.markup


def test_a_preconnect_saves_the_handshake_of_another_host() -> None:
    page = replace(PAGE, resources=(replace(ROOT, host="a"), SCRIPT, replace(HERO, host="cdn")))
    over = {**FAST, "network": "cable", "connections": "per-host"}
    found = h3sim.hints(page, **over, **ALIKE)
    effect = {
        row.edit: row.before_ms - row.after_ms for row in found.effects if row.metric == "LCP"
    }
    assert effect["preconnect to cdn"] == pytest.approx(RTT_MS, abs=1)
    moved = next(text for text in effect if "from the page's own host" in text)
    assert effect[moved] == pytest.approx(RTT_MS, abs=1)


def test_an_edit_that_harms_is_said_to_harm() -> None:
    found = h3sim.hints(PAGE, edits=[LARGER], **{**FAST, "rate_mbps": 5.0}, **ALIKE)
    (row,) = found.harmful
    assert (row.edit, row.verdict) == ("larger", "harms")
    assert row.low > 1
    assert found.helpful == []
    assert "No edit" in found.verdict


def test_edits_that_change_nothing_are_loaded_once() -> None:
    same = edit("nothing", lambda page: page)
    found = h3sim.hints(PAGE, edits=[same, PRELOAD], **FAST, **ALIKE)
    assert found.n_tried == 2
    assert [row.edit for row in found.rows] == ["preload"]


def test_more_edits_widen_each_interval() -> None:
    users: dict[str, Any] = {"n_seeds": 4, "network_within": 2, "progress": False}
    over = {**FAST, "rate_mbps": 5.0}
    others = [of_size(n) for n in (10, 50, 100, 20_000, 40_000)]
    few = h3sim.hints(PAGE, edits=[PRELOAD], **over, **users)
    many = h3sim.hints(PAGE, edits=[PRELOAD, *others], **over, **users)
    (alone,) = few.rows
    (among,) = (row for row in many.rows if row.edit == "preload")
    assert alone.ratio == among.ratio
    assert among.low < alone.low < alone.ratio < alone.high < among.high
    of_lcp = {row.edit: row.p_holm for found in (few, many) for row in found.effects}
    assert all(0 <= p <= 1 for p in of_lcp.values())


def test_a_pair_is_listed_only_if_it_gains_more_than_its_better_half() -> None:
    host = replace(PAGE, resources=(ROOT, replace(SCRIPT, size_bytes=100_000), HERO))
    smaller = edit("smaller", lambda page: page.with_("a.js", bytes=1000))
    again = edit("smaller again", lambda page: page.with_("a.js", bytes=1000))
    found = h3sim.hints(
        host, edits=[smaller, again, PRELOAD], **{**FAST, "rate_mbps": 5.0}, **ALIKE
    )
    pairs = {row.edit for row in found.rows if row.kind == "pair"}
    assert "smaller and smaller again" not in pairs
    assert any("preload" in pair for pair in pairs)


def test_workers_change_no_byte() -> None:
    over: dict[str, Any] = {"n_seeds": 3, "progress": False, **FAST}
    alone = h3sim.hints(PAGE, **over).to_dict()
    assert h3sim.hints(PAGE, workers=2, **over).to_dict() == alone


def test_a_network_that_is_named_twice_counts_twice() -> None:
    users: dict[str, Any] = {**ALIKE, "edits": [PRELOAD]}
    even = h3sim.hints(PAGE, networks=["cable", "slow-3g"], **users)
    often = h3sim.hints(PAGE, networks=["cable", "slow-3g", "slow-3g"], **users)
    assert often.networks == ("cable", "slow-3g", "slow-3g")
    assert often.effects[0].before_ms != even.effects[0].before_ms


@pytest.mark.parametrize(
    ("wrong", "key"),
    [
        ({"page": "pge"}, "pge"),
        ({"scheme": "nope"}, "nope"),
        ({"metric": "cls"}, "metric"),
        ({"n_seeds": 1}, "n_seeds"),
        ({"confidence": 2}, "confidence"),
        ({"networks": ["moon"]}, "moon"),
        ({"network_within": 0}, "network_within"),
        ({"rtt_ms": -1}, "rtt_ms"),
        ({"rtt": 1}, "rtt_ms"),
    ],
)
def test_a_mistake_is_reported_by_its_name(wrong: dict[str, Any], key: str) -> None:
    with pytest.raises(H3SimError, match=key):
        h3sim.hints(**{"page": "creative", **wrong})


@pytest.mark.parametrize("name", ["davies-meenan", "http2rulez", "creative"])
def test_every_edit_makes_a_page_that_differs(name: str) -> None:
    page = h3sim.load_page(name)
    config = h3sim.LoadConfig(network="cable")
    task = LoadTask(h3sim.load.resolve(page, h3sim.load_scheme("chrome-eps"), config))
    edits = edits_of(task)
    assert len({each.text for each in edits}) == len(edits)
    for each in edits:
        assert each.change(task) != task, each.text


class TestTransforms:
    def test_inlined_bytes_move_what_follows_and_lead_to_children(self) -> None:
        late = in_document("b.png", Kind.IMAGE, 500)
        page = transforms.with_inlined(Page(name="p", resources=(ROOT, SCRIPT, HERO, late)), "a.js")
        assert [r.id for r in page.resources] == ["/", "hero.jpg", "b.png"]
        offsets = {r.id: r.discovered.offset_bytes for r in page.resources if r.discovered}
        assert page.resources[0].size_bytes == 2000
        assert offsets == {"hero.jpg": 1100, "b.png": 1500}

    def test_only_what_the_document_names_is_inlined(self) -> None:
        with pytest.raises(InputError, match=r"hero\.jpg"):
            transforms.with_inlined(PAGE, "hero.jpg")

    def test_a_preconnect_needs_a_host_of_the_page(self) -> None:
        with pytest.raises(InputError, match="cdn"):
            transforms.with_preconnect(PAGE, "cdn")

    def test_a_moved_resource_has_the_host_of_the_document(self) -> None:
        page = replace(PAGE, resources=(replace(ROOT, host="a"), SCRIPT, replace(HERO, host="cdn")))
        assert transforms.with_same_host(page, "image").resources[2].host == "a"


class TestTheCommand:
    def test_it_prints_what_helps_with_the_markup(
        self,
        tmp_path: Path,
        capsys: pytest.CaptureFixture[str],
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
        file = tmp_path / "page.json"
        file.write_text(PAGE.to_json(), encoding="utf-8")
        over = ["--network", "cable", "--seeds", "3", "--network-uncertainty", "1"]
        assert main(["hints", str(file), *over, "--report", str(tmp_path / "r.html")]) == 0
        printed, noted = capsys.readouterr()
        assert '<link rel="preload" as="image" href="hero.jpg">' in printed
        assert "does not know" in printed
        assert "after one load" in noted
        assert "hero.jpg" in (tmp_path / "r.html").read_text("utf-8")
        monkeypatch.setattr(sys.stderr, "isatty", lambda: False)
        assert main(["hints", str(file), *over, "--json"]) == 0
        printed, noted = capsys.readouterr()
        assert noted == ""
        document = json.loads(printed)
        assert document["format"] == "h3sim-hints/1"
        assert document["rows"][0]["verdict"] == "helps"

    def test_bad_input_is_listed_with_exit_code_2(self, capsys: pytest.CaptureFixture[str]) -> None:
        wrong = ["--networks", "moon", "--seeds", "2", "--confidence", "1", "--scheme", "nope"]
        assert main(["hints", "pge", *wrong]) == 2
        errors = capsys.readouterr().err
        for word in ("pge", "moon", "--seeds", "--confidence", "nope"):
            assert word in errors


class TestTransformOnTheCommandLine:
    def changed(self, tmp_path: Path, *options: str) -> Page:
        (tmp_path / "page.json").write_text(PAGE.to_json(), encoding="utf-8")
        target = tmp_path / "changed.json"
        assert main(["transform", str(tmp_path / "page.json"), *options, "-o", str(target)]) == 0
        return Page.from_file(target)

    @pytest.mark.parametrize(
        ("options", "changes"),
        [
            (["--set", "fetchpriority=high@hero.jpg"], {"fetchpriority": "high"}),
            (["--set", "bytes=5@image", "--preload", "image"], {"bytes": 5, "preload": True}),
            (["--set", "viewport=null@hero.jpg"], {"viewport": None}),
        ],
    )
    def test_it_does_what_python_does(
        self, tmp_path: Path, options: list[str], changes: dict[str, Any]
    ) -> None:
        assert self.changed(tmp_path, *options) == PAGE.with_("hero.jpg", **changes)

    def test_inlining_and_hosts(self, tmp_path: Path) -> None:
        assert self.changed(tmp_path, "--inline", "a.js") == transforms.with_inlined(PAGE, "a.js")

    def test_every_mistake_is_listed(
        self, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        wrong = ["--set", "fetchpriority", "--set", "colour=1@image", "--set", "bytes=-1@image"]
        wrong += ["--preconnect", "cdn", "--preload", "nope"]
        target = str(tmp_path / "x.json")
        assert main(["transform", "davies-meenan", *wrong, "-o", target]) == 2
        errors = capsys.readouterr().err
        for word in ("KEY=VALUE@WHAT", "colour", "bytes", "cdn", "nope"):
            assert word in errors

    def test_two_versions_are_compared_by_their_paints(
        self, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        self.changed(tmp_path, "--preload", "hero.jpg")
        files = [str(tmp_path / name) for name in ("page.json", "changed.json")]
        over = ["--scheme", "rr", "--baseline", "rr", "--send-buffer-kb", "0", "--json"]
        assert main(["compare", *files, "--network", "cable", "--browser", "parse", *over]) == 0
        (row,) = json.loads(capsys.readouterr().out)["versions"]
        assert row["speedup_largest_paint"] > 1
        assert row["speedup_first_paint"] > 0


# Mixtures of clients


def slow_page() -> Page:
    """Return a page whose server needs time for its document, so that Early Hints pay."""
    return h3sim.load_page("davies-meenan").with_("index.html", server_ms=400)


def test_a_mixture_of_clients_judges_an_edit_by_all_and_gives_each_what_it_heeds() -> None:
    options: dict[str, Any] = {"network": "cable", "n_seeds": 4, "network_within": 1.0}
    mixed = hints(slow_page(), clients={"chrome": 3, "safari": 1}, **options)
    chrome = hints(slow_page(), client="chrome", **options)
    safari = hints(slow_page(), client="safari", **options)

    def gain(found: Hints) -> float:
        rows = [row.ratio for row in found.rows if row.kind == "early hints"]
        return min(rows, default=1.0)

    assert gain(safari) == 1
    assert gain(chrome) < gain(mixed) < 1


def test_a_client_that_an_edit_harms_is_named_and_the_verdict_is_mixed() -> None:
    def faster_for_chrome_alone(task: LoadTask) -> LoadTask:
        delay_ms = 0 if task.spec.scheme.tight_mode is TightMode.CHROME_118 else 900
        page = task.spec.page.with_("index.html", server_ms=delay_ms)
        return task._replace(spec=replace(task.spec, page=page))

    edit = Edit("mine", "mine", "", faster_for_chrome_alone, frozenset())
    found = hints(
        slow_page(),
        clients={"chrome": 9, "safari": 1},
        network="cable",
        n_seeds=10,
        network_within=1,
        edits=[edit],
    )
    (row,) = found.rows
    assert row.harmed == "safari"
    assert row.verdict != "helps"
    assert "safari +" in row.sentence


@pytest.mark.parametrize("wrong", [{}, {"chrome": 0}, {"chrome": -1, "safari": 2}])
def test_shares_of_clients_must_be_positive(wrong: dict[str, float]) -> None:
    with pytest.raises(InputError, match="clients"):
        hints("davies-meenan", clients=wrong)


@pytest.mark.parametrize("client", ["safari", "firefox"])
def test_another_server_leaves_the_browser_as_it_is(client: str) -> None:
    scheme = h3sim.load_scheme(f"{client} before quic-go")
    config = h3sim.LoadConfig(network="cable", browser="parse")
    task = LoadTask(h3sim.load.resolve(h3sim.load_page("davies-meenan"), scheme, config))
    changed = [
        edit.change(task).spec.scheme for edit in edits_of(task) if edit.kind == "server scheme"
    ]
    assert len(changed) == 3
    for each in changed:
        assert (each.tight_mode, each.ignores) == (scheme.tight_mode, scheme.ignores)
    assert f"{client} before rfc9218" in {each.name for each in changed}
