"""Pairs agree in everything but the compared axis, wherever loads are compared."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

import h3sim
from h3sim import catalog
from h3sim.headers import HeaderCompression
from h3sim.load.figures import FIGURES
from h3sim.schedulers import FifoScheduler
from h3sim.study import Results
from h3sim.study.code_identity import CodeDigests
from h3sim.study.pairing import DETERMINED_BY, varying
from h3sim.transport.congestion import NewRenoController
from h3sim.values.errors import InputError, NothingToMeasureError
from tests.helpers import page_of

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

BIG = page_of(
    {"id": "/", "kind": "document", "bytes": 14_000},
    {"id": "a", "kind": "image", "bytes": 60_000, "discovered": {"by": "/", "at": "complete"}},
    {"id": "b", "kind": "script", "bytes": 30_000, "discovered": {"by": "/", "at": "complete"}},
    name="big",
)


def sweep(*pages: Any, **options: Any) -> Results:
    return h3sim.sweep(list(pages) or [BIG], executor="serial", **options)


def rows_of(**columns: Any) -> Results:
    """Return a study of two schemes on three pages and two seeds; fifo halves what rr takes."""
    rows = [
        {"page": page, "scheme": scheme, "seed": seed, **columns}
        | {"ms": (100.0 + number + seed) / (2 if scheme == "fifo" else 1)}
        for number, page in enumerate("abc")
        for scheme in ("rr", "fifo")
        for seed in (0, 1)
    ]
    return Results.of(rows, axes=["page", "scheme", "seed"])


RR_ON_WIFI = sweep(schemes="rr", network="wifi-lossy", seeds=2)
FIFO_ON_4G = sweep(schemes="fifo", network="4g", seeds=2)
APART = RR_ON_WIFI.join(FIFO_ON_4G)


def test_an_axis_appears_by_joining_and_what_follows_from_it_does_not() -> None:
    # Rate, round-trip time, loss and reordering differ too, but these are the network's.
    assert APART.axes == ("seed", "network", "scheme")
    same = RR_ON_WIFI.join(sweep(schemes="fifo", network="wifi-lossy", seeds=2))
    assert same.axes == ("seed", "scheme")


CALLS: dict[str, Callable[[Results], Any]] = {
    "compare": lambda results: results.compare("rr"),
    "compare over": lambda results: results.compare("rr", over="scheme"),
    "power": lambda results: results.power(),
    "ranks": lambda results: results.ranks(),
    "cdf": lambda results: results.plot.cdf(),
    "forest": lambda results: results.plot.forest(),
    "lines": lambda results: results.plot.lines("page"),
    "means": lambda results: results.plot.lines("page", baseline=None),
    "heat": lambda results: results.plot.heat("scheme", "page"),
    "scatter": lambda results: results.plot.scatter(),
    "buffers": lambda results: results.plot.buffers(),
    "figure of ranks": lambda results: results.plot.ranks(),
}


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_loads_over_two_networks_are_never_compared_unasked(call: Callable[[Results], Any]) -> None:
    with pytest.raises(InputError, match="the loads differ in network, too"):
        call(APART)


def test_loads_that_never_agree_have_no_pair_and_the_column_is_named() -> None:
    for compare in (
        lambda: APART.compare("rr", pool=["network"]),
        lambda: APART.relative_medians("rr"),
        lambda: APART.plot.cdf(pool=["network"]),
        lambda: APART.plot.scatter(pool=["network"]),
    ):
        with pytest.raises(NothingToMeasureError, match="they never agree in network"):
            compare()


def test_a_dataset_has_a_dimension_for_each_column_that_varies() -> None:
    data = APART.to_xarray("page_load_ms")["page_load_ms"]
    assert dict(data.sizes) == {"seed": 2, "network": 2, "scheme": 2}
    # Only two of the four combinations were loaded.
    assert int(data.notnull().sum()) == 4
    where = {"network": "4g", "scheme": "fifo", "seed": 1}
    (row,) = APART.filter(**where)
    assert float(data.sel(where)) == row["page_load_ms"]


def test_medians_are_over_the_seeds_of_one_network() -> None:
    one = sweep(schemes=["rr", "fifo"], network="wifi-lossy", seeds=2)
    other = sweep(schemes=["rr", "fifo"], network="4g", seeds=2)
    rows = one.join(other).relative_medians("rr")
    assert [(row.setting, row.scheme, row.n) for row in rows] == [
        *(("network=wifi-lossy", "rr", 2), ("network=wifi-lossy", "fifo", 2)),
        *(("network=4g", "rr", 2), ("network=4g", "fifo", 2)),
    ]
    alone = [*one.relative_medians("rr"), *other.relative_medians("rr")]
    assert [row.delta for row in rows] == [row.delta for row in alone]


def test_an_edited_page_of_the_same_name_is_no_partner_of_the_original() -> None:
    edited = BIG.with_("a", bytes=30_000, name=BIG.name)
    joined = sweep(schemes="rr").join(sweep(edited, schemes="fifo"))
    with pytest.raises(InputError, match="pages of one name have different contents"):
        joined.compare("rr")
    # Both schemes with both: pairs are of one content each, if the user wants both.
    schemes = ["rr", "fifo"]
    both = sweep(schemes=schemes).join(sweep(edited, schemes=schemes))
    with pytest.raises(InputError, match="page_digest"):
        both.plot.heat("scheme", "page")
    pooled = both.compare("rr", pool=["page_digest"])[1]
    assert pooled.pairs == 2
    alone = [sweep(page, schemes=schemes).compare("rr")[1].geometric for page in (BIG, edited)]
    assert pooled.geometric == pytest.approx((alone[0] * alone[1]) ** 0.5)


def test_rows_of_different_versions_are_no_pairs() -> None:
    joined = rows_of(version="0.1.0").filter(scheme="rr").join(rows_of(version="0.2.0"))
    with pytest.raises(InputError, match="different versions of h3sim"):
        joined.compare("rr", value="ms")
    newest = joined.filter(version="0.2.0").compare("rr", value="ms")[1]
    assert (newest.pairs, newest.geometric) == (6, pytest.approx(2))
    # Versions themselves can be compared.
    (row,) = joined.filter(scheme="rr").compare("0.1.0", over="version", value="ms")
    assert (row.pairs, row.geometric) == (6, 1)


def test_a_study_joined_with_itself_has_as_many_pairs_as_before() -> None:
    results = sweep("davies-meenan", BIG, schemes=["rr", "fifo"], network="4g", seeds=3)
    joined = results.join(results, results)
    assert list(joined) == list(results)
    assert joined.n_merged == 2 * len(results)
    assert "24 repeated loads merged" in repr(joined)
    assert list(joined.compare("rr")) == list(results.compare("rr"))
    assert list(joined.relative_medians("rr")) == list(results.relative_medians("rr"))


def test_a_load_of_two_studies_has_the_metrics_of_both() -> None:
    plain = sweep(schemes=["rr", "fifo"])
    more = sweep(schemes="rr", metrics=["multiplexing_interleaving"])
    joined = plain.join(more)
    assert len(joined) == 2
    first, second = joined
    assert first["multiplexing_interleaving"] == more[0]["multiplexing_interleaving"]
    assert "multiplexing_interleaving" not in second


def test_rows_that_contradict_each_other_are_refused() -> None:
    other = Results.of([{**row, "ms": row["ms"] + 1} for row in rows_of()])
    with pytest.raises(InputError, match="have the same settings, but differ in ms"):
        rows_of().join(other)
    # In one table, too: each pair would meet one baseline or the other.
    both = Results.of([*rows_of(), *other], axes=["page", "scheme", "seed"])
    for call in (both.compare, both.relative_medians):
        with pytest.raises(InputError, match=r"several different loads have .*page 'a'"):
            call("rr", value="ms")
    # If the column in which they differ is named, it is an axis.
    named = Results.of(
        [{**row, "device": name} for name in "xy" for row in (rows_of() if name == "x" else other)],
        axes=["device"],
    )
    assert named.compare("rr", value="ms", pool=["device"])[1].pairs == 12


def test_equal_rows_of_one_table_are_one_load() -> None:
    twice = Results.of([*rows_of(), *rows_of()], axes=["page", "scheme", "seed"])
    assert list(twice.compare("rr", value="ms")) == list(rows_of().compare("rr", value="ms"))


def test_joined_results_keep_resources_and_failed_loads() -> None:
    one = sweep(schemes="rr", resources=True)
    two = sweep(schemes="fifo", resources=True, network="4g")
    resources = one.join(two).resources()
    assert len(resources) == 6
    assert set(resources.column("network")) == {"marx-2019", "4g"}
    failed = sweep(schemes="rr", network="4g", time_limit_s=0.001)
    assert len(failed.errors) == 1
    assert one.join(failed).errors == failed.errors


def test_rows_of_a_frame_are_merged_with_the_rows_that_they_were() -> None:
    pytest.importorskip("pandas")
    rows: Any = RR_ON_WIFI.to_pandas().to_dict("records")
    joined = RR_ON_WIFI.join(Results.of(rows, axes=RR_ON_WIFI.axes))
    assert list(joined) == list(RR_ON_WIFI)


def test_what_follows_from_the_compared_axis_is_no_other_difference() -> None:
    # A loss turns the constant rate into links, which have a controller, a queue and a profile.
    constant, lossy = (sweep(schemes="rr", seeds=3, **options) for options in ({}, {"loss": 0.0}))
    joined = Results.of([*constant, *lossy])
    (row,) = joined.compare(None, over="loss", value="page_load_ms")
    assert (row.level, row.pairs, row.pairing) == (0.0, 3, "seed")
    edited = BIG.with_("a", bytes=30_000, name=BIG.name)
    versions = sweep(schemes="rr").join(sweep(edited, schemes="fifo"), sweep(edited, schemes="rr"))
    digest = BIG.digest
    (row,) = versions.filter(scheme="rr").compare(digest, over="page_digest")
    assert (row.level, row.pairs) == (edited.digest, 1)


def test_tables_that_are_not_of_loads_are_joined_as_they_are() -> None:
    summary = rows_of().summary("ms")
    assert len(summary.join(summary)) == 4


def test_a_frame_that_was_put_together_by_hand_is_no_study_over_its_own_axes() -> None:
    rows = [*RR_ON_WIFI, *FIFO_ON_4G]
    with pytest.raises(InputError, match="the loads differ in network, too"):
        Results.of(json.loads(json.dumps(rows)), axes=["scheme", "seed"]).compare("rr")


STUDIES: list[dict[str, Any]] = [
    {"network": ["marx-2019", "4g", "wifi-lossy", "lte"], "transport": ["tcp", "quic"]},
    {"network": "4g", "transport": ["quic", "tcp", "http1"]},
    {"network": ["4g", "dsl"], "transport_profile": ["default", "quiche-chrome", "linux-tcp"]},
    {"network": "4g", "cc": ["cubic", "bbr", "newreno"]},
    {"cc": ["cubic", "constant"]},
    {"loss": [0.0, 0.02]},
    {"network": ["4g", "cable"], "loss": [0.01, 0.02], "mean_loss_burst": 5, "rtt_ms": [10, 50]},
    {"network": ["4g", "cable"], "queue_bdp": [1, 2]},
    {"network": ["4g", "cable"], "queue_bytes": [20_000, 40_000]},
    {"network": "4g", "queue_discipline": ["drop-tail", "codel"]},
    {"interval_ms": [5, 6]},
    {"packet_bytes": [1000, 1400]},
    {"rate_mbps": [5, 6]},
    {"reorder": [None, "4:1-3"]},
    {"network": "4g", "handshake": ["none", "1-rtt", "0-rtt"]},
    {"network": "4g", "browser": ["replay", "parse"]},
    {"network": "4g", "time_limit_s": [None, 500]},
    {"network": "4g", "send_buffer_kb": [0, 14], "send_buffer_refill": "when-empty"},
    {"schemes": ["rr", "chrome-h2", "firefox", "h2o", "chrome-eps", "h3sim-1", "nghttp2"]},
    {"cells": [{"rtt_ms": 10, "rate_mbps": 5}, {"network": "4g", "loss": 0.02}]},
]


@pytest.mark.parametrize("options", STUDIES, ids=str)
def test_a_study_varies_in_its_own_axes_and_in_what_follows_from_them(options: Any) -> None:
    results = sweep(BIG, "creative", seeds=2, **{"schemes": ["rr", "chrome-eps"]} | options)
    assert not results.errors
    assert varying(results, results.axes) == results.axes


def test_every_column_is_a_metric_or_declared_as_a_setting() -> None:
    metrics = {figure.name for figure in FIGURES}
    for options in ({}, {"network": "4g", "browser": "parse"}):
        columns = sweep(schemes="rr", **options).columns
        assert [name for name in columns if name not in metrics | {*DETERMINED_BY}] == []


def test_the_network_of_a_recording_follows_from_the_page() -> None:
    row = {"scheme": "rr", "seed": 0}
    rows = [
        {**row, "page": "a", "network": "recorded (a)", "rate_mbps": 5.0},
        {**row, "page": "b", "network": "recorded (b)", "rate_mbps": 9.0},
        {**row, "page": "c", "network": "marx-2019", "rate_mbps": 1.12},
    ]
    assert varying(rows) == ("page",)
    assert varying([*rows, rows[0] | {"seed": 1}]) == ("page", "seed")
    # Where pages are compared, what differs is the network as well.
    assert varying(rows, over="page") == ("page", "network")
    given = [
        {**each, "network": name} for each, name in zip(rows, ("4g", "dsl", "4g"), strict=True)
    ]
    assert varying(given) == ("page", "network", "rate_mbps")


def test_two_networks_of_one_name_differ_in_what_they_are() -> None:
    one, two = rows_of(network="mine", rtt_ms=10), rows_of(network="mine", rtt_ms=50)
    with pytest.raises(InputError, match="the loads differ in rtt_ms, too"):
        one.filter(scheme="rr").join(two.filter(scheme="fifo")).compare("rr", value="ms")


def test_what_differs_besides_the_compared_axis_is_named() -> None:
    """Loss and controller were changed together, so no pair shows the effect of the loss."""
    one, two = rows_of(loss=0.01, cc="cubic"), rows_of(loss=0.02, cc="bbr")
    joined = one.join(two).filter(scheme="rr")
    with pytest.raises(InputError, match="the loads differ in cc, too"):
        joined.compare(0.01, over="loss", value="ms")
    with pytest.raises(NothingToMeasureError, match="they never agree in cc"):
        joined.compare(0.01, over="loss", value="ms", pool=["cc"])


class Own(FifoScheduler):
    """Scheduler that a user edits below."""

    n_streams = 1


class OwnController(NewRenoController):
    """Controller that a user edits below."""

    n_packets = 2


FOUR_G, QUICHE = catalog.load_network("4g"), catalog.load_profile("quiche-chrome")
assert FOUR_G.up is not None
ONE_TWO: dict[str, tuple[dict[str, Any], dict[str, Any], str]] = {
    "edited uplink": (
        {"network": FOUR_G},
        {"network": replace(FOUR_G, up=replace(FOUR_G.up, loss=0.05))},
        r"the network 4g \(network_digest: 2 versions of it\)",
    ),
    "edited profile": (
        {"network": "4g", "transport_profile": QUICHE},
        {"network": "4g", "transport_profile": replace(QUICHE, initial_window_bytes=30_000)},
        r"the transport profile quiche-chrome \(profile_digest: 2 versions of it\)",
    ),
    "other codec": (
        {"network": "4g", "header_compression": HeaderCompression(codec="hpack")},
        {"network": "4g", "header_compression": HeaderCompression(codec="hpack", blocks=False)},
        r"the settings of hpack \(codec_digest: 2 versions of it\)",
    ),
}
DIGESTS = (
    *("network_digest", "path_digest", "profile_digest"),
    *("controller_digest", "codec_digest", "scheme_digest"),
)
REFUSING: dict[str, Callable[[Results], Any]] = {
    "compare": lambda results: results.compare("rr"),
    "relative_medians": lambda results: results.relative_medians("rr"),
    "cdf": lambda results: results.plot.cdf(),
}


@pytest.mark.parametrize("call", REFUSING.values(), ids=REFUSING)
@pytest.mark.parametrize("edit", ONE_TWO.values(), ids=ONE_TWO)
def test_what_was_edited_under_its_name_is_no_partner_of_the_original(
    edit: tuple[dict[str, Any], dict[str, Any], str], call: Callable[[Results], Any]
) -> None:
    original, edited, message = edit
    joined = sweep(schemes="rr", **original).join(sweep(schemes="fifo", **edited))
    with pytest.raises((InputError, NothingToMeasureError), match=message):
        call(joined)
    # Each version alone has pairs, and so have both together if the user wants that.
    both = [sweep(schemes=["rr", "fifo"], **options) for options in (original, edited)]
    assert [results.compare("rr")[1].pairs for results in both] == [1, 1]
    (column,) = set(both[0].join(both[1]).axes) - {"scheme"}
    assert both[0].join(both[1]).compare("rr", pool=[column])[1].pairs == 2


@pytest.mark.parametrize("call", REFUSING.values(), ids=REFUSING)
def test_a_scheme_edited_under_its_name_is_another_one(call: Callable[[Results], Any]) -> None:
    fifo, chrome = catalog.load_scheme("fifo"), catalog.load_scheme("chrome-eps")
    edited = replace(chrome, name="fifo")
    joined = sweep(schemes=["rr", fifo]).join(sweep(schemes=edited))
    message = r"the scheme fifo \(scheme_digest: 2 versions of it\)"
    with pytest.raises((InputError, NothingToMeasureError), match=message):
        call(joined)
    # Remarks are no rules.
    remarked = replace(fifo, notes="seen in the wild", caveat="beware")
    assert list(sweep(schemes=fifo)) == list(sweep(schemes=remarked))


def test_code_edited_under_its_name_is_another_version(monkeypatch: pytest.MonkeyPatch) -> None:
    def both() -> Results:
        return sweep(schemes=["rr"], scheduler=[Own], network="4g", cc=["cubic", OwnController])

    before = both()
    assert before.axes == ("cc", "scheme")
    assert list(before.join(both())) == list(before)
    monkeypatch.setattr(Own, "n_streams", 2)
    with pytest.raises(InputError, match=r"the scheme Own \(scheme_digest"):
        before.join(both()).compare("rr", pool=["cc"])
    monkeypatch.undo()
    monkeypatch.setattr(OwnController, "n_packets", 3)
    with pytest.raises(InputError, match=r"the congestion controller OwnController \(controller"):
        before.join(both()).compare("rr", pool=["cc"])


def test_workers_write_the_digests_that_this_process_does() -> None:
    options: dict[str, Any] = {"scheduler": [Own], "cc": [OwnController, "bbr"], "network": "4g"}
    here = h3sim.sweep(BIG, executor="serial", **options)
    assert list(h3sim.sweep(BIG, executor="processes", workers=1, **options)) == list(here)


def test_code_that_cannot_be_followed_has_one_digest(tmp_path: Path) -> None:
    (tmp_path / "rules.txt").write_text("1", encoding="utf-8")

    class Reading(FifoScheduler):
        def __init__(self) -> None:
            super().__init__()
            self.rules = (tmp_path / "rules.txt").read_text(encoding="utf-8")

    # Its loads are never reused, but they are loads of one scheduler all the same.
    assert len({CodeDigests().digest_of(Reading, "Reading") for _ in range(2)}) == 2
    one, two = (sweep(scheduler=[Reading]) for _ in range(2))
    assert list(one) == list(two)


def test_an_option_that_changes_the_uplink_alone_is_seen() -> None:
    # The downlink loses a packet in a hundred already; the option makes the uplink do the same.
    down, up = FOUR_G.down, FOUR_G.up
    assert down is not None
    assert up is not None
    network = replace(FOUR_G, down=replace(down, loss=0.01))
    without, with_ = (
        sweep(schemes="rr", network=network),
        sweep(schemes="fifo", network=network, loss=0.01),
    )
    with pytest.raises(InputError, match=r"the network 4g as options change it \(path_digest"):
        without.join(with_).compare("rr")
    # An edited network is no effect of an option that was compared.
    edited = replace(network, up=replace(up, loss=0.2))
    one = sweep(schemes="rr", network=network)
    two = sweep(schemes="rr", network=edited, rtt_ms=500)
    with pytest.raises(InputError, match="the network 4g"):
        one.join(two).compare(one[0]["rtt_ms"], over="rtt_ms")


def test_rows_without_digests_are_of_an_unknown_version() -> None:
    known = sweep(schemes=["rr", "fifo"], network="4g")
    old = Results.of(
        {name: value for name, value in row.items() if name not in DIGESTS} for row in known
    )
    assert old.compare("rr")[1].geometric == known.compare("rr")[1].geometric
    with pytest.raises(InputError, match=r"the network 4g .* unknown: rows of an older h3sim"):
        known.join(old).compare("rr")
