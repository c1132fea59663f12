"""Reads schemes from TOML and lists every mistake of a file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from h3sim.errors import Problem, SchemeError
from h3sim.page import Kind
from h3sim.schemes.model import (
    CONDITIONS,
    Arrangement,
    Mechanism,
    Placeholder,
    PriorityClass,
    Rule,
    Scheme,
)

if TYPE_CHECKING:
    from collections.abc import Iterable
    from enum import Enum

__all__ = ["FORMAT", "read_scheme", "scheme_from_dict"]

FORMAT = "h3sim-scheme/1"
_TEXTS = ("name", "title", "signalling", "source")
_KEYS = (
    *("format", *_TEXTS, "mechanism", "notes", "caveat", "knows"),
    *("placeholders", "classes", "rules", "otherwise"),
)
_MAX_BUCKET = 63
_MAX_LEVEL = 3
_MAX_WEIGHT = 256


def read_scheme(path: str | Path) -> Scheme:
    """Return the scheme that the file at *path* describes.

    Raises:
        SchemeError: if the file cannot be read, or listing every mistake in it.
    """
    try:
        text = Path(path).read_text(encoding="utf-8")
    except OSError as error:
        message = f"cannot be read: {error.strerror}"
        raise SchemeError([Problem(key="", message=message)], str(path)) from error
    except UnicodeDecodeError as error:
        raise SchemeError([Problem(key="", message="is not UTF-8")], str(path)) from error
    return scheme_from_toml(text, source=str(path))


def scheme_from_toml(text: str, *, source: str) -> Scheme:
    """Return the scheme that *text* describes; errors as `read_scheme`."""
    import tomllib  # on use: importing h3sim should stay quick

    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise SchemeError([Problem(key="", message=f"is not TOML: {error}")], source) from error
    return scheme_from_dict(document, source=source)


def scheme_from_dict(document: dict[str, Any], *, source: str = "scheme") -> Scheme:
    """Return the scheme that *document*, a parsed scheme file, describes.

    Raises:
        SchemeError: listing every mistake in it.
    """
    reader = _Reader()
    values = reader.scheme(document)
    try:
        scheme = Scheme(**values)
    except SchemeError as error:
        told = {problem.key for problem in reader.problems}
        reader.problems += [problem for problem in error.problems if problem.key not in told]
        raise SchemeError(reader.problems, source) from error
    if reader.problems:
        raise SchemeError(reader.problems, source)
    return scheme


class _Reader:
    """Collects the mistakes instead of stopping at the first."""

    def __init__(self) -> None:
        self.problems: list[Problem] = []

    def scheme(self, document: dict[str, Any]) -> dict[str, Any]:
        if document.get("format") != FORMAT:
            self._report("format", f"must be {FORMAT!r}, is {document.get('format')!r}")
        self._keys("", document, _KEYS)
        classes = self._table("classes", document.get("classes", {}))
        if not classes:
            self._report("classes", "at least one class is needed")
        names = tuple(classes)
        return {
            **{name: self._value("", document, name, str, required=True) for name in _TEXTS},
            "mechanism": self._choice("", document, "mechanism", Mechanism, Mechanism.TREE),
            **{name: self._value("", document, name, str) for name in ("notes", "caveat")},
            "knows": tuple(map(str, document.get("knows", ()))),
            "classes": tuple(self._class(name, entry) for name, entry in classes.items()),
            "otherwise": document.get("otherwise", names[-1] if names else ""),
            "placeholders": tuple(
                self._placeholder(f"placeholders[{i}]", entry)
                for i, entry in enumerate(self._list("placeholders", document))
            ),
            "rules": tuple(
                self._rule(f"rules[{i}]", entry)
                for i, entry in enumerate(self._list("rules", document))
            ),
        }

    def _class(self, name: str, entry: Any) -> PriorityClass:
        key = f"classes.{name}"
        entry = self._table(key, entry)
        self._keys(key, entry, ("weight", "group", "arrangement", "bucket", "level"))
        level = self._whole(key, entry, "level", 1, _MAX_LEVEL)
        bucket = self._whole(key, entry, "bucket", 0, _MAX_BUCKET)
        if (bucket is None) != (level is None):
            self._report(key, "bucket and level go together")
        weight = self._whole(key, entry, "weight", 0, _MAX_WEIGHT)
        return PriorityClass(
            name=name,
            weight=16 if weight is None else weight,
            group=entry.get("group"),
            arrangement=self._choice(key, entry, "arrangement", Arrangement, Arrangement.SIBLINGS),
            bucket=bucket,
            level=level,
        )

    def _placeholder(self, key: str, entry: Any) -> Placeholder:
        entry = self._table(key, entry)
        self._keys(key, entry, ("name", "weight", "parent", "yields_to", "yielding_weight"))
        if ("yields_to" in entry) != ("yielding_weight" in entry):
            self._report(key, "yields_to and yielding_weight go together")
        weight = self._whole(key, entry, "weight", 0, _MAX_WEIGHT)
        return Placeholder(
            name=self._value(key, entry, "name", str, required=True),
            weight=16 if weight is None else weight,
            parent=entry.get("parent"),
            yields_to=entry.get("yields_to"),
            yielding_weight=self._whole(key, entry, "yielding_weight", 0, _MAX_WEIGHT),
        )

    def _rule(self, key: str, entry: Any) -> Rule:
        entry = self._table(key, entry)
        self._keys(key, entry, ("class", "kind", "root", "any_of", *CONDITIONS))
        kinds = entry.get("kind", [])
        names = {kind.value: kind for kind in Kind}
        for name in [kinds] if isinstance(kinds, str) else kinds:
            if name not in names:
                self._report(f"{key}.kind", f"{name!r} is not one of {', '.join(names)}")
        any_of = tuple(entry.get("any_of", ()))
        for name in any_of:
            if name not in CONDITIONS:
                self._report(f"{key}.any_of", f"{name!r} is not one of {', '.join(CONDITIONS)}")
        return Rule(
            class_name=self._value(key, entry, "class", str, required=True),
            kinds=tuple(
                names[k] for k in ([kinds] if isinstance(kinds, str) else kinds) if k in names
            ),
            flags=tuple((n, self._value(key, entry, n, bool)) for n in CONDITIONS if n in entry),
            any_of=tuple(name for name in any_of if name in CONDITIONS),
            root=self._value(key, entry, "root", bool) if "root" in entry else None,
        )

    # Single values: each is returned, or a stand-in after reporting.

    def _value(
        self, key: str, entry: dict[str, Any], name: str, wanted: type, *, required: bool = False
    ) -> Any:
        if name not in entry:
            if required:
                self._report(_join(key, name), "is missing")
            return wanted()
        if not isinstance(entry[name], wanted):
            kind = "text" if wanted is str else "true or false"
            self._report(_join(key, name), f"must be {kind}, is {entry[name]!r}")
            return wanted()
        return entry[name]

    def _whole(self, key: str, entry: dict[str, Any], name: str, low: int, high: int) -> int | None:
        value = entry.get(name)
        if value is None:
            return None
        if type(value) is not int or not low <= value <= high:
            message = f"must be a whole number from {low} to {high}, is {value!r}"
            self._report(_join(key, name), message)
            return None
        return value

    def _choice(
        self, key: str, entry: dict[str, Any], name: str, options: type[Enum], default: Enum
    ) -> Any:
        value = entry.get(name, default.value)
        for option in options:
            if option.value == value:
                return option
        known = ", ".join(str(option.value) for option in options)
        self._report(_join(key, name), f"{value!r} is not one of {known}")
        return default

    def _table(self, key: str, entry: Any) -> dict[str, Any]:
        if isinstance(entry, dict):
            return entry
        self._report(key, f"must be a table, is {entry!r}")
        return {}

    def _list(self, key: str, document: dict[str, Any]) -> list[Any]:
        entries = document.get(key, [])
        if isinstance(entries, list):
            return entries
        self._report(key, f"must be a list of tables, is {entries!r}")
        return []

    def _keys(self, key: str, entry: dict[str, Any], known: Iterable[str]) -> None:
        for name in entry:
            if name not in known:
                message = f"unknown key; allowed are {', '.join(known)}"
                self._report(_join(key, name), message)

    def _report(self, key: str, message: str) -> None:
        self.problems.append(Problem(key=key, message=message))


def _join(key: str, name: str) -> str:
    return f"{key}.{name}" if key else name
