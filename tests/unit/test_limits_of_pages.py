"""Limits of page files, which bound memory."""

from __future__ import annotations

import pytest

from h3sim.page import Page
from h3sim.values.errors import PageError


def test_a_page_file_with_too_many_resources_is_refused_before_it_is_parsed() -> None:
    text = '{"kind"' * 100_001  # no JSON: parsing it would say so
    with pytest.raises(PageError, match="at most 100,000 resources, is 100,001"):
        Page.from_json(text)
