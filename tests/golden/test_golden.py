"""Loads, a tiny reproduction, pages and controllers come out as they were recorded."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from tests.golden import controllers, figures, links, pages, parts, reproduced, rules
from tests.golden.cells import COMMAND, RECORDED, compute, text_of

if TYPE_CHECKING:
    from types import ModuleType


def test_loads_come_out_as_recorded() -> None:
    recorded = json.loads(RECORDED.read_text("utf-8"))
    computed = json.loads(text_of(compute()))
    differing = [
        f"{cell}: {key}"
        for cell in {**recorded, **computed}
        for key in {**recorded.get(cell, {}), **computed.get(cell, {})}
        if recorded.get(cell, {}).get(key) != computed.get(cell, {}).get(key)
    ]
    assert recorded == computed, (
        f"not as recorded: {differing}; if that is meant, rewrite the record with: {COMMAND}"
    )


def test_the_record_is_as_it_is_written() -> None:
    """So that rewriting without a change leaves no difference."""
    text = RECORDED.read_text("utf-8")
    assert text == text_of(json.loads(text)), f"edited by hand? Rewrite it with: {COMMAND}"


def test_no_two_recorded_loads_are_alike() -> None:
    digests = [cell["digest"] for cell in json.loads(RECORDED.read_text("utf-8")).values()]
    assert len(set(digests)) == len(digests) == 16


def test_a_tiny_reproduction_comes_out_as_recorded() -> None:
    recorded = json.loads(reproduced.RECORDED.read_text("utf-8"))
    computed = json.loads(reproduced.text_of(reproduced.compute()))
    assert recorded == computed, f"if that is meant, rewrite the record with: {COMMAND}"


def test_made_up_pages_come_out_as_recorded() -> None:
    recorded = json.loads(pages.RECORDED.read_text("utf-8"))
    assert pages.compute() == recorded, f"if that is meant, rewrite the record with: {COMMAND}"


@pytest.mark.parametrize("part", [controllers, links, parts, rules])
def test_parts_and_loads_of_every_kind_come_out_as_recorded(part: ModuleType) -> None:
    recorded = json.loads(part.RECORDED.read_text("utf-8"))
    computed = json.loads(part.text_of(part.compute()))
    every = {**recorded, **computed}
    differing = [name for name in every if recorded.get(name) != computed.get(name)]
    assert recorded == computed, (
        f"not as recorded: {differing}; if that is meant, rewrite the record with: {COMMAND}"
    )


def test_figures_show_the_data_that_was_recorded() -> None:
    recorded = json.loads(figures.RECORDED.read_text("utf-8"))
    computed = json.loads(figures.text_of(figures.compute()))
    differing = [
        f"{page}: {name}"
        for page, data in {**recorded, **computed}.items()
        for name in data
        if recorded.get(page, {}).get(name) != computed.get(page, {}).get(name)
    ]
    assert recorded == computed, (
        f"not as recorded: {differing}; if that is meant, rewrite the record with: {COMMAND}"
    )
