"""Rules, classes and placeholders of a scheme, as values."""

from __future__ import annotations

import enum
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any

from h3sim.page import UNCHANGED, FetchPriority, Kind, ResourceState, ServerPriority
from h3sim.schema import format_value
from h3sim.schema.errors import RejectedValueError
from h3sim.schema.fields import Inline, declare, validate
from h3sim.schema.values import Choice, Flag, Integer, OneOrMore, Text, ValueType
from h3sim.signals import (
    DEFAULT_STRICT,
    DEFAULT_URGENCY,
    DEFAULT_WEIGHT,
    MAX_STRICT,
    MAX_URGENCY,
)
from h3sim.values.errors import SchemeError, ValidationIssue

if TYPE_CHECKING:
    from collections.abc import Iterator

    from h3sim.page import Resource


class Arrangement(enum.Enum):
    """The order of a class's streams below its group in the tree."""

    SIBLINGS = "siblings"
    """All are children of the group and share by weight."""
    CHAIN = "chain"
    """Each is the child of the previous one: first in, first out."""
    STRICT_CHAIN = "strict-chain"
    """Exclusive, after the last stream of the lowest class that is not below its own.

    This serves classes in the order of the file, each first in, first out (Chromium's lists of
    streams).
    """
    QUICKER_CHAIN = "quicker-chain"
    """As `STRICT_CHAIN`, but if the last stream of a class leaves the tree, its parent replaces it.

    The parent may be of another class (dfifo in the code of Marx 2019).
    """

    @property
    def is_exclusive(self) -> bool:
        """True if streams are inserted exclusively."""
        return self in (Arrangement.STRICT_CHAIN, Arrangement.QUICKER_CHAIN)


_WEIGHT_VALUE = Integer(low=0, high=256)
"""The type of weights; each mechanism narrows their range."""
_STRICT_VALUE = Integer(low=0, high=MAX_STRICT)
"""The type of strict priorities."""
UPDATES = ResourceState._fields
"""The state that may change while a stream is open."""
CONDITIONS = {
    "in_head": "in_head",
    "async": "is_async",
    "defer": "is_defer",
    "preload": "preload",
    "after_first_image": "after_first_image",
    "above_the_fold": "above_the_fold",
    "critical": "critical",
    "render_blocking": "render_blocking",
    "hero": "hero",
    "module": "module",
    "other_media": "other_media",
}
"""The flags that a rule may test, each with its attribute of `Resource`."""


class _Conditions(ValueType):
    """The flags that must or must not be set; each is a key of its own."""

    keys = tuple(CONDITIONS)

    def accept(self, value: Any) -> tuple[tuple[str, bool], ...]:
        if not isinstance(value, list | tuple):
            raise RejectedValueError(
                f"must be a list of pairs of a flag and true or false, is {format_value(value)}"
            )
        for pair in value:
            match pair:
                case (name, bool()) if name in self.keys:
                    continue
            raise RejectedValueError(
                f"must be pairs of a flag and true or false, has {format_value(pair)}"
            )
        return tuple((name, expected) for name, expected in value)

    def read(self, raw: dict[str, Any]) -> tuple[tuple[str, bool], ...]:
        flags: list[tuple[str, bool]] = []
        problems: list[ValidationIssue] = []
        for key in self.keys:
            try:
                if key in raw:
                    flags.append((key, Flag().accept(raw[key])))
            except RejectedValueError as refused:
                problems += refused.under(key)
        if problems:
            raise RejectedValueError(problems, tuple(flags))
        return tuple(flags)

    def write(self, value: Any) -> dict[str, bool]:
        return dict(value)

    def schema(self) -> dict[str, Any]:
        return {key: Flag().schema() for key in self.keys}


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """Assigns a resource to a class if it is of one of *kinds* and all flags match.

    *any_of* names flags of which at least one must be set; *root* tests for the main document;
    *fetchpriority* is the author's hint; *first_images* limits the number of images before it that
    Chrome counts (`Page.images_before`). *visible* and *hidden* test state that changes during the
    load: it is in the viewport of the layout, its tab is in the background.
    """

    class_name: str = field(metadata=declare(Text(), "the class", key="class"))
    kinds: tuple[Kind, ...] = field(
        default=(),
        metadata=declare(
            OneOrMore(Choice(Kind), "kinds"), "it is of one of these kinds", key="kind"
        ),
    )
    flags: tuple[tuple[str, bool], ...] = field(
        default=(), metadata=declare(_Conditions(), "each flag has this value")
    )
    any_of: tuple[str, ...] = field(
        default=(),
        metadata=declare(
            OneOrMore(Choice(CONDITIONS), "flags"), "at least one of these flags is set"
        ),
    )
    root: bool | None = field(default=None, metadata=declare(Flag(), "it is the main document"))
    fetchpriority: FetchPriority | None = field(
        default=None, metadata=declare(Choice(FetchPriority), "the author's hint")
    )
    first_images: int | None = field(
        default=None, metadata=declare(Integer(low=1), "it is among the first n images")
    )

    visible: bool | None = field(
        default=None, metadata=declare(Flag(), "the layout shows it in the viewport")
    )
    hidden: bool | None = field(
        default=None, metadata=declare(Flag(), "its tab is in the background")
    )

    def __post_init__(self) -> None:
        validate(self, SchemeError)

    def matches(
        self, resource: Resource, *, images_before: int = 0, state: ResourceState = UNCHANGED
    ) -> bool:
        """Return whether the rule matches *resource*, after *images_before* images."""
        if self.visible is not None and self.visible != bool(state.visible):
            return False
        if self.hidden is not None and self.hidden != bool(state.hidden):
            return False
        if self.kinds and resource.kind not in self.kinds:
            return False
        if self.root is not None and self.root != resource.begins_page:
            return False
        if self.fetchpriority not in (None, resource.fetchpriority):
            return False
        first = self.first_images
        if first is not None and (resource.kind is not Kind.IMAGE or images_before >= first):
            return False
        if any(getattr(resource, CONDITIONS[name]) != expected for name, expected in self.flags):
            return False
        return not self.any_of or any(getattr(resource, CONDITIONS[name]) for name in self.any_of)


_MAX_PATTERN_CHARACTERS = 1000
"""Longest pattern of a hint, in characters; each is compared with every resource."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerHint:
    """The server's priority of responses whose ID matches *path*, with `*` for any text."""

    path: str = field(metadata=declare(Text(), "the ids of responses: `*` matches any text"))
    server_priority: ServerPriority = field(
        metadata=declare(Inline(ServerPriority), "their priority")
    )

    def __post_init__(self) -> None:
        validate(self, SchemeError)

    def issues(self) -> Iterator[ValidationIssue]:
        """Yield an error if its pattern is too long to match with every resource."""
        if len(self.path) > _MAX_PATTERN_CHARACTERS:
            message = (
                f"must have at most {_MAX_PATTERN_CHARACTERS:,} characters, has {len(self.path):,}"
            )
            yield ValidationIssue(key="path", message=message)

    def matches(self, id_: str) -> bool:
        """Return whether the pattern matches that id."""
        return fnmatchcase(id_, self.path)


@dataclass(frozen=True, slots=True, kw_only=True)
class Placeholder:
    """A node of the tree that only groups others, under *parent* or the root.

    While class *yields_to* has a stream in the tree, the weight is *yielding_weight*. With the
    mechanism `strict` it also has a strict priority.
    """

    name: str = field(metadata=declare(Text(), "its name in classes"))
    weight: int = field(default=DEFAULT_WEIGHT, metadata=declare(_WEIGHT_VALUE, "its share"))
    strict: int = field(
        default=DEFAULT_STRICT, metadata=declare(_STRICT_VALUE, "its strict priority")
    )
    parent: str | None = field(
        default=None, metadata=declare(Text(), "a placeholder declared before it")
    )
    yields_to: str | None = field(
        default=None, metadata=declare(Text(), "a class", is_premise=True)
    )
    yielding_weight: int | None = field(
        default=None,
        metadata=declare(
            _WEIGHT_VALUE, "the weight while that class has a stream", is_premise=True
        ),
    )

    def __post_init__(self) -> None:
        validate(self, SchemeError)

    def issues(self) -> Iterator[ValidationIssue]:
        """Yield inconsistencies between its values."""
        if (self.yields_to is None) != (self.yielding_weight is None):
            yield ValidationIssue(
                key="", message="yields_to and yielding_weight require each other"
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class PriorityClass:
    """The priority of a class's streams.

    It is a weight under a placeholder, with or without a strict priority, or a bucket and level, or
    an urgency and the incremental flag.
    """

    name: str = field(metadata=declare(Text(), "its name in rules"))
    weight: int = field(default=DEFAULT_WEIGHT, metadata=declare(_WEIGHT_VALUE, "its share"))
    strict: int = field(
        default=DEFAULT_STRICT, metadata=declare(_STRICT_VALUE, "its strict priority")
    )
    group: str | None = field(default=None, metadata=declare(Text(), "a placeholder"))
    arrangement: Arrangement = field(
        default=Arrangement.SIBLINGS,
        metadata=declare(Choice(Arrangement), "the order of its streams below the group"),
    )
    bucket: int | None = field(
        default=None, metadata=declare(Integer(low=0, high=63), "its bucket", is_premise=True)
    )
    level: int | None = field(
        default=None, metadata=declare(Integer(low=1, high=3), "its level", is_premise=True)
    )
    urgency: int = field(
        default=DEFAULT_URGENCY, metadata=declare(Integer(low=0, high=MAX_URGENCY), "its urgency")
    )
    incremental: bool = field(default=False, metadata=declare(Flag(), "the incremental flag"))

    def __post_init__(self) -> None:
        validate(self, SchemeError)

    def issues(self) -> Iterator[ValidationIssue]:
        """Yield inconsistencies between its values."""
        if (self.bucket is None) != (self.level is None):
            yield ValidationIssue(key="", message="bucket and level require each other")
