"""Looking hosts up and connecting to them, as activities that requests wait for."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from h3sim.page.hosts import UNNAMED
from h3sim.trace import Activity, Work

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from h3sim.page import Page
    from h3sim.results.connections import Connection

__all__ = ["with_setup"]

_Key: TypeAlias = "int | str"
"""The index of an activity of the browser, the name of a host, or the number of a connection."""


def with_setup(
    page: Page, activities: Sequence[Activity], connections: Iterable[Connection]
) -> list[Activity]:
    """Return *activities* with what had to be there before requests could leave.

    A host is looked up by the first request for it, and so is a connection opened; a download
    begins once its request may leave. What is asked for at the start waits for the page's own
    connection. What takes no time is left out.
    """
    downloads = {
        done.resource: index for index, done in enumerate(activities) if done.work is Work.DOWNLOAD
    }
    setup = _Setup(activities)
    own = page.resources[page.root].host or UNNAMED
    for connection in connections:
        lookups = {name: times for name, *times in connection.lookups}
        asked = (request.resource for request in connection.trace.requests)
        # By activity, as the first that asked for a host is the one that had it looked up.
        for index in sorted(downloads[resource] for resource in asked if resource in downloads):
            resource = activities[index].resource
            assert resource is not None  # noqa: S101 - a download is of one
            host = page.resources[resource].host or own
            setup.add(index, host, lookups.get(host), connection)
    return setup.activities()


class _Setup:
    """Puts lookups and handshakes between activities and the downloads that wait for them."""

    def __init__(self, activities: Sequence[Activity]) -> None:
        self._order: dict[_Key, tuple[int, float]] = {
            index: (done.began_at_ns, float(index)) for index, done in enumerate(activities)
        }
        self._done: dict[_Key, Activity] = dict(enumerate(activities))
        self._after: dict[_Key, _Key | None] = {
            index: done.after for index, done in enumerate(activities)
        }

    def add(
        self, index: int, host: str, lookup: Sequence[int] | None, connection: Connection
    ) -> None:
        """Let the download at *index* wait for its host and its connection, if it did."""
        is_first = self._after[index] is None
        if lookup is not None:
            self._wait(index, f"host {host}", Work.LOOK_UP, lookup, is_first=is_first)
        times = (connection.opened_at_ns, connection.ready_at_ns)
        name = f"connection {connection.number}"
        self._wait(index, name, Work.CONNECT, times, is_first=is_first)

    def _wait(
        self, index: int, key: str, work: Work, times: Sequence[int], *, is_first: bool
    ) -> None:
        began_at_ns, ended_at_ns = times
        download = self._done[index]
        waited = is_first or ended_at_ns > download.began_at_ns
        if ended_at_ns == began_at_ns or not waited:
            return
        if key not in self._done:
            self._done[key] = Activity(work, download.resource, began_at_ns, ended_at_ns, None)
            self._after[key] = self._after[index]
            # Right before the download that is the first to wait for it.
            self._order[key] = (began_at_ns, index - 0.5)
        self._after[index] = key
        later_ns = max(download.began_at_ns, ended_at_ns)
        self._done[index] = download._replace(began_at_ns=later_ns)
        self._order[index] = (later_ns, float(index))

    def activities(self) -> list[Activity]:
        """Return all of them as they began."""
        # Ties by the old index, which half indices stand between: so no two are equal.
        keys = sorted(self._done, key=lambda key: self._order[key])
        index_of = {key: index for index, key in enumerate(keys)}
        found = []
        for key in keys:
            after = self._after[key]
            found.append(self._done[key]._replace(after=None if after is None else index_of[after]))
        return found
