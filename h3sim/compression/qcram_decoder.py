"""QCRAM's decoder: blocks are decoded as they come, but for those that evict."""

from __future__ import annotations

from typing import TYPE_CHECKING

from h3sim.compression.base import CodecSettings, Decoded, Held
from h3sim.compression.qcram_blocks import Block, Line, read_block
from h3sim.compression.wire import entry_bytes

if TYPE_CHECKING:
    from h3sim.compression.base import Field

__all__ = ["QcramDecoder"]


class QcramDecoder:
    """Decodes a block when nothing is missing that it refers to.

    One that evicts waits for all earlier ones; what overtakes it may for a while take more of the
    table than its limit, since the draft has no rule against that.
    """

    def __init__(self, settings: CodecSettings) -> None:
        self._capacity = settings.table_bytes
        self._table: dict[int, Field] = {}
        self._oldest = 0
        self._waiting: dict[int, Block] = {}
        self._next = 0
        """All blocks before this one are decoded."""
        self._decoded_early: set[int] = set()
        self._held_bytes = 0
        self._below_bytes = 0
        """The size of the table as the encoder saw it where an evicting block stands."""

    @property
    def table_bytes(self) -> int:
        """The size of the dynamic table now."""
        return sum(entry_bytes(*field) for field in self._table.values())

    def on_section(self, stream_id: int, data: bytes) -> list[Decoded]:
        """Decode what can be decoded now."""
        block = read_block(stream_id, data)
        if not self._is_decodable(block):
            self._waiting[block.sequence] = block
            self._held_bytes += block.n_bytes
            return []
        decoded = [self._decode(block)]
        # From the beginning after each: one block may bring what several others wait for.
        while (ready := self._ready()) is not None:
            del self._waiting[ready.sequence]
            self._held_bytes -= ready.n_bytes
            decoded.append(self._decode(ready))
        return decoded

    def on_instructions(self, data: bytes) -> list[Decoded]:
        """Do nothing: there is no encoder stream."""
        del data
        return []

    def take_feedback(self) -> bytes:
        """Return nothing: acknowledgements are the transport's."""
        return b""

    @property
    def held(self) -> Held:
        """The blocks that wait, as they came."""
        return Held(self._held_bytes, self._held_bytes)

    @property
    def waiting(self) -> tuple[int, ...]:
        """The streams whose blocks wait, in the order in which they came."""
        return tuple(block.stream_id for block in self._waiting.values())

    def _ready(self) -> Block | None:
        return next((b for b in self._waiting.values() if self._is_decodable(b)), None)

    def _is_decodable(self, block: Block) -> bool:
        if block.waits_for_all and block.sequence != self._next:
            return False
        return all(number in self._table for number in block.needs)

    def _decode(self, block: Block) -> Decoded:
        if block.waits_for_all:
            self._below_bytes = sum(
                entry_bytes(*field) for number, field in self._table.items() if number < block.base
            )
        fields: list[Field] = []
        count = block.base
        for line in block.lines:
            field = self._field(line)
            fields.append(field)
            if line.inserts:
                if block.waits_for_all:
                    self._make_room(entry_bytes(*field))
                self._table[count] = field
                count += 1
        self._decoded_early.add(block.sequence)
        while self._next in self._decoded_early:
            self._decoded_early.remove(self._next)
            self._next += 1
        return Decoded(block.stream_id, tuple(fields))

    def _field(self, line: Line) -> Field:
        if line.number is None:
            return line.name, line.value or b""
        name, value = self._table[line.number]
        return name, value if line.value is None else line.value

    def _make_room(self, n_bytes: int) -> None:
        """Evict what the encoder evicted; entries of blocks that came early do not count."""
        self._below_bytes += n_bytes
        while self._below_bytes > self._capacity:
            self._below_bytes -= entry_bytes(*self._table.pop(self._oldest))
            self._oldest += 1
