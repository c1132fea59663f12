"""Reads schemes from TOML and lists every mistake of a file."""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING, Any, TypeVar

from h3sim.documents import DocumentReader, not_one_of, parse_toml, read_text, shown
from h3sim.errors import SchemeError, UnknownNameError
from h3sim.page import FetchPriority, Kind
from h3sim.schedulers import Mixed, Retransmit, Turn
from h3sim.schemes.model import (
    CONDITIONS,
    Arrangement,
    CustomScheduler,
    Placeholder,
    PriorityClass,
    Rule,
    SchedulerKind,
    Scheme,
    SignalKind,
)
from h3sim.schemes.ranks import RankBy
from h3sim.schemes.registry import scheduler_kind_named
from h3sim.signals import (
    DEFAULT_STRICT,
    DEFAULT_URGENCY,
    DEFAULT_WEIGHT,
    MAX_STRICT,
    MAX_URGENCY,
    Signalling,
)

if TYPE_CHECKING:
    from pathlib import Path

DefaultT = TypeVar("DefaultT")
ChoiceT = TypeVar("ChoiceT", bound=enum.Enum)

__all__ = ["FORMAT", "read_scheme", "scheme_from_dict"]

FORMAT = "h3sim-scheme/1"
_TEXTS = ("name", "title", "source")
_NOTES = ("notes", "caveat")
_KEYS = (
    *("format", *_TEXTS, "mechanism", "signalling", *_NOTES, "knows"),
    *("rank_by", "mixed", "turn_packets", "turn_bytes", "retransmission"),
    *("placeholders", "classes", "rules", "otherwise"),
)
_TREE_KEYS = ("weight", "group", "arrangement")
_CLASS_KEYS: dict[SignalKind, tuple[str, ...]] = {
    SignalKind.NOTHING: (),
    SignalKind.TREE: _TREE_KEYS,
    SignalKind.STRICT: (*_TREE_KEYS, "strict"),
    SignalKind.BUCKETS: ("bucket", "level"),
    SignalKind.EPS: ("urgency", "incremental"),
    SignalKind.RANKS: (),
}
"""What a class may say: only what its scheduler acts on."""
_RULE_KEYS = ("class", "kind", "root", "any_of", "fetchpriority", "first_images", *CONDITIONS)
_ALL_CLASS_KEYS = (*_TREE_KEYS, "strict", "bucket", "level", "urgency", "incremental")
_MAX_BUCKET = 63
_MAX_LEVEL = 3
_MAX_WEIGHT = 256


def read_scheme(path: str | Path) -> Scheme:
    """Return the scheme that the file at *path* describes.

    Raises:
        SchemeError: if the file cannot be read, or listing every mistake in it.
    """
    text = read_text(path, SchemeError)
    return scheme_from_toml(text, source=str(path))


def scheme_from_toml(text: str, *, source: str) -> Scheme:
    """Return the scheme that *text* describes; errors as `read_scheme`."""
    document = parse_toml(text, SchemeError, source=source)
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
        reader.add(error.problems)
        raise SchemeError(reader.problems, source) from error
    if reader.problems:
        raise SchemeError(reader.problems, source)
    return scheme


class _Reader(DocumentReader):
    """Reads a scheme file."""

    def scheme(self, document: dict[str, Any]) -> dict[str, Any]:
        if document.get("format") != FORMAT:
            self.report("format", f"must be {FORMAT!r}, is {shown(document.get('format'))}")
        self.keys("", document, _KEYS)
        for name in (*_TEXTS, "mechanism", "signalling"):
            if name not in document:
                self.report(name, "is missing")
        known = len(self.problems)
        mechanism = self._mechanism(document)
        is_known = "mechanism" in document and len(self.problems) == known
        acts_on = mechanism.signal_kind if is_known else None
        classes = self.table("classes", document.get("classes", {}))
        if not classes:
            self.report("classes", "at least one class is needed")
        last = next(reversed(classes), "")
        return {
            **{name: self.text(name, document.get(name, "")) for name in (*_TEXTS, *_NOTES)},
            "mechanism": mechanism,
            "signalling": self.choice(
                "signalling", document.get("signalling", "server"), Signalling
            ),
            "knows": self.texts("knows", document.get("knows", [])),
            "rank_by": self._choice("rank_by", document, RankBy),
            "mixed": self._choice("mixed", document, Mixed),
            "turn": self._turn(document),
            "retransmission": self._choice("retransmission", document, Retransmit),
            "classes": tuple(self._class(acts_on, *item) for item in classes.items()),
            "otherwise": self.text("otherwise", document.get("otherwise", last)),
            "placeholders": tuple(
                self._placeholder(acts_on, f"placeholders[{place}]", entry)
                for place, entry in enumerate(self._tables("placeholders", document))
            ),
            "rules": tuple(
                self._rule(f"rules[{place}]", entry)
                for place, entry in enumerate(self._tables("rules", document))
            ),
        }

    def _choice(
        self, name: str, entry: dict[str, Any], options: type[ChoiceT], key: str = ""
    ) -> ChoiceT | None:
        if name not in entry:
            return None
        return self.choice(f"{key}.{name}" if key else name, entry[name], options)

    def _turn(self, document: dict[str, Any]) -> Turn | None:
        packets = self._optional("", document, "turn_packets", 1, None, None)
        size_bytes = self._optional("", document, "turn_bytes", 1, None, None)
        if packets is not None and size_bytes is not None:
            self.report("turn_bytes", "a turn is of packets or of bytes, not of both")
        if size_bytes is not None:
            return Turn(size_bytes=size_bytes)
        return None if packets is None else Turn(packets=packets)

    def _mechanism(self, document: dict[str, Any]) -> SchedulerKind | CustomScheduler:
        """Return the mechanism; the classes show what the clients of a plug-in say."""
        value = document.get("mechanism", "tree")
        if not isinstance(value, str):
            return self.choice("mechanism", value, SchedulerKind)
        entries = self.table("", document.get("classes", {})).values()
        said = {key for entry in entries if isinstance(entry, dict) for key in entry}
        signal_kind = SignalKind.TREE
        if "bucket" in said:
            signal_kind = SignalKind.BUCKETS
        elif "urgency" in said:
            signal_kind = SignalKind.EPS
        elif "strict" in said:
            signal_kind = SignalKind.STRICT
        try:
            return scheduler_kind_named(value, signal_kind=signal_kind)
        except UnknownNameError as error:
            self.report("mechanism", not_one_of(value, error.known))
            return SchedulerKind.FIFO

    def _tables(self, key: str, document: dict[str, Any]) -> list[dict[str, Any]]:
        return self.tables(key, document.get(key, []))

    def _class(self, signal_kind: SignalKind | None, name: str, entry: Any) -> PriorityClass:
        key = f"classes.{name}"
        entry = self.table(key, entry)
        self.keys(key, entry, _ALL_CLASS_KEYS if signal_kind is None else _CLASS_KEYS[signal_kind])
        if ("bucket" in entry) != ("level" in entry):
            self.report(key, "bucket and level go together")
        arrangement = entry.get("arrangement", Arrangement.SIBLINGS.value)
        return PriorityClass(
            name=name,
            weight=self._optional(key, entry, "weight", 0, _MAX_WEIGHT, DEFAULT_WEIGHT),
            group=self._name(key, entry, "group"),
            strict=self._optional(key, entry, "strict", 0, MAX_STRICT, DEFAULT_STRICT),
            arrangement=self.choice(f"{key}.arrangement", arrangement, Arrangement),
            bucket=self._optional(key, entry, "bucket", 0, _MAX_BUCKET, None),
            level=self._optional(key, entry, "level", 1, _MAX_LEVEL, None),
            urgency=self._optional(key, entry, "urgency", 0, MAX_URGENCY, DEFAULT_URGENCY),
            incremental=self.flag(f"{key}.incremental", entry.get("incremental", False)),
        )

    def _placeholder(
        self, signal_kind: SignalKind | None, key: str, entry: dict[str, Any]
    ) -> Placeholder:
        has_strict = signal_kind in (None, SignalKind.STRICT)
        keys = ("name", "weight", *["strict"] * has_strict, "parent")
        self.keys(key, entry, (*keys, "yields_to", "yielding_weight"))
        if ("yields_to" in entry) != ("yielding_weight" in entry):
            self.report(key, "yields_to and yielding_weight go together")
        return Placeholder(
            name=self._required(key, entry, "name"),
            weight=self._optional(key, entry, "weight", 0, _MAX_WEIGHT, DEFAULT_WEIGHT),
            strict=self._optional(key, entry, "strict", 0, MAX_STRICT, DEFAULT_STRICT),
            parent=self._name(key, entry, "parent"),
            yields_to=self._name(key, entry, "yields_to"),
            yielding_weight=self._optional(key, entry, "yielding_weight", 0, _MAX_WEIGHT, None),
        )

    def _rule(self, key: str, entry: dict[str, Any]) -> Rule:
        self.keys(key, entry, _RULE_KEYS)
        kinds = {kind.value: kind for kind in Kind}
        wanted = self.texts(f"{key}.kind", entry.get("kind", []), kinds)
        flags = [name for name in CONDITIONS if name in entry]
        return Rule(
            class_name=self._required(key, entry, "class"),
            kinds=tuple(kinds[name] for name in wanted),
            flags=tuple((name, self.flag(f"{key}.{name}", entry[name])) for name in flags),
            any_of=self.texts(f"{key}.any_of", entry.get("any_of", []), CONDITIONS),
            root=self.flag(f"{key}.root", entry["root"]) if "root" in entry else None,
            fetchpriority=self._choice("fetchpriority", entry, FetchPriority, key),
            first_images=self._optional(key, entry, "first_images", 1, None, None),
        )

    def _required(self, key: str, entry: dict[str, Any], name: str) -> str:
        if name not in entry:
            self.report(f"{key}.{name}", "is missing")
        return self.text(f"{key}.{name}", entry.get(name, ""))

    def _name(self, key: str, entry: dict[str, Any], name: str) -> str | None:
        return self.text(f"{key}.{name}", entry[name]) if name in entry else None

    def _optional(
        self,
        key: str,
        entry: dict[str, Any],
        name: str,
        low: int,
        high: int | None,
        default: DefaultT,
    ) -> int | DefaultT:
        if name not in entry:
            return default
        return self.whole(f"{key}.{name}" if key else name, entry[name], low=low, high=high)
