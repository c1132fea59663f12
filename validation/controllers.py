"""Congestion controllers held to their documents: `python -m validation.controllers` (a minute).

BBR meets the 22 example cases of draft-ietf-ccwg-bbr-06, in the order of its appendix, on a path of
10 Mbit/s and 40 ms. CUBIC, HyStart++ and quicly's CUBIC are compared with numbers that follow from
RFC 9438, RFC 9406 and RFC 8312. `h3sim conform --controller` has the same cases.
"""

from __future__ import annotations

import sys
from functools import partial
from typing import TYPE_CHECKING, Any

from tabulate import tabulate

from h3sim.conformance.controller_cases import (
    BBR_CASES,
    Case,
    convergence,
    curve,
    friendly,
    mean_window,
    near,
    reduction,
)
from h3sim.conformance.controller_paths import SIZE, SimulatedPath
from h3sim.transport.congestion import BbrController, make_controller
from h3sim.transport.congestion.slow_start import HyStart
from h3sim.values.units import ms

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["CASES", "FIGURES", "main"]

CASES: tuple[Callable[[], Case], ...] = tuple(
    partial(case, partial(SimulatedPath, BbrController)) for case in BBR_CASES
)


def _of(case: Callable[..., Case], name: str, *values: float) -> Callable[[], Case]:
    return partial(case, partial(make_controller, name), name, *values)


def _hystart_threshold(base_ms: float, expected_ms: float) -> Case:
    """RFC 9406 § 4.2: an eighth of the RTT, within 4 and 16 ms, of 8 samples."""
    for tenths in range(10, 300):
        hystart = HyStart(max_datagram_bytes=SIZE)
        for n, rtt_ms in enumerate([base_ms] * 8 + [base_ms + tenths / 10] * 8):
            if n % 8 == 0:
                hystart.on_sent(n + 7)
            hystart.on_ack(n, ms(rtt_ms))
        if hystart.is_conservative:
            return near(
                f"HyStart++: rise that ends slow start at {base_ms:g} ms",
                expected_ms,
                tenths / 10,
                unit=" ms",
                within=0.001,
            )
    return Case(f"HyStart++: rise at {base_ms:g} ms", f"{expected_ms} ms", "none", False)


def _hystart_rounds() -> Case:
    """RFC 9406 § 4.3: CSS_ROUNDS = 5."""
    hystart = HyStart(max_datagram_bytes=SIZE)
    n_css = 0
    for trip in range(20):
        hystart.on_sent(8 * trip + 7)
        for n in range(8 * trip, 8 * trip + 8):
            if hystart.on_ack(n, ms(50 if trip < 2 else 80)):
                return near("HyStart++: rounds of CSS", 5, n_css, within=0)
        n_css += hystart.is_conservative
    return Case("HyStart++: rounds of CSS", "5", "no end", False)


def _hystart_growth() -> Case:
    hystart = HyStart(max_datagram_bytes=SIZE)
    for n, rtt_ms in enumerate([50] * 8 + [80] * 8):
        if n % 8 == 0:
            hystart.on_sent(n + 7)
        hystart.on_ack(n, ms(rtt_ms))
    seen = hystart.growth_bytes(4 * SIZE) / (4 * SIZE)
    return near("HyStart++: growth in CSS", 0.25, seen, within=0)


_NAMES = ("cubic", "cubic-linux", "cubic-quicly")
FIGURES: tuple[Callable[[], Case], ...] = (
    *(_of(reduction, name) for name in _NAMES),
    *(_of(curve, name) for name in _NAMES),
    *(_of(convergence, *row) for row in zip(_NAMES, (3.107, 3.107, 3.708), strict=True)),
    *(_of(friendly, name) for name in ("cubic", "cubic-quicly")),
    _of(friendly, "cubic-linux", 8 / 15, 200),
    *(_of(mean_window, "cubic", *row) for row in ((1e-3, 38), (1e-4, 187), (1e-5, 1054))),
    *(partial(_hystart_threshold, *row) for row in ((16, 4), (80, 10), (400, 16))),
    _hystart_rounds,
    _hystart_growth,
)


def main() -> int:
    """Print a table per document; return 1 if a case does not hold."""
    is_all = True
    for title, makers in (("BBR's draft", CASES), ("RFC 9438, RFC 9406, RFC 8312", FIGURES)):
        cases = [make() for make in makers]
        held = sum(case.holds for case in cases)
        print(f"{title}: {held} of {len(cases)} cases")
        rows: list[Any] = [[*case[:3], "yes" if case.holds else "no"] for case in cases]
        print(tabulate(rows, headers=["case", "expected", "seen", "holds"], disable_numparse=True))
        print()
        is_all = is_all and held == len(cases)
    return 0 if is_all else 1


if __name__ == "__main__":
    sys.exit(main())
