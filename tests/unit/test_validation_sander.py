"""What `make validate-sander` makes of loads: differences, losses, verdicts, a stand-in index."""

from __future__ import annotations

from typing import Any

import pytest

import h3sim
from h3sim.metrics import loss_bursts
from h3sim.page import Page, page_from_dict
from h3sim.papers.estimates import Estimate
from h3sim.papers.findings import Criterion
from tests.helpers import unworded
from validation import sander
from validation.sander_deltas import Losses, Results
from validation.sander_findings import FINDINGS, Finding, claim
from validation.sander_runs import (
    BASELINE,
    CELLS,
    SCHEMES,
    Job,
    Outcome,
    Run,
    document_of,
    run,
    speed_index_ms,
)

LOSSY = "sander-2mbps-100ms-2pct"


_LARGE = 400_000


def smallest() -> int:
    """Return the place of the smallest page that is large enough to lose packets."""
    sizes = {position: page.total_bytes for position, page in enumerate(sander.pages())}  # type: ignore[attr-defined]
    return min(
        (position for position in sizes if sizes[position] > _LARGE),
        key=lambda position: sizes[position],
    )


def outcome(hol_bytes: int, **values: Any) -> Outcome:
    """Return an outcome of so many bytes blocked."""
    rest: dict[str, Any] = {
        "speed_index_ms": 1.0,
        "byte_index_ms": 1.0,
        "sent": 100,
        "lost": 0,
        "bursts": {},
    }
    return Outcome(hol_bytes=hol_bytes, **rest | values)


def results(hol_bytes: dict[tuple[int, int], tuple[int, int]]) -> Results:
    """Return results of rr, from its bytes blocked and chrome's by page and seed."""
    return Results(
        Run(
            job=Job(LOSSY, page, seed),
            outcomes={"sander-rr": outcome(ours), BASELINE: outcome(theirs)},
            repeated=0,
        )
        for (page, seed), (ours, theirs) in hol_bytes.items()
    )


def test_a_difference_is_that_of_the_medians_over_seeds_for_each_page() -> None:
    found = results(
        {
            (0, 0): (50, 100), (0, 1): (80, 90), (0, 2): (60, 900),  # 60 to 100
            (1, 0): (103, 100),
            (2, 0): (0, 0),
            (3, 0): (300, 100),
        }
    ).hol(LOSSY, "sander-rr")  # fmt: skip
    assert found.values == pytest.approx((-0.4, 0.03, 0, 2))
    assert (found.less, found.more, found.equal) == (1, 1, 0.25)
    assert found.median == pytest.approx(0.015)


def test_a_page_that_is_blocked_only_here_counts_as_more() -> None:
    assert results({(0, 0): (5, 0)}).hol(LOSSY, "sander-rr").more == 1


def test_bursts_are_runs_of_lost_packets_in_the_order_of_their_numbers() -> None:
    arrived = [5, None, None, 5, None, 5, None, None]
    rows = [(0, at, 0, 0, 10, number) for number, at in enumerate(arrived)]
    # A packet with bytes of two streams is one packet.
    assert loss_bursts([*rows, (0, None, 4, 0, 10, 7)]) == {1: 1, 2: 2}
    assert loss_bursts([]) == {}


def test_losses_are_reported_by_their_shares() -> None:
    losses = Losses(rates=(0.0, 0.1, 0.0, 0.2), bursts={1: 4, 2: 1, 10: 1})
    assert losses.without == 0.5
    assert losses.rate_at(0.5) == 0.1
    assert losses.rate_at(0.5, only_with=True) == 0.2
    assert (losses.longest, losses.mean_burst) == (10, pytest.approx(16 / 6))  # type: ignore[comparison-overlap]
    # 16 packets were lost: 6 of them in bursts of up to 2.
    assert (losses.burst_at(0.25), losses.burst_at(6 / 16), losses.burst_at(0.5)) == (1, 2, 10)


@pytest.mark.parametrize(
    ("lows_and_highs", "verdict"),
    [
        ([(0.1, 0.3), (0.2, 0.4)], "X: holds (2 of 2)"),
        ([(0.1, 0.3), (-0.2, 0.4)], "X: undecided (1 of 2)"),
        ([(0.1, 0.3), (0, 0)], "X: in part (1 of 2)"),
        ([(0.1, 0.3), (-0.2, -0.1)], "X: reversed (1 of 2)"),
    ],
)
def test_a_claim_is_met_by_its_interval_and_a_reversal_is_not_hidden(
    lows_and_highs: list[tuple[float, float]], verdict: str
) -> None:
    claims = [
        claim("c", Criterion.ABOVE, Estimate((low + high) / 2, low, high), 0)
        for low, high in lows_and_highs
    ]
    finding = Finding("X", "said", (), lambda _: [], lambda _: claims)
    assert finding.report(Results([])).splitlines()[-1] == verdict


def shop(**image: Any) -> Page:
    """Return a page of a document, a stylesheet that blocks, and an image, 14 packets each."""
    return page_from_dict(
        {
            "format": "h3sim-page/1",
            "name": "shop",
            "resources": [
                {"id": "/", "kind": "document", "bytes": 1400},
                {"id": "css", "kind": "stylesheet", "bytes": 2800, "render_blocking": True,
                 "discovered": {"by": "/", "at": "complete"}},
                {"id": "jpg", "kind": "image", "bytes": 2800,
                 "discovered": {"by": "/", "at": "complete"}} | image,
            ],
        }
    )  # fmt: skip


def test_nothing_is_painted_before_what_blocks_it() -> None:
    # Packets arrive at 10 (document), 20 and 30 (stylesheet), 40 and 50 ms (image). The text waits
    # for the stylesheet, until 30; the halves of the image come at 40 and 50.
    load = h3sim.simulate(shop(), scheme="fifo")
    assert speed_index_ms(load) == pytest.approx(0.5 * 30 + 0.5 * 45)
    # In turns: stylesheet at 20 and 40, image at 30 (painted at 40) and 50.
    load = h3sim.simulate(shop(), scheme="rr")
    assert speed_index_ms(load) == pytest.approx(0.5 * 40 + 0.5 * 45)
    # Without an image there is only text.
    load = h3sim.simulate(shop(kind="fetch"), scheme="fifo")
    assert speed_index_ms(load) == pytest.approx(30)


def test_the_document_is_where_redirects_lead() -> None:
    resources = [
        {"id": "a", "kind": "document", "bytes": 0},
        {"id": "b", "kind": "other", "bytes": 3, "discovered": {"by": "a", "at": "complete"}},
        {"id": "c", "kind": "document", "bytes": 900, "discovered": {"by": "b", "at": "complete"}},
        {"id": "d", "kind": "document", "bytes": 9, "discovered": {"by": "c", "at": "complete"}},
    ]
    page = page_from_dict({"format": "h3sim-page/1", "name": "x", "resources": resources})
    assert document_of(page) == 2


def test_every_finding_asks_for_cells_that_are_there() -> None:
    for finding in FINDINGS:
        assert set(finding.networks) <= set(CELLS)
    for network in CELLS:
        assert h3sim.load_network(network).name == network


def test_a_job_loads_every_scheme_and_equals_itself() -> None:
    job = Job(LOSSY, smallest(), 1)
    first = run(job)
    assert tuple(first.outcomes) == SCHEMES
    assert run(job) == first
    assert all(outcome.lost > 0 for outcome in first.outcomes.values())


def test_only_what_is_lossy_is_loaded_with_several_seeds_and_each_cell_once() -> None:
    findings = [finding for finding in FINDINGS if finding.id in ("sander-7", "sander-12")]
    jobs = sander.jobs_of(findings, [0, 3], 2)
    assert len(jobs) == len(set(jobs)) == 2 * (1 + 2 * 6)
    assert {job.seed for job in jobs if job.network == "sander-2mbps-100ms"} == {0}


def test_the_command_prints_a_table_and_a_verdict(capsys: pytest.CaptureFixture[str]) -> None:
    name = sander.pages()[smallest()].name  # type: ignore[attr-defined]
    assert sander.main(["sander-2", "--page", name, "--workers", "2"]) == 0
    shown_text = capsys.readouterr().out
    assert shown_text.startswith("pages: 1, ")
    assert "sander-2: at 10 Mbit/s" in shown_text
    assert "of 2)" in shown_text.splitlines()[-1]


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["sander-99"], "no finding is called 'sander-99'; there are sander-1, sander-2,"),
        (["--seeds", "0"], "--seeds: must be at least 1, is 0"),
        (["--workers", "-1"], "--workers: must be at least 1, is -1"),
        (["--page", "no such page"], "--page: no page's name holds 'no such page'"),
    ],
)
def test_what_cannot_be_loaded_is_reported_in_a_line(
    argv: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as exited:
        sander.main(argv)
    assert exited.value.code == 2
    shown_text = capsys.readouterr().err
    assert unworded([message])[0] in unworded([shown_text])[0]
    assert shown_text.count("\n") == 1


def test_an_interrupt_ends_the_command(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(sander, "run_all", interrupted)
    assert sander.main(["sander-2"]) == 130
    assert capsys.readouterr().err == "interrupted\n"
