"""However a JSON text is cut into pieces, the cursor reads what the standard library reads."""

from __future__ import annotations

import io
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from h3sim.importers.source import BrokenJsonError, JsonCursor

VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=9),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner),
    max_leaves=12,
)


def cursor_over(text: str, size: int) -> JsonCursor:
    """Return a cursor that gets *size* characters at a time, whatever it asks for."""
    stream = io.StringIO(text)
    return JsonCursor(lambda _: stream.read(size))


def parts_of(cursor: JsonCursor) -> Any:
    """Read a list or an object part by part, anything else whole."""
    opening = cursor.peek()
    if opening == "[":
        return [cursor.value() for _ in cursor.items()]
    if opening == "{":
        return {key: cursor.value() for key in cursor.members()}
    return cursor.value()


@settings(max_examples=100)
@given(VALUES, st.integers(1, 7) | st.just(1000), st.sampled_from((None, 1)))
def test_pieces_do_not_matter(value: Any, size: int, indent: int | None) -> None:
    text = json.dumps(value, indent=indent)
    assert cursor_over(text, size).value() == value
    assert parts_of(cursor_over(text, size)) == value


@settings(max_examples=100)
@given(VALUES, st.integers(1, 7) | st.just(1000), st.data())
def test_a_text_that_is_cut_or_changed_is_read_alike_or_refused(
    value: Any, size: int, data: st.DataObject
) -> None:
    text = json.dumps([value])
    at = data.draw(st.integers(0, len(text) - 1))
    text = text[:at] + data.draw(st.sampled_from(("", ",", "]", "}", '"', "1", "\\")))
    try:
        expected = json.loads(text)
    except ValueError:
        with pytest.raises(BrokenJsonError):
            read_complete(cursor_over(text, size))
    else:
        assert read_complete(cursor_over(text, size)) == expected


def read_complete(cursor: JsonCursor) -> Any:
    """Read one value and see that nothing follows it."""
    value = parts_of(cursor)
    if cursor.peek():
        raise BrokenJsonError("more follows")
    return value


def test_what_is_not_read_is_passed_over() -> None:
    cursor = cursor_over('{"a": [1, [2]], "b": {"c": 3}, "d": 4}', 3)
    assert [key for key in cursor.members()] == ["a", "b", "d"]  # noqa: C416 - each is looked at
    assert cursor.peek() == ""
