"""Ways to put a broken part where a whole one belongs, and to apply a law there."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest
from hypothesis import Phase, settings
from hypothesis.stateful import run_state_machine_as_test

import h3sim.load.painting
from h3sim import metrics
from h3sim.engine.signalling import WireSignalling
from h3sim.http import StreamSender
from h3sim.schedulers import TreeScheduler
from h3sim.schemes import SchedulerKind
from h3sim.signals import Signalling
from tests.effort import law as budget
from tests.mutants import schedulers
from tests.property import laws, scheduler_laws, signalling_laws
from tests.property.runs import engine_part, homes_of, scheduler_made_by
from tests.property.runs import usual_scheduler as usual

if TYPE_CHECKING:
    from collections.abc import Callable


class Mutation(NamedTuple):
    """*check(part)* applies *law*: it holds for the part that is *complete*, not for *mutant*."""

    law: Callable[..., Any]
    mutant: Callable[..., Any]
    complete: Callable[..., Any]
    check: Callable[..., Any]


def maker(part: Any) -> Any:
    """Return what makes *part* in the place of every mechanism's scheduler."""
    if part is usual:
        return usual
    if part is schedulers.Overtaken:
        return lambda *scheme: part(usual(*scheme))
    if issubclass(part, TreeScheduler):
        return lambda _, turn_bytes: part(turn_bytes=turn_bytes)
    return lambda *_: part()


def scheduling(law: Any, mutant: Any, case: Any, *more: Any) -> Any:
    """Break the scheduler of *case*, and apply *law* to the load."""

    def check(part: Any) -> None:
        with scheduler_made_by(maker(part)):
            law(case.run(), *more)

    return Mutation(law, mutant, usual, check)


def sharing(mutant: Any, case: Any, weights: Any) -> Any:
    """Break the scheduler of *case*; its streams shall have shares by *weights*."""

    def check(part: Any) -> None:
        with scheduler_made_by(maker(part)):
            laws.check_shares_follow_weights(case.run().trace.order, weights)

    return Mutation(laws.check_shares_follow_weights, mutant, usual, check)


def building(name: str, law: Any, mutant: Any, case: Any) -> Any:
    """Break the part that the engine knows as *name*."""

    def check(part: Any) -> None:
        with engine_part(name, part):
            law(case.run())

    return Mutation(law, mutant, getattr(homes_of(name)[0], name), check)


def measuring(name: str, law: Any, mutant: Any, case: Any, *more: Any) -> Any:
    """Break the metric of that name."""

    def check(part: Any) -> None:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(metrics, name, part)
            law(case.run(), *more)

    return Mutation(law, mutant, getattr(metrics, name), check)


def painting(name: str, law: Any, mutant: Any, case: Any) -> Any:
    """Break the rule of that name by which images are painted."""

    def check(part: Any) -> None:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(h3sim.load.painting, name, part)
            law(case.run())

    return Mutation(law, mutant, getattr(h3sim.load.painting, name), check)


def ending(mutant: Any, case: Any) -> Any:
    """Break the scheduler; there may be no load to apply the law to."""

    def check(part: Any) -> None:
        with scheduler_made_by(maker(part)):
            laws.check_the_load_ends(case.run)

    return Mutation(laws.check_the_load_ends, mutant, usual, check)


def taking_as_long(mutant: Any, case: Any) -> Any:
    """Break fifo alone, and compare it with round robin."""

    def make(part: Any, *scheme: Any) -> Any:
        return (maker(part) if scheme[0].mechanism is SchedulerKind.FIFO else usual)(*scheme)

    def check(part: Any) -> None:
        with scheduler_made_by(lambda *scheme: make(part, *scheme)):
            both = [case.but(scheme=scheme).run() for scheme in ("rr", "fifo")]
            laws.check_page_loads_take_equally_long(both)

    return Mutation(laws.check_page_loads_take_equally_long, mutant, usual, check)


def buffering(mutant: Any, case: Any) -> Any:
    """Break the server, and compare what its large buffer does with fifo without a buffer."""

    def check(part: Any) -> None:
        with engine_part("StreamSender", part):
            buffered = case.but(send_buffer_kb=1000).run()
            laws.check_large_buffers_hide_the_scheme(buffered, case.but(scheme="fifo").run())

    return Mutation(laws.check_large_buffers_hide_the_scheme, mutant, StreamSender, check)


def mumbling(mutant: Any, case: Any, complete: Any = WireSignalling) -> Any:
    """Break a way of signals, and compare it with a server that knows by itself."""
    law = signalling_laws.check_signals_without_delay_are_as_good_as_known

    def check(part: Any) -> None:
        with engine_part(complete.__name__, part):
            known = replace(case.scheme, signalling=Signalling.SERVER)
            law(case.run(), case.but(scheme=known).run())

    return Mutation(law, mutant, complete, check)


def receiver(mutant: Any, signalling: Any, seed: int) -> Any:
    """Break the way of signals alone."""
    law = signalling_laws.check_the_last_word_counts
    return Mutation(law, mutant, WireSignalling, lambda part: law(part, signalling, seed))


def picking(mutant: Any, case: Any) -> Any:
    """Break the scheduler, and ask it everything twice."""

    def check(part: Any) -> None:
        scheduler_laws.check_pick_is_pure(case, maker(part))

    return Mutation(scheduler_laws.check_pick_is_pure, mutant, usual, check)


def charging(mutant: Any, case: Any) -> Any:
    """Break the server, and watch what it charges."""

    def check(part: Any) -> None:
        with engine_part("StreamSender", part):
            scheduler_laws.check_pick_is_pure(case, usual)

    return Mutation(scheduler_laws.check_pick_is_pure, mutant, StreamSender, check)


def calling(law: Any, mutant: Any, complete: Any, *arguments: Any) -> Any:
    """Apply the law to a part that stands alone."""
    return Mutation(law, mutant, complete, lambda part: law(part(), *arguments))


def hashing(mutant: Any, complete: Any) -> Any:
    """Compare processes; the part goes by its name, since the child has to find it."""
    law = scheduler_laws.check_every_process_agrees
    return Mutation(law, mutant, complete, lambda part: law(f"{part.__module__}:{part.__name__}"))


def stepping(machine: Any, mutant: Any) -> Any:
    """Drive the mutant beside the reference; no time is spent on a shorter example."""

    def check(part: Any) -> None:
        class Machine(machine):  # type: ignore[misc]
            make_scheduler = staticmethod(part)

        short = settings(budget(60, usual=25), phases=[Phase.generate], report_multiple_bugs=False)
        run_state_machine_as_test(Machine, settings=settings(short, stateful_step_count=40))

    return Mutation(machine, mutant, machine.make_scheduler, check)
