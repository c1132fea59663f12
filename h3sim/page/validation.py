"""Validation of a page's resources taken together, and of edits to one."""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING, Any

from h3sim.page.resource import (
    ALTERNATIVES,
    Discovery,
    PriorityChange,
    RecordedPriority,
    Resource,
    ServerPriority,
)
from h3sim.schema.errors import unknown_key
from h3sim.schema.fields import keys_of, read_document, write_table
from h3sim.values.errors import PageError, ValidationIssue

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence


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
        yield from _discovery_problems(f"{key}.discovered", resource, resources, index_of)
        for name, triggers in (
            ("priority_changes", [change.when for change in resource.priority_changes]),
            ("recorded", [entry.when for entry in resource.recorded]),
        ):
            for number, when in enumerate(triggers):
                trigger_key = f"{key}.{name}[{number}].when"
                if when is not None and when.is_joined:
                    message = "must be one trigger that waits for one resource"
                    yield ValidationIssue(key=trigger_key, message=message)
                yield from _parent_problems(trigger_key, when, resources, index_of)
    yield from _reference_problems(resources, index_of)
    yield from _join_problems(resources, index_of)
    # A timer waits for no other resource, even if it names a parent.
    waits = {index: _alternative_parents(each.discovered) for index, each in enumerate(resources)}
    cycles = [*cycle_problems(ids, waits, key="discovered.by")]
    if not cycles and any(len(alternatives) > 1 for alternatives in waits.values()):
        # The first of several triggers is that by which a resource belongs to its root.
        first = {index: [each[0][:1]] if each else [] for index, each in waits.items()}
        cycles = [*cycle_problems(ids, first, key="discovered[0].by")]
    yield from cycles


def _alternative_parents(found: Discovery | None) -> list[tuple[str, ...]]:
    """Return the ids that each trigger of a resource waits for; none for a root."""
    return [] if found is None else [when.waits_for for when in found.alternatives]


def _discovery_problems(
    key: str, resource: Resource, resources: tuple[Resource, ...], index: Mapping[str, int]
) -> Iterator[ValidationIssue]:
    """Yield the errors in the triggers of a resource."""
    found = resource.discovered
    if found is None:
        return
    if resource.is_root and found.is_joined:
        message = "must be one trigger that waits for one resource, as it is a root"
        yield ValidationIssue(key=key, message=message)
    alternatives = found.alternatives
    for number, when in enumerate(alternatives):
        each_key = f"{key}[{number}]" if len(alternatives) > 1 else key
        yield from _parent_problems(each_key, when, resources, index)


def _join_problems(
    resources: tuple[Resource, ...], index: Mapping[str, int]
) -> Iterator[ValidationIssue]:
    """Yield the resources that wait for resources of several roots."""
    for number, resource in enumerate(resources):
        found = resource.discovered
        if found is None or not found.is_joined or not all(by in index for by in found.waits_for):
            continue
        roots = {_root_above(index[by], resources, index) for by in found.waits_for}
        if len(roots - {None}) > 1:
            message = "must be resources of one root"
            yield ValidationIssue(key=f"resources[{number}].discovered", message=message)


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
    """Yield the errors in one trigger."""
    if discovery is None:
        return
    by_key = f"{key}.by"
    for number, by in enumerate(discovery.parents):
        parent = index.get(by)
        if parent is None:
            id_key = by_key if discovery.by == by else f"{by_key}[{number}]"
            yield ValidationIssue(key=id_key, message=f"no resource has the id {by!r}")
        elif (
            discovery.offset_bytes is not None
            and discovery.offset_bytes > resources[parent].size_bytes
        ):
            message = (
                f"{discovery.offset_bytes} is beyond the end of {by!r}"
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
        by = None if found is None else found.first_parent
        if by is None:
            return next((n for n, each in enumerate(resources) if each.discovered is None), None)
        if by not in index or index[by] in passed:
            return None
        number = index[by]
    return number


def cycle_problems(
    ids: dict[int, str], parents: Mapping[int, Sequence[Sequence[str]]], *, key: str
) -> Iterator[ValidationIssue]:
    """Yield each cycle of resources that wait for one another, once.

    *ids* and *parents* are by position; *parents* has, for each alternative trigger, the ids that
    are all waited for. *key* is that of the parent in a resource.

    >>> waits = {0: [["b"], ["c"]], 1: [["a"]], 2: []}
    >>> list(cycle_problems({0: "a", 1: "b", 2: "c"}, waits, key="by"))
    []
    """
    index = {id_: position for position, id_ in reversed(ids.items())}
    stuck = _stuck(ids, parents, index)
    checked: set[int] = set()
    for start in stuck:
        path: dict[int, None] = {}
        node = start
        while node not in checked and node not in path:
            path[node] = None
            # Each of its triggers waits for something that waits itself.
            node = next(
                index[id_] for each in parents[node] for id_ in each if index.get(id_) in stuck
            )
        if node in path:
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


def _stuck(
    ids: Mapping[int, str], parents: Mapping[int, Sequence[Sequence[str]]], index: Mapping[str, int]
) -> dict[int, None]:
    """Return the positions of the resources that can never be requested, in order.

    An id that does not exist is another error, and counts as requested.
    """
    missing = {
        (position, number): len({id_ for id_ in each if id_ in index})
        for position, alternatives in parents.items()
        for number, each in enumerate(alternatives)
    }
    waiting_for: dict[int, list[tuple[int, int]]] = {}
    for position, alternatives in parents.items():
        for number, each in enumerate(alternatives):
            for id_ in dict.fromkeys(each):
                if id_ in index:
                    waiting_for.setdefault(index[id_], []).append((position, number))
    free = {
        position
        for position in ids
        if not parents[position]
        or any(not missing[position, n] for n in range(len(parents[position])))
    }
    unchecked = [*free]
    while unchecked:
        for position, number in waiting_for.get(unchecked.pop(), ()):
            missing[position, number] -= 1
            if not missing[position, number] and position not in free:
                free.add(position)
                unchecked.append(position)
    return {position: None for position in ids if position not in free}


_RESOURCE_KEYS = keys_of(Resource)


def edited_resource(resource: Resource, changes: Mapping[str, Any]) -> Resource:
    """Return *resource* with *changes*, by key of a page file; None removes a key.

    A key that is a Python keyword is given with an underscore appended.

    Raises:
        PageError: listing every error in them.

    >>> from h3sim.page import Kind, Resource
    >>> image = Resource(id="a.png", kind=Kind.IMAGE, size_bytes=10)
    >>> edited_resource(image, {"bytes": -1, "asink": True})  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ...
    h3sim.values.errors.PageError: a.png: asink: unknown key; did you mean async? (docs/...)
    """
    overrides = {name.removesuffix("_"): value for name, value in changes.items()}
    unknown = [
        ValidationIssue(key=name, message=unknown_key(name, _RESOURCE_KEYS))
        for name in overrides
        if name not in _RESOURCE_KEYS
    ]
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
    if isinstance(value, Discovery):
        return ALTERNATIVES.write(value)
    if isinstance(value, PriorityChange | RecordedPriority | ServerPriority):
        return write_table(value)
    if isinstance(value, list | tuple):
        return [_as_in_file(item) for item in value]
    return value.value if isinstance(value, enum.Enum) else value
