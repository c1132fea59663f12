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
    def test_it_is_chromes_load_over_http2_and_linux_tcp(self) -> None:
        load = h3sim.simulate(
            "creative",
            scheme="chrome-h2",
            network="cable",
            browser="parse",
            transport_profile="linux-tcp",
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

    def test_records_are_small_on_paths_of_50_ms_or_more_as_from_h2o(self) -> None:
        """Else the stylesheet waits for the rest of a record with a part of an image in it."""
        below, above = (
            replace(h3sim.load_network("4g"), rtt_ns=ms(rtt_ms)) for rtt_ms in (49.9, 50)
        )
        sheet = {"id": "a.css", "kind": "stylesheet", "bytes": 300, "in_head": True}
        image = {"id": "b.png", "kind": "image", "bytes": 90_000}
        at = {"by": "/", "at": "offset", "offset_bytes": 90}
        page = page_of(ROOT, {**sheet, "discovered": at}, {**image, "discovered": at})
        long, short = (predict(page, networks=[path]).rows[0] for path in (below, above))
        assert long.metric == short.metric == "FCP"
        assert short.predicted_s < long.predicted_s

    def test_an_interval_holds_its_prediction_or_is_missing_at_both_ends(self) -> None:
        for row in predict("creative").rows:
            if row.low_s is None or row.high_s is None:
                assert row.low_s is None
                assert row.high_s is None
            else:
                assert row.low_s <= row.predicted_s <= row.high_s

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
