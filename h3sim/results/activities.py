"""What a browser did with a page, as rows and as a graph: why each waited, and who could wait."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

from h3sim.metrics.policies import dependencies, slacks_ns
from h3sim.trace import Rows
from h3sim.units import to_ms

if TYPE_CHECKING:
    from collections.abc import Sequence

    import networkx as nx

    from h3sim.metrics.critical import PathStep
    from h3sim.metrics.policies import Dependency
    from h3sim.page import Page
    from h3sim.trace import Activity

__all__ = ["Activities", "ActivityRow", "ContributionRow"]


class ActivityRow(NamedTuple):
    """A row of `Load.activities`: what was done, in ms since navigation start.

    *after* is the row that it waited for longest, *policy* why ("F", "O", "B", "R": `Policy`);
    None for what waited for nothing. It could have ended *slack_ms* later at most, and the load
    event been no later; None where that did not wait for it.
    """

    work: str
    id: str | None
    kind: str | None
    began_ms: float
    ended_ms: float
    after: int | None
    policy: str | None
    slack_ms: float | None
    is_on_path: bool


class ContributionRow(NamedTuple):
    """A row of `Load.contributions`: what of the way to the load event goes to *name*."""

    name: str
    n_steps: int
    time_ms: float
    share: float


class Activities:
    """The activities of one load, and the *path* that led to its load event."""

    def __init__(
        self,
        page: Page,
        activities: Sequence[Activity],
        path: Sequence[PathStep],
        *,
        stylesheets_block_parser: bool,
    ) -> None:
        self._styles_stop_parser = stylesheets_block_parser
        self._page = page
        self._activities = activities
        self._path = path

    @cached_property
    def _edges(self) -> list[Dependency]:
        how = {"stylesheets_block_parser": self._styles_stop_parser}
        return dependencies(self._activities, self._page, **how)

    @cached_property
    def _policy_of(self) -> dict[int, str]:
        return {edge.after: edge.policy.value for edge in self._edges if edge.is_last}

    def rows(self) -> Rows[ActivityRow]:
        """Return them as they began."""
        on_path = {step.activity for step in self._path}
        slacks = slacks_ns(self._activities, self._edges, self._page)
        return Rows(
            ActivityRow,
            (
                ActivityRow(
                    work=done.work.value,
                    id=None if done.resource is None else self._page.resources[done.resource].id,
                    kind=self._kind(done.resource),
                    began_ms=to_ms(done.began_at_ns),
                    ended_ms=to_ms(done.ended_at_ns),
                    after=done.after,
                    policy=self._policy_of.get(index),
                    slack_ms=None if slack_ns is None else to_ms(slack_ns),
                    is_on_path=index in on_path,
                )
                for index, (done, slack_ns) in enumerate(zip(self._activities, slacks, strict=True))
            ),
        )

    def graph(self) -> nx.DiGraph[int]:
        """Return them as a graph: each by its index, with the fields of its row; edges with why."""
        import networkx

        graph: nx.DiGraph[int] = networkx.DiGraph(name=self._page.name)
        for index, row in enumerate(self.rows()):
            graph.add_node(index, **row._asdict())
        for edge in self._edges:
            why = {"policy": edge.policy.value, "why": edge.policy.name.lower()}
            graph.add_edge(edge.before, edge.after, is_last=edge.is_last, **why)
        return graph

    def contributions(self, by: str) -> Rows[ContributionRow]:
        """Return what the way to the load event goes to, largest first; see `Load.contributions`.

        Raises:
            ValueError: if *by* is none of the three.
        """
        if by not in ("policy", "kind", "part"):
            raise ValueError(f"by must be policy, kind or part, is {by!r}")
        spent: dict[str, list[int]] = {}
        for step in self._path:
            parts = {
                "network": step.network_ns,
                "bandwidth": step.bandwidth_ns,
                "computation": step.computation_ns,
                "blocking": step.blocking_ns,
            }
            if by == "part":
                for name, part_ns in parts.items():
                    if part_ns:
                        spent.setdefault(name, []).append(part_ns)
                continue
            of_kind = self._kind(step.resource) or "page"
            group = of_kind if by == "kind" else self._policy_of.get(step.activity, "start")
            spent.setdefault(group, []).append(sum(parts.values()))
        # A path of no length has shares of 0, and not of 0 / 0.
        all_ns = sum(map(sum, spent.values())) or 1
        rows = (
            ContributionRow(name, len(steps), to_ms(sum(steps)), sum(steps) / all_ns)
            for name, steps in sorted(spent.items(), key=lambda item: -sum(item[1]))
        )
        return Rows(ContributionRow, rows)

    def _kind(self, resource: int | None) -> str | None:
        return None if resource is None else self._page.resources[resource].kind.value
