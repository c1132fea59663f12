"""Sander's count is what its definition says, worked out word by word."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from h3sim.metrics import Frame, sander_count
from h3sim.values.ranges import Ranges
from tests.effort import law

frames = st.builds(
    Frame,
    stream_id=st.sampled_from((0, 4, 8, 12)),
    offset=st.integers(0, 12),
    n_bytes=st.integers(0, 4),
)
"""Any, in any order: overlapping, again, and behind holes that are never filled."""
packets = st.lists(st.one_of(st.none(), st.lists(frames, max_size=3)), max_size=60)


def by_definition(sent: Any) -> Any:
    """Every blocked frame is remembered by every other stream that is known; each is looked at."""
    got: dict[Any, Any] = {}
    remembered: dict[Any, Any] = {}
    stream_bytes = connection_bytes = 0
    for frame in (frame for packet in sent for frame in packet or () if frame.n_bytes):
        own = got.setdefault(frame.stream_id, Ranges())
        before = own.contiguous
        new = own.add(frame.offset, frame.offset + frame.n_bytes)
        if own.contiguous == before:
            stream_bytes += new
            connection_bytes += new
            for other in got:
                if other != frame.stream_id:
                    entry = (frame.stream_id, frame.offset, got[other].end)
                    remembered.setdefault(other, []).append(entry)
        elif any(
            got[by].contiguous < at and frame.offset > end
            for by, at, end in remembered.get(frame.stream_id, ())
        ):
            connection_bytes += new
    return stream_bytes, connection_bytes


@law(400, usual=200)
@given(packets)
def test_the_count_is_that_of_the_definition(sent: Any) -> None:
    assert sander_count(sent) == by_definition(sent)
