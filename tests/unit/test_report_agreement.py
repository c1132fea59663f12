"""Each kind of report says one thing: its sentence, tables and figures have the same numbers."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pytest

import h3sim
from h3sim.export.qlog_file import write_load_qlog

if TYPE_CHECKING:
    from pathlib import Path

    from h3sim.reporting.document import Report
    from h3sim.values.table import Table

pytestmark = pytest.mark.usefixtures("unpainted")
PAGES = ["davies-meenan", "creative", "http2rulez"]
LOSSY: dict[str, Any] = {"loss": 0.02, "rtt_ms": 50, "schemes": ["rr", "fifo"]}


def column(table: Table[Any], name: str) -> list[Any]:
    return [row[table.columns.index(name)] for row in table]


def number(text: str) -> float:
    return float(text.replace(",", ""))


def drawn(alt: str) -> dict[str, list[float]]:
    """Return the values, and the ends of their intervals, that a figure's words have by scheme."""
    found = re.findall(r"([\w-]+) ([\d.,]+\d|\d)(?: \(([\d.]+) to ([\d.]+)\))?[;.]", alt)
    return {name: [number(part) for part in parts if part] for name, *parts in found}


def check_search(made: Report, sentence: str) -> None:
    (figure,), race = made.parts[0].pictures, made.parts[0].tables[0]
    less, other, low, high = re.findall(
        r": (?:\S+ has )?([\d.]+) % less .*? than (\S+) \(([\d.-]+) to ([\d.-]+) %", sentence
    )[0]
    row = dict(zip(race.columns, race[column(race, "scheme").index(other)], strict=True))
    names = ("ratio to the best", "low", "high")
    for message, name, ratio in zip(
        (less, low, high), names, drawn(figure.alt)[other], strict=True
    ):
        assert number(message) == pytest.approx(100 * (1 - 1 / row[name]), abs=0.06)
        assert ratio == pytest.approx(row[name], rel=0.01)
    assert figure.data == race
    assert f"{row['pairs']} pairs" in sentence


def test_a_search_says_draws_and_lists_the_same_numbers() -> None:
    found = h3sim.search("davies-meenan", n_seeds=16, networks=[], which="all", **LOSSY)
    made = h3sim.report(found)
    assert list(made.verdict) == [found.verdict]
    check_search(made, found.verdict)


def test_a_recommendation_says_what_its_search_says_and_its_examples_have_no_verdict() -> None:
    advice = h3sim.recommend(
        "davies-meenan", n_seeds=16, networks=[], which="all", keep_loads=True, **LOSSY
    )
    made = h3sim.report(advice)
    assert list(made.verdict) == [advice.found.verdict]
    check_search(made, made.verdict[0])
    settings = dict(map(tuple, made.made))
    assert settings["seeds run"].startswith("seeds 0 to ")


@pytest.mark.parametrize("what", ["ByteIndex of all resources", "ByteIndex above the fold"])
def test_a_study_says_draws_and_lists_the_same_numbers_in_each_setting(what: str) -> None:
    study = h3sim.sweep(
        PAGES,
        schemes=["rr", "fifo", "bucket-html"],
        rtt_ms=[20, 80],
        executor="serial",
        progress=False,
    )
    made = h3sim.report(study)
    (part,) = made.parts
    speedups = next(table for table in part.tables if f"Speedups of {what}" in table.title)
    message = [text for text in made.verdict if text.startswith(f"{what}, ")]
    figures = [picture for picture in part.pictures if f"{what}, rtt_ms" in picture.title]
    assert len(message) == len(figures) == 2
    for sentence, figure in zip(message, figures, strict=True):
        (setting,) = re.findall(r"rtt_ms \d+", sentence)
        assert setting in figure.title
        rows = [row for row in speedups if row[0] == setting]
        assert list(figure.data) == rows
        row = max((row for row in rows if row[1] != "rr"), key=lambda row: row[4])
        assert row[1] in sentence
        assert f"{row[4]:.2f} ({row[5]:.2f} to {row[6]:.2f}, 95 % interval" in sentence
        assert drawn(figure.alt)[row[1]] == pytest.approx(row[4:7], rel=0.01)


def test_a_study_with_few_pages_has_no_interval_in_any_of_the_three() -> None:
    study = h3sim.sweep(PAGES[:2], schemes=["rr", "fifo"], executor="serial", progress=False)
    made = h3sim.report(study)
    assert "too few for an interval" in made.verdict[1]
    assert set(column(made.parts[0].tables[0], "low")) == {None}
    assert all(len(ends) == 1 for ends in drawn(made.parts[0].pictures[0].alt).values())


def test_loads_of_a_page_say_and_list_the_same_numbers_with_their_uncertainty() -> None:
    loads = [h3sim.simulate("davies-meenan", scheme=name) for name in ("rr", "fifo")]
    made = h3sim.report(loads)
    (part,) = made.parts
    indexes = dict(
        zip(
            column(part.tables[0], "load"), column(part.tables[0], "ByteIndex all, ms"), strict=True
        )
    )
    best, index, ratio = re.findall(
        r"all resources: (\S+) is fastest, with a ByteIndex of ([\d,.]+) ms, ([\d.]+) times",
        made.verdict[2],
    )[0]
    assert best == min(indexes, key=indexes.__getitem__)
    assert number(index) == pytest.approx(indexes[best], abs=0.5)
    assert number(ratio) == pytest.approx(indexes["rr"] / indexes[best], abs=0.005)
    assert "no interval" in made.verdict[-1]
    # The named resources and the others add up to the difference, to half a millisecond each.
    between = r"Of the ([\d,]+) ms between rr and fifo, (.*)\."
    ahead, parts = re.findall(between, made.verdict[1])[0]
    sums = [number(each) for each in re.findall(r" for (-?[\d,]+) ms", parts)]
    above = "ByteIndex above the fold, ms"
    rr, fifo = column(part.tables[0], above)
    assert number(ahead) == pytest.approx(rr - fifo, abs=0.5)
    assert sum(sums) == pytest.approx(rr - fifo, abs=0.5 * len(sums))
    assert len(sums) == 4
    # Of 170 kB above the fold, the image of 104,484 bytes is complete 720 ms sooner.
    hero = "8 hero.jpg accounts for 443 ms (complete 720 ms earlier), 2 top.js for"
    assert parts.startswith(hero)
    curves = next(each for each in part.pictures if "share of the bytes" in each.title)
    ended = {name: curves.data[-1][1 + position] for position, name in enumerate(indexes)}
    assert ended == pytest.approx({load.scheme.name: load.page_load_ms for load in loads})


def test_a_load_and_a_log_of_it_say_and_list_the_same_end(tmp_path: Path) -> None:
    load = h3sim.simulate("davies-meenan", network="4g", record_packets=True)
    write_load_qlog(load, tmp_path / "load.qlog", dialect="0.3")
    for of in (load, h3sim.read_qlog(tmp_path / "load.qlog")):
        made = h3sim.report(of)
        (ended,) = re.findall(r"complete ([\d,.]+) ms after", made.verdict[0])
        tables = [each.data for each in made.parts[0].pictures]
        finished = [
            column(table, name)
            for table in tables
            for name in ("finished", "finished ms")
            if name in table.columns
        ]
        assert finished
        for values in finished:
            assert max(values) == pytest.approx(number(ended), abs=0.5)
