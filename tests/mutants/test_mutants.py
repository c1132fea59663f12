"""Every law fails on a part that is broken, and holds on the same input where it is not."""

from __future__ import annotations

import inspect
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import h3sim
from h3sim.engine.signalling import MetadataSignalling
from h3sim.page import TriggerEvent
from h3sim.schedulers import RoundRobinScheduler
from h3sim.signals import Signalling
from h3sim.transport import LinkProfile, Network
from h3sim.values.ranges import Ranges
from h3sim.values.versions import build
from tests.helpers import page_of, scripted_page, with_updates
from tests.mutants import components, digests, schedulers, signalling
from tests.mutants.breaking import (
    buffering,
    building,
    calling,
    charging,
    ending,
    hashing,
    measuring,
    mumbling,
    painting,
    picking,
    receiver,
    scheduling,
    sharing,
    stepping,
    taking_as_long,
)
from tests.property import browser_laws, laws, scheduler_laws, signalling_laws
from tests.property.runs import Case
from tests.property.test_scheme_laws import STRICT
from tests.stateful.test_buckets import BucketMachine
from tests.stateful.test_eps import EpsMachine
from tests.stateful.test_tree import TreeMachine
from tests.stateful.test_tree_options import TreeOptionsMachine

LINK = LinkProfile(rate_bps=2_000_000, queue_bytes=1_000_000)
LOSING_ONE = Network(
    name="loses one",
    rtt_ns=100_000_000,
    down=LINK,
    up=replace(LINK, loss_list=(1,), loss_list_from_bytes=150),
)
XAB = page_of(
    *(
        {"id": name, "kind": kind, "bytes": 60_000, "request_bytes": 200, **later}
        for name, kind, later in (
            ("X", "document", {}),
            ("A", "image", {"discovered": {"at": "time", "delay_ms": 10}}),
            ("B", "image", {"discovered": {"at": "time", "delay_ms": 20}}),
        )
    )
)
LATE_SCRIPT = ("script", 300, {"after_first_image": True})
ALIKE = Case(scripted_page([(0, "document", 8), (0, "image", 8), (0, "media", 8)]))
MIXED = Case(
    scripted_page([(0, "document", 9), (0, "script", 9), (0, "image", 9), (200, "font", 2)])
)
SEEN = {"above_the_fold": True}
VISIBLE = Case(
    scripted_page([(0, "document", 8), (0, "image", 8, SEEN), (20, "image", 8, SEEN)]), "atf-first"
)
LONE = Case(scripted_page([(0, "document", 9)]))
WRR = Case(scripted_page([(0, "document", 60), (0, "script", 60)]), "wrr")
P_PLUS = Case(scripted_page([(0, "document", 300), (0, *LATE_SCRIPT), (0, "image", 300)]), "p+")
FIREFOX = Case(scripted_page([(0, "document", 60), (0, "fetch", 60), (0, "media", 9)]), "firefox")
AFTER = {"by": "/", "at": TriggerEvent.COMPLETE.value, "delay_ms": 15}
NESTED = Case(
    page_of(
        {"id": "/", "kind": "document", "bytes": 5 * 1400},
        {"id": "a", "kind": "image", "bytes": 100, "discovered": AFTER},
    )
)
# Packets that overtake others by so much are taken for lost, and sent again needlessly.
SPURIOUS = {"cc": "newreno", "reorder": "4:9", "transport": "quic"}
SCRIPTED = Case(
    page_of(
        {"id": "/", "kind": "document", "bytes": 2 * 1400},
        *(
            {
                "id": f"{n}.js",
                "kind": "script",
                "bytes": 1400,
                "execute_ms": 25,
                "async": n > 0,
                "discovered": {"by": "/", "at": "offset", "offset_bytes": 100 + n},
            }
            for n in range(3)
        ),
        {"id": "a.png", "kind": "image", "bytes": 9 * 1400, "discovered": AFTER},
    ),
    scheme="fifo",
    link={"browser": "parse"},
)
STYLED = Case(
    page_of(
        {"id": "/", "kind": "document", "bytes": 2 * 1400},
        {
            "id": "a.css",
            "kind": "stylesheet",
            "bytes": 9 * 1400,
            "in_head": True,
            "discovered": {"by": "/", "at": "offset", "offset_bytes": 100},
        },
    ),
    scheme="fifo",
    link={"browser": "parse"},
)
# Three seconds of an image at the usual rate, of which it is the only thing seen but for text.
LATE_PICTURE = Case(
    page_of(
        {"id": "/", "kind": "document", "bytes": 4 * 1400},
        {
            "id": "a.png",
            "kind": "image",
            "bytes": 300 * 1400,
            "viewport": 0.5,
            "discovered": AFTER,
        },
    ),
    scheme="fifo",
    link={"browser": "parse"},
)
# Several of every class of every strict scheme, the lower ones first.
CROWD = [
    (20 * n, kind, 6, {"above_the_fold": True, "in_head": n % 2 == 1, "async": n == 4})
    for n in range(5)
    for kind in ("other", "image", "fetch", "script", "font", "stylesheet", "document")
] + [(100, kind, 6) for kind in ("stylesheet", "stylesheet", "font", "font")]
CROWDED = Case(scripted_page([(0, "document", 3), *CROWD]))
EVEN = {0: 1, 4: 1, 8: 1}
RAISED = {"by": "r2", "at": "request"}, {"by": "r1", "at": "complete"}
SEEN_AT_ONCE, SEEN_IN_THE_END = (
    (0, "image", 9, {"server_ms": 1, "priority_changes": [{"when": when, "fetchpriority": "high"}]})
    for when in RAISED
)
SEEN_BEFORE = (
    10,
    "image",
    9,
    {
        "priority_changes": [
            {"when": {"at": "time", "delay_ms": 5}, "fetchpriority": "high"},
        ]
    },
)
UPDATING: Any = with_updates("chrome-eps")
ANNOUNCED: Any = replace(UPDATING, signalling=Signalling.METADATA)
TWO_IMAGES = [(0, "image", 20), (0, "image", 20)]


MUTATIONS = [
    ending(schedulers.ForgetsAStream, MIXED),
    building("StreamSender", laws.check_bytes_are_conserved, components.RepeatingSender, MIXED),
    building("StreamSender", laws.check_bytes_are_conserved, components.GenerousSender, MIXED),
    building(
        "ReplayBrowser",
        laws.check_requests_follow_their_triggers,
        components.EagerBrowser,
        NESTED,
    ),
    building(
        "RenderingBrowser",
        browser_laws.check_the_main_thread_does_one_thing_at_a_time,
        components.TwoThreads,
        SCRIPTED,
    ),
    building(
        "RenderingBrowser",
        browser_laws.check_what_runs_is_there,
        components.EagerScripts,
        SCRIPTED,
    ),
    building(
        "RenderingBrowser",
        browser_laws.check_nothing_is_painted_before_what_it_needs,
        components.UnstyledPaint,
        STYLED,
    ),
    building(
        "RenderingBrowser",
        browser_laws.check_the_load_event_waits_for_what_was_asked_for,
        components.HastyLoadEvent,
        SCRIPTED,
    ),
    *(
        painting(name, law, mutant, LATE_PICTURE)
        for name, law, mutant in (
            ("painted_share", browser_laws.check_paints_rise, components.share_counted_twice),
            ("updates", browser_laws.check_painting_is_never_behind, components.endless_updates),
            (
                "painted_share",
                browser_laws.check_only_delivered_rows_are_painted,
                components.share_of_the_next_packet,
            ),
        )
    ),
    measuring(
        "critical_path",
        browser_laws.check_the_critical_path_adds_up,
        components.path_without_waiting,
        SCRIPTED,
    ),
    building(
        "ConnectionOrder",
        laws.check_requests_follow_their_triggers,
        components.ImpatientConnection,
        NESTED.but(transport="tcp", reorder="4:2"),
    ),
    building(
        "STREAM_ID_STEP",
        laws.check_streams_are_numbered_as_requested,
        components.StepOfEight(8),
        MIXED,
    ),
    scheduling(laws.check_no_tick_is_wasted, schedulers.Lazy, MIXED.but(scheme="fifo")),
    taking_as_long(schedulers.Lazy, MIXED),
    *(
        scheduling(
            laws.check_none_is_overtaken, schedulers.Overtaken, CROWDED.but(scheme=scheme), rank
        )
        for scheme, ranks in STRICT.items()
        for rank in ranks
    ),
    scheduling(
        laws.check_none_is_overtaken,
        schedulers.HighestFirst,
        ALIKE.but(scheme="fifo"),
        STRICT["fifo"][0],
    ),
    sharing(schedulers.EqualShares, WRR, {0: 256, 4: 24}),
    sharing(schedulers.StaleAfterUpdate, P_PLUS, {0: 256, 4: 1, 8: 1}),
    sharing(schedulers.FreePlaceholders, FIREFOX, {0: 201, 4: 101, 8: 1}),
    sharing(schedulers.TakesTwoTurns, ALIKE, EVEN),
    sharing(schedulers.NeverCharges, ALIKE, EVEN),
    sharing(schedulers.StarvesTheHighest, ALIKE, EVEN),
    picking(schedulers.ImpurePick, ALIKE),
    charging(components.DoubleChargingSender, ALIKE),
    buffering(components.LastInFirstOutSender, MIXED),
    building(
        "StreamOrder",
        laws.check_one_order_is_never_earlier,
        components.NotesArrivals,
        LONE.but(reorder="4:2"),
    ),
    building(
        "RecordOrder",
        laws.check_requests_follow_their_triggers,
        components.IgnoresRecords,
        NESTED.but(transport="tcp", transport_profile="default", cc="newreno"),
    ),
    building(
        "StreamOrder",
        laws.check_every_byte_is_delivered_once,
        components.NotesArrivals,
        ALIKE.but(**SPURIOUS),
    ),
    measuring(
        "hol_blocking",
        laws.check_blocking_of_a_connection_contains_that_of_streams,
        components.hol_of_streams_alone,
        LONE.but(reorder="4:2"),
    ),
    measuring(
        "hol_blocking",
        laws.check_blocking_of_a_connection_contains_that_of_streams,
        components.hol_of_all,
        MIXED,
    ),
    measuring(
        "stacks",
        laws.check_stacks_hold_all_packets,
        components.stacks_of_one,
        LONE.but(reorder="4:2"),
    ),
    building(
        "StreamSender",
        laws.check_sander_counts_nothing,
        components.BackwardSender,
        LONE.but(reorder="4:2"),
    ),
    building(
        "StreamSender", laws.check_no_scheme_beats_the_bound, components.GenerousSender, MIXED
    ),
    measuring(
        "lower_bound_ns",
        laws.check_no_scheme_beats_the_bound,
        components.lower_bound_with_empty_packets,
        ALIKE.but(scheme="fifo"),
    ),
    scheduling(laws.check_bound_is_attained, RoundRobinScheduler, ALIKE.but(scheme="fifo")),
    scheduling(laws.check_bound_above_the_fold_is_attained, RoundRobinScheduler, VISIBLE),
    building(
        "StreamSender",
        laws.check_no_scheme_beats_the_bound_of_the_page,
        components.GenerousSender,
        MIXED,
    ),
    measuring(
        "byte_index_ns",
        laws.check_sampling_never_hides_progress,
        components.byte_index_sampled_before,
        MIXED,
        100,
    ),
    *(
        calling(
            scheduler_laws.check_ranges_are_sets, mutant, Ranges, [(0, 5), (5, 8), (3, 9), (20, 21)]
        )
        for mutant in (components.UntidyRanges, components.SplitRanges)
    ),
    building(
        "WireSignalling",
        signalling_laws.check_the_control_stream_keeps_its_order,
        signalling.HeardAsTheyCome,
        Case(
            XAB,
            "fifo-draft-22",
            link={"network": LOSING_ONE, "cc": "constant", "handshake": "none"},
        ),
    ),
    building(
        "WireSignalling",
        signalling_laws.check_an_early_change_equals_an_initial_one,
        signalling.KeepsTheFirstWord,
        Case(scripted_page([(0, "document", 2), (0, "image", 9), SEEN_AT_ONCE]), UPDATING),
    ),
    building(
        "WireSignalling",
        signalling_laws.check_a_change_after_the_last_byte_changes_nothing,
        signalling.ChangesAll,
        Case(scripted_page([(0, "document", 2), SEEN_IN_THE_END, *TWO_IMAGES]), UPDATING),
    ),
    mumbling(
        signalling.Mumbles,
        Case(WRR.page, replace(h3sim.load_scheme("wrr"), signalling=Signalling.H2)),  # type: ignore[arg-type]
    ),
    mumbling(
        signalling.NewsIsLost,
        Case(scripted_page([(0, "document", 2), (0, "image", 9), SEEN_AT_ONCE]), ANNOUNCED),
        complete=MetadataSignalling,
    ),
    mumbling(
        signalling.SignalsLittle,
        Case(scripted_page([(0, "document", 2), (0, "image", 9), SEEN_BEFORE]), ANNOUNCED),
        complete=MetadataSignalling,
    ),
    receiver(signalling.HeardAsTheyCome, Signalling.DRAFT_22, 1),
    receiver(signalling.LastHeardCounts, Signalling.DRAFT_20, 1),
    hashing(digests.digest_of_a_set, digests.digest_of_ids),
    *(
        stepping(TreeMachine, mutant)
        for mutant in (
            schedulers.EqualShares,
            schedulers.StaleAfterUpdate,
        )
    ),
    *(
        stepping(TreeOptionsMachine, mutant)
        for mutant in (schedulers.IdleForever, schedulers.SharesNothingOut)
    ),
    stepping(BucketMachine, schedulers.OneLevel),
    *(
        stepping(EpsMachine, mutant)
        for mutant in (
            schedulers.OneUrgency,
            schedulers.LateUpdate,
            schedulers.ShortTurns,
            schedulers.OneRule,
        )
    ),
]


def name_of(part: Any) -> Any:
    """Return how the table names a law or a mutant."""
    return getattr(part, "__name__", type(part).__name__)


@pytest.mark.skipif(
    build() == "compiled",
    reason="no part of the compiled build can be broken from outside",
)
@pytest.mark.parametrize(
    "mutation", MUTATIONS, ids=lambda m: f"{name_of(m.law)}-{name_of(m.mutant)}"
)
def test_a_law_holds_for_the_part_and_fails_on_its_mutant(mutation: Any) -> None:
    mutation.check(mutation.complete)
    with pytest.raises(AssertionError):
        mutation.check(mutation.mutant)


def test_every_law_has_a_mutant() -> None:
    named = {
        function
        for module in (laws, browser_laws, scheduler_laws, signalling_laws)
        for name, function in inspect.getmembers(module, inspect.isfunction)
        if name.startswith("check_")
    }
    proved = {mutation.law for mutation in MUTATIONS}
    assert named | {TreeMachine, TreeOptionsMachine, BucketMachine, EpsMachine} == proved


def test_the_table_of_mutants_states_which_law_each_proves() -> None:
    text = (Path(__file__).parent / "README.md").read_text("utf-8")
    rows = [line for line in text.splitlines() if line.startswith("| `")]
    assert rows == sorted({f"| `{name_of(m.law)}` | `{name_of(m.mutant)}` |" for m in MUTATIONS})
