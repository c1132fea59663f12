"""The Priority field (RFC 9218 § 5), and when a server ignores a client (Koshiba 2016).

The parser is h3sim's own: it needs an integer and a boolean, and only checks that the rest is
well-formed. The tests compare it with a complete parser of structured fields.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, TypeAlias

from h3sim.page import Kind
from h3sim.signals import MAX_URGENCY, Eps

if TYPE_CHECKING:
    from h3sim.signals import Signal, SignalChange


_DEFAULT_PRIORITY = Eps()
"""The priority without a field (RFC 9218 § 4)."""

# Regular expressions of a dictionary (RFC 8941 §§ 3.1.2 and 3.3); the alternatives of a bare item,
# besides the integer: decimal, string, token and byte sequence. Each begins with another character.
_KEY = r"[a-z*][a-z0-9_\-.*]*"
_INTEGER = r"-?[0-9]{1,15}(?![0-9.])"
_BOOLEAN = r"\?[01]"
"""A structured field's true or false (RFC 8941 § 3.3.6)."""
_BARE_ITEM = "|".join((
    _INTEGER,
    r"-?[0-9]{1,12}\.[0-9]{1,3}(?![0-9])",
    r'"(?:[\x20\x21\x23-\x5b\x5d-\x7e]|\\["\\])*"',
    r"[A-Za-z*][A-Za-z0-9!#$%&'*+\-.^_`|~:/]*",
    r":(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}(?:==)?|[A-Za-z0-9+/]{3}=?)?:",
    _BOOLEAN,
))  # fmt: skip
_PARAMETERS = rf"(?:;\ *{_KEY}(?:=(?:{_BARE_ITEM}))?)*"
_ITEM = rf"(?:{_BARE_ITEM}){_PARAMETERS}"
_INNER_LIST = rf"\(\ *(?:{_ITEM}(?:\ +{_ITEM})*\ *)?\){_PARAMETERS}"
_MEMBER = (
    rf"(?P<key>{_KEY})(?:=(?:(?P<bare>{_BARE_ITEM}){_PARAMETERS}|{_INNER_LIST})|{_PARAMETERS})"
    # Only what may follow a member ends one (RFC 8941 § 4.2.2).
    r"(?=[ \t]*(?:,|\Z))"
)
_SEPARATOR = re.compile(r"[ \t]*,[ \t]*")

_Value: TypeAlias = int | bool | None
"""An integer, a boolean, or None for a value of any other type."""


def parse_priority(text: str) -> Eps:
    """Return the priority in a request's Priority field, or in a PRIORITY_UPDATE frame.

    Missing parameters have their defaults. Parameters that are unknown, out of range or of another
    type are ignored (RFC 9218 § 4), and so is a field that is not a dictionary (RFC 8941 § 4.2).

    >>> parse_priority("u=5, i")
    Eps(urgency=5, incremental=True)
    >>> parse_priority("u=9, i, x=1"), parse_priority("u=1,")
    (Eps(urgency=3, incremental=True), Eps(urgency=3, incremental=False))
    """
    return merge_priority(_DEFAULT_PRIORITY, text)


def merge_priority(client: Eps, text: str) -> Eps:
    """Return the client's priority merged with a response's Priority field (RFC 9218 § 8).

    Parameters that are missing or invalid in the response keep the client's value.

    >>> merge_priority(Eps(urgency=5, incremental=True), "u=1")
    Eps(urgency=1, incremental=True)
    """
    fields = _parse_dictionary(text) or {}
    urgency, incremental = fields.get("u"), fields.get("i")
    # No `isinstance`: `u=?1` is a boolean, which is an integer to Python.
    if type(urgency) is not int or not 0 <= urgency <= MAX_URGENCY:
        urgency = client.urgency
    if not isinstance(incremental, bool):
        incremental = client.incremental
    return Eps(urgency=urgency, incremental=incremental)


def format_priority(priority: Eps) -> str:
    """Return the text of a Priority field, without parameters that have their default.

    An empty text means that no field is needed; in a PRIORITY_UPDATE frame it means both
    defaults.

    >>> format_priority(Eps(urgency=0, incremental=True)), format_priority(Eps())
    ('u=0, i', '')
    """
    return priority.field_value


def is_well_formed(text: str) -> bool:
    """Return whether *text* is a dictionary of structured fields.

    >>> is_well_formed("u=9, i=1"), is_well_formed("u=1; i")
    (True, True)
    >>> is_well_formed("U=1"), is_well_formed("u=1 i")
    (False, False)
    """
    return _parse_dictionary(text) is not None


def _parse_dictionary(text: str) -> dict[str, _Value] | None:
    """Return a dictionary's members, or None if it is not well-formed (RFC 8941 § 4.2.2)."""
    text = text.lstrip(" ")
    members: dict[str, _Value] = {}
    position = 0
    pattern = re.compile(_MEMBER)  # on use: few loads parse a field, and this takes a while
    while position < len(text):
        member = pattern.match(text, position)
        if member is None:
            return None
        # Of members with one key, the last one counts.
        members[member["key"]] = _parse_value(member)
        position = member.end()
        separator = _SEPARATOR.match(text, position)
        if separator is None:  # white space, tabs too, may end the field behind a member
            return members
        position = separator.end()
        if position == len(text):  # a trailing comma
            return None
    return members


def _parse_value(member: re.Match[str]) -> _Value:
    """Return the value of a dictionary member; None for a type that is not used."""
    bare = member["bare"]
    if bare is None:
        # A key without a value is true; an inner list has no meaning here.
        return None if member[0].startswith("=(", len(member["key"])) else True
    if re.fullmatch(_BOOLEAN, bare):
        return bare == "?1"
    return int(bare) if re.fullmatch(_INTEGER, bare) else None


_PRIORITIES_BY_KIND = {
    Kind.DOCUMENT: Eps(urgency=0, incremental=True),
    Kind.STYLESHEET: Eps(urgency=0),
    Kind.FONT: Eps(urgency=1),
    Kind.SCRIPT: Eps(urgency=1),
    Kind.FETCH: Eps(urgency=2, incremental=True),
}
"""The priority of each important type for a server without knowledge of the page."""
_LEAST_IMPORTANT = Eps(urgency=3, incremental=True)
"""The priority of all other types."""
_BLOCKING_KINDS = (Kind.DOCUMENT, Kind.STYLESHEET, Kind.FONT, Kind.SCRIPT)
"""Types that must neither share bandwidth with unimportant responses nor wait for them."""


class ClientPriorityValidator:
    """A validator that trusts a client until its priorities contradict the types of two responses.

    They do if a document, stylesheet, font or script is to share with, or wait for, an image,
    media or a response of no important type. From then on the server uses types alone.

    >>> judge = ClientPriorityValidator()
    >>> judge.on_open(0, Kind.IMAGE, Eps())
    []
    >>> judge.on_open(4, Kind.STYLESHEET, Eps())
    [(0, Eps(urgency=3, incremental=True)), (4, Eps(urgency=0, incremental=False))]
    """

    def __init__(self) -> None:
        self._open: dict[int, tuple[Kind, int]] = {}
        """The type and the client's urgency of each open stream."""
        self.overrules = False
        """True if it has seen implausible priorities on this connection."""

    def on_open(self, stream_id: int, kind: Kind, priority: Signal) -> list[SignalChange]:
        """Handle a request; return the server's priorities for it, and for those before."""
        return self._validate(stream_id, kind, priority)

    def on_update(self, stream_id: int, priority: Signal) -> list[SignalChange] | None:
        """Handle a new priority of an open stream; return None while the client is trusted."""
        if stream_id not in self._open:
            return None
        kind, _ = self._open[stream_id]
        changes = self._validate(stream_id, kind, priority)
        return changes if self.overrules else None

    def on_closed(self, stream_id: int) -> None:
        """Forget a stream."""
        self._open.pop(stream_id, None)

    def _validate(self, stream_id: int, kind: Kind, priority: Signal) -> list[SignalChange]:
        """Return the signals that replace the client's once its priorities look wrong."""
        if not isinstance(priority, Eps):
            return []
        self._open[stream_id] = (kind, priority.urgency)
        if self.overrules:
            return [(stream_id, _PRIORITIES_BY_KIND.get(kind, _LEAST_IMPORTANT))]
        if not self._contradicts_kinds(kind, priority.urgency):
            return []
        self.overrules = True
        return [
            (open_id, _PRIORITIES_BY_KIND.get(open_kind, _LEAST_IMPORTANT))
            for open_id, (open_kind, _) in self._open.items()
        ]

    def _contradicts_kinds(self, kind: Kind, urgency: int) -> bool:
        """Return whether the priorities of this and of an open stream contradict their types."""
        is_blocking, is_important = kind in _BLOCKING_KINDS, kind in _PRIORITIES_BY_KIND
        for other, other_urgency in self._open.values():
            if is_blocking and other not in _PRIORITIES_BY_KIND and urgency >= other_urgency:
                return True
            if not is_important and other in _BLOCKING_KINDS and other_urgency >= urgency:
                return True
        return False
