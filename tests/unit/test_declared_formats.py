"""What is published about formats is what their declarations say, limit by limit."""

from __future__ import annotations

import json

import pytest

from tools.formats import published


@pytest.mark.parametrize("path", published(), ids=lambda path: path.name)
def test_a_published_schema_is_that_of_the_declarations(path: object) -> None:
    found = {each: schema for each, schema in published().items() if each == path}
    ((file, schema),) = found.items()
    assert json.loads(file.read_text("utf-8")) == json.loads(json.dumps(schema)), (
        "write it anew: python -m tools.formats"
    )
