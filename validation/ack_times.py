"""How well `identify` finds when a server got a client's acknowledgements.

`python -m validation.ack_times` prints for loads of `validation.identified` whose servers requeue
streams: the share of acknowledgements that were found within three packets of the truth, the most
packets by which the truth was later than the earliest possible one, and the picks that the true
mechanism misses in the history that is searched with each kind of times.
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from tabulate import tabulate

from h3sim.constants import MAX_VARINT
from h3sim.qlog import EntryKind, SenderView, read_timeline
from h3sim.results.configuration import write_load_qlog
from h3sim.schedulers import Retransmit
from h3sim.study.ack_times import AckTimeSearch, with_ack_times
from h3sim.study.send_history import HistorySearch
from h3sim.study.send_order import SendOrder, send_orders
from validation.identified import case, simulate

if TYPE_CHECKING:
    from h3sim.study.identification import Mechanism

_LOADS = (70_076, 70_169, 70_443, 70_080, 70_299, 70_466)
"""Loads used in development that plain estimates of the times did not explain."""
_NEAR_PACKETS = 3
_HEADS = (
    *("load", "mechanism", "lost", "picks", "within 3", "latest"),
    *("missed, earliest", "found", "true"),
)


def _true_times(order: SendOrder, server: SenderView) -> list[int]:
    """Return the first packet that the server sent after each acknowledgement."""
    first_packets: dict[int, int] = {}
    acked: list[int] = []
    for entry in server.entries:
        if entry.kind is EntryKind.ACKED:
            acked += entry.value
        elif entry.kind is EntryKind.PACKET:
            for number in acked:
                first_packets.setdefault(number, entry.value)
            acked = []
    return [
        max(first_packets.get(number, MAX_VARINT) for number in ack.acked)
        for ack in order.acknowledgements
    ]


def _missed(order: SendOrder, mechanism: Mechanism) -> int:
    search = HistorySearch(order, mechanism)
    search.run()
    return search.n_missed


def row(number: int) -> tuple[object, ...]:
    """Return what is printed of a load."""
    this = case(number)
    with TemporaryDirectory() as folder:
        log = Path(folder) / "load.qlog"
        write_load_qlog(simulate(this, this.mechanism), log)
        order = next(send_orders(log, trace=2))
        server = read_timeline(log, trace=1).server
    assert server is not None  # noqa: S101 - as the load wrote it
    wanted = Retransmit(this.options["retransmission_order"])
    retransmit = Retransmit.TURN if wanted is Retransmit.TURN else Retransmit.FIRST
    mechanism = replace(this.mechanism, requeues=True, retransmit=retransmit)
    true = _true_times(order, server)
    earliest = [ack.earliest for ack in order.acknowledgements]
    found = AckTimeSearch(order, mechanism).run()
    times = earliest if found is None else list(found.first_packets)
    near = [abs(a - b) <= _NEAR_PACKETS for a, b in zip(times, true, strict=True)]
    later = [b - a for a, b in zip(earliest, true, strict=True) if b < MAX_VARINT]
    missed = (_missed(with_ack_times(order, tuple(each)), mechanism) for each in (times, true))
    return (
        *(number, mechanism.name, len(order.lost_packets)),
        sum(step.is_choice for step in order.steps),
        f"{sum(near) / len(near):.0%}",
        max(later),
        *(_missed(order, mechanism), *missed),
    )


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("loads", nargs="*", type=int, default=_LOADS, help="numbers of loads")
    print(tabulate(map(row, parser.parse_args().loads), headers=_HEADS, tablefmt="github"))


if __name__ == "__main__":
    main()
