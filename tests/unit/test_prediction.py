"""Predictions: which loads they are, and how far their calibrated intervals reach."""

from __future__ import annotations

import json
import math
import random
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

import h3sim
from h3sim.advice.edits import edits_of
from h3sim.advice.prediction import (
    HAR,
    RECORD,
    TRACE,
    calibration_for,
    conformal_reach,
    kind_of,
    predict,
    prepared,
    serializing,
    settings_for,
)
from h3sim.cli.main import main
from h3sim.page import RecordedLoad
from h3sim.study.runner import LoadTask
from h3sim.values.errors import InputError
from h3sim.values.units import MS_PER_S, ms
from tests.helpers import page_of

if TYPE_CHECKING:
    from pathlib import Path

ROOT = {"id": "/", "kind": "document", "bytes": 9000}


class TestReach:
    def test_of_forty_random_sites_about_95_percent_are_covered_by_the_others(self) -> None:
        """Whatever the errors look like: late ones are ten times as large as early ones."""
        numbers = random.Random(1)
        n_covered, n_draws = 0, 200
        for _ in range(n_draws):
            drawn = [numbers.gauss(0, 1) for _ in range(41)]
            new, *errors = [each * 10 if each > 0 else each for each in drawn]
            reach = conformal_reach(errors, 0.95)
            assert reach is not None
            n_covered += math.log(reach[0]) <= new <= math.log(reach[1])
        assert 0.9 * n_draws <= n_covered <= 0.99 * n_draws

    def test_a_side_reaches_as_far_as_its_own_errors(self) -> None:
        """The early errors are a tenth of the late ones, in the same proportions."""
        errors = [*(-n / 100 for n in range(1, 21)), *(n / 10 for n in range(1, 21))]
        low, high = conformal_reach(errors, 0.95) or (0, 0)
        assert math.log(high) == pytest.approx(-10 * math.log(low))

    def test_eighteen_sites_are_too_few_for_95_percent(self) -> None:
        assert conformal_reach([0.1] * 18, 0.95) is None
        low, high = conformal_reach([0.1] * 19, 0.95) or (0, 0)
        assert (math.log(low), math.log(high)) == pytest.approx((-0.1, 0.1))

    def test_a_network_unlike_every_measured_link_has_no_calibration(self) -> None:
        assert calibration_for(h3sim.load_network("geo-satellite"), RECORD) is None
        for kind in (RECORD, HAR, TRACE):
            found = calibration_for(h3sim.load_network("4g"), kind)
            assert found is None or found.link == "4g"


class TestPredict:
    def test_it_is_chromes_load_with_the_settings_of_the_calibration(self) -> None:
        network = serializing(h3sim.load_network("cable"))
        load = h3sim.simulate(
            prepared(h3sim.load_page("creative")),
            scheme="chrome-h2",
            network=network,
            config=settings_for(network),
        )
        rows = predict("creative", networks=["cable"]).rows
        times_s = {row.metric: row.predicted_s for row in rows}
        assert load.fcp_ms is not None
        assert load.load_event_ms is not None
        assert times_s["FCP"] == pytest.approx(load.fcp_ms / MS_PER_S)
        assert times_s["load event"] == pytest.approx(load.load_event_ms / MS_PER_S)

    def test_a_recording_without_a_document_has_a_load_event_alone(
        self, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        page = page_of({"id": "clip.ts", "kind": "media", "bytes": 9000})
        assert [row.metric for row in predict(page, networks=["cable"]).rows] == ["load event"]
        load = h3sim.simulate(page, browser="parse")
        times_ms = load.first_paint_ms, load.fcp_ms, load.largest_paint_ms, load.speed_index_ms
        assert {*times_ms, load.dom_content_loaded_ms} == {None}
        assert load.load_event_ms == pytest.approx(load.page_load_ms)
        assert load.to_dict()["load_event_ms"] == load.load_event_ms
        (tmp_path / "page.json").write_text(page.to_json())
        assert main(["run", str(tmp_path / "page.json"), "--browser", "parse"]) == 0
        shown = capsys.readouterr().out
        assert "load event" in shown
        assert "paint" not in shown

    def test_nothing_waits_unsent_in_the_socket_from_50_ms_on_as_from_h2o(self) -> None:
        below, above = (
            settings_for(replace(h3sim.load_network("4g"), rtt_ns=ms(rtt_ms)))
            for rtt_ms in (49.9, 50)
        )
        sockets = [each.transport_profile.tcp.notsent_lowat_bytes for each in (below, above)]
        assert sockets[1] == 1 != sockets[0]

    def test_requests_of_a_recording_are_as_small_as_over_http2(self) -> None:
        """Sizes as text would take the uplink of 0.768 Mbit/s a quarter of a second."""
        at = {"by": "/", "at": "offset", "offset_bytes": 90}
        image = {"kind": "image", "bytes": 50, "discovered": at, "request_bytes": 560}
        texts = page_of(ROOT, *({"id": f"{n}.png", **image} for n in range(40)))
        sizes = [each.request_bytes for each in prepared(texts).resources]
        assert all(n_bytes < 60 for n_bytes in sizes[2:])
        text, none = (
            predict(page, networks=["fast-3g"]).rows[-1].predicted_s
            for page in (
                texts,
                texts.with_resources(replace(r, request_bytes=0) for r in texts.resources),
            )
        )
        assert text == pytest.approx(none, abs=0.01)

    def test_a_cookie_is_sent_once(self) -> None:
        at = {"by": "/", "at": "offset", "offset_bytes": 90}
        image = {"kind": "image", "bytes": 50, "discovered": at}
        images = [{"id": f"{n}.png", **image} for n in range(3)]
        plain, cookies = (
            prepared(page_of(ROOT, *({**each, "request_bytes": n_bytes} for each in images)))
            for n_bytes in (560, 1560)
        )
        more = [
            after.request_bytes - before.request_bytes
            for before, after in zip(plain.resources, cookies.resources, strict=True)
        ]
        assert more == [0, pytest.approx(1000, abs=120), 0, 0]

    def test_links_without_bursts_serialize_as_those_that_were_measured(self) -> None:
        shaped = h3sim.load_network("4g")
        ends = serializing(shaped)
        assert [end.burst_bytes for end in (ends.down, ends.up) if end is not None] == [0, 0]
        assert shaped.down is not None
        bursts = replace(shaped, down=replace(shaped.down, burst_bytes=30_000))
        assert serializing(bursts).down == bursts.down

    def test_scripts_of_a_har_take_time_before_the_paint(self) -> None:
        at = {"by": "/", "at": "offset", "offset_bytes": 90}
        script = {"kind": "script", "bytes": 300_000, "in_head": True, "discovered": at}
        page = page_of(ROOT, {"id": "a.js", **script})
        timed = page_of(ROOT, {"id": "a.js", **script, "execute_ms": 5})
        assert prepared(page).resources[1].parse_ns > ms(20)
        assert prepared(page).first_paint is not None
        assert prepared(timed).resources[1].execute_ns == ms(5)
        assert prepared(timed).first_paint is None

    def test_an_interval_holds_its_prediction_or_is_missing_at_both_ends(self) -> None:
        for row in predict("creative").rows:
            if row.low_s is None or row.high_s is None:
                assert row.low_s is None
                assert row.high_s is None
            else:
                assert row.low_s <= row.predicted_s <= row.high_s

    def test_without_layout_the_largest_paint_is_text_or_one_of_the_images(self) -> None:
        """Text comes with the first paint, and the larger image last: its interval holds both."""
        at = {"by": "/", "at": "offset", "offset_bytes": 90}
        images = [
            {"id": f"{name}.png", "kind": "image", "bytes": size, "discovered": at}
            for name, size in (("a", 1000), ("b", 400_000))
        ]
        har = replace(page_of(ROOT, *images), provenance={"dialect": "har-chrome-har"})
        found = predict(har, networks=["4g"])
        by_metric = {row.metric: row for row in found.rows}
        text, largest = by_metric["FCP"], by_metric["LCP"]
        assert largest.predicted_s == text.predicted_s == text.latest_s
        assert largest.latest_s > text.predicted_s + 400_000 * 8 / 9e6 / 2
        assert largest.high_s is not None
        assert largest.high_s > largest.latest_s
        assert "2 candidates" in found.describe()

    def test_a_known_largest_paint_has_no_candidates(self) -> None:
        found = predict("creative", networks=["4g"])
        assert found.n_candidates is None
        assert all(row.latest_s == row.predicted_s for row in found.rows)

    def test_the_recordings_own_values_are_beside(self) -> None:
        page = replace(page_of(ROOT), recorded_load=RecordedLoad(fcp_ns=ms(250)))
        recorded_s = {row.metric: row.recorded_s for row in predict(page, networks=["4g"]).rows}
        assert recorded_s["FCP"] == 0.25
        assert recorded_s["load event"] is None

    def test_a_prediction_before_the_recordings_own_time_is_named(self) -> None:
        slow, quick = (
            replace(page_of(ROOT), recorded_load=RecordedLoad(fcp_ns=ms(time_ms)))
            for time_ms in (60_000, 1)
        )
        assert "FCP over 4g" in predict(slow, networks=["4g"]).describe()
        assert "FCP over 4g" not in predict(quick, networks=["4g"]).describe()

    def test_a_page_says_what_it_was_recorded_as(self) -> None:
        made = page_of(ROOT)
        imported = replace(made, provenance={"dialect": "har-chrome-har", "notes": "x"})
        trace = replace(made, provenance={"dialect": "chrome-trace"})
        kinds = [kind_of(page, None) for page in (made, imported, trace)]
        assert kinds == ["unknown", HAR, TRACE]

    def test_every_unknown_network_is_named(self) -> None:
        with pytest.raises(InputError) as error:
            predict("creative", networks=["4q", "cabel"])
        assert all(name in str(error.value) for name in ("4q", "cabel"))


class TestCommand:
    def test_it_prints_json_of_each_network(self, capsys: pytest.CaptureFixture[str]) -> None:
        assert main(["predict", "creative", "--network", "4g,cable", "--json"]) == 0
        document = json.loads(capsys.readouterr().out)
        assert document["kind"] == RECORD
        assert {row["network"] for row in document["rows"]} == {"4g", "cable"}

    def test_bad_input_is_listed_with_exit_code_2(
        self, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        missing = str(tmp_path / "missing.har")
        words = ["predict", missing, "--network", "4q,cabel", "--confidence", "2"]
        assert main(words) == 2
        errors = capsys.readouterr().err
        assert all(word in errors for word in ("missing.har", "4q", "cabel", "--confidence"))


def test_no_edit_of_a_page_changes_the_protocol() -> None:
    for transport in ("tcp", "quic"):
        config = h3sim.LoadConfig(network="cable", transport=transport)
        page, scheme = h3sim.load_page("davies-meenan"), h3sim.load_scheme("chrome-eps")
        task = LoadTask(h3sim.load.resolve(page, scheme, config))
        assert {edit.change(task).spec.protocol for edit in edits_of(task)} == {task.spec.protocol}


def test_networks_of_different_kinds_are_predicted_beside_each_other() -> None:
    found = predict("creative", networks=["marx-2019", "wifi-fade", "4g"])
    assert list(dict.fromkeys(row.network for row in found.rows)) == [
        "marx-2019",
        "wifi-fade",
        "4g",
    ]
