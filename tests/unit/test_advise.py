"""`h3sim recommend`: from a recording to the scheme that serves its page best."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

import h3sim
from h3sim.advice import search
from h3sim.advice.edits import edits_of
from h3sim.advice.recommendation import read_subject
from h3sim.advice.search import with_drawn_network
from h3sim.browser.above_the_fold import guesses
from h3sim.cli.main import main
from h3sim.load.load_config import LoadConfig
from h3sim.page import MarksFrom
from h3sim.page.model import marked
from h3sim.study.fidelity import Grade
from h3sim.study.runner import LoadTask
from h3sim.values.units import ms
from tests.helpers import unworded
from tests.recordings import without_facts
from tests.unit.test_recorded_load import HAR, entry, har_file

if TYPE_CHECKING:
    from pathlib import Path

    from h3sim.engine import LoadSpec
    from h3sim.page import Page


QUICK: dict[str, Any] = {"schemes": ["fifo", "rr", "chrome-eps"], "n_seeds": 4}
SHORT = ["--seeds", "4", "--scheme", "fifo,chrome-eps"]


def judged_har(folder: Path) -> Path:
    """Write a HAR of five responses: of fewer it cannot be judged how well a replay fits."""
    more = [entry(f"/{n}.png", 255 + 40 * n, 6_000, send=0, wait=32, receive=20) for n in range(3)]
    return har_file(folder, {"log": {**HAR["log"], "entries": [*HAR["log"]["entries"], *more]}})


def test_one_command_makes_of_a_har_a_table_a_picture_and_a_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    path, seen = judged_har(tmp_path), tmp_path / "seen.txt"
    seen.write_text("/\na.png\n", encoding="utf-8")
    marks = ["--above-the-fold", str(seen)]
    assert main(["recommend", str(path), *SHORT, *marks]) == 0
    assert capsys.readouterr().err == ""
    assert sorted(file.name for file in tmp_path.iterdir()) == sorted(
        [path.name, seen.name]
    )  # no file unasked
    files = ["--plot", "shop.png", "--report", "shop.html"]
    assert main(["recommend", str(path), *SHORT, *marks, *files]) == 0
    printed = capsys.readouterr()
    lines = printed.out.splitlines()
    assert lines[0].startswith("The replay fits the recording ")
    assert "shop.example: 5 resources, 117,800 bytes, from har" in lines
    assert any(line.startswith("all resources: recorded 419 ms, replayed ") for line in lines)
    assert any(line.startswith("chrome-eps ") for line in lines)
    words = " ".join(printed.out.split())
    assert "less ByteIndex above the fold than " in words
    assert "RTT and rate varied by up to 2 times" in words
    assert (tmp_path / "shop.png").read_bytes().startswith(b"\x89PNG")
    assert "<html" in (tmp_path / "shop.html").read_text(encoding="utf-8")
    assert printed.err.splitlines() == ["wrote shop.png", "wrote shop.html"]


def test_every_error_of_a_har_and_of_the_options_is_reported(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    broken = {"log": {"entries": [{"request": 5}, {"request": {"url": "https://a.example/"}}]}}
    path = har_file(tmp_path, broken)
    options = [
        "--seeds",
        "0",
        "--network-uncertainty",
        "0.5",
        "--plot",
        "x.gif",
        "--scheme",
        "nope",
    ]
    assert main(["recommend", str(path), *options]) == 2
    assert unworded(capsys.readouterr().err.splitlines()) == unworded(
        [
            f"h3sim recommend: {path}: log.entries[0].request: is 5",
            f"h3sim recommend: {path}: log.entries[0].request.url: skipped: is missing",
            f"h3sim recommend: {path}: contains no request with an HTTP response",
            "h3sim recommend: no scheme is called 'nope' (`h3sim list schemes` shows all)",
            "h3sim recommend: --seeds: must be at least 1, is 0",
            "h3sim recommend: --network-uncertainty: must be 1 to 100, is 0.5",
            "h3sim recommend: --plot: must end in .png, .svg, .pdf, is 'x.gif'",
        ]
    )


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("no-such.har", "no-such.har: cannot be read: No such file or directory"),
        ("davies", "no page is called 'davies'; "),
        ("no-such.json", "no-such.json: cannot be read: No such file or directory"),
    ],
)
def test_what_is_not_there_is_reported(
    name: str, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["recommend", name]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(f"h3sim recommend: {message}")


def test_advice_as_json_holds_the_sentence_and_what_it_rests_on(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["recommend", str(judged_har(tmp_path)), *SHORT, "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert (document["format"], document["above_the_fold_from"]) == ("h3sim-advice/2", "heuristic")
    assert document["sentence"]
    assert {row["milestone"] for row in document["fidelity"]["milestones"]} == {
        *("all resources", "last above the fold", "load event"),
    }
    assert document["fidelity"]["grade"] in ("good", "fair")
    assert document["import"]["dialect"] == "har"
    assert {row["scheme"] for row in document["found"]["rows"]} == {"fifo", "chrome-eps"}


def test_without_anything_seen_all_resources_are_compared() -> None:
    page = h3sim.load_page("davies-meenan")
    nothing: Any = {"above_the_fold": False, "viewport": None}
    blind = replace(page, resources=tuple(replace(r, **nothing) for r in page.resources))
    advice = h3sim.recommend(blind, **QUICK)
    assert advice.found.which == "all"
    assert "ByteIndex of all resources" in advice.sentence


def test_a_load_that_no_seed_changes_is_reported_without_an_interval() -> None:
    advice = h3sim.recommend("davies-meenan", network_within=1, **QUICK)
    assert [row.pairs for row in advice.found.rows] == [1, 1, 1]
    assert advice.sentence == (
        "fifo is the best scheme for davies-meenan: 8.7 % less ByteIndex above the fold than"
        " chrome-eps (no seed changes it)."
    )


def test_schemes_that_cannot_be_distinguished_are_named() -> None:
    page = h3sim.load_page("davies-meenan")
    one = replace(page, resources=page.resources[:1])
    advice = h3sim.recommend(one, **QUICK)
    assert advice.sentence.startswith("fifo, rr and chrome-eps are equal for davies-meenan")


def test_a_recommendation_is_a_search(tmp_path: Path) -> None:
    page = h3sim.importers.read_har(har_file(tmp_path))
    reported: dict[str, Any] = {"schemes": ["fifo", "rr"], "n_seeds": 4, "networks": ["cable"]}
    found = h3sim.search(page, **reported)
    advice = h3sim.recommend(page, **reported)
    assert advice.found.to_dict() == found.to_dict()
    assert advice.sentence == found.verdict


def test_an_estimated_network_is_varied_unless_one_is_named(tmp_path: Path) -> None:
    page = h3sim.importers.read_har(har_file(tmp_path))
    reported: dict[str, Any] = {"schemes": ["fifo", "rr"], "n_seeds": 4, "networks": []}
    within = [
        search(page, **reported).network_within,
        search(page, network="cable", **reported).network_within,
        search(page, network_within=1.5, **reported).network_within,
        h3sim.recommend("davies-meenan", **reported).network_within,
    ]
    assert within == [2, 1, 1.5, 1]


# Recorded and replayed


def test_an_import_begins_with_how_well_its_replay_fits(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = judged_har(tmp_path)
    assert main(["import", str(path), "--no-truncate"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("The replay fits the recording ")
    assert [line.partition(", replayed")[0] for line in lines[1:4]] == [
        "load event: recorded 429 ms",
        "last above the fold: recorded 419 ms",
        "all resources: recorded 419 ms",
    ]
    assert main(["import", str(path), "--json"]) == 0
    assert len(json.loads(capsys.readouterr().out)["fidelity"]["milestones"]) == 3


def test_a_replay_that_is_far_off_gives_no_verdict(tmp_path: Path) -> None:
    page = h3sim.importers.read_har(har_file(tmp_path))
    slow = {"/": ms(240), "a.png": ms(9000)}
    assert page.recorded_load is not None
    far = replace(page, recorded_load=replace(page.recorded_load, completed_ns=slow))
    advice = h3sim.recommend(far, **QUICK)
    assert advice.fidelity is not None
    assert advice.fidelity.grade is Grade.POOR
    assert advice.sentence.startswith("No verdict: ")
    assert "best:" not in advice.sentence
    found = search(far, schemes=["fifo", "rr"], networks=[], n_seeds=2)
    assert found.verdict.startswith("No verdict: ")
    assert [found.status(row) for row in found.rows] == ["not judged"] * len(found.rows)


# Networks that are a guess


def resolved(config: LoadConfig) -> LoadSpec:
    page, scheme = h3sim.load_page("davies-meenan"), h3sim.load_scheme("rr")
    return h3sim.load.resolve(page, scheme, config)


@pytest.mark.parametrize("network", ["cable", "marx-2019", "5g"])
def test_a_network_is_drawn_within_the_factor_and_by_the_seed(network: str) -> None:
    spec = resolved(LoadConfig(network=network))
    plain = spec.network
    drawn = [with_drawn_network(replace(spec, seed=seed), 2).network for seed in range(20)]
    again = with_drawn_network(resolved(LoadConfig(network=network, seed=3)), 2).network
    assert again == drawn[3]
    assert len({each.packet_interval_ns for each in drawn}) == 20
    for each in drawn:
        assert 0.49 < each.packet_interval_ns / plain.packet_interval_ns < 2.01
        assert plain.rtt_ns / 2 <= each.rtt_ns <= 2 * plain.rtt_ns


def test_what_is_changed_of_a_network_is_not_changed_twice() -> None:
    config = LoadConfig(network="cable", rate_mbps=10, loss=0.01, seed=1)
    network = with_drawn_network(resolved(config), 2).network
    assert network.down is not None
    assert network.down.rate_bps != 10_000_000
    assert network.down.loss == 0.01


def test_schemes_are_raced_over_guessed_networks_in_pairs() -> None:
    found = search(
        "davies-meenan", schemes=["rr", "fifo"], networks=None, network_within=2, n_seeds=5
    )
    assert found.rows[0].pairs > 1
    assert list(found.robustness) == []


def test_marks_survive_advice(tmp_path: Path) -> None:
    marks = tmp_path / "seen.txt"
    marks.write_text("/\n", encoding="utf-8")
    page, imported = read_subject(har_file(tmp_path), above_the_fold=marks)
    assert imported is not None
    assert page.above_the_fold_from is MarksFrom.HAND
    assert [each.above_the_fold for each in page.resources] == [True, False]


# Guesses of what is above the fold


def foreign_har(folder: Path) -> Page:
    """Return the page of a HAR as other tools write it: without what h3sim knows of the page."""
    load = h3sim.simulate("davies-meenan", scheme="chrome-eps", network="4g")
    return h3sim.importers.read_har(har_file(folder, without_facts(load.to_har())))


GUESSING: dict[str, Any] = {"schemes": ["fifo", "chrome-eps"], "networks": None}


@pytest.mark.parametrize("network", [{}, {"network": "4g"}])
def test_a_verdict_that_another_guess_reverses_is_not_given(
    tmp_path: Path, network: dict[str, Any]
) -> None:
    """The hidden images come first: by the guess they are seen, and fifo is best."""
    page = foreign_har(tmp_path)
    found = h3sim.search(page, **GUESSING, **network)
    assert found.verdict.startswith("No verdict: which scheme is best")
    assert found.best == "fifo"
    assert "chrome-eps with no image above the fold" in found.verdict
    assert {found.status(row) for row in found.rows} == {"not judged"}
    with_rr = h3sim.search(page, **{**GUESSING, "schemes": ["fifo", "chrome-eps", "rr"]}, **network)
    assert "Worse than fifo by any guess: rr." in with_rr.verdict
    assert {row.scheme: with_rr.status(row) for row in with_rr.rows}["rr"] == "worse"
    (behind,) = (row for row in found.rows if row.scheme == "chrome-eps")
    assert behind.low is not None
    assert behind.high is not None
    assert behind.low < 1 < behind.ratio < behind.high
    assert not behind.is_worse
    by_guess = {row.changed: row for row in found.guesses}
    assert by_guess["no image above the fold"].best_there == "chrome-eps"
    assert by_guess["no image above the fold"].loss > 0.2
    assert h3sim.recommend(page, **GUESSING, **network).sentence == found.verdict


def test_a_verdict_that_all_guesses_share_is_given_and_covers_them(tmp_path: Path) -> None:
    page = foreign_har(tmp_path)
    race: dict[str, Any] = {"schemes": ["fifo", "rr"], "baseline": "rr", "networks": None}
    found = h3sim.search(page, network="4g", **race)
    assert found.verdict.startswith("fifo is the best scheme")
    assert "by any guess of the images above the fold" in found.verdict
    lead = found.rows[1]
    for guess in guesses(page) or ():
        ids = {page.resources[index].id for index in guess}
        of_guess = h3sim.search(marked(page, ids, MarksFrom.HAND), network="4g", **race)
        assert not of_guess.guesses
        assert lead.low <= of_guess.rows[1].ratio * (1 + 1e-9)
        assert lead.high >= of_guess.rows[1].ratio * (1 - 1e-9)


def test_marks_that_were_seen_are_no_guess(tmp_path: Path) -> None:
    page = foreign_har(tmp_path)
    ids = {"index.html", "top.js", "font.woff2", "hero.jpg"}
    for source, is_guess in (
        (MarksFrom.HAND, False),
        (MarksFrom.PAGE, False),
        (MarksFrom.HEURISTIC, True),
    ):
        found = h3sim.search(marked(page, ids, source), network="4g", **GUESSING)
        assert bool(found.guesses) is is_guess, source
    assert guesses(h3sim.load_page("davies-meenan")) is None


def test_hints_are_as_unsure_of_the_network_as_its_estimates_are_apart(tmp_path: Path) -> None:
    page = h3sim.importers.read_har(judged_har(tmp_path))
    assert page.recorded_load is not None
    unsure = replace(page, recorded_load=replace(page.recorded_load, network_within=4.5))
    sure = replace(page, recorded_load=replace(page.recorded_load, network_within=1.25))
    few: dict[str, Any] = {"n_seeds": 3, "edits": []}
    within = [
        h3sim.hints(unsure, **few).network_within,
        h3sim.hints(sure, **few).network_within,  # users differ, too
        h3sim.hints(unsure, network="cable", **few).network_within,
        h3sim.hints(unsure, network_within=1, **few).network_within,
    ]
    assert within == [4.5, 2, 2, 1]


def test_hints_advise_nothing_for_images_that_may_be_invisible(tmp_path: Path) -> None:
    page = foreign_har(tmp_path)
    scheme, config = h3sim.load_scheme("chrome-eps"), LoadConfig(network="4g")
    tried = edits_of(LoadTask(h3sim.load.resolve(page, scheme, config)))
    images = [edit.text for edit in tried if ".jpg" in edit.text or ".png" in edit.text]
    alone = ("fetchpriority", "loading", "preload", "compress", "priority")
    assert [text for text in images if any(word in text for word in alone)] == []
    assert tried
