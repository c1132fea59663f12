"""Laws of variants of a page: what is edited loads, and what was not meant stays as it was."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hypothesis import assume, given
from hypothesis import strategies as st

import h3sim
from h3sim.conformance import pages
from h3sim.page import transforms
from tests.effort import law

if TYPE_CHECKING:
    from h3sim import Page

OF_SOME = {
    function.__name__: function
    for function in (
        transforms.with_cached,
        transforms.with_early_hints,
        transforms.with_push,
        transforms.with_revalidated,
    )
}
UNTRIGGERED = ("discovered", "priority_changes", "recorded")


def fields(page: Page, ids: set[str]) -> dict[str, dict[str, Any]]:
    """Return all but the triggers of the resources with these ids."""
    entries = {entry["id"]: entry for entry in page.to_dict()["resources"]}
    return {
        id_: {key: value for key, value in entries[id_].items() if key not in UNTRIGGERED}
        for id_ in sorted(ids)
    }


@law(100, usual=50)
@given(pages(), st.sampled_from(sorted(OF_SOME)), st.data())
def test_what_is_meant_changes_and_all_else_but_triggers_stays(
    page: Page, change: str, data: st.DataObject
) -> None:
    ids = [resource.id for n, resource in enumerate(page.resources) if n != page.root]
    assume(ids)
    meant = set(data.draw(st.lists(st.sampled_from(ids), min_size=1, unique=True)))
    edited = OF_SOME[change](page, sorted(meant))
    rest = {resource.id for resource in page.resources} - meant
    assert fields(edited, rest) == fields(page, rest)
    is_there = {resource.id for resource in edited.resources}
    assert (meant <= is_there) == (change != "with_cached")
    load = h3sim.simulate(edited, scheme="fifo")
    assert {row.id for row in load.timings} == is_there


@law(60)
@given(pages())
def test_hints_in_stages_keep_every_resource_and_every_byte(page: Page) -> None:
    edited = transforms.with_staged_hints(page)
    ids = {resource.id for resource in page.resources}
    kept = fields(edited, ids)
    assert {id_: entry["bytes"] for id_, entry in kept.items()} == {
        id_: entry["bytes"] for id_, entry in fields(page, ids).items()
    }
    assert len(h3sim.simulate(edited, scheme="fifo").timings) == len(ids)


@law(60)
@given(pages())
def test_styles_in_the_document_cost_the_bytes_that_they_had(page: Page) -> None:
    edited = transforms.with_inlined_styles(page)
    assert edited.total_bytes == page.total_bytes
    assert len(h3sim.simulate(edited, scheme="fifo").timings) == len(edited.resources)
