"""What is put to the test: what makes a scheduler, and what is said about it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from h3sim.conformance.claims import Claim
from h3sim.conformance.histories import PACKET_BYTES, Call, Watched, without
from h3sim.conformance.laws import Law, NotCheckedError
from h3sim.conformance.strategies import STRATEGY, event_scripts
from h3sim.conformance.strategies import signals as signals_of
from h3sim.documents.arguments import Only, check_arguments
from h3sim.documents.values import OrNone, Whole
from h3sim.errors import InputError
from h3sim.schemes import new_scheduler, scheduler_named

if TYPE_CHECKING:
    from collections.abc import Callable

    from hypothesis.strategies import SearchStrategy

    from h3sim.conformance.histories import History
    from h3sim.schedulers import Scheduler

__all__ = ["Candidate"]

Maker: TypeAlias = "Scheduler | Callable[..., Scheduler]"
SchedulerLike: TypeAlias = "Maker | str"
ClaimT = TypeVar("ClaimT", bound=Claim)
_CLAIMS = Only(
    "claims in a list or tuple, say [StrictOrder(rank=...)]",
    lambda value: isinstance(value, tuple) and all(isinstance(claim, Claim) for claim in value),
)
_SKIP = Only(
    "reasons by law, say {Law.PURE_PICK: 'it counts how often it is asked'}",
    lambda value: (
        isinstance(value, Mapping)
        and all(isinstance(law, Law) and isinstance(why, str) for law, why in value.items())
    ),
)


@dataclass(frozen=True, kw_only=True)
class Candidate:
    """A scheduler that is put to the test, given as `h3sim.simulate` takes it.

    *factory* is a class or a function that makes one, a scheduler, which is copied, or a name.
    *claims* are what it promises beyond the contract. *signals* draws what it is told, by default
    any `H2Priority` that names a place in a tree; *placeholders* is how many ids below 0 are in
    use. *histories*, if given, draws whole histories in the place of random ones. *skip* names laws
    that are not to be looked at, each with the reason.

    >>> from h3sim.schedulers import FifoScheduler
    >>> Candidate(factory=FifoScheduler).label
    'FifoScheduler'
    """

    factory: SchedulerLike
    claims: tuple[Claim, ...] = ()
    signals: SearchStrategy[Any] = field(default_factory=signals_of)
    placeholders: int = 0
    histories: SearchStrategy[History] | None = None
    skip: Mapping[Law, str] = field(default_factory=dict)
    name: str = ""

    def __post_init__(self) -> None:
        """Refuse what no law would look at: a claim that nobody reads is checked by nobody.

        Raises:
            InputError: listing every value that cannot be.
        """
        check_arguments(
            InputError,
            claims=(_CLAIMS, self.claims),
            signals=(STRATEGY, self.signals),
            histories=(OrNone(STRATEGY, none=None), self.histories),
            placeholders=(Whole(low=0), self.placeholders),
            skip=(_SKIP, self.skip),
        )

    @property
    def label(self) -> str:
        """The name, or that of what makes the scheduler."""
        name = self.name or scheduler_named(self.factory)[0]
        # A lambda has no name; what it makes has.
        return type(self.new()).__name__ if name == "function" else name

    @property
    def maker(self) -> Maker:
        """What makes the scheduler, or the scheduler that is copied."""
        return scheduler_named(self.factory)[1]

    def new(self) -> Scheduler:
        """Return a new scheduler.

        Raises:
            InputError: if there is none of that name, it cannot be made, or lacks a method.
        """
        name, maker = scheduler_named(self.factory)
        return new_scheduler(maker, turn_bytes=PACKET_BYTES, name=name)

    def watched(self) -> Watched:
        """Return a new scheduler that is watched."""
        return Watched(self.new(), may_raise=Law.NEVER_RAISES in self.skip)

    def claims_of(self, kind: type[ClaimT]) -> list[ClaimT]:
        """Return the claims of that kind.

        Raises:
            NotCheckedError: if there is none.
        """
        found = [claim for claim in self.claims if isinstance(claim, kind)]
        if not found:
            raise NotCheckedError("not claimed")
        return found

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
