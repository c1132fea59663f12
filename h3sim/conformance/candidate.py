"""What is put to the test: what makes a scheduler, and what is said about it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from h3sim.conformance.claims import Claim
from h3sim.conformance.histories import Call, Watched, without
from h3sim.conformance.strategies import event_scripts
from h3sim.conformance.strategies import signals as signals_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from hypothesis.strategies import SearchStrategy

    from h3sim.conformance.histories import History
    from h3sim.conformance.laws import Law
    from h3sim.schedulers import Scheduler

__all__ = ["Candidate"]

Factory: TypeAlias = "Callable[[], Scheduler]"
ClaimT = TypeVar("ClaimT", bound=Claim)


@dataclass(frozen=True, kw_only=True)
class Candidate:
    """A scheduler that is put to the test: *factory* makes a new one.

    *claims* are what it promises beyond the contract. *signals* draws what it is told, by default
    any `H2Priority` that names a place in a tree; *placeholders* is how many ids below 0 are in
    use. *histories*, if given, draws whole histories in the place of random ones. *skip* names laws
    that are not to be looked at, each with the reason.

    >>> from h3sim.schedulers import FifoScheduler
    >>> Candidate(factory=FifoScheduler).label
    'FifoScheduler'
    """

    factory: Factory
    claims: tuple[Claim, ...] = ()
    signals: SearchStrategy[Any] = field(default_factory=signals_of)
    placeholders: int = 0
    histories: SearchStrategy[History] | None = None
    skip: Mapping[Law, str] = field(default_factory=dict)
    name: str = ""

    @property
    def label(self) -> str:
        """The name, or that of what makes the scheduler."""
        if self.name:
            return self.name
        named = getattr(self.factory, "__name__", "")
        return named if named.isidentifier() else type(self.factory()).__name__

    def claim(self, kind: type[ClaimT]) -> ClaimT | None:
        """Return the claim of that kind, if it is made."""
        return next((claim for claim in self.claims if isinstance(claim, kind)), None)

    def watched(self) -> Watched:
        """Return a new scheduler that is watched."""
        return Watched(self.factory())

    def scripts(
        self, signals: SearchStrategy[Any] | None = None, *, leave_out: tuple[Call, ...] = ()
    ) -> SearchStrategy[History]:
        """Return the histories to try, of *signals* if these are given."""
        if self.histories is not None and signals is None:
            drawn = self.histories
        else:
            placeholders = self.placeholders if signals is None else 0
            wanted = self.signals if signals is None else signals
            drawn = event_scripts(wanted, placeholders=placeholders)
        return drawn.map(lambda history: without(history, *leave_out)) if leave_out else drawn
