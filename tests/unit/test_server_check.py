"""The server test of Davies and Meenan, by hand."""

from __future__ import annotations

import json

import pytest

import h3sim
from h3sim.advice.validation import LATE_KINDS, server_test_page
from h3sim.cli.main import main
from h3sim.values.errors import InputError, UnknownNameError


def test_what_overtakes_takes_as_long_as_alone() -> None:
    (row,) = h3sim.advice.prioritization_test("chrome-h2").rows
    # Two of 30,000 bytes are 22 packets each, the first of which leaves at once: 43 ticks later.
    assert row.passes
    assert (row.first_byte_ms, row.complete_ms, row.alone_ms) == (0, 430, 430)
    assert row.meanwhile_bytes == 0


def test_a_server_without_signals_sends_in_order() -> None:
    fifo, rr = h3sim.advice.prioritization_test(["fifo", "rr"]).rows
    assert not fifo.passes
    assert fifo.meanwhile_bytes == fifo.waiting_bytes
    # Of 32 streams each has its turn; of the late ones each needs 22.
    assert not rr.passes
    assert rr.first_byte_ms == pytest.approx(10 * 31, abs=300)
    assert rr.complete_ms == pytest.approx(10 * 32 * 22, rel=0.05)


def test_a_full_buffer_comes_first() -> None:
    results = [
        h3sim.advice.prioritization_test("chrome-eps", send_buffer_kb=kb).rows[0]
        for kb in (0, 64, 280)
    ]
    assert [row.passes for row in results] == [True, True, False]
    assert [row.meanwhile_bytes for row in results] == sorted(r.meanwhile_bytes for r in results)
    assert 280_000 - 3 * 1400 < results[2].meanwhile_bytes <= 280_000


def test_a_late_image_matters_only_to_schemes_that_use_it() -> None:
    rows = h3sim.advice.prioritization_test(
        ["chrome-h2", "firefox-h2", "bucket"], late="image"
    ).rows
    # Chrome says what layout shows; Firefox does not; the third knows by itself.
    assert [row.passes for row in rows] == [True, False, True]


def test_all_shipped_servers_are_tested_without_a_word() -> None:
    check = h3sim.advice.prioritization_test()
    assert len(check.rows) == 13
    assert check.n_passed == 13
    assert repr(check) == "<PrioritizationTest: 13 of 13 pass>"


@pytest.mark.parametrize("late", LATE_KINDS)
def test_the_page_has_thirty_images_before_two_that_come_late(late: str) -> None:
    page = server_test_page(late)
    assert [r.id for r in page.resources if r.id.startswith("late")] == ["late1", "late2"]
    assert sum(r.id.startswith("early") for r in page.resources) == 30


def test_nobody_passes_where_nothing_is_left_to_overtake(
    capsys: pytest.CaptureFixture[str],
) -> None:
    # 30 images of 50,000 bytes take a second at 12 Mbit/s.
    (row,) = h3sim.advice.prioritization_test("fifo", rate_mbps=11).rows
    assert not row.passes
    with pytest.raises(InputError, match="too fast for this test"):
        h3sim.advice.prioritization_test(["fifo", "h2o"], rate_mbps=13)
    assert main(["prioritization-test", "fifo", "--rate-mbps", "13"]) == 2
    assert capsys.readouterr().err.startswith(
        "h3sim prioritization-test: the network is too fast for"
    )


def test_errors_are_reported() -> None:
    with pytest.raises(InputError, match="late: 'movie'"):
        h3sim.advice.prioritization_test("rr", late="movie")
    with pytest.raises(InputError, match="at least one is needed"):
        h3sim.advice.prioritization_test([])
    with pytest.raises(UnknownNameError):
        h3sim.advice.prioritization_test("no such server")


def test_the_command_prints_a_table_and_the_survey(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["prioritization-test", "h2o", "rr"]) == 0
    out = capsys.readouterr().out
    assert "h2o     passes" in out
    assert "rr      fails" in out
    assert "1 of 2 pass. Of the 35 servers and CDNs" in out


def test_the_command_prints_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["prioritization-test", "h2o", "--json", "--send-buffer-kb", "280"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["format"] == "h3sim-server-check/1"
    assert document["configuration"]["send_buffer_kb"] == 280
    assert document["passed"] == 0
    assert document["surveyed"] == {"servers": 35, "passed": 9, "year": 2018}


def test_the_command_lists_every_error(capsys: pytest.CaptureFixture[str]) -> None:
    assert (
        main(
            ["prioritization-test", "nobody", "nothing", "--loss", "2", "--send-buffer-kb", "many"]
        )
        == 2
    )
    assert len(capsys.readouterr().err.splitlines()) == 4
