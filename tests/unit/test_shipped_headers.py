"""The header lists that are shipped."""

from __future__ import annotations

import re
from typing import Any

import pytest

from h3sim.catalog.resources import root
from h3sim.importers.header_lists import read_exchanges

FILES = sorted(file.name for file in (root("corpora") / "headers").iterdir())


def test_there_are_requests_and_responses_of_each_page() -> None:
    names = {file.partition(".")[0] for file in FILES}
    assert sorted(f"{name}.{kind}.qif" for name in names for kind in ("req", "resp")) == FILES
    assert len(names) >= 5


@pytest.mark.parametrize("file", FILES)
def test_lists_have_times_and_nothing_personal(file: Any) -> None:
    path = root("corpora") / "headers" / file
    text = path.read_text("utf-8")
    assert not re.search(
        r"127\.0\.0\.1|localhost|\?", re.sub(r"sec-fetch-user\t\?1|\t\?0", "", text)
    )
    assert not re.search(r"^(cookie|set-cookie|authorization)\t", text, re.M)
    exchanges = read_exchanges(str(path), interval_ns=0)
    sections = [entry.request or entry.response for entry in exchanges]
    first = b":method" if ".req." in file else b":status"
    assert {fields[0][0] for fields in sections} == {first}
    assert len({entry.requested_at_ns for entry in exchanges}) > len(exchanges) / 2
