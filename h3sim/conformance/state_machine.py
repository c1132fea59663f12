"""A state machine that runs a scheduler beside a slow reference."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hypothesis import Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from h3sim.conformance.call_sequences import (
    Call,
    Event,
    RecordingScheduler,
    without_self_dependency,
)
from h3sim.conformance.laws import Law
from h3sim.conformance.strategies import PLACEHOLDERS, STREAM_IDS
from h3sim.conformance.strategies import signals as signals_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from h3sim.schedulers import Scheduler


class SchedulerMachine(RuleBasedStateMachine):
    """Runs a scheduler and a reference through the same random calls, and compares their picks.

    A subclass defines what makes the scheduler and the reference. *signals* draws the signals of
    streams, and *has_placeholders* tells whether ids below 0 occur. Then
    `TestMine = MyMachine.TestCase` is a test of pytest or unittest. Its settings leave out the
    phase in which Hypothesis explains a failure, which takes longer than all others.

    >>> from h3sim.schedulers import FifoScheduler
    >>> from h3sim.conformance import ReferenceOrder
    >>> class FifoMachine(SchedulerMachine):
    ...     make_scheduler = FifoScheduler
    ...     def make_reference(self):
    ...         return ReferenceOrder(lambda stream_id, signal: stream_id)
    """

    make_scheduler: Callable[[], Scheduler]
    make_reference: Callable[[], Scheduler]
    signals: st.SearchStrategy[Any] = signals_of()
    has_placeholders: bool = False

    def __init_subclass__(cls) -> None:
        """Set the phases of the test of a subclass."""
        super().__init_subclass__()
        phases = [phase for phase in cls.TestCase.settings.phases if phase is not Phase.explain]
        cls.TestCase.settings = settings(cls.TestCase.settings, phases=phases)

    @initialize(data=st.data())
    def start(self, data: st.DataObject) -> None:  # noqa: ARG002 - for subclasses
        """Make the scheduler and the reference; a subclass may draw their settings from *data*."""
        self.scheduler = RecordingScheduler(self.make_scheduler())
        self.reference = RecordingScheduler(self.make_reference())
        self.closed: set[int] = set()

    def apply_to_both(self, event: Event) -> None:
        """Pass *event* to both, unless the contract forbids it, and compare their picks."""
        if self._is_allowed(event):
            event = without_self_dependency(event)
            self.scheduler.take(event)
            self.reference.take(event)
            if event.call is Call.CLOSE:
                self.closed.add(event.stream_id)
            self.agreed()
            self.scheduler.forget_pick()

    def _is_allowed(self, event: Event) -> bool:
        is_open = event.stream_id in self.scheduler.signals
        match event.call:
            case Call.OPEN:
                return not is_open and event.stream_id not in self.closed
            case Call.ACTIVATE | Call.DEACTIVATE:
                return is_open and event.stream_id >= 0
            case _:
                return is_open

    def send_signal(self, element_id: int, signal: Any) -> None:
        """Open a stream or placeholder, or update it if it is open."""
        is_open = element_id in self.scheduler.signals
        self.apply_to_both(Event(Call.UPDATE if is_open else Call.OPEN, element_id, signal))

    @rule(data=st.data(), stream_id=st.sampled_from(STREAM_IDS))
    def open_or_update(self, data: st.DataObject, stream_id: int) -> None:
        """Open or update a stream."""
        self.send_signal(stream_id, data.draw(self.signals))

    @rule(data=st.data(), stream_ids=st.lists(st.sampled_from(STREAM_IDS), min_size=1, max_size=4))
    def open_or_update_with_data(self, data: st.DataObject, stream_ids: list[int]) -> None:
        """Open or update streams that have data at once."""
        for stream_id in stream_ids:
            self.send_signal(stream_id, data.draw(self.signals))
            self.apply_to_both(Event(Call.ACTIVATE, stream_id))

    @precondition(lambda self: self.has_placeholders)
    @rule(data=st.data(), placeholder=st.sampled_from(PLACEHOLDERS))
    def open_or_update_a_placeholder(self, data: st.DataObject, placeholder: int) -> None:
        """Open or update a node that only groups others."""
        self.send_signal(placeholder, data.draw(self.signals))

    @precondition(lambda self: self.scheduler.signals)
    @rule(data=st.data(), call=st.sampled_from([Call.ACTIVATE, Call.ACTIVATE, Call.DEACTIVATE]))
    def gain_or_lose_data(self, data: st.DataObject, call: Call) -> None:
        """Activate or deactivate a stream, whatever it was before."""
        self.apply_to_both(Event(call, data.draw(st.sampled_from(sorted(self.scheduler.signals)))))

    @precondition(lambda self: len(self.scheduler.signals) > 1)
    @rule(data=st.data())
    def close(self, data: st.DataObject) -> None:
        """Close a stream, whether it has data left or not."""
        self.apply_to_both(
            Event(Call.CLOSE, data.draw(st.sampled_from(sorted(self.scheduler.signals))))
        )

    @rule(n_bytes=st.sampled_from([1400, 1400, 1, 0, 20_000]), n_turns=st.integers(1, 12))
    def serve(self, n_bytes: int, n_turns: int) -> None:
        """Give turns, and charge the stream that is picked in each."""
        for _ in range(n_turns):
            picked = self.agreed()
            if picked is not None:
                self.apply_to_both(Event(Call.CHARGE, picked, n_bytes=n_bytes))

    @rule()
    def send_all(self) -> None:
        """Give every active stream its turn, and deactivate it then: none may be forgotten."""
        while (picked := self.agreed()) is not None:
            self.apply_to_both(Event(Call.CHARGE, picked))
            self.apply_to_both(Event(Call.DEACTIVATE, picked))
        self.scheduler.forget_pick()

    @precondition(lambda self: self.scheduler.active)
    @rule(data=st.data(), n_bytes=st.integers(0, 1400))
    def charge_another_than_the_one_picked(self, data: st.DataObject, n_bytes: int) -> None:
        """Charge any stream that is active."""
        stream_id = data.draw(st.sampled_from(sorted(self.scheduler.active)))
        self.apply_to_both(Event(Call.CHARGE, stream_id, n_bytes=n_bytes))

    def agreed(self) -> int | None:
        """Return the stream that the scheduler, asked twice, and the reference pick.

        Raises:
            BrokenLawError: if the picks differ.
        """
        expected, picked = self.reference.pick(), self.scheduler.pick()
        if picked != expected:
            sentence = f"{picked} is picked, and {expected} by the reference"
            raise self.scheduler.broken(Law.SAME_AS, sentence, kept=f"picks[-1] == {expected}")
        again = self.scheduler.pick()
        if again != picked:
            sentence = f"asked twice in a row, it picks {picked} and {again}"
            kept = "picks[-1] == picks[-2]"
            raise self.scheduler.broken(Law.PURE_PICK, sentence, kept=kept)
        self.scheduler.forget_pick()
        return expected
