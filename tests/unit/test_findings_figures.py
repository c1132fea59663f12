"""The figures that findings are judged by, of loads that are made up."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from h3sim.papers import experiments, marx, minor_studies, sander
from h3sim.papers.estimates import Estimate, Loads, Resampling

Row = dict[str, Any]


def load(page: str, scheme: str, **more: Any) -> Row:
    return {"page": page, "scheme": scheme, "seed": 0, "page_bytes": 400_000} | more


def of_table_2(page: str, scheme: str, send_buffer_kb: float, atf_ms: float, **more: Any) -> Row:
    return load(
        page,
        scheme,
        send_buffer_kb=send_buffer_kb,
        byte_index_sampled_all_ms=1000.0,
        byte_index_sampled_atf_ms=atf_ms,
        page_atf_bytes=100_000,
        page_load_ms=2000.0,
        **more,
    )


def table_2_rows(page: str, atf_ms: dict[str, tuple[float, float]], **more: Any) -> list[Row]:
    return [
        of_table_2(page, scheme, send_buffer_kb, at, **more)
        for scheme, both in atf_ms.items()
        for send_buffer_kb, at in zip((0, 1000), both, strict=True)
    ]


TWO = {"rr": (1000.0, 900.0), "fifo": (500.0, 500.0), "firefox": (800.0, 500.0)}


def test_table_2_has_means_of_ratios_to_rr_without_a_buffer() -> None:
    slow = {"rr": (1000.0, 900.0), "fifo": (2000.0, 2000.0), "firefox": (1000.0, 500.0)}
    loads = Loads([*table_2_rows("a", TWO), *table_2_rows("b", slow)])
    paper = {"atf.fifo": 1.9, "atf.firefox": 1.2, "1000k.fifo": 1.5, "1000k.firefox": 1.2}
    found = marx.table_2(loads, paper)
    assert found["atf.fifo"].value == (2 + 0.5) / 2
    assert found["1000k.firefox"].value == 2.0
    assert found["tau.atf"].value == 1.0  # 1.25 against 1.125
    assert found["tau.1000k"].value == -1.0
    assert found["lowered-by-buffer"].value == 0  # fifo stays, firefox does not count
    assert found["slower-than-rr"].value == 2 / 12
    assert found["least-mean"].value == 1.0
    assert found["unequal-downloads"].value == 0


def test_sizes_of_pages_are_next_to_what_they_gain() -> None:
    schemes = dict.fromkeys(("wrr", "s+", "firefox", "fifo"), (500.0, 500.0))
    small = table_2_rows("a", {"rr": (1000.0, 1000.0), **schemes})
    large = [row | {"page": "b", "page_bytes": 2_000_000} for row in small]
    found = marx.scatter(Loads([*small, *large]), {})
    assert (found["small.pages"].value, found["large.pages"].value) == (1, 1)
    assert (found["small.below-fold"].value, found["large.below-fold"].value) == (0.75, 0.95)
    assert found["small.atf"].value == found["least-greatest"].value == 2
    assert found["best-on-most"].value == 1


def test_a_buffer_changes_speedups_by_what_it_changes_times() -> None:
    rows = table_2_rows("davies-meenan", TWO)
    found = marx.buffers(Loads(rows), {})
    # fifo keeps 2; firefox goes from 1.25 to 2.
    assert found["change.1000"].value == pytest.approx((0 + 0.6) / 2)
    assert found["kept.1000"].value == pytest.approx((1 + 1.6) / 2)
    assert found["davies-meenan.0"].value == found["davies-meenan.1000"].value == 2
    assert found["lose-more"].value == 0


def test_packets_in_threes_are_a_share_of_all() -> None:
    rows = [
        load("p", s, transport=t, hol_packets_in_threes=n, packets_sent=100)
        for (s, t), n in zip(
            [("rr", "quic"), ("rr", "tcp"), ("fifo", "quic"), ("fifo", "tcp")],
            (1, 60, 40, 41),
            strict=True,
        )
    ]
    found = marx.jitter(Loads(rows), {})
    assert found["threes.rr.tcp"].value == 0.6
    assert found["threes.fifo.difference"].value == pytest.approx(0.01)


def sander_rows(network: str, speed: float, hol: int, **more: Any) -> list[Row]:
    """Return a page with each scheme: *speed* and *hol* are those of all but Chrome's."""
    schemes = ("chrome", "rr", "wrr", "firefox", "firefox-eps")
    return [
        load(
            more.get("page", "p"),
            f"sander-{scheme}",
            network=network,
            speed_index_ms=1000.0 if scheme == "chrome" else speed,
            first_paint_ms=600.0 if scheme == "chrome" else 550.0,
            hol_sander_stream_bytes=100 if scheme == "chrome" else hol,
            packets_sent=100,
            packets_lost=2,
            packets_longest_burst=2,
            page_load_ms=more.get("page_load_ms", 5000.0),
            seed=more.get("seed", 0),
            page_bytes=more.get("page_bytes", 400_000),
        )
        for scheme in schemes
    ]


def test_changes_are_relative_to_chrome_page_by_page() -> None:
    rows = [
        *sander_rows("sander-2mbps-100ms-2pct", 900.0, 50),
        *sander_rows("sander-2mbps-100ms-2pct", 1200.0, 100, page="q"),
    ]
    found = sander.cells(Loads(rows), {})
    assert found["2pct.rr.hol"].value == pytest.approx(-0.25)
    assert found["2pct.rr.hol-equal"].value == 0.5
    assert found["2pct.firefox.faster"].value == 0.5
    assert found["2pct.firefox.slower"].value == 0.5
    assert found["2pct.firefox.balance"].value == 0
    assert found["2pct.loss"].value == 0.02
    assert found["2pct.eps-to-tree"].value == 0
    assert found["2pct.rr.hol-above"].value == 0


def test_first_paint_accounts_for_what_it_moves_of_the_speed_index() -> None:
    rows = [
        *sander_rows("sander-2mbps-100ms-2pct", 900.0, 50),
        *sander_rows("sander-2mbps-100ms-2pct", 800.0, 50, page="q"),
    ]
    found = sander.cells(Loads(rows), {})
    assert found["2pct.rr.si-ms"].value == -150
    assert found["2pct.rr.paint-ms"].value == -50
    assert found["2pct.rr.paint-share"].value == pytest.approx(1 / 3)


def test_browsers_schemes_are_next_to_chromes_in_the_same_client_and_network() -> None:
    times = {("off", "chrome-h2"): 100.0, ("off", "edge-h2"): 150.0}
    times |= {("chrome-95", "chrome-h2"): 200.0, ("chrome-95", "edge-h2"): 220.0}
    rows = [
        load(
            "p",
            scheme,
            network="cable",
            tight_mode=mode,
            loss=loss,
            page_bytes=400_000,
            speed_index_ms=at,
            page_load_ms=2 * at + (10 if scheme == "edge-h2" else 0),
        )
        for (mode, scheme), at in times.items()
        for loss in (0.0, 0.02)
    ]
    rows += [
        row | {"scheme": s}
        for row in rows
        for s in ("safari-h2", "firefox-h2")
        if row["scheme"] == "chrome-h2"
    ]
    found = minor_studies.browsers(Loads(rows), {})
    assert found["holding.rr.slower"].value == pytest.approx(0.1)
    assert found["eager.rr.slower"].value == pytest.approx(0.5)
    assert found["rr.slower"].value == pytest.approx(0.3)
    assert found["rr.load-slower"].value == pytest.approx((0.55 + 0.125) / 2)
    assert found["mean.firefox"].value == 0


def test_a_page_and_seed_that_one_scheme_did_not_finish_is_left_out_for_all() -> None:
    network = "sander-2mbps-100ms-2pct"
    rows = [
        *sander_rows(network, 900.0, 50),
        *sander_rows(network, 100.0, 50, seed=1, page_load_ms=300_001.0),
        *sander_rows(network, 100.0, 50, seed=2)[:-1],
    ]
    found = sander.cells(Loads(rows), {})
    assert found["2pct.rr.si"].value == pytest.approx(-0.1)


def test_a_cell_states_what_share_of_its_pages_and_seeds_is_left_out() -> None:
    network = "sander-2mbps-100ms-2pct-burst15"
    rows = [
        row
        for seed in range(4)
        for row in sander_rows(network, 900.0, 50, seed=seed)
        # The connection of one load timed out, so it has no row.
        if (seed, row["scheme"]) != (3, "sander-rr")
    ]
    assert sander.cells(Loads(rows), {})["burst15.left-out"].value == 0.25


def test_rr_lags_behind_firefox_by_the_difference_of_their_changes() -> None:
    rows = sander_rows("sander-2mbps-100ms-2pct", 900.0, 50)
    for row in rows:
        row["speed_index_ms"] = {"sander-rr": 1300.0, "sander-firefox": 1100.0}.get(
            row["scheme"], 1000.0
        )
    found = sander.cells(Loads(rows), {})
    assert found["2pct.rr-to-firefox"].value == pytest.approx(0.2)
    assert found["2pct.rr-to-firefox-eps"].value == pytest.approx(0.3)
    assert found["2pct.eps-to-tree"].value == pytest.approx(-0.1)


def test_the_interval_of_a_figure_covers_other_seeds_as_well_as_other_pages() -> None:
    def rows(spread_ms: float) -> list[Row]:
        return [
            load(f"p{page}", "rr", ms=1000.0 + (spread_ms if seed % 3 else 0), seed=seed)
            for page in range(6)
            for seed in range(4)
        ]

    def interval(spread_ms: float) -> Estimate:
        loads = Loads(rows(spread_ms))
        return Resampling(loads).medians(loads, "ms").mean()

    # All pages are alike, so that only other seeds can make a difference.
    assert interval(0) == Estimate(1000.0, 1000.0, 1000.0)
    found = interval(100)
    assert found.low is not None
    assert found.high is not None
    assert (found.low, found.high) == (1000.0, 1100.0)


def test_a_page_without_a_value_is_left_out_of_its_own_samples() -> None:
    loads = Loads([load(f"p{n}", "rr", ms=None if n == 5 else 10.0 * n) for n in range(6)])
    found = Resampling(loads).medians(loads, "ms").median()
    assert found.value == 20
    assert found.low is not None


def test_correlations_are_within_pages_and_reported_by_size() -> None:
    rows = []
    for page, n_bytes, sign in (("small", 100_000, 1), ("large", 2_000_000, -1)):
        for n, loss in enumerate(("", "-1pct", "-2pct", "-5pct")):
            network = f"sander-2mbps-100ms{loss}"
            more = {"page": page, "page_bytes": n_bytes}
            rows += sander_rows(network, 1000.0 + sign * 10 * n, 100 - 10 * n, **more)
    found = sander.correlations(Loads(rows), {})
    assert found["rho.si-loss.small"].value == pytest.approx(1)
    assert found["rho.si-loss.large"].value == pytest.approx(-1)
    assert found["rho.loss-hol.all"].value == pytest.approx(-1)
    assert found["rho.si-hol.large"].value == pytest.approx(1)
    assert found["rr.fall"].value == pytest.approx(0.3)


def test_the_map_names_the_turn_with_the_least_mean() -> None:
    rows = [
        load(
            "p",
            scheme,
            rate_mbps=2,
            rtt_ms=20,
            loss=loss,
            mean_loss_burst=1,
            byte_index_all_ms=index,
            speed_index_ms=index,
            hol_sander_stream_bytes=0,
        )
        for loss, indexes in ((0.0, (100.0, 150.0)), (0.05, (100.0, 80.0)))
        for scheme, index in zip(("fifo", "sander-rr"), indexes, strict=True)
    ]
    none, lossy = minor_studies.cells_of(Loads(rows), "byte-index")
    assert (none.best, lossy.best) == ("fifo", "sander-rr")
    assert none.ratios["sander-rr"].value == pytest.approx(1.5, rel=0.01)
    found = minor_studies.loss_map(Loads(rows), {})
    assert found["shares-best.byte-index"].value == found["lossy-cells.byte-index"].value == 1
    assert found["shares-best.hol"].value == 0


def test_remarks_count_networks_in_which_sharing_wins_and_surely_so() -> None:
    rows = [
        load(
            f"p{page}",
            scheme,
            rate_mbps=2,
            rtt_ms=20,
            loss=loss,
            mean_loss_burst=1,
            byte_index_all_ms=index,
            speed_index_ms=None,
            hol_sander_stream_bytes=0,
        )
        for page in range(6)
        for loss, indexes in ((0.0, (999.0, 1499.0)), (0.05, (999.0, 799.0)))
        for scheme, index in zip(("fifo", "sander-rr"), indexes, strict=True)
    ]
    without, lossy, *_ = minor_studies.map_remarks(Loads(rows))
    assert "in 0 of 1 networks, with an interval below 1 in 0; the most it gains is 0%" in without
    assert "in 1 of 1 networks, with an interval below 1 in 1; the most it gains is 20%" in lossy


def test_remarks_name_uses_of_the_flag_that_are_surely_better_or_worse() -> None:
    figures = {
        "none.si": Estimate(-0.1, -0.2, -0.05),
        "all.si": Estimate(0.1, 0.05, 0.2),
        "images.si": Estimate(0.1, -0.05, 0.2),
    }
    assert minor_studies.flag_remarks(figures)[0] == (
        "SpeedIndex: of what may be incremental (all, none, documents, images), surely better than"
        ' Chrome\'s choice is "none", surely worse is "all".'
    )


def test_bbr_and_http3_gain_what_the_luckiest_page_gains() -> None:
    rows = [
        load(
            page,
            scheme,
            loss=loss,
            cc=cc,
            transport=transport,
            speed_index_ms=1000.0,
            byte_index_all_ms=1000.0,
            page_load_ms={"tcp": 1000.0, "quic": 1000.0 - gain}[transport] / (1 + (cc == "bbr1")),
        )
        for page, gain in (("a", 100.0), ("b", 500.0))
        for loss in (0.0, 0.02, 0.1)
        for cc in ("cubic", "bbr1")
        for transport in ("tcp", "quic")
        for scheme in ("sander-chrome", "sander-rr")
    ]
    found = minor_studies.protocols(Loads(rows), {})
    assert found["http3-gain"].value == pytest.approx(0.5)
    assert found["bbr-gain"].value == pytest.approx(0.5)
    assert found["small.2pct"].value == pytest.approx(-0.3)
    assert found["byte-index.2pct"].value == 0


def header_row(codec: str, seed: int, **more: Any) -> Row:
    return {
        "page": "p",
        "header_compression": codec,
        "seed": seed,
        "rtt_ms": 100.0,
        "loss": 0.02,
        "table_bytes": 65536,
        "sections": 100,
        "hol_total_ms": 0.0,
        "blocked": 0,
        "n_bytes": 50,
        "uncompressed_bytes": 100,
        "held_decompressed_bytes": 0,
        "n_evicted": None if codec == "hpack" else 0,
    } | more


def test_figures_of_header_compression_are_of_runs_and_of_both_tables() -> None:
    rows = []
    for seed in range(10):
        for table_bytes in (65536, 4096):
            for rtt_ms, loss in itertools.product((100.0, 200.0, 500.0), (0.02, 0.05)):
                path: Row = {"rtt_ms": rtt_ms, "loss": loss, "table_bytes": table_bytes}
                # One run in ten waits, 40 ms a request; QCRAM does if its table evicts entries.
                waits = {"hol_total_ms": 4000.0, "blocked": 3} if seed == 0 else {}
                evicts = {"n_evicted": 7, "blocked": 1} if table_bytes == 4096 else {}
                rows += [
                    header_row("hpack", seed, **path, **waits),
                    header_row("early-qpack", seed, **path),
                    header_row("qcram", seed, **(path | evicts)),
                    header_row("qcram-packets", seed, **path),
                ]
    found = experiments.header_figures(Loads(rows), {})
    delay = found["hpack.delay-100ms-2pct"]
    assert delay.value == pytest.approx(4.0)
    assert delay.low == 0
    # Of five runs of each path the longest is 40 ms, of the other five 0.
    assert found["hpack.longest"].value == pytest.approx(20.0)
    assert found["qcram.quiet"].value == 1
    assert found["qcram.quiet.small"].value == 0
    assert (found["qcram.evicted"].value, found["qcram.evicted.small"].value) == (0, 7)
    assert found["p.qcram.saved"].value == pytest.approx(0.5)
