"""Which fields an encoder puts into its table: those that are likely to come again."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from h3sim.compression.base import Field

__all__ = ["is_indexed"]

_NEVER_AGAIN = frozenset({b"content-length", b"if-modified-since", b"last-modified"})


def is_indexed(field: Field) -> bool:
    """Return whether the field should get an entry of the dynamic table.

    As proxygen's HeaderIndexingStrategy, which Frindell's simulator uses: no paths with an argument
    or of a picture, no lengths, no times of change.

    >>> is_indexed((b":path", b"/ajax?n=1")), is_indexed((b"accept", b"text/css"))
    (False, True)
    """
    name, value = field
    if name == b":path":
        return b"=" not in value and b"jpg" not in value
    return name not in _NEVER_AGAIN
