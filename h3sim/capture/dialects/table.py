"""The dialects that can be read: a row for each family of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol

from h3sim.capture.dialects.devtools_log import ProtocolLog
from h3sim.capture.dialects.epload import EploadGraph
from h3sim.capture.dialects.facts import FactsReader
from h3sim.capture.dialects.har import HAR_DIALECTS, HarReader
from h3sim.capture.dialects.wprofx import WprofxGraph

if TYPE_CHECKING:
    from collections.abc import Callable

    from h3sim.capture.inference.observed import Recording
    from h3sim.capture.source.parts import JsonPart

__all__ = ["DIALECTS", "FAMILIES", "SITE", "DialectReader", "Family"]


class DialectReader(Protocol):
    """Takes in a file part by part and puts requests into the recording that it was given."""

    def add(self, part: JsonPart) -> None:
        """Take in a part of the file, such as the fourth item of its `log.entries`."""

    def finish(self) -> None:
        """Settle what can be told only when all was read."""


class Family(NamedTuple):
    """Dialects with one reader: *is_sign* says of a part whether a file with it is of them."""

    title: str
    names: tuple[str, ...]
    is_sign: Callable[[JsonPart], bool]
    reader: Callable[[Recording], DialectReader]
    has_lines: bool = False
    """Whether a file may be several values, one after the other."""


def _has(name: str) -> Callable[[JsonPart], bool]:
    """Return a sign: an object in a list at the top that has a member of that name."""
    return lambda part: (
        not part.path and not part.line and isinstance(part.value, dict) and name in part.value
    )


def _is_opened(name: str, kind: type) -> Callable[[JsonPart], bool]:
    """Return a sign: a member of the file's object, itself a list or an object."""
    return lambda part: part.path == (name,) and part.item is None and isinstance(part.value, kind)


FAMILIES = (
    Family("HAR", (*HAR_DIALECTS,), _is_opened("log", dict), HarReader),
    Family(
        "devtools-log",
        ("devtools-log",),
        lambda part: part.path == ("method",) or _has("method")(part),
        ProtocolLog,
        has_lines=True,
    ),
    Family("wprofx", ("wprofx",), _has("objs"), WprofxGraph),
    Family("epload", ("epload",), _is_opened("objs", list), EploadGraph),
    Family("facts", ("facts",), _is_opened("resources", list), FactsReader),
)
SITE = "site"
"""The dialect of what is no recording: HTML and what lies beside it."""
DIALECTS = {name: family.title for family in FAMILIES for name in family.names} | {SITE: SITE}
"""The dialects by name, each with the kind of file that it is."""
