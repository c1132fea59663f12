"""What is known of a resource while the page loads, beyond what its file says."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Collection

    from h3sim.page.resource import FetchPriority, RecordedPriority, Resource

__all__ = ["AS_WRITTEN", "Standing"]


class Standing(NamedTuple):
    """What has become known of a resource; None where that is as it was.

    *visible*: layout has shown it in the viewport; *hidden*: its tab is in the background;
    *fetchpriority*: a script of the page asks for it; *recorded*: a browser said that later, the
    last word first. As a change it says what is new.

    >>> Standing(visible=True).after(Standing(hidden=True))[:2]
    (True, True)
    """

    visible: bool | None = None
    hidden: bool | None = None
    fetchpriority: FetchPriority | None = None
    recorded: tuple[RecordedPriority, ...] | None = None

    def after(self, change: Standing) -> Standing:
        """Return what is known once *change* is known as well."""
        news = {name: new for name, new in change._asdict().items() if new is not None}
        if change.recorded and self.recorded:
            news["recorded"] = (*change.recorded, *self.recorded)
        return self._replace(**news)

    def tells(self, names: Collection[str]) -> bool:
        """Return whether it says anything of what is called one of *names*.

        >>> Standing(hidden=True).tells(["visible"]), Standing(visible=False).tells(["visible"])
        (False, True)
        """
        values = zip(self._fields, self, strict=True)
        return any(value is not None and name in names for name, value in values)

    def applied_to(self, resource: Resource) -> Resource:
        """Return *resource* with the hint that holds now."""
        hint = self.fetchpriority
        return resource if hint is None else replace(resource, fetchpriority=hint)


AS_WRITTEN = Standing()
"""Nothing has become known: all is as the page file says."""
