"""Paired comparisons over any axis of a study."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import pytest

import h3sim
from h3sim.cli.main import main
from h3sim.study import Results, corrected
from h3sim.values.errors import InputError, NothingToMeasureError

if TYPE_CHECKING:
    from pathlib import Path


def study(
    pages: str = "abcde",
    networks: str = "x",
    seeds: int = 1,
    *,
    is_random: bool = True,
    **factors: float,
) -> Results:
    """Return loads of which each level of transport takes so many times what TCP takes."""
    levels = {"tcp": 1.0, **factors}
    rows = [
        {
            "page": page,
            "scheme": "rr",
            "network": network,
            "transport": level,
            "seed": seed,
            # What makes a page, a network or a seed slow is no part of the contrast.
            "ms": factor
            * (1 + position) ** 2
            * (1 + seed * is_random)
            * (10 if network == "x" else 30),
        }
        for position, page in enumerate(pages)
        for network in networks
        for level, factor in levels.items()
        for seed in range(seeds)
    ]
    lengths = {"page": len(pages), "network": len(networks), "transport": len(levels)}
    axes = [name for name, n in (lengths | {"seed": seeds}).items() if n > 1]
    return Results.of(rows, axes=axes)


def test_pairs_cancel_what_loads_have_in_common() -> None:
    (row,) = study(seeds=3, quic=0.5).compare("tcp", over="transport", value="ms")
    assert (row.level, row.pairs, row.clusters, row.cluster) == ("quic", 15, 5, "page")
    assert row.geometric == pytest.approx(2)
    assert row.pairing == "page, seed"
    assert [row.low, row.high] == pytest.approx([2, 2])
    assert row.effect == 1
    assert row.refusal == ""


def test_seeds_that_change_nothing_are_one_load_however_many_settings_are_pooled() -> None:
    results = study(pages="a", networks="xy", seeds=9, is_random=False, quic=0.5)
    (row,) = results.compare("tcp", over="transport", value="ms", pool=["network"])
    assert (row.clusters, row.pairs, row.low, row.p) == (1, 18, None, None)
    assert row.refusal.startswith("no seed changes the result")


def test_each_setting_has_rows_of_its_own_and_p_is_corrected_for_all() -> None:
    rows = study(networks="xy", quic=0.5, sctp=2.0).compare(
        "tcp", over="transport", value="ms", by=["network"]
    )
    assert [(row.setting, row.level) for row in rows] == [
        *(("network x", "quic"), ("network x", "sctp")),
        *(("network y", "quic"), ("network y", "sctp")),
    ]
    # Five pages that agree: Wilcoxon's p is 2 / 2^5, and there are four rows.
    assert {row.p_corrected for row in rows} == {4 * 2 / 2**5}


def test_axes_that_nobody_named_are_listed() -> None:
    results = study(networks="xy", quic=0.5)
    with pytest.raises(InputError, match="by: the loads differ in network, too"):
        results.compare("tcp", over="transport", value="ms")
    with pytest.raises(InputError, match="by: the loads differ in network, transport, too"):
        results.compare("rr", value="ms")
    (pooled,) = results.compare("tcp", over="transport", value="ms", pool=["network"])
    assert (pooled.pairs, pooled.clusters) == (10, 5)
    (one,) = results.filter(network="y").compare("tcp", over="transport", value="ms")
    assert one.pairs == 5


@pytest.mark.parametrize(
    ("results", "message"),
    [
        (study(pages="ab", quic=0.5), "2 independent pages: an interval takes 3 or more"),
        (study(pages="a", quic=0.5), "1 independent seed: an interval takes 3 or more"),
        (study(pages="a", seeds=9, is_random=False, quic=0.5), "no seed changes the result"),
    ],
)
def test_too_few_clusters_are_refused_in_words(results: Results, message: str) -> None:
    (row,) = results.compare("tcp", over="transport", value="ms")
    assert (row.low, row.high) == (None, None)
    assert row.refusal.startswith(message)
    assert row.geometric == pytest.approx(2)


def test_an_edited_page_is_compared_with_its_original_over_seeds() -> None:
    slower = {0: 1.0, 1: 1.1, 2: 1.2, 3: 1.3}
    rows = [
        {"page": page, "scheme": "rr", "seed": seed, "ms": 100 * (factor if page == "new" else 1)}
        for page in ("old", "new")
        for seed, factor in slower.items()
    ]
    results = Results.of(rows, axes=["page", "seed"])
    (row,) = results.compare("old", over="page", value="ms")
    assert (row.level, row.cluster, row.clusters, row.pairing) == ("new", "seed", 4, "seed")
    mean = math.prod(slower.values()) ** (1 / 4)
    assert row.geometric == pytest.approx(1 / mean)
    assert row.low is not None
    assert row.low < 1 / mean < (row.high or 0)


def test_errors_are_reported_together() -> None:
    results = study(quic=0.5)
    with pytest.raises(InputError) as caught:
        results.compare("sctp", over="transport", value="ms", by=["netwrk"])
    assert caught.value.lines()[0] == (
        "baseline: no load has transport 'sctp'; there are 'tcp', 'quic'"
    )
    assert caught.value.lines()[1].startswith("by: there is no column 'netwrk'")
    with pytest.raises(InputError, match="over: must be an axis whose values differ in kind"):
        results.compare(0, over="seed", value="ms", pool=["transport"])
    with pytest.raises(InputError, match="over: there is no column 'cc'"):
        results.compare("bbr", over="cc", value="ms", pool=["transport"])
    empty = Results.of([{**row, "ms": None} for row in results], axes=results.axes)
    with pytest.raises(NothingToMeasureError, match="no load has ms"):
        empty.compare("tcp", over="transport", value="ms")


STUDY = """
format = "h3sim-study/1"
pages = ["davies-meenan", "creative"]
schemes = ["rr", "fifo"]

[settings]
network = "cable"

[axes]
rtt_ms = [20, 60]
"""


def test_the_command_compares_over_any_axis(tmp_path: Path, capsys: Any) -> None:
    path = tmp_path / "study.toml"
    path.write_text(STUDY, encoding="utf-8")
    run = ["sweep", str(path), "-j", "1"]
    assert main([*run, "--compare", "rtt_ms=60"]) == 2
    assert "the loads differ in scheme, too" in capsys.readouterr().err
    assert main([*run, "--compare", "loss=0", "--by", "scheme", "--pool", "cc"]) == 2
    lines = capsys.readouterr().err.splitlines()
    assert [line.partition(": no axis")[0] for line in lines[:2]] == [
        *("h3sim sweep: --compare", "h3sim sweep: --pool"),
    ]
    assert main([*run, "--by", "scheme"]) == 2
    assert "--by: " in capsys.readouterr().err
    assert main([*run, "--compare", "rtt_ms=60", "--by", "scheme"]) == 0
    printed = capsys.readouterr().out
    assert "speedups to rtt_ms 60" in printed
    results = h3sim.sweep(
        ["davies-meenan", "creative"],
        schemes=["rr", "fifo"],
        network="cable",
        rtt_ms=[20, 60],
        executor="serial",
        progress=False,
    )
    for row in results.compare(60, over="rtt_ms", by=["scheme"]):
        assert f"{row.geometric:.3f}" in printed
    assert "2 independent pages" in " ".join(printed.split())


def _of_six_pages(*schemes: str) -> Results:
    """Rows of six pages, on which each scheme is faster than the one before it."""
    rows = [
        {"page": f"p{page}", "scheme": scheme, "seed": 0, "ms": float(100 + page - 10 * number)}
        for page in range(6)
        for number, scheme in enumerate(schemes)
    ]
    return Results.of(rows, axes=["page", "scheme"])


def test_without_a_baseline_all_values_are_compared_with_each_other() -> None:
    rows = _of_six_pages("a", "b", "c").compare(None, value="ms")
    assert [(row.baseline, row.level) for row in rows] == [("a", "b"), ("a", "c"), ("b", "c")]
    assert all(row.geometric > 1 for row in rows)
    # All six agree: p is 2 / 2^6, and Holm's factor for the smallest of three is 3.
    assert {(row.p, row.p_least, row.p_corrected) for row in rows} == {(2 / 64, 2 / 64, 6 / 64)}


def test_corrections_differ_and_may_cover_several_comparisons() -> None:
    results = _of_six_pages("a", "b", "c")
    for correction in ("benjamini-hochberg", "none"):
        rows = results.compare(None, value="ms", correction=correction)
        # Three equal p: by Benjamini and Hochberg they stay as they are.
        assert {row.p_corrected for row in rows} == {2 / 64}
    one, other = (results.filter(scheme=["a", name]).compare("a", value="ms") for name in "bc")
    assert {row.p_corrected for row in one if row.p is not None} == {2 / 64}
    family = [row for row in corrected([*one, *other]) if row.p is not None]
    assert [row.p_corrected for row in family] == [4 / 64, 4 / 64]
    with pytest.raises(InputError, match="correction: "):
        results.compare("a", value="ms", correction="bonferroni")  # type: ignore[arg-type]
