"""What schemes may say, row by row: signals and mechanisms, weights, recorded priorities."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

import h3sim
from h3sim.page import Group, Kind, Level, RecordedPriority
from h3sim.page.resource import ResourceState
from h3sim.schedulers import Mixed, Quantum, RoundRobinScheduler
from h3sim.schemes import SchedulerKind, make_policy, scheme_from_dict
from h3sim.schemes.model import RecordedBy, recorded_class
from h3sim.schemes.registry import RETENTION_NS, SignalKind
from h3sim.schemes.rules import Placeholder, PriorityClass, Rule, ServerHint
from h3sim.signals import BucketPriority, Eps, H2Priority, placeholder_id
from h3sim.values.errors import SchemeError
from h3sim.values.units import ms
from tests.helpers import page_of
from tests.unit.driving import opened, turns

ROOT = {"id": "/", "kind": "document", "bytes": 10}
CLASSES: dict[str, dict[str, Any]] = {"buckets": {"bucket": 1, "level": 1}}
"""What a class must have by mechanism; nothing for others."""
EPS = {"eps", "eps-rings", "eps-bytes"}
EXACT_TREES = {"tree", "zero-weight-tree", "zero-last-tree", "quicker-zero-tree"}
ZERO_WEIGHTS = EXACT_TREES - {"tree"}
TREES = EXACT_TREES | {"nghttp2-tree", "h2o-calendar", "ats-heap", "nginx-queue"}
EVERY = {kind.value for kind in SchedulerKind}
ALLOWED = {
    "server": EVERY,
    "none": EVERY,
    "metadata": EVERY,
    "eps": EPS,
    "h2": TREES,
    "draft-20": TREES | {"strict"},
    "draft-22": EXACT_TREES,
}
"""The mechanisms that each signalling may go with."""


def document(mechanism: str = "tree", **changed: Any) -> dict[str, Any]:
    ranks = {"rank_by": "critical-path"} if mechanism == "ranks" else {}
    return {
        "format": "h3sim-scheme/1",
        "name": "mine",
        "title": "Mine",
        "mechanism": mechanism,
        "signalling": "server",
        "source": "me",
        "classes": {"all": CLASSES.get(mechanism, {})},
        **ranks,
        **changed,
    }


def issues(mechanism: str = "tree", **changed: Any) -> list[str]:
    """Return the keys of what is wrong."""
    try:
        scheme_from_dict(document(mechanism, **changed))
    except SchemeError as error:
        return [problem.key for problem in error.problems]
    return []


class TestMechanisms:
    def test_what_each_of_them_has(self) -> None:
        def those(has: Any) -> set[str]:
            return {kind.value for kind in SchedulerKind if has(kind)}

        assert those(lambda kind: kind.has_turns) == {"round-robin", "eps"}
        assert those(lambda kind: kind.has_orphans) == EXACT_TREES
        assert those(lambda kind: kind.batches_responses) == {"nghttp2-tree"}
        own = {"nghttp2-tree", "h2o-calendar", "nginx-queue"}
        assert those(lambda kind: kind.retention_ns == 0) == own
        assert those(lambda kind: kind.retention_ns == ms(500)) == EVERY - own
        assert ms(500) == RETENTION_NS

    @pytest.mark.parametrize("signalling", ALLOWED)
    def test_signals_go_with_what_understands_them(self, signalling: str) -> None:
        allowed = {each for each in EVERY if not issues(each, signalling=signalling)}
        assert allowed == ALLOWED[signalling]
        for mechanism in EVERY - allowed:
            assert issues(mechanism, signalling=signalling) == ["signalling"]

    def test_settings_go_with_what_uses_them(self) -> None:
        for key, value, users in (
            ("mixed", "halves", {"eps"}),
            ("turn_bytes", 3000, {"round-robin", "eps"}),
            ("turn_packets", 3, {"round-robin", "eps"}),
            ("validates_client_priorities", True, EPS),
            ("without_signal", "incremental", EPS),
            ("placeholders", [{"name": "p"}], TREES | {"strict"}),
            ("max_placeholders", 3, TREES | {"strict"}),
        ):
            refusing = {each: issues(each, **{key: value}) for each in EVERY}
            assert {each for each, found in refusing.items() if not found} == users, key
            assert all(found in ([], [key]) for found in refusing.values())

    def test_ranks_are_by_something_and_nothing_else_is(self) -> None:
        for mechanism in EVERY:
            expected = [] if mechanism == "ranks" else ["rank_by"]
            assert issues(mechanism, rank_by="above-the-fold") == expected
        without = document("ranks")
        del without["rank_by"]
        with pytest.raises(SchemeError, match="rank_by: is required"):
            scheme_from_dict(without)

    def test_buckets_are_of_their_mechanism(self) -> None:
        both = {"bucket": 1, "level": 1}
        assert issues("buckets", classes={"all": both}) == []
        assert issues("buckets", classes={"all": {}}) == ["classes.all.bucket"]
        found = issues("tree", classes={"all": both})
        assert found == ["classes.all.bucket", "classes.all.level"]
        assert issues("buckets", classes={"all": {"bucket": 1}}) == ["classes.all"]
        for wrong in ({"bucket": 64, "level": 1}, {"bucket": -1, "level": 1}):
            assert issues("buckets", classes={"all": wrong}) == ["classes.all.bucket"]
        for wrong in ({"bucket": 1, "level": 0}, {"bucket": 1, "level": 4}):
            assert issues("buckets", classes={"all": wrong}) == ["classes.all.level"]
        assert issues("buckets", classes={"all": {"bucket": 63, "level": 3}}) == []

    def test_chains_that_are_exclusive_need_more_than_draft_20(self) -> None:
        for arrangement, expected in (
            ("siblings", []),
            ("chain", []),
            ("strict-chain", ["classes.all.arrangement"]),
            ("quicker-chain", ["classes.all.arrangement"]),
        ):
            classes = {"all": {"arrangement": arrangement}}
            assert issues("tree", signalling="draft-20", classes=classes) == expected
            assert issues("tree", signalling="draft-22", classes=classes) == []

    @pytest.mark.parametrize("mechanism", sorted(TREES))
    def test_weights_are_in_the_range_of_the_mechanism(self, mechanism: str) -> None:
        low, high = (0, 255) if mechanism in ZERO_WEIGHTS else (1, 256)
        for weight in (low - 1, low, high, high + 1):
            is_wrong = not low <= weight <= high
            classes: dict[str, Any] = {"all": {"weight": weight}}
            assert issues(mechanism, classes=classes) == ["classes.all.weight"] * is_wrong
            holders: list[dict[str, Any]] = [{"name": "p", "weight": weight}]
            found = issues(mechanism, placeholders=holders)
            assert found == ["placeholders[0].weight"] * is_wrong
            holders = [{"name": "p", "yields_to": "all", "yielding_weight": weight}]
            found = issues(mechanism, placeholders=holders)
            assert found == ["placeholders[0].yielding_weight"] * is_wrong

    def test_strict_priorities_are_a_byte(self) -> None:
        for strict, expected in (
            (0, []),
            (255, []),
            (-1, ["classes.all.strict"]),
            (256, ["classes.all.strict"]),
        ):
            assert issues("strict", classes={"all": {"strict": strict}}) == expected
        assert issues("tree", classes={"all": {"strict": 3}}) == ["classes.all.strict"]
        holder = {"name": "p", "strict": 3}
        assert issues("strict", placeholders=[holder]) == []
        assert issues("tree", placeholders=[holder]) == ["placeholders[0].strict"]

    def test_a_stream_is_retained_for_up_to_a_day(self) -> None:
        day_ms = 86_400_000
        for retention_ms, expected in (
            (0, []),
            (0.5, []),
            (day_ms, []),
            (day_ms + 0.5, ["retention_ms"]),
            (-0.5, ["retention_ms"]),
        ):
            assert issues(retention_ms=retention_ms) == expected
        kept = scheme_from_dict(document(retention_ms=0))
        assert kept.resolved_retention_ns == 0
        assert scheme_from_dict(document()).resolved_retention_ns == ms(500)


class TestNames:
    def test_of_groups_are_unique_and_parents_come_before(self) -> None:
        holders = [
            {"name": "a", "parent": "a"},
            {"name": "b", "parent": "a"},
            {"name": "c", "parent": "d"},
            {"name": "d"},
            {"name": "b"},
            {"name": "e", "parent": "nothing"},
        ]
        assert issues(placeholders=holders) == [
            "placeholders[4].name",
            "placeholders[0].parent",
            "placeholders[2].parent",
            "placeholders[5].parent",
        ]

    def test_of_classes_and_groups_are_known(self) -> None:
        found = issues(
            placeholders=[{"name": "p", "yields_to": "lost", "yielding_weight": 3}],
            classes={"all": {"group": "p"}, "other": {"group": "q"}},
            rules=[{"class": "all", "kind": "image"}, {"class": "gone", "kind": "font"}],
            otherwise="nowhere",
        )
        assert found == [
            "otherwise",
            "rules[1].class",
            "classes.other.group",
            "placeholders[0].yields_to",
        ]

    def test_whatever_is_no_text_is_no_mechanism(self) -> None:
        wrong: Any
        for wrong in (5, None, ["tree"], {"tree": 1}):
            with pytest.raises(SchemeError, match="mechanism"):
                scheme_from_dict({**document(), "mechanism": wrong})

    def test_a_yielding_weight_goes_with_a_class_to_yield_to(self) -> None:
        wrong: dict[str, Any]
        for wrong in ({"yields_to": "all"}, {"yielding_weight": 3}):
            with pytest.raises(SchemeError, match="require each other"):
                Placeholder(name="p", **wrong)
        assert Placeholder(name="p", weight=0, yields_to="all", yielding_weight=0).weight == 0
        with pytest.raises(SchemeError, match="require each other"):
            PriorityClass(name="c", level=1)

    def test_a_pattern_has_a_thousand_characters_at_most(self) -> None:
        longest = issues("eps", hints=[{"path": "x" * 1000, "urgency": 1}])
        assert longest == []
        found = issues("eps", hints=[{"path": "x" * 1001, "urgency": 1}])
        assert found == ["hints[0].path"]
        hint = scheme_from_dict(document("eps", hints=[{"path": "a/*", "urgency": 1}])).hints[0]
        assert isinstance(hint, ServerHint)
        assert (hint.matches("a/b"), hint.matches("b/a/")) == (True, False)


class TestRecordedPriorities:
    """What Firefox and Chrome said of a resource becomes an urgency as they map it themselves."""

    def urgency(self, entry: RecordedPriority, kind: Kind = Kind.IMAGE) -> tuple[int, bool]:
        scheme = replace(h3sim.load_scheme("chrome-eps"), recorded=RecordedBy.ANY)
        page = page_of(ROOT)
        resource = replace(page.resources[0], kind=kind, recorded=(entry,))
        found = recorded_class(scheme, resource, ResourceState())
        assert found is not None
        return found.urgency, found.incremental

    def test_classes_of_firefox(self) -> None:
        usual = {
            Group.URGENT_START: 1,
            Group.LEADERS: 2,
            Group.UNBLOCKED: 3,
            Group.FOLLOWERS: 4,
            Group.SPECULATIVE: 6,
            Group.BACKGROUND: 6,
        }
        for group, urgency in usual.items():
            assert self.urgency(RecordedPriority(group=group)) == (urgency, True)

    def test_weights_of_firefox_move_them_within_0_to_6(self) -> None:
        for weight, step in ((42, -2), (32, -1), (22, 0), (12, 1), (2, 2), (7, 0)):
            found = self.urgency(RecordedPriority(group=Group.UNBLOCKED, weight=weight))
            assert found[0] == 3 + step
        first = RecordedPriority(group=Group.URGENT_START, weight=42)
        last = RecordedPriority(group=Group.BACKGROUND, weight=2)
        assert (self.urgency(first)[0], self.urgency(last)[0]) == (0, 6)

    def test_only_some_kinds_share(self) -> None:
        firefox = {
            kind for kind in Kind if self.urgency(RecordedPriority(group=Group.LEADERS), kind)[1]
        }
        assert firefox == {Kind.IMAGE, Kind.DOCUMENT}
        chrome = {
            kind for kind in Kind if not self.urgency(RecordedPriority(level=Level.LOW), kind)[1]
        }
        assert chrome == {Kind.STYLESHEET, Kind.SCRIPT, Kind.FONT}

    def test_levels_of_chrome(self) -> None:
        found = [self.urgency(RecordedPriority(level=level))[0] for level in Level]
        assert found == [0, 1, 2, 3, 4]

    def test_fields(self) -> None:
        assert self.urgency(RecordedPriority(urgency=5)) == (5, False)
        assert self.urgency(RecordedPriority(urgency=0, incremental=True)) == (0, True)
        assert self.urgency(RecordedPriority(incremental=False, level=Level.LOW)) == (3, False)

    def test_places_in_trees(self) -> None:
        chrome = replace(h3sim.load_scheme("chrome-h2"), recorded=RecordedBy.ANY)
        firefox = replace(h3sim.load_scheme("firefox-h2"), recorded=RecordedBy.ANY)
        resource = page_of(ROOT).resources[0]

        def found(scheme: Any, **entry: Any) -> Any:
            recorded = (RecordedPriority(**entry),)
            return recorded_class(scheme, replace(resource, recorded=recorded), ResourceState())

        names = [found(chrome, level=level).name for level in Level]
        assert names == ["highest", "high", "normal", "low", "lowest"]
        # Firefox has no classes of those names, and none of groups that it lacks.
        assert found(firefox, level=Level.HIGH) is None
        leader = found(firefox, group=Group.LEADERS, weight=9)
        assert (leader.group, leader.weight) == ("leaders", 9)
        assert found(chrome, group=Group.LEADERS) is None
        in_group = found(firefox, depends_on="leaders", weight=5)
        assert (in_group.group, in_group.weight) == ("leaders", 5)
        at_root = found(firefox, depends_on="")
        assert (at_root.group, at_root.weight) == (None, 16)
        below = found(firefox, depends_on="other", exclusive=True, weight=7)
        assert (below.depends_on, below.exclusive, below.weight) == ("other", True, 7)


KINDS = ("document", "stylesheet", "script", "font", "image", "image", "fetch", "media", "other")
FLAGS: tuple[dict[str, Any], ...] = ({}, {"in_head": True}, {"async": True}, {"preload": True})


@pytest.mark.parametrize("name", ["chrome-eps", "chrome-h2", "firefox-eps", "h3sim-1", "bucket"])
def test_a_policy_signals_the_classes_of_the_rules(name: str) -> None:
    """It remembers them by what rules can tell apart, and no more."""
    scheme = h3sim.load_scheme(name)
    found = {"by": "/", "at": "offset"}
    page = page_of(
        {**ROOT, "bytes": 1000},
        *(
            {
                **flags,
                **({"defer": True} if kind == "script" and number % 2 else {}),
                "id": f"{number} {place} {kind} {sorted(flags)}",
                "kind": kind,
                "bytes": 10,
                "discovered": {**found, "offset_bytes": 20 * number},
            }
            for number in range(4)
            for place, kind in enumerate(KINDS[:: 1 if number % 2 else -1])
            for flags in FLAGS
        ),
    )
    remembering = make_policy(scheme, page)
    for number, resource in enumerate(page.resources):
        (_, signal) = remembering.on_requested(4 * number, resource)[-1]
        entry = scheme.classify(resource, images_before=page.images_before[resource.id])
        if scheme.mechanism.signal_kind is SignalKind.EPS:
            assert signal == Eps(urgency=entry.urgency, incremental=entry.incremental)
        elif isinstance(signal, H2Priority):
            assert signal.weight == entry.weight
        else:
            assert entry.bucket is not None
            assert entry.level is not None
            assert signal == BucketPriority(bucket=entry.bucket, level=entry.level)


def test_an_update_of_a_policy_is_of_its_resource_alone() -> None:
    scheme = h3sim.load_scheme("h3sim-1")
    found = {"by": "/", "at": "offset", "offset_bytes": 5}
    images = [
        {"id": f"{n}.png", "kind": "image", "bytes": 9, "discovered": found} for n in range(9)
    ]
    page = page_of(ROOT, *images)
    policy = make_policy(scheme, page)
    for number, resource in enumerate(page.resources):
        policy.on_requested(4 * number, resource)
    changes = policy.on_changed(page.resources[8], ResourceState(visible=True))
    assert [stream_id for stream_id, _ in changes] == [32]
    assert policy.on_changed(page.resources[8], ResourceState(visible=True)) == []
    silent = make_policy(scheme, page, sends_updates=False)
    silent.on_requested(32, page.resources[8])
    assert silent.on_changed(page.resources[8], ResourceState(visible=True)) == []


def test_groups_beyond_the_limit_are_not_declared() -> None:
    holders = [{"name": "a"}, {"name": "b", "parent": "a"}, {"name": "c", "parent": "b"}]
    classes = {name: {"group": name} for name in "abc"}
    rules = [{"class": name, "kind": kind} for name, kind in (("a", "font"), ("b", "script"))]
    for most, declared, parents in (
        (0, [], [None, None, None]),
        (2, ["a", "b"], [0, 1, 1]),
        (3, ["a", "b", "c"], [0, 1, 2]),
        (None, ["a", "b", "c"], [0, 1, 2]),
    ):
        limit: dict[str, Any] = {} if most is None else {"max_placeholders": most}
        scheme = scheme_from_dict(
            document(placeholders=holders, classes=classes, rules=rules, **limit)
        )
        page = page_of({**ROOT, "kind": "font"})
        policy = make_policy(scheme, page)
        assert [element for element, _ in policy.on_connected()] == [
            placeholder_id(number) for number in range(len(declared))
        ]
        resource = page.resources[0]
        for number, (kind, parent) in enumerate(
            zip((Kind.FONT, Kind.SCRIPT, Kind.IMAGE), parents, strict=True)
        ):
            one = make_policy(scheme, replace(page, resources=(replace(resource, kind=kind),)))
            ((_, signal),) = one.on_requested(4 * number, replace(resource, kind=kind))
            expected = None if parent is None else placeholder_id(parent)
            assert isinstance(signal, H2Priority)
            assert signal.depends_on == expected


def test_a_mechanism_has_the_rfc_s_order_and_a_packet_as_its_quantum_unless_told() -> None:
    packet, told = (
        SchedulerKind.ROUND_ROBIN.make(turn_bytes=1400, turn=turn)
        for turn in (None, Quantum(packets=2))
    )
    assert isinstance(packet, RoundRobinScheduler)
    assert turns(opened(packet, {0: Eps(), 4: Eps()}), 4) == [0, 4, 0, 4]
    assert turns(opened(told, {0: Eps(), 4: Eps()}), 4) == [0, 0, 4, 4]
    both = {0: Eps(incremental=True), 4: Eps(incremental=True), 8: Eps()}
    usual, shared = (
        SchedulerKind.EPS.make(turn_bytes=1400, mixed=mixed) for mixed in (None, Mixed.ALL_SHARE)
    )
    assert turns(opened(usual, both), 3) == [8, 8, 8]
    assert turns(opened(shared, both), 3) == [0, 4, 8]


def test_a_rule_without_images_matches_any_number_of_them() -> None:
    page = page_of(ROOT, {**ROOT, "id": "a", "kind": "image", "discovered": {"at": "time"}})
    image = page.resources[1]
    assert Rule(class_name="c", kinds=(Kind.IMAGE,)).matches(image, images_before=2**31)
    assert not Rule(class_name="c", first_images=1).matches(image, images_before=1)


def test_recorded_priorities_go_before_the_rules_from_the_first_request_on() -> None:
    said = {"browser": "chrome", "urgency": 6, "incremental": True}
    found = {"by": "/", "at": "request"}
    style = {"kind": "stylesheet", "bytes": 9, "discovered": found}
    page = page_of(ROOT, {**style, "id": "said", "recorded": [said]}, {**style, "id": "unsaid"})
    _, known, unknown = page.resources
    playing = replace(h3sim.load_scheme("chrome-eps"), recorded=RecordedBy.CHROME)
    ruled = h3sim.load_scheme("chrome-eps").classify(known)
    assert (playing.classify(known).urgency, playing.classify(known).incremental) == (6, True)
    assert playing.classify(unknown) == ruled != playing.classify(known)
    changed = ResourceState(visible=True)
    assert playing.classify(known, state=changed) == playing.classify(known)


def test_an_image_is_the_first_of_its_page_unless_others_are_said_to_come_before() -> None:
    scheme = scheme_from_dict(
        document(
            "eps",
            classes={"first": {"urgency": 1}, "rest": {}},
            rules=[{"class": "first", "first_images": 1}],
        )
    )
    image = replace(page_of(ROOT).resources[0], kind=Kind.IMAGE)
    names = [scheme.classify(image).name, scheme.classify(image, images_before=1).name]
    assert names == ["first", "rest"]
    assert scheme.n_first_images == 1


@pytest.mark.parametrize("classes", [5, True, [], (), ("all",), [PriorityClass(name="all")] * 2])
def test_classes_made_in_code_are_checked_like_those_of_a_file(classes: Any) -> None:
    scheme = h3sim.load_scheme("fifo")
    if isinstance(classes, list) and classes:
        given: Any = classes
        assert replace(scheme, classes=given, rules=(), otherwise="all").otherwise == "all"
        return
    with pytest.raises(SchemeError, match="class"):
        replace(scheme, classes=classes, rules=(), otherwise="")
