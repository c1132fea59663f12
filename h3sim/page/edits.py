"""Edits of a resource, in the language of page files and with its messages."""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING, Any

from h3sim.documents.declared import keys_of, read_document, write_table
from h3sim.errors import PageError, Problem
from h3sim.page.resource import Discovery, PriorityChange, RecordedPriority, Resource
from h3sim.page.server_priority import ServerPriority

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["edited_resource"]

_KEYS = keys_of(Resource)


def edited_resource(resource: Resource, changes: Mapping[str, Any]) -> Resource:
    """Return *resource* with *changes*, keys of a page file; None takes one away.

    A key that Python keeps for itself is given with an underscore behind it.

    Raises:
        PageError: listing every mistake in them.

    >>> from h3sim.page import Kind, Resource
    >>> image = Resource(id="a.png", kind=Kind.IMAGE, size_bytes=10)
    >>> edited_resource(image, {"bytes": -1, "asink": True})
    Traceback (most recent call last):
    ...
    h3sim.errors.PageError: a.png: asink: unknown key; did you mean async?
    """
    wanted = {name.removesuffix("_"): value for name, value in changes.items()}
    unknown = [_unknown(name) for name in wanted if name not in _KEYS]
    if unknown:
        raise PageError(unknown, resource.id)
    entry = write_table(resource)
    for name, value in wanted.items():
        if value is None:
            entry.pop(name, None)
        else:
            entry[name] = _as_in_file(value)
    return read_document(Resource, entry, PageError, source=resource.id)


def _as_in_file(value: Any) -> Any:
    if isinstance(value, Discovery | PriorityChange | RecordedPriority | ServerPriority):
        return write_table(value)
    if isinstance(value, list | tuple):
        return [_as_in_file(item) for item in value]
    return value.value if isinstance(value, enum.Enum) else value


def _unknown(name: str) -> Problem:
    import difflib  # on use: importing h3sim should stay quick

    alike = difflib.get_close_matches(name, _KEYS, n=1)
    hint = f"did you mean {alike[0]}?" if alike else f"there are {', '.join(_KEYS)}"
    return Problem(key=name, message=f"unknown key; {hint}")
