"""Scheme files (`h3sim-scheme/1`)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from h3sim.errors import SchemeError, UnknownNameError, ValidationIssue
from h3sim.schema import join_words, parse_toml, read_text
from h3sim.schema.fields import keys_of, read_document, write_table
from h3sim.schemes.model import Scheme
from h3sim.schemes.registry import CustomScheduler, SchedulerKind, SignalKind, scheduler_kind_named
from h3sim.schemes.rules import Placeholder

if TYPE_CHECKING:
    from pathlib import Path


FORMAT = "h3sim-scheme/1"
_TREE_KEYS = ("weight", "group", "arrangement")
_CLASS_KEYS: dict[SignalKind, tuple[str, ...]] = {
    SignalKind.NOTHING: (),
    SignalKind.TREE: _TREE_KEYS,
    SignalKind.STRICT: (*_TREE_KEYS, "strict"),
    SignalKind.BUCKETS: ("bucket", "level"),
    SignalKind.EPS: ("urgency", "incremental"),
    SignalKind.RANKS: (),
}
"""The keys of a class: only those that its scheduler uses."""
_TREE_ONLY = ("placeholders", "max_placeholders")
"""The keys of a scheme that need a tree scheduler, with or without strict priorities."""
_KEYS_OF_SIGNALS = (
    ("bucket", SignalKind.BUCKETS),
    ("urgency", SignalKind.EPS),
    ("strict", SignalKind.STRICT),
)
"""The key by which classes of a plug-in reveal the kind of signal; otherwise a tree."""


def read_scheme(path: str | Path) -> Scheme:
    """Return the scheme in the file at *path*.

    Raises:
        SchemeError: if the file cannot be read or is invalid, listing every error.
    """
    text = read_text(path, SchemeError)
    return scheme_from_toml(text, source=str(path))


def scheme_from_toml(text: str, *, source: str) -> Scheme:
    """Return the scheme in *text*; errors as `read_scheme`."""
    document = parse_toml(text, SchemeError, source=source)
    return scheme_from_dict(document, source=source)


def scheme_from_dict(document: dict[str, Any], *, source: str = "scheme") -> Scheme:
    """Return the scheme in *document*, a parsed scheme file.

    Raises:
        SchemeError: listing every error.
    """
    tables: Any = document
    problems: list[ValidationIssue] = []
    if isinstance(document, dict):
        kind = _kind(document)
        tables = {**document, "mechanism": kind} if "mechanism" in document else document
        if not isinstance(kind, str):
            tables, problems = _acted_on(tables, kind.signal_kind)
    try:
        scheme = read_document(Scheme, tables, SchemeError, source=source, format_=FORMAT)
    except SchemeError as error:
        raise SchemeError([*error.problems, *problems], source) from error
    if problems:
        raise SchemeError(problems, source)
    return scheme


def scheme_to_dict(scheme: Scheme) -> dict[str, Any] | None:
    """Return *scheme* as the content of a scheme file; None if that is impossible.

    A scheme whose scheduler was given as code, not by name, has no such form.

    >>> document = {
    ...     "format": "h3sim-scheme/1", "name": "x", "title": "", "source": "",
    ...     "mechanism": "fifo", "signalling": "server", "classes": {"all": {}},
    ... }
    >>> scheme_to_dict(scheme_from_dict(document)) == document | {"otherwise": "all"}
    True
    """
    document = {"format": FORMAT, **write_table(scheme)}
    if isinstance(scheme.mechanism, CustomScheduler):
        try:
            # The name may coincide with that of a plug-in, which is another scheduler.
            is_same = scheme_from_dict(document) == scheme
        except SchemeError:
            is_same = False
        return document if is_same else None
    return document


def _kind(document: dict[str, Any]) -> SchedulerKind | CustomScheduler | str:
    """Return the scheduler of that name, or the name if there is none."""
    name = document.get("mechanism")
    if not isinstance(name, str):
        return str(name)
    used_keys = {key for entry in _tables(document.get("classes")) for key in entry}
    signal_kind = next(
        (kind for key, kind in _KEYS_OF_SIGNALS if key in used_keys), SignalKind.TREE
    )
    try:
        return scheduler_kind_named(name, signal_kind=signal_kind)
    except UnknownNameError:
        return name


def _tables(value: Any) -> list[dict[str, Any]]:
    """Return the tables in *value*, which may be any value of a file."""
    entries = value.values() if isinstance(value, dict) else value
    if not isinstance(entries, Iterable):
        return []
    return [entry for entry in entries if isinstance(entry, dict)]


def _acted_on(
    document: dict[str, Any], kind: SignalKind
) -> tuple[dict[str, Any], list[ValidationIssue]]:
    """Return the document without keys that the scheduler ignores, and errors for those."""
    problems: list[ValidationIssue] = []
    classes = document.get("classes")
    if isinstance(classes, dict):
        document = {
            **document,
            "classes": {
                name: _only(f"classes.{name}", entry, _CLASS_KEYS[kind], problems)
                for name, entry in classes.items()
            },
        }
    if kind not in (SignalKind.TREE, SignalKind.STRICT):
        problems += [
            ValidationIssue(key=key, message="requires a tree mechanism")
            for key in _TREE_ONLY
            if document.get(key) not in (None, [])
        ]
        # Removed, so that errors inside them are not reported in addition.
        document = {key: value for key, value in document.items() if key not in _TREE_ONLY}
    holders = document.get("placeholders")
    if isinstance(holders, list) and kind is not SignalKind.STRICT:
        allowed = tuple(key for key in keys_of(Placeholder) if key != "strict")
        document = {
            **document,
            "placeholders": [
                _only(f"placeholders[{index}]", entry, allowed, problems)
                for index, entry in enumerate(holders)
            ],
        }
    return document, problems


def _only(key: str, entry: Any, allowed: tuple[str, ...], problems: list[ValidationIssue]) -> Any:
    """Return a table without the keys that are not *allowed*, and report them."""
    if not isinstance(entry, dict):
        return entry
    wrong = [name for name in entry if name not in allowed]
    for name in wrong:
        what = (
            f"allowed are {join_words(allowed, near=name)}" if allowed else "none is allowed here"
        )
        problems.append(ValidationIssue(key=f"{key}.{name}", message=f"unknown key; {what}"))
    return {name: value for name, value in entry.items() if name in allowed}
