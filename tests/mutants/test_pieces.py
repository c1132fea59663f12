"""The laws of bodies in pieces find out senders that are broken."""

from __future__ import annotations

from typing import Any

import pytest

import h3sim
from h3sim.http import StreamSender
from h3sim.values.versions import build
from tests.helpers import page_of
from tests.mutants.schedulers import Listed
from tests.property.test_piece_laws import (
    SETTINGS,
    check_a_paused_stream_keeps_its_turn,
    check_nothing_is_sent_before_it_exists,
)

pytestmark = pytest.mark.skipif(
    build() == "compiled",
    reason="no part of the compiled build can be broken from outside",
)
PAGE = page_of(
    {"id": "/", "kind": "document", "bytes": 20_000, "body": [[0, 4000], [300, 16_000]]},
    {
        "id": "a.png",
        "kind": "image",
        "bytes": 200_000,
        "body": [[0, 200_000]],
        "discovered": {"by": "/", "at": "request"},
    },
)
REAL = StreamSender.provide


def loaded(setting: dict[str, Any]) -> h3sim.Load:
    return h3sim.simulate(PAGE, scheme="fifo", **setting)


@pytest.mark.parametrize("setting", SETTINGS)
def test_a_law_finds_a_sender_that_has_a_body_at_once(
    monkeypatch: pytest.MonkeyPatch, setting: dict[str, Any]
) -> None:
    check_nothing_is_sent_before_it_exists(loaded(setting))
    monkeypatch.setattr(StreamSender, "provide", lambda *_: None)
    with pytest.raises(AssertionError):
        check_nothing_is_sent_before_it_exists(loaded(setting))


class ResumesLast(Listed):
    """First in, first out by the time at which a stream last had data."""

    def pick(self) -> Any:
        return next(iter(self._active), None)


def test_a_law_finds_a_stream_that_resumes_behind_the_others() -> None:
    check_a_paused_stream_keeps_its_turn(loaded(SETTINGS[0]))
    with pytest.raises(AssertionError):
        check_a_paused_stream_keeps_its_turn(
            h3sim.simulate(PAGE, scheduler=ResumesLast, network="marx-2019")
        )


def test_a_law_finds_a_stream_that_never_resumes(monkeypatch: pytest.MonkeyPatch) -> None:
    def deaf(self: Any, stream_id: int, available: int) -> None:
        if stream_id not in self._outgoing:
            REAL(self, stream_id, available)

    monkeypatch.setattr(StreamSender, "provide", deaf)
    with pytest.raises(h3sim.H3SimError):
        loaded(SETTINGS[0])
