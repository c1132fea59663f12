"""Random loads over bad links keep the rules of `tests.checking`; `make check-loads` tries more."""

from __future__ import annotations

from hypothesis import example, given
from hypothesis import strategies as st

from tests.checking.drawing import checked, digest_of, drawn, ended
from tests.checking.rules import violations
from tests.checking.twin import GIVEN_UP, twin
from tests.effort import law, scaled


@law(40)
@given(seed=st.integers(0, 10**9))
@example(20963)  # no time on the way: an ACK arrives at 0
@example(2655)  # a module that imports another one
@example(500011)  # a client that ignores the preload
def test_no_rule_is_broken_over_bad_links(seed: int) -> None:
    load_drawn = drawn(seed)
    load = ended(load_drawn)
    if load is not None:
        assert violations(checked(load_drawn, load)) == [], str(load_drawn)


def test_another_process_with_other_hashes_loads_alike() -> None:
    with twin() as other:
        for seed in range(scaled(10)):
            other.ask(seed)
            load = ended(drawn(seed))
            assert other.answer() == (GIVEN_UP if load is None else digest_of(load)), seed
