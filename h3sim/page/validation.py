"""Validation of a page's resources taken together, and of edits to one."""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING, Any

from h3sim.errors import PageError, ValidationIssue
from h3sim.page.resource import (
    Discovery,
    PriorityChange,
    RecordedPriority,
    Resource,
    ServerPriority,
    TriggerEvent,
)
from h3sim.schema.fields import keys_of, read_document, write_table

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping


_MAX_SHOWN_STEPS = 6
"""The number of steps shown of a long cycle."""


def graph_problems(resources: tuple[Resource, ...]) -> Iterator[ValidationIssue]:
    """Yield the errors between *resources*; keys are `resources[n]...`."""
    if not resources:
        yield ValidationIssue(key="resources", message="a page needs at least one resource")
        return
    ids = {index: resource.id for index, resource in enumerate(resources)}
    # Reversed, so that of duplicate ids the first one counts.
    index_of = {id_: index for index, id_ in reversed(ids.items())}
    yield from id_problems(ids)
    yield from _root_problems(resources)
    for index, resource in enumerate(resources):
        key = f"resources[{index}]"
        yield from _parent_problems(f"{key}.discovered", resource.discovered, resources, index_of)
        for name, triggers in (
            ("priority_changes", [change.when for change in resource.priority_changes]),
            ("recorded", [entry.when for entry in resource.recorded]),
        ):
            for number, when in enumerate(triggers):
                trigger_key = f"{key}.{name}[{number}].when"
                yield from _parent_problems(trigger_key, when, resources, index_of)
    yield from _reference_problems(resources, index_of)
    discoveries = (resource.discovered for resource in resources)
    # A timer waits for no other resource, even if it names a parent.
    parents = {
        index: each.by if each and each.at is not TriggerEvent.TIME else None
        for index, each in enumerate(discoveries)
    }
    yield from cycle_problems(ids, parents, key="discovered.by")


def id_problems(ids: Mapping[int, str]) -> Iterator[ValidationIssue]:
    """Yield each duplicate id; *ids* are by position."""
    seen: dict[str, int] = {}
    for index, id_ in ids.items():
        first = seen.setdefault(id_, index)
        if first != index:
            message = f"{id_!r} is already the id of resources[{first}]"
            yield ValidationIssue(key=f"resources[{index}].id", message=message)


def _root_problems(resources: tuple[Resource, ...]) -> Iterator[ValidationIssue]:
    """Yield the errors of the roots: there is none, or one is not marked."""
    roots = [index for index, resource in enumerate(resources) if resource.discovered is None]
    if not roots:
        yield ValidationIssue(
            key="resources", message="no root: one resource must have no 'discovered'"
        )
    for index in roots[1:]:
        # A forgotten trigger is more likely than a second tab.
        if not resources[index].is_root:
            message = f"a second root besides resources[{roots[0]}]: without 'discovered' it needs"
            yield ValidationIssue(key=f"resources[{index}]", message=f"{message} 'root' to be true")


def _parent_problems(
    key: str,
    discovery: Discovery | None,
    resources: tuple[Resource, ...],
    index: Mapping[str, int],
) -> Iterator[ValidationIssue]:
    """Yield the errors in the trigger of a resource."""
    if discovery is None or discovery.by is None:
        return
    parent = index.get(discovery.by)
    if parent is None:
        yield ValidationIssue(key=f"{key}.by", message=f"no resource has the id {discovery.by!r}")
    elif (
        discovery.offset_bytes is not None and discovery.offset_bytes > resources[parent].size_bytes
    ):
        message = (
            f"{discovery.offset_bytes} is beyond the end of {discovery.by!r}"
            f" ({resources[parent].size_bytes} bytes)"
        )
        yield ValidationIssue(key=f"{key}.offset_bytes", message=message)


def _reference_problems(
    resources: tuple[Resource, ...], index: Mapping[str, int]
) -> Iterator[ValidationIssue]:
    """Yield the references beyond the end of their documents, and references to roots."""
    if all(each.reference_offset_bytes is None for each in resources):
        return
    for number, resource in enumerate(resources):
        offset_bytes = resource.reference_offset_bytes
        if offset_bytes is None:
            continue
        key = f"resources[{number}].reference_offset_bytes"
        if resource.begins_page:
            yield ValidationIssue(key=key, message="is not allowed for a root")
            continue
        root = _root_above(number, resources, index)
        if root is not None and offset_bytes > resources[root].size_bytes:
            message = f"{offset_bytes} is beyond the end of {resources[root].id!r}"
            message = f"{message} ({resources[root].size_bytes} bytes)"
            yield ValidationIssue(key=key, message=message)


def _root_above(
    number: int, resources: tuple[Resource, ...], index: Mapping[str, int]
) -> int | None:
    """Return the root that a resource belongs to; None if an error in the graph hides it."""
    # A graph with other errors may have cycles or missing parents.
    passed: set[int] = set()
    while not resources[number].begins_page:
        passed.add(number)
        found = resources[number].discovered
        by = None if found is None else found.by
        if by is None:
            return next((n for n, each in enumerate(resources) if each.discovered is None), None)
        if by not in index or index[by] in passed:
            return None
        number = index[by]
    return number


def cycle_problems(
    ids: dict[int, str], parents: Mapping[int, str | None], *, key: str
) -> Iterator[ValidationIssue]:
    """Follow each resource to its ancestors; yield each cycle once.

    *ids* and *parents* are by position; *key* is that of the parent in a resource.
    """
    index = {id_: position for position, id_ in reversed(ids.items())}
    checked: set[int] = set()
    for start in ids:
        path: dict[int, None] = {}
        node: int | None = start
        while node is not None and node not in checked and node not in path:
            path[node] = None
            parent = parents[node]
            node = None if parent is None else index.get(parent)
        if node is not None and node in path:
            steps = [*path]
            names = [ids[step] for step in (*steps[steps.index(node) :], node)]
            if len(names) > _MAX_SHOWN_STEPS:
                # The middle of a long cycle is left out.
                n_more = len(names) - _MAX_SHOWN_STEPS
                names[_MAX_SHOWN_STEPS - 1 : -1] = [f"{n_more:,} more"]
            message = f"a cycle: {' waits for '.join(names)}"
            yield ValidationIssue(key=f"resources[{node}].{key}", message=message)
        # A path that leads to a root or a reported cycle need not be followed again.
        checked.update(path)


_RESOURCE_KEYS = keys_of(Resource)


def edited_resource(resource: Resource, changes: Mapping[str, Any]) -> Resource:
    """Return *resource* with *changes*, by key of a page file; None removes a key.

    A key that is a Python keyword is given with an underscore appended.

    Raises:
        PageError: listing every error in them.

    >>> from h3sim.page import Kind, Resource
    >>> image = Resource(id="a.png", kind=Kind.IMAGE, size_bytes=10)
    >>> edited_resource(image, {"bytes": -1, "asink": True})
    Traceback (most recent call last):
    ...
    h3sim.errors.PageError: a.png: asink: unknown key; did you mean async?
    """
    overrides = {name.removesuffix("_"): value for name, value in changes.items()}
    unknown = [_unknown_key(name) for name in overrides if name not in _RESOURCE_KEYS]
    if unknown:
        raise PageError(unknown, resource.id)
    entry = write_table(resource)
    for name, value in overrides.items():
        if value is None:
            entry.pop(name, None)
        else:
            entry[name] = _as_in_file(value)
    return read_document(Resource, entry, PageError, source=resource.id)


def _as_in_file(value: Any) -> Any:
    """Return a value in the form of a page file: enums by value, records as tables."""
    if isinstance(value, Discovery | PriorityChange | RecordedPriority | ServerPriority):
        return write_table(value)
    if isinstance(value, list | tuple):
        return [_as_in_file(item) for item in value]
    return value.value if isinstance(value, enum.Enum) else value


def _unknown_key(name: str) -> ValidationIssue:
    import difflib  # on use: importing h3sim should stay quick

    similar = difflib.get_close_matches(name, _RESOURCE_KEYS, n=1)
    hint = f"did you mean {similar[0]}?" if similar else f"the keys are {', '.join(_RESOURCE_KEYS)}"
    return ValidationIssue(key=name, message=f"unknown key; {hint}")
