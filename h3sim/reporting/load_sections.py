"""Report sections about the loads of one page and about measured logs, with their pictures."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any, NamedTuple

from h3sim.errors import NothingToMeasureError
from h3sim.reporting import time_series, trees
from h3sim.reporting.document import Picture, Section
from h3sim.reporting.labels import join_words, lane_labels, shortened
from h3sim.reporting.lane_layout import window_of
from h3sim.reporting.load_plots import LoadPlots
from h3sim.reporting.output import alt_text, render
from h3sim.reporting.time_series import bins_of, curve, shown_set
from h3sim.reporting.timeline import Timeline
from h3sim.reporting.waterfall import deltas_of
from h3sim.study.fidelity import Grade, fidelity
from h3sim.table import APART, Table, decimals_of
from h3sim.units import to_ms

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from h3sim.reporting.time_series import Bin
    from h3sim.results import Load, Which
    from h3sim.results.connections import Connection
    from h3sim.results.qlog_metrics import Measurement


_MAX_WATERFALLS = 3
"""Most loads whose waterfalls are shown: nobody compares more."""
_SHARES = (0.1, 0.25, 0.5, 0.75, 0.9, 1.0)
_SETS: tuple[tuple[Which, str], ...] = (("all", "all resources"), ("atf", "above the fold"))


def picture(drawn: Axes | Figure, *, title: str, data: Table[Any]) -> Picture:
    """Return what was *drawn*, whose words stand with it, as a picture of a report."""
    figure = drawn.get_figure(root=True)
    assert figure is not None  # noqa: S101 - axes of h3sim.reporting stand in a figure
    file = io.BytesIO()
    render(figure, file, "svg")
    return Picture(title=title, alt=alt_text(figure), svg=file.getvalue().decode(), data=data)


_MAX_SAMPLES = 200


class NamedLoad(NamedTuple):
    """A load, and what it is called beside the others."""

    name: str
    load: Load


def pictures_of_one(load: Load) -> list[Picture]:
    """Return how the bytes of a load came, and what asked for what."""
    windows = [
        drawn(load, connection)
        for connection in load.connections
        if connection.trace.recovery
        for drawn in (_congestion, _transferred, _rtt)
    ]
    return [_byte_ranges(load), _throughput(load), *windows, _dependencies(load)]


def pictures_of_two(first: NamedLoad, second: NamedLoad) -> list[Picture]:
    """Return what was complete sooner, and what later, with the second of two loads."""
    rows = deltas_of(first.load, second.load)
    return [
        picture(
            LoadPlots([first.load, second.load]).deltas(),
            title=f"{first.load.page.name}: what moved with {second.name} against {first.name}",
            data=Table(
                (
                    *("resource", "kind", "bytes", "above the fold"),
                    *(f"{first.name}, ms", f"{second.name}, ms", "difference, ms"),
                ),
                rows,
                title=f"When resources were complete with {first.name} and {second.name}",
            ),
        )
    ]


def table_of_bins(bins: Sequence[Bin]) -> Table[Any]:
    """Return throughput as a table."""
    return Table(
        ("from ms", "arrived, Mbit/s", "delivered in order, Mbit/s"),
        bins,
        title="Throughput by span of time",
    )


def _byte_ranges(load: Load) -> Picture:
    sent = {row.id: [0, 0] for row in load.timings}
    ids = {
        request.stream_id: load.page.resources[request.resource].id
        for request in load.trace.requests
    }
    for packet in load.trace.packets:
        counts = sent[ids[packet.stream_id]]
        counts[0] += 1
        counts[1] += packet.arrived_at_ns is None
    return picture(
        load.plot.byte_ranges(),
        title=f"{load.page.name}: byte ranges per stream",
        data=Table(
            ("resource", "packets", "of them lost", "bytes", "first byte", "finished"),
            [
                (row.id, *sent[row.id], row.bytes, row.first_byte_ms, row.finished_ms)
                for row in load.timings
            ],
            title="Packets by resource, times in ms",
        ),
    )


def _throughput(load: Load) -> Picture:
    bins = bins_of(load.trace, window_of([load]).end_ms)
    return picture(
        load.plot.throughput(),
        title=f"{load.page.name}: throughput",
        data=table_of_bins(bins),
    )


def _congestion(load: Load, connection: Connection) -> Picture:
    samples = time_series.samples_of(connection.trace)
    description = time_series.describe_connection(load, connection)
    # Losses stay; between them every so many rows tell enough.
    step = -(-len(samples) // _MAX_SAMPLES)
    shown = [sample for n, sample in enumerate(samples) if n % step == 0 or sample.n_lost]
    return picture(
        load.plot.congestion(connection=connection.number),
        title=f"{load.page.name}: congestion window and bytes in flight"
        + (f", {description}" if description else ""),
        data=Table(
            ("ms", "window, bytes", "in flight, bytes", "smoothed RTT, ms", "lost packets"),
            shown,
            title="The server's recovery" + (f", every {step} rows and losses" if step > 1 else ""),
        ),
    )


def _transferred(load: Load, connection: Connection) -> Picture:
    rows = time_series.transferred_of(connection.trace)
    step = -(-len(rows) // _MAX_SAMPLES)
    description = time_series.describe_connection(load, connection)
    heads = ("ms", "sent, bytes", "acknowledged, bytes", "declared lost, bytes")
    n_columns = len(heads) if rows[-1].lost else len(heads) - 1
    return picture(
        load.plot.transferred(connection=connection.number),
        title=f"{load.page.name}: bytes sent, acknowledged and lost"
        + (f", {description}" if description else ""),
        data=Table(
            heads[:n_columns],
            [row[:n_columns] for row in (*rows[:-1:step], rows[-1])],
            title="Bytes of the server's packets" + (f", every {step} rows" if step > 1 else ""),
        ),
    )


def _rtt(load: Load, connection: Connection) -> Picture:
    rows = time_series.rtt_rows_of(connection.trace)
    step = -(-len(rows) // _MAX_SAMPLES)
    description = time_series.describe_connection(load, connection)
    return picture(
        load.plot.rtt(connection=connection.number),
        title=f"{load.page.name}: round-trip time" + (f", {description}" if description else ""),
        data=Table(
            ("ms", "latest, ms", "smoothed, ms", "least, ms"),
            [
                (
                    to_ms(row.at_ns),
                    to_ms(row.latest_rtt_ns),
                    to_ms(row.smoothed_rtt_ns),
                    to_ms(row.min_rtt_ns),
                )
                for row in rows[::step]
            ],
            title="The server's round-trip times" + (f", every {step} rows" if step > 1 else ""),
        ),
    )


def _dependencies(load: Load) -> Picture:
    page = load.page
    chain = [page.resources[index].id for index in trees.chain_of(load)]
    finished = {row.id: row.finished_ms for row in load.timings}
    rows = []
    for resource in page.resources:
        found = resource.discovered
        by, at = (None, None) if found is None else (found.by, found.at.value)
        is_chain = resource.id in chain
        rows.append((resource.id, by, at, finished.get(resource.id), is_chain))
    return picture(
        load.plot.dependencies(),
        title=f"{page.name}: what asked for what",
        data=Table(
            ("resource", "asked for by", "at", "finished ms", "on the chain to the end"),
            rows,
            title="What made the browser ask for each resource",
        ),
    )


def verdict_of(pairs: Sequence[NamedLoad], baseline: NamedLoad) -> list[str]:
    """Return what is to be known first, in sentences."""
    first = pairs[0].load
    judged = fidelity(first.page, first.spec.browser)
    fits = [] if judged is None else judged.lines()
    if len(pairs) == 1:
        return fits + _verdict_of_one(pairs[0])
    if judged is not None and judged.grade is Grade.POOR:
        return fits
    stated = fits + [_verdict_of_set(pairs, baseline, which, what) for which, what in _SETS]
    return [*stated, _uncertainty(pairs)]


def _uncertainty(pairs: Sequence[NamedLoad]) -> str:
    """Return what a verdict over one load each is worth."""
    if any(pair.load.packets.lost for pair in pairs):
        return (
            "One load each, with random losses: there is no interval, and another seed may order"
            " them differently."
        )
    return "One load each: there is no interval, and other pages and networks may differ."


def part_of(pairs: Sequence[NamedLoad], baseline: NamedLoad) -> Section:
    """Return the section of one page."""
    page = pairs[0].load.page
    n = len(page.resources)
    title = f"{page.name}: {n} resource{'s' * (n != 1)}, {page.total_bytes / 1000:,.0f} kB"
    notes = [note for pair in pairs for note in pair.load.notes]
    notes += [
        f"{pair.load.scheme.name}: {pair.load.scheme.caveat}"
        for pair in pairs
        if pair.load.scheme.caveat
    ]
    return Section(
        title=title,
        words=list(dict.fromkeys(notes)),
        timeline=Timeline(
            title=f"{page.name}: timeline of packets, resources and bytes",
            names=[pair.name for pair in pairs],
            loads=[pair.load for pair in pairs],
        ),
        pictures=[
            *_strip_and_curves(pairs),
            *_waterfalls(pairs),
            *(pictures_of_two(*pairs) if len(pairs) == 2 else ()),
            *(pictures_of_one(pairs[0].load) if len(pairs) == 1 else ()),
        ],
        tables=[_figures(pairs, baseline), *(_steps(pair) for pair in pairs if _has_path(pair))],
    )


def _verdict_of_one(pair: NamedLoad) -> list[str]:
    load = pair.load
    stated = [
        f"{load.page.name} with {load.scheme.name} over {load.network.name}"
        f" ({load.protocol.value.upper()}): the last of {len(load.timings)} resources was complete"
        f" {load.page_load_ms:,.0f} ms after navigation start."
    ]
    for which, what in _SETS:
        index_ms, of = load.byte_index_or_none(which), "of " if which == "all" else ""
        if index_ms is None:
            stated.append(f"There is no ByteIndex {of}{what}: {load.missing_reason(which)}.")
            continue
        stated.append(f"The ByteIndex {of}{what} is {index_ms:,.0f} ms{_optimality(load, which)}.")
    last = max((row for row in load.timings if row.above_the_fold), key=_finished, default=None)
    if last is not None:
        stated.append(f"Above the fold, {last.id} came last, after {last.finished_ms:,.0f} ms.")
    hol = load.hol
    in_order = hol.stream_bytes if load.protocol.value == "quic" else hol.connection_bytes
    if in_order:
        stated.append(
            f"{in_order:,} bytes had arrived and waited for others (head-of-line blocking)."
        )
    packets = load.packets
    if packets.lost:
        stated.append(
            f"{packets.lost:,} of {packets.sent:,} packets were lost: another seed differs."
        )
    return stated


def _finished(row: Any) -> float:
    return float(row.finished_ms)


def _optimality(load: Load, which: Which) -> str:
    """Return the distance from the lower bound that no scheme can beat, if available."""
    try:
        ratio = load.optimality_ratio(which)
    except (NothingToMeasureError, ZeroDivisionError):
        return ""
    behind = 100 * (ratio - 1)
    return (
        ", and no order in which responses are sent could make it lower"
        if behind < 100 * APART
        else f"; the best order for these requests could make it at most {1 - 1 / ratio:.0%} lower"
    )


def _verdict_of_set(
    pairs: Sequence[NamedLoad], baseline: NamedLoad, which: Which, what: str
) -> str:
    indexes = [
        (index_ms, pair.name)
        for pair in pairs
        if (index_ms := pair.load.byte_index_or_none(which)) is not None
    ]
    page = pairs[0].load.page.name
    if not indexes:
        return f"{page}, {what}: no ByteIndex, for {pairs[0].load.missing_reason(which)}."
    decimals = decimals_of((index for index, _ in indexes), least=0)
    best_ms, worst_ms = (pick(index for index, _ in indexes) for pick in (min, max))
    best = [name for index_ms, name in indexes if index_ms <= best_ms * (1 + APART)]
    if worst_ms <= best_ms * (1 + APART):
        return f"{page}, {what}: all come to a ByteIndex of {best_ms:,.0f} ms; the choice is free."
    slowest = [name for index_ms, name in indexes if index_ms >= worst_ms * (1 - APART)]
    named_loads = {pair.name: pair for pair in pairs}
    other = named_loads[slowest[0]] if baseline.name in best else baseline
    has_reason = len(best) == 1 and (which == "atf" or pairs[0].load.missing_reason("atf"))
    reason = _gains_in_words(named_loads[best[0]], other, which) if has_reason else ""
    base_ms = baseline.load.byte_index_or_none(which)
    compared = ""
    if base_ms is not None and best_ms and baseline.name not in best:
        compared = f", {base_ms / best_ms:.2f} times as fast as {baseline.name}"
    return (
        f"{page}, {what}: {join_words(best)} {'is' if len(best) == 1 else 'are'} fastest, with a"
        f" ByteIndex of {best_ms:,.{decimals}f} ms{compared}; {join_words(slowest)}"
        f" {'is' if len(slowest) == 1 else 'are'} slowest, with {worst_ms:,.{decimals}f} ms."
        f"{reason}"
    )


_MOST_NAMED = 3
"""Most resources that a verdict names."""


class Contribution(NamedTuple):
    """The share of a resource in the difference of two ByteIndexes, and how much sooner it was."""

    resource: int
    gain_ms: float
    sooner_ms: float


def contributions_of(fast: Load, slow: Load, which: Which) -> list[Contribution]:
    """Return by how much each resource lowers the ByteIndex of *fast* below that of *slow*.

    The largest contributions come first. They add up to the difference, because a ByteIndex is the
    mean of the completion times, weighted by bytes.

    >>> from h3sim.study import simulate
    >>> loads = [simulate("davies-meenan", scheme=name) for name in ("fifo", "rr")]
    >>> gains = contributions_of(*loads, "atf")
    >>> gains[0].resource, round(gains[0].gain_ms), round(gains[0].sooner_ms)
    (7, 443, 720)
    >>> difference_ms = loads[1].byte_index("atf") - loads[0].byte_index("atf")
    >>> round(sum(each.gain_ms for each in gains) - difference_ms, 6)
    0.0
    """
    slow_ms = {row.id: row.finished_ms for row in slow.timings}
    rows = [
        row for row in fast.timings if row.id in slow_ms and (which == "all" or row.above_the_fold)
    ]
    total = sum(row.bytes for row in rows) or 1
    found = [
        Contribution(fast.page.index[row.id], sooner_ms * row.bytes / total, sooner_ms)
        for row in rows
        for sooner_ms in (slow_ms[row.id] - row.finished_ms,)
    ]
    return sorted(found, key=lambda each: (-abs(each.gain_ms), each.resource))


def _gains_in_words(fast: NamedLoad, slow: NamedLoad, which: Which) -> str:
    """Return which resources account for the difference between *fast* and *slow*."""
    found = contributions_of(fast.load, slow.load, which)
    total_ms = sum(each.gain_ms for each in found)
    if round(total_ms) < 1:
        return ""
    resources = fast.load.page.resources
    named: list[str] = []
    for index, gain_ms, sooner_ms in found[:_MOST_NAMED]:
        verb = "" if named else " accounts"
        when = "earlier" if sooner_ms > 0 else "later"
        named.append(
            f"{index + 1} {shortened(resources[index].id)}{verb} for {gain_ms:,.0f} ms"
            f" (complete {abs(sooner_ms):,.0f} ms {when})"
        )
    n_more = len(found) - len(named)
    if n_more:
        rest_ms = sum(each.gain_ms for each in found[_MOST_NAMED:])
        named.append(f"{n_more} other{'s' * (n_more != 1)} for {rest_ms:,.0f} ms")
    return f" Of the {total_ms:,.0f} ms between {slow.name} and {fast.name}, {join_words(named)}."


def _strip_and_curves(pairs: Sequence[NamedLoad]) -> list[Picture]:
    plots = LoadPlots([pair.load for pair in pairs])
    page = pairs[0].load.page.name
    made = [
        picture(
            plots.multiplexing(),
            title=f"{page}: packets delivered to the application, by resource",
            data=_by_resource(pairs),
        )
    ]
    for which, what in _SETS:
        if which == "atf" and shown_set(pairs[0].load, "atf") == "all":
            continue
        made.append(
            picture(
                plots.byte_index(which=which),
                title=f"{page}: share of the bytes in complete resources, {what}",
                data=_shares(pairs, which, what),
            )
        )
    return made


def _waterfalls(pairs: Sequence[NamedLoad]) -> list[Picture]:
    if len(pairs) > _MAX_WATERFALLS:
        return []
    end_ms = window_of([pair.load for pair in pairs]).end_ms
    return [
        picture(
            _waterfall(pair.load, end_ms),
            title=f"{pair.load.page.name}: waterfall with {pair.name}",
            data=Table(
                (
                    *("resource", "kind", "bytes", "above the fold"),
                    *("requested ms", "first byte ms", "finished ms"),
                ),
                [
                    (
                        *(row.id, row.kind, row.bytes, row.above_the_fold),
                        *(row.requested_ms, row.first_byte_ms, row.finished_ms),
                    )
                    for row in pair.load.timings
                ],
                title=f"Resources with {pair.name}, in request order, times in ms",
            ),
        )
        for pair in pairs
    ]


def _waterfall(load: Load, end_ms: float) -> Axes:
    ax: Axes = load.plot.waterfall(until_ms=end_ms)
    # One end for all, which are compared: a bar twice as long took twice the time.
    ax.set_xlim(0, end_ms)
    return ax


def _by_resource(pairs: Sequence[NamedLoad]) -> Table[Any]:
    finished = [{row.id: row.finished_ms for row in pair.load.timings} for pair in pairs]
    return Table(
        ("resource", "kind", "bytes", "above the fold", *(f"{p.name}, ms" for p in pairs)),
        [
            (
                *(resource.id, resource.kind.value, resource.size_bytes),
                resource.above_the_fold,
                *(times.get(resource.id) for times in finished),
            )
            for resource in pairs[0].load.page.resources
        ],
        title="When each resource was complete, in ms since navigation start",
    )


def _shares(pairs: Sequence[NamedLoad], which: Which, what: str) -> Table[Any]:
    rows = []
    curves = [curve(pair.load, which) for pair in pairs]
    for share in _SHARES:
        # A share is reached a little early where it was summed with rounding.
        reached = [
            next((at for at, y in zip(times, ys, strict=True) if y >= share - 1e-9), None)
            for times, ys in curves
        ]
        rows.append((f"{share:.0%}", *reached))
    return Table(
        ("share", *(f"{pair.name}, ms" for pair in pairs)),
        rows,
        title=f"When so many of the bytes were there in whole resources ({what}), in ms",
    )


def _figures(pairs: Sequence[NamedLoad], baseline: NamedLoad) -> Table[Any]:
    rows = []
    base = baseline.load
    for name, load in pairs:
        rows.append(
            (
                name,
                *(
                    value
                    for which, _ in _SETS
                    for value in (
                        load.byte_index_or_none(which),
                        _ratio(base.byte_index_or_none(which), load.byte_index_or_none(which)),
                    )
                ),
                *(load.page_load_ms, load.hol.stream_bytes, load.hol.connection_bytes),
                *(load.packets.sent, load.packets.lost),
            )
        )
    against = f"speedup to {baseline.name}"
    return Table(
        (
            *("load", "ByteIndex all, ms", f"{against}, all"),
            *("ByteIndex above the fold, ms", f"{against}, above the fold", "page load, ms"),
            *("bytes blocked within streams", "bytes blocked in one order"),
            *("packets sent", "packets lost"),
        ),
        rows,
        title="Metrics; a speedup above 1 is faster",
    )


def _ratio(base_ms: float | None, own_ms: float | None) -> float | None:
    return base_ms / own_ms if base_ms is not None and own_ms else None


def _has_path(pair: NamedLoad) -> bool:
    return pair.load.first_paint_ms is not None


def _steps(pair: NamedLoad) -> Table[Any]:
    """Return the critical path to the load event, where the browser computed one."""
    path = pair.load.critical_path()
    return Table(
        ("what was done", "resource", "from", "to", "network", "bandwidth", "computing"),
        [
            (
                *(step.work, step.id, step.began_ms, step.ended_ms),
                *(step.network_ms, step.bandwidth_ms, step.computation_ms),
            )
            for step in path
        ],
        title=f"What the load event waited for with {pair.name}, times in ms",
    )


def named(loads: Sequence[Load]) -> list[NamedLoad]:
    """Return *loads* with the names that tell them apart in figures, too."""
    return [NamedLoad(name, load) for name, load in zip(lane_labels(loads), loads, strict=True)]


def verdict_of_log(measured: Measurement) -> list[str]:
    """Return what is to be known first, in sentences."""
    known = measured.to_dict()
    n, index_ms = len(known["resources"]), known["byte_index_ms"]["all"]
    stated = [
        f"{known['page']}, a log over {known['transport'].upper()}: the last of {n}"
        f" response{'s' * (n != 1)} was complete {known['page_load_ms']:,.0f} ms after the log"
        " began."
    ]
    if index_ms is not None:
        stated.append(f"The ByteIndex of all responses is {index_ms:,.0f} ms.")
    packets, hol = known["packets"], known["hol"]
    stated.append(f"{packets['lost']:,} of {packets['sent']:,} packets were lost.")
    if hol["stream_bytes"]:
        stated.append(f"{hol['stream_bytes']:,} bytes waited for others of their own stream.")
    return [*stated, *(f"Not known: {what}." for what in measured.unknown)]


def part_of_log(measured: Measurement) -> Section:
    """Return the section of one log."""
    known = measured.to_dict()
    return Section(
        title=f"{known['page']}: {len(known['resources'])} responses",
        pictures=_pictures(measured, known),
        tables=[_hol(known)],
    )


def _pictures(measured: Measurement, known: dict[str, Any]) -> list[Picture]:
    plots = measured.plot
    return [
        picture(
            plots.byte_ranges(),
            title=f"{known['page']}: byte ranges per stream",
            data=Table(
                ("stream", "resource", "bytes", "requested", "first byte", "finished"),
                [
                    (
                        *(row["stream_id"], row["id"], row["bytes"]),
                        *(row["requested_ms"], row["first_byte_ms"], row["finished_ms"]),
                    )
                    for row in known["resources"]
                ],
                title="Responses, times in ms",
            ),
        ),
        picture(
            plots.throughput(),
            title=f"{known['page']}: throughput",
            data=table_of_bins(bins_of(measured.trace, plots.end_ms)),
        ),
    ]


def _hol(known: dict[str, Any]) -> Table[Any]:
    hol = known["hol"]
    return Table(
        ("order", "bytes", "ms summed over packets", "bytes as Sander 2022 counts"),
        [
            (
                "within streams",
                *(hol["stream_bytes"], hol["stream_delay_ms"], hol["sander_stream_bytes"]),
            ),
            (
                "in one order",
                *(hol["connection_bytes"], hol["connection_delay_ms"]),
                hol["sander_connection_bytes"],
            ),
        ],
        title="Head-of-line blocking",
    )
