"""Schemes at their edges: recorded priorities, weights, servers of one's own, ranks."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

import h3sim
from h3sim.page import RecordedPriority
from h3sim.page.resource import Group, ResourceState
from h3sim.schedulers import FifoScheduler
from h3sim.schemes import SchedulerKind, scheme_from_dict, scheme_to_dict
from h3sim.schemes.model import RecordedBy, Scheme, recorded_class
from h3sim.schemes.ranks import leads_above_the_fold
from h3sim.schemes.registry import RETENTION_NS, CustomScheduler, SignalKind
from h3sim.schemes.rules import Rule
from h3sim.values.errors import SchemeError
from tests.helpers import page_of

FIREFOX = replace(h3sim.load_scheme("firefox-h2"), recorded=None)


def recorded(scheme: Scheme, *entries: RecordedPriority) -> Any:
    image = {
        "id": "a.png",
        "kind": "image",
        "bytes": 10,
        "discovered": {"by": "/", "at": "request"},
    }
    page = page_of({"id": "/", "kind": "document", "bytes": 10}, image)
    resource = replace(page.resources[1], recorded=entries)
    playing = replace(scheme, recorded=RecordedBy.ANY)
    return recorded_class(playing, resource, ResourceState())


class TestRecordedPriorities:
    def test_without_a_weight_a_group_has_its_usual_one(self) -> None:
        usual, stated = (
            recorded(FIREFOX, RecordedPriority(group=Group.LEADERS, weight=weight))
            for weight in (None, 22)
        )
        assert usual == stated
        assert usual.weight == 22

    def test_without_a_weight_a_frame_has_the_default(self) -> None:
        found = recorded(FIREFOX, RecordedPriority(depends_on="/", exclusive=False))
        assert (found.weight, found.exclusive) == (16, False)

    def test_an_exclusive_frame_is_never_a_place_in_a_group(self) -> None:
        group = FIREFOX.placeholders[0].name
        shared, alone = (
            recorded(FIREFOX, RecordedPriority(depends_on=group, weight=22, exclusive=exclusive))
            for exclusive in (False, True)
        )
        assert alone.exclusive
        assert alone != shared


class TestOwnSchedulers:
    def test_they_have_no_quantum_and_orphans_only_in_trees(self) -> None:
        own = CustomScheduler(value="own", factory=FifoScheduler)
        assert not own.has_turns
        assert own.has_orphans
        assert not replace(own, signal_kind=SignalKind.EPS).has_orphans

    def test_a_scheme_with_one_has_no_file(self) -> None:
        own = CustomScheduler(value="fifo", factory=FifoScheduler, signal_kind=SignalKind.EPS)
        scheme = replace(h3sim.load_scheme("chrome-eps"), mechanism=own)
        assert scheme_to_dict(scheme) is None


def test_only_trees_by_the_rfc_keep_streams_that_are_done() -> None:
    kept = {
        kind: kind.retention_ns for kind in SchedulerKind if kind.signal_kind is SignalKind.TREE
    }
    assert kept[SchedulerKind.NGHTTP2_TREE] == kept[SchedulerKind.H2O_CALENDAR] == 0
    assert kept[SchedulerKind.NGINX_QUEUE] == 0
    assert kept[SchedulerKind.ATS_HEAP] == kept[SchedulerKind.TREE] == RETENTION_NS
    batching = [kind for kind in kept if kind.batches_responses]
    assert batching == [SchedulerKind.NGHTTP2_TREE]


def test_the_weights_of_groups_have_the_limits_of_the_mechanism() -> None:
    document = scheme_to_dict(FIREFOX)
    assert document is not None
    for key in ("weight", "yielding_weight"):
        wrong = {**document, "placeholders": [dict(each) for each in document["placeholders"]]}
        wrong["placeholders"][1][key] = 300
        with pytest.raises(SchemeError) as caught:
            scheme_from_dict(wrong)
        assert [problem.key for problem in caught.value.problems] == [f"placeholders[1].{key}"]


def test_a_scheme_without_classes_is_refused_and_the_last_class_is_for_the_rest() -> None:
    document = scheme_to_dict(FIREFOX)
    assert document is not None
    del document["otherwise"]
    assert scheme_from_dict(document).otherwise == [*document["classes"]][-1]
    wrong: list[dict[str, object]] = [{}, {"classes": {}}, {"classes": True}]
    for classes in wrong:
        without = {key: value for key, value in document.items() if key != "classes"}
        with pytest.raises(SchemeError):
            scheme_from_dict({**without, **classes})


def test_a_display_leaves_out_what_a_scheme_does_not_say() -> None:
    (table,) = h3sim.load_scheme("fifo")._display()
    shown = dict(table)  # type: ignore[arg-type]
    assert shown["mechanism"] == "fifo"
    assert "placeholders" not in shown
    assert "None" not in shown.values()
    names = [each.name for each in FIREFOX.classes]
    (table,) = FIREFOX._display()
    firefox = dict(table)  # type: ignore[arg-type]
    assert firefox["classes"] == ", ".join(names)


@pytest.mark.parametrize(("first_images", "early"), [(1, 1), (3, 3)])
def test_a_rule_for_the_first_images_is_for_no_other_kind(first_images: int, early: int) -> None:
    rule = Rule(class_name="c", first_images=first_images)
    page = page_of(
        {"id": "/", "kind": "document", "bytes": 10},
        *(
            {"id": f"{kind}", "kind": kind, "bytes": 10, "discovered": {"by": "/", "at": "request"}}
            for kind in ("image", "script")
        ),
    )
    _, image, script = page.resources
    assert [rule.matches(image, images_before=n) for n in range(5)] == [n < early for n in range(5)]
    assert rule.matches(image)
    assert not any(rule.matches(script, images_before=n) for n in range(5))


def test_whatever_is_above_something_above_the_fold_leads_to_it() -> None:
    def entry(id_: str, by: str, at: str = "complete", **more: Any) -> dict[str, Any]:
        return {"id": id_, "kind": "image", "bytes": 9, "discovered": {"by": by, "at": at}, **more}

    page = page_of(
        {"id": "/", "kind": "document", "bytes": 10},
        entry("a", "/"),
        entry("b", "a", above_the_fold=True),
        entry("c", "a", above_the_fold=True),
        entry("d", "c", "request", above_the_fold=True),
        entry("e", "d"),
    )
    assert leads_above_the_fold(page) == [True, True, True, True, True, False]
