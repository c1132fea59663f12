"""The sets of `models/sets.toml`: names for several pages or schemes at once."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING

from h3sim.catalog.roots import root
from h3sim.documents import parse_toml
from h3sim.documents.declared import read_document, says, settle
from h3sim.documents.values import ListOf, TableOf, Text
from h3sim.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["NameSets", "shipped_sets"]

_FILE = "sets.toml"
_SETS = TableOf(ListOf(Text(is_needed=True), "names"))


@dataclass(frozen=True, slots=True, kw_only=True)
class NameSets:
    """The names in each set, in the order in which tables show them.

    Raises:
        InputError: listing every set that is no list of names.
    """

    schemes: Mapping[str, tuple[str, ...]] = field(metadata=says(_SETS, "schemes by set"))
    pages: Mapping[str, tuple[str, ...]] = field(metadata=says(_SETS, "pages by set"))

    def __post_init__(self) -> None:
        settle(self, InputError)


@cache
def shipped_sets() -> NameSets:
    """Return the shipped sets."""
    document = parse_toml((root("models") / _FILE).read_text("utf-8"), InputError, source=_FILE)
    return read_document(NameSets, document, InputError, source=_FILE)
