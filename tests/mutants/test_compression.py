"""The laws of header compression fail on codecs that are broken."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import Phase, given, settings

from h3sim.headers import Codec, CodecError, make_codec
from h3sim.headers.early_qpack import EarlyQpackDecoder, EarlyQpackEncoder
from h3sim.headers.hpack import HpackDecoder, HpackEncoder
from h3sim.headers.qcram import QcramDecoder, QcramEncoder
from h3sim.headers.qpack import QpackDecoder, QpackEncoder
from tests.effort import IS_THOROUGH
from tests.property import compression_laws as laws
from tests.property.test_compression_laws import scripts


class OutOfSequence(HpackDecoder):
    """Decodes a block as soon as it is there."""

    def on_section(self, stream_id: int, data: Any) -> Any:
        self._next_number = data[0]
        return super().on_section(stream_id, data)


class Miscounting(HpackEncoder):
    """Leaves a number out."""

    def encode(self, stream_id: int, fields: Any) -> Any:
        self._next_number += self._next_number == 3
        return super().encode(stream_id, fields)


class SilentEviction(QcramEncoder):
    """Does not say that a block must wait."""

    def _evict(self) -> None:
        super()._evict()
        self._has_evicted = False


class EagerEviction(QcramDecoder):
    """Makes room for entries, too, that came before their turn."""

    def _make_room(self, n_bytes: int) -> None:
        self._encoder_table_bytes = self.table_bytes
        super()._make_room(n_bytes)


class Careless(QcramEncoder):
    """Refers to whatever is in the table."""

    def _is_safe(self, entry: Any, sequence: Any) -> bool:
        return True


class CarelessEarly(EarlyQpackEncoder):
    """Refers to whatever is in the table."""

    def _is_safe(self, entry: Any, stream_id: int) -> bool:
        return True


class Overfull(QcramEncoder):
    """Takes the table for larger than it is."""

    def __init__(self, settings: Any) -> None:
        super().__init__(replace(settings, table_bytes=settings.table_bytes + 40))


class OverfullEarly(EarlyQpackEncoder):
    """Takes the place of what is deleted for free at once."""

    def _delete(self, entry: Any) -> Any:
        line = super()._delete(entry)
        self._capacity += entry.n_bytes
        return line


class Forgetful(EarlyQpackDecoder):
    """Drops an entry when it is told to, whoever still refers to it."""

    def _remove_if_done(self, slot: Any) -> None:
        if slot in self._table and slot in self._references_before_removal:
            self._references_before_removal[slot] = self._table[slot].n_references
        super()._remove_if_done(slot)


class OverfullQpack(QpackEncoder):
    """Takes the table for larger than it is."""

    def __init__(self, settings: Any) -> None:
        super().__init__(replace(settings, table_bytes=2 * settings.table_bytes))


class Risky(QpackEncoder):
    """Lets one stream too many depend on what may be missing."""

    def __init__(self, settings: Any) -> None:
        super().__init__(replace(settings, blocked_streams=settings.blocked_streams + 1))


class Unasked(QpackDecoder):
    """Reports every insert twice."""

    def take_feedback(self) -> Any:
        self._n_acknowledged = 0
        return super().take_feedback()


def mixed(encoder: Any, decoder: Any) -> Any:
    return lambda allowed: Codec(encoder(allowed), decoder(allowed))


DECODES = laws.check_sections_decode_to_what_was_encoded
BROKEN = [
    (DECODES, mixed(HpackEncoder, OutOfSequence), "hpack"),
    (DECODES, mixed(QcramEncoder, EagerEviction), "qcram"),
    (DECODES, mixed(EarlyQpackEncoder, Forgetful), "early-qpack"),
    (DECODES, mixed(Risky, QpackDecoder), "qpack"),
    (laws.check_nothing_waits_in_order, mixed(Miscounting, HpackDecoder), "hpack"),
    (laws.check_nothing_ever_waits, mixed(Careless, QcramDecoder), "qcram"),
    (laws.check_nothing_ever_waits, mixed(CarelessEarly, EarlyQpackDecoder), "early-qpack-safe"),
    (laws.check_the_table_keeps_its_limit, mixed(Overfull, QcramDecoder), "qcram"),
    (laws.check_the_table_keeps_its_limit, mixed(OverfullEarly, EarlyQpackDecoder), "early-qpack"),
    (
        laws.check_the_decoder_keeps_no_more_than_the_encoder,
        mixed(SilentEviction, QcramDecoder),
        "qcram",
    ),
    (laws.check_the_encoder_stream_keeps_its_limit, mixed(OverfullQpack, QpackDecoder), "qpack"),
    (laws.check_few_streams_can_block, mixed(Risky, QpackDecoder), "qpack"),
    (laws.check_few_streams_can_block, mixed(QpackEncoder, Unasked), "qpack"),
]
NEVER_EVICTING = {laws.check_nothing_ever_waits: (65536,)}


def tried(law: Any, make: Any, max_examples: int = 150) -> Any:
    """Return the law as a test that looks at many scripts, and does not make a failure smaller."""
    tables = NEVER_EVICTING.get(law, (64, 100, 256, 512))

    @settings(
        derandomize=True,
        deadline=None,
        max_examples=max_examples,
        database=None,
        phases=[Phase.generate],
    )
    @given(script=scripts(tables=tables, blocked=(0, 1, 3)))
    def run(script: Any) -> None:
        law(make(script.settings), script)

    return run


def named(value: Any) -> Any:
    return getattr(value, "__name__", None)


@pytest.mark.parametrize(("law", "make", "complete"), BROKEN, ids=named)
def test_the_law_fails_on_the_broken_codec_and_holds_on_the_correct_one(
    law: Any, make: Any, complete: Any
) -> None:
    with pytest.raises((AssertionError, CodecError, KeyError)):
        tried(law, make)()
    # The laws of correct codecs are looked at for longer in `tests/property`.
    tried(law, lambda allowed: make_codec(complete, allowed), 150 if IS_THOROUGH else 30)()


def test_every_law_has_a_codec_that_breaks_it() -> None:
    checks = {value for name, value in vars(laws).items() if name.startswith("check_")}
    assert checks == {law for law, _, _ in BROKEN}
