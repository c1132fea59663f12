"""The classes of a scheme's resources, each found once for all that are alike."""

from __future__ import annotations

from operator import attrgetter
from typing import TYPE_CHECKING

from h3sim.schemes.parts import CONDITIONS

if TYPE_CHECKING:
    from h3sim.page import Resource
    from h3sim.schemes.model import Scheme
    from h3sim.schemes.parts import PriorityClass

__all__ = ["KnownClasses"]


class KnownClasses:
    """The classes that the rules of *scheme* put resources into which are as the page file says.

    Resources that are alike in all that a rule asks for are in one class. A page has thousands of
    resources and a handful of sorts, so the rules are asked once for each sort.
    """

    def __init__(self, scheme: Scheme) -> None:
        self._scheme = scheme
        asked = [name for rule in scheme.rules for name in (*dict(rule.flags), *rule.any_of)]
        # The text of an enum's member: the hash of the member itself is a function of Python.
        names = ["kind._value_", "fetchpriority._value_", *(CONDITIONS[name] for name in asked)]
        self._facts_of = attrgetter(*dict.fromkeys(names))
        self._n_first = scheme.n_first_images
        self._known: dict[tuple[tuple[object, ...], bool, int], PriorityClass] = {}

    def of(self, resource: Resource, images_before: int) -> PriorityClass:
        """Return the class of *resource*, before which so many images were requested."""
        # Else each image of a page would be a sort of its own.
        n_before = images_before if images_before < self._n_first else self._n_first
        sort = (self._facts_of(resource), resource.begins_page, n_before)
        found = self._known.get(sort)
        if found is None:
            found = self._known[sort] = self._scheme.ruled(resource, images_before)
        return found
