"""Report sections about the loads of one page and about measured logs, with their pictures."""

from __future__ import annotations

import math
from collections import Counter
from typing import TYPE_CHECKING, Any, NamedTuple

from h3sim.export.tables import describe_losses
from h3sim.page.model import named_parents
from h3sim.reporting import time_series, trees
from h3sim.reporting.document import Picture, ReportParts, Section
from h3sim.reporting.labels import join_words, lane_labels, shortened
from h3sim.reporting.lane_layout import window_of
from h3sim.reporting.load_plots import LoadPlots
from h3sim.reporting.output import alt_text, rendered, root_figure
from h3sim.reporting.time_series import bins_of, curve, shown_set
from h3sim.reporting.timeline import Timeline
from h3sim.reporting.waterfall import deltas_of
from h3sim.study.fidelity import fidelity
from h3sim.values.errors import InputError, NothingToMeasureError
from h3sim.values.table import RELATIVE_TOLERANCE, Table, decimals_of
from h3sim.values.units import to_ms

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from h3sim.engine.connections import Connection
    from h3sim.load import Load, Which
    from h3sim.load.qlog_metrics import Measurement
    from h3sim.trace import Trace


_MAX_WATERFALLS = 3
"""Most loads whose waterfalls are shown, as more are hard to compare."""
_TABLE_SHARES = (0.1, 0.25, 0.5, 0.75, 0.9, 1.0)
"""Shares of bytes whose times are in the table of progress."""
_RESOURCE_SETS: tuple[tuple[Which, str], ...] = (
    ("all", "all resources"),
    ("atf", "above the fold"),
)


def picture(drawn: Axes | Figure, *, title: str, data: Table[Any]) -> Picture:
    """Return a drawing with its alternative text as a picture of a report."""
    figure = root_figure(drawn)
    svg = rendered(figure, "svg").decode()
    return Picture(title=title, alt=alt_text(figure), svg=svg, data=data)


_MAX_TABLE_ROWS = 200
"""About so many of the states of a connection are listed."""


class NamedLoad(NamedTuple):
    """A load, with a name that distinguishes it from the others."""

    name: str
    load: Load


def _load_pictures(named_loads: Sequence[NamedLoad]) -> Iterator[Picture]:
    """Yield the pictures of the loads of a page."""
    loads = [named.load for named in named_loads]
    plots, page = LoadPlots(loads), loads[0].page.name
    title = f"{page}: packets delivered to the application, by resource"
    yield picture(plots.multiplexing(), title=title, data=_completion_table(named_loads))
    for which, what in _RESOURCE_SETS:
        if shown_set(loads[0], which) == which:
            title = f"{page}: share of the bytes in complete resources, {what}"
            shares = _share_table(named_loads, which, what)
            yield picture(plots.byte_index(which=which), title=title, data=shares)
    end_ms = window_of(loads).end_ms
    for name, load in named_loads if len(named_loads) <= _MAX_WATERFALLS else ():
        ax = load.plot.waterfall(until_ms=end_ms)
        # The same axis for all, so that their bars are comparable.
        ax.set_xlim(0, end_ms)
        yield picture(ax, title=f"{page}: waterfall with {name}", data=_timing_table(name, load))
    if len(named_loads) == 1:
        yield from _details_of_load(loads[0])
    elif len(named_loads) == 2:
        (first, one), (second, other) = named_loads
        differences = Table(
            (*_RESOURCE_HEADS, f"{first}, ms", f"{second}, ms", "difference, ms"),
            deltas_of(one, other),
            title=f"When resources were complete with {first} and {second}",
        )
        title = f"{page}: what moved with {second} against {first}"
        yield picture(plots.deltas(), title=title, data=differences)


def _details_of_load(load: Load) -> Iterator[Picture]:
    """Yield pictures of details of a single load: bytes, connections and dependencies."""
    name, plots = load.page.name, load.plot
    packets = _packet_table(load)
    yield picture(plots.byte_ranges(), title=f"{name}: byte ranges per stream", data=packets)
    bins = table_of_bins(load.trace, window_of([load]).end_ms)
    yield picture(plots.throughput(), title=f"{name}: throughput", data=bins)
    for connection in load.connections:
        if connection.trace.recovery:
            yield from _connection_pictures(load, connection)
    requests = _dependency_table(load)
    yield picture(plots.dependencies(), title=f"{name}: what asked for what", data=requests)


_RESOURCE_HEADS = ("resource", "kind", "bytes", "above the fold")


def table_of_bins(trace: Trace, end_ms: float) -> Table[Any]:
    """Return throughput until *end_ms* as a table."""
    heads = ("from ms", "arrived, Mbit/s", "delivered in order, Mbit/s")
    return Table(heads, bins_of(trace, end_ms), title="Throughput by span of time")


def _packet_table(load: Load) -> Table[Any]:
    n_sent: Counter[int] = Counter()
    n_lost: Counter[int] = Counter()
    n_dropped: Counter[int] = Counter()
    dropped = set(load.trace.queue_drops)
    for packet in load.trace.packets:
        n_sent[packet.stream_id] += 1
        if packet.arrived_at_ns is None:
            is_dropped = packet.number in dropped
            (n_dropped if is_dropped else n_lost)[packet.stream_id] += 1
    heads = ("lost on the way", "dropped by the queue")
    return Table(
        ("resource", "packets", *heads, "bytes", "first byte", "finished"),
        [
            (
                row.id,
                n_sent[row.stream_id],
                n_lost[row.stream_id],
                n_dropped[row.stream_id],
                row.bytes,
                row.first_byte_ms,
                row.finished_ms,
            )
            for row in load.timings
        ],
        title="Packets by resource, times in ms",
    )


def _connection_pictures(load: Load, connection: Connection) -> Iterator[Picture]:
    """Yield what a connection's server recorded: its recovery, transfer and round-trip times."""
    plots, trace, number = load.plot, connection.trace, connection.number
    name = time_series.describe_connection(load, connection)
    transferred = time_series.transferred_of(trace)
    # Without losses there is no column for them.
    n_columns = 4 if transferred[-1].lost else 3
    for drawn, what, heads, rows, is_needed, title, more in (
        (
            plots.congestion(connection=number),
            "congestion window and bytes in flight",
            ("ms", "window, bytes", "in flight, bytes", "smoothed RTT, ms", "lost packets"),
            time_series.samples_of(trace),
            lambda row: row.n_lost,
            "The server's recovery",
            " and losses",
        ),
        (
            plots.transferred(connection=number),
            "bytes sent, acknowledged and lost",
            ("ms", "sent, bytes", "acknowledged, bytes", "declared lost, bytes")[:n_columns],
            [row[:n_columns] for row in transferred],
            lambda row: row == transferred[-1][:n_columns],
            "Bytes of the server's packets",
            "",
        ),
        (
            plots.rtt(connection=number),
            "round-trip time",
            ("ms", "latest, ms", "smoothed, ms", "least, ms"),
            [
                tuple(
                    map(to_ms, (row.at_ns, row.latest_rtt_ns, row.smoothed_rtt_ns, row.min_rtt_ns))
                )
                for row in time_series.rtt_rows_of(trace)
            ],
            lambda _: False,
            "The server's round-trip times",
            "",
        ),
    ):
        # Every n-th row, besides those that are needed.
        step = math.ceil(len(rows) / _MAX_TABLE_ROWS)
        shown = [row for n, row in enumerate(rows) if n % step == 0 or is_needed(row)]
        title += f", every {step} rows{more}" if step > 1 else ""
        yield picture(
            drawn,
            title=f"{load.page.name}: {what}{f', {name}' if name else ''}",
            data=Table(heads, shown, title=title),
        )


def _dependency_table(load: Load) -> Table[Any]:
    chain = trees.chain_of(load)
    finished = {row.id: row.finished_ms for row in load.timings}
    rows = []
    for index, resource in enumerate(load.page.resources):
        found = resource.discovered
        by, at = (None, None) if found is None else (named_parents(found), found.at.value)
        rows.append((resource.id, by, at, finished.get(resource.id), index in chain))
    return Table(
        ("resource", "asked for by", "at", "finished ms", "on the chain to the end"),
        rows,
        title="What made the browser ask for each resource",
    )


def describe_loads(loads: Sequence[Load], baseline: str | None) -> ReportParts:
    """Return the verdict and the section of the loads of one page.

    Raises:
        InputError: if none of them is of scheme *baseline*.
    """
    # With the names that they have in figures.
    named_loads = [NamedLoad(*each) for each in zip(lane_labels(loads), loads, strict=True)]
    schemes: dict[str, NamedLoad] = {}
    for named in named_loads:
        schemes.setdefault(named.load.scheme.name, named)
    # In a list, as a user's baseline may not be hashable.
    if baseline is not None and baseline not in [*schemes]:
        message = f"must be the scheme of a load ({', '.join(schemes)}), is {baseline!r}"
        raise InputError.at("baseline", message)
    base = schemes.get(baseline or "rr", named_loads[0])
    return ReportParts(loads[0].page.name, _verdict(named_loads, base), _section(named_loads, base))


def _verdict(named_loads: Sequence[NamedLoad], baseline: NamedLoad) -> list[str]:
    """Return the most important facts, in sentences."""
    first = named_loads[0].load
    judged = fidelity(first.page, first.spec.browser)
    fits = [] if judged is None else judged.lines()
    if len(named_loads) == 1:
        return [*_verdict_of_load(first), *fits]
    if judged is not None and not judged.grade.supports_verdict:
        return fits
    sentences = [
        sentence
        # What is visible first, if that is known.
        for which, what in (
            reversed(_RESOURCE_SETS) if shown_set(first, "atf") == "atf" else _RESOURCE_SETS
        )
        for sentence in _verdict_of_set(named_loads, baseline, which, what)
    ]
    if any(named.load.network.is_random for named in named_loads):
        worth = (
            "One load each, over a network that loses or delays packets at random: there is no"
            " interval, and another seed may order them differently."
        )
    else:
        worth = "One load each: there is no interval, and other pages and networks may differ."
    return [*sentences, worth, *fits]


def _section(named_loads: Sequence[NamedLoad], baseline: NamedLoad) -> Section:
    """Return the section of the loads of one page: timeline, pictures and tables."""
    page = named_loads[0].load.page
    notes = [note for named in named_loads for note in named.load.notes]
    notes += [
        f"{named.load.scheme.name}: {named.load.scheme.caveat}"
        for named in named_loads
        if named.load.scheme.caveat
    ]
    notes += [
        f"{scheme.name}: uses information that browsers do not have ({', '.join(scheme.knows)})"
        for scheme in (named.load.scheme for named in named_loads)
        if scheme.knows
    ]
    return Section(
        title=f"{page.name}: {page.title}",
        words=list(dict.fromkeys(notes)),
        timeline=Timeline(
            title=f"{page.name}: timeline of packets, resources and bytes",
            names=[named.name for named in named_loads],
            loads=[named.load for named in named_loads],
        ),
        pictures=list(_load_pictures(named_loads)),
        tables=[
            _metrics_table(named_loads, baseline),
            *(
                _critical_path_table(named)
                for named in named_loads
                if named.load.load_event_ms is not None
            ),
        ],
    )


def _verdict_of_load(load: Load) -> list[str]:
    sentences = [
        f"{load.page.name} with {load.scheme.name} over {load.network.name}"
        f" ({load.protocol.value.upper()}): the last of {len(load.timings)} resources was complete"
        f" {load.page_load_ms:,.0f} ms after navigation start."
    ]
    for which, what in _RESOURCE_SETS:
        index_ms, of = load.byte_index_or_none(which), "of " if which == "all" else ""
        if index_ms is None:
            sentences.append(f"There is no ByteIndex {of}{what}: {load.missing_reason(which)}.")
            continue
        sentences.append(
            f"The ByteIndex {of}{what} is {index_ms:,.0f} ms{_describe_optimality(load, which)}."
        )
    above = [row for row in load.timings if row.above_the_fold]
    last = max(above, key=lambda row: row.finished_ms, default=None)
    if last is not None:
        sentences.append(f"Above the fold, {last.id} came last, after {last.finished_ms:,.0f} ms.")
    hol = load.hol
    in_order = hol.stream_bytes if load.protocol.value == "quic" else hol.connection_bytes
    if in_order:
        sentences.append(
            f"{in_order:,} bytes had arrived and waited for others (head-of-line blocking)."
        )
    packets = load.packets
    if packets.lost:
        sentences.append(f"{packets.sent:,} packets were sent: {describe_losses(packets)}.")
    if load.network.is_random:
        sentences.append(
            "The network loses or delays packets at random: another seed gives another load."
        )
    elif packets.queue_drops:
        sentences.append("Nothing here is random: every seed drops the same packets.")
    return sentences


def _describe_optimality(load: Load, which: Which) -> str:
    """Return the distance from the lower bound that no scheme can beat, if available."""
    try:
        ratio = load.optimality_ratio(which)
    except (NothingToMeasureError, ZeroDivisionError):
        return ""
    behind = 100 * (ratio - 1)
    return (
        ", and no order in which responses are sent could make it lower"
        if behind < 100 * RELATIVE_TOLERANCE
        else f"; the best order for these requests could make it at most {1 - 1 / ratio:.0%} lower"
    )


def _verdict_of_set(
    named_loads: Sequence[NamedLoad], baseline: NamedLoad, which: Which, what: str
) -> list[str]:
    """Return which schemes are fastest over a set of resources, and what makes the difference."""
    indexes = [
        (index_ms, named.name)
        for named in named_loads
        if (index_ms := named.load.byte_index_or_none(which)) is not None
    ]
    page = named_loads[0].load.page.name
    if not indexes:
        return [f"{page}, {what}: no ByteIndex, for {named_loads[0].load.missing_reason(which)}."]
    decimals = decimals_of((index for index, _ in indexes), least=0)
    best_ms, worst_ms = (pick(index for index, _ in indexes) for pick in (min, max))
    best = [name for index_ms, name in indexes if index_ms <= best_ms * (1 + RELATIVE_TOLERANCE)]
    if worst_ms <= best_ms * (1 + RELATIVE_TOLERANCE):
        free = f"all come to a ByteIndex of {best_ms:,.0f} ms; the choice is free"
        return [f"{page}, {what}: {free}."]
    threshold_ms = worst_ms * (1 - RELATIVE_TOLERANCE)
    slowest = [name for index_ms, name in indexes if index_ms >= threshold_ms]
    load_by_name = {named.name: named for named in named_loads}
    other = load_by_name[slowest[0]] if baseline.name in best else baseline
    has_reason = len(best) == 1 and (which == "atf" or named_loads[0].load.missing_reason("atf"))
    reasons = _describe_gains(load_by_name[best[0]], other, which) if has_reason else []
    base_ms = baseline.load.byte_index_or_none(which)
    compared = ""
    if base_ms is not None and best_ms and baseline.name not in best:
        compared = f", {base_ms / best_ms:.2f} times as fast as {baseline.name}"
    answer = (
        f"{page}, {what}: {join_words(best)} {'is' if len(best) == 1 else 'are'} fastest, with a"
        f" ByteIndex of {best_ms:,.{decimals}f} ms{compared}; {join_words(slowest)}"
        f" {'is' if len(slowest) == 1 else 'are'} slowest, with {worst_ms:,.{decimals}f} ms."
    )
    return [answer, *reasons]


_MAX_NAMED_RESOURCES = 3
"""Most resources that a verdict names."""
_LEAST_NAMED_SHARE = 0.05
"""Least share of the difference for which a verdict names a resource."""


class Contribution(NamedTuple):
    """The share of a resource in the difference of two ByteIndexes, and how much sooner it was."""

    resource: int
    gain_ms: float
    sooner_ms: float


def contributions_of(fast: Load, slow: Load, which: Which) -> list[Contribution]:
    """Return by how much each resource lowers the ByteIndex of *fast* below that of *slow*.

    The largest contributions come first. They add up to the difference, because a ByteIndex is the
    mean of the completion times, weighted by bytes.

    >>> from h3sim.load import simulate
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


def _describe_gains(fast: NamedLoad, slow: NamedLoad, which: Which) -> list[str]:
    """Describe which resources account for the difference between *fast* and *slow*."""
    found = contributions_of(fast.load, slow.load, which)
    total_ms = sum(each.gain_ms for each in found)
    if round(total_ms) < 1:
        return []
    resources = fast.load.page.resources
    named: list[str] = []
    least_ms = _LEAST_NAMED_SHARE * total_ms
    chosen = [each for each in found[:_MAX_NAMED_RESOURCES] if abs(each.gain_ms) >= least_ms]
    for index, gain_ms, sooner_ms in chosen:
        verb = "" if named else " accounts"
        when = "earlier" if sooner_ms > 0 else "later"
        named.append(
            f"{index + 1} {shortened(resources[index].id)}{verb} for {gain_ms:,.0f} ms"
            f" (complete {abs(sooner_ms):,.0f} ms {when})"
        )
    n_more = len(found) - len(named)
    rest_ms = total_ms - sum(each.gain_ms for each in chosen)
    if round(rest_ms):
        named.append(f"{n_more} other{'s' * (n_more != 1)} for {rest_ms:,.0f} ms")
    return [f"Of the {total_ms:,.0f} ms between {slow.name} and {fast.name}, {join_words(named)}."]


def _timing_table(name: str, load: Load) -> Table[Any]:
    return Table.select(
        load.timings,
        *zip(_RESOURCE_HEADS, ("id", "kind", "bytes", "above_the_fold"), strict=True),
        ("requested ms", "requested_ms"),
        ("first byte ms", "first_byte_ms"),
        ("finished ms", "finished_ms"),
        title=f"Resources with {name}, in request order, times in ms",
    )


def _completion_table(named_loads: Sequence[NamedLoad]) -> Table[Any]:
    finished = [{row.id: row.finished_ms for row in named.load.timings} for named in named_loads]
    return Table(
        (*_RESOURCE_HEADS, *(f"{named.name}, ms" for named in named_loads)),
        [
            (
                *(each.id, each.kind.value, each.size_bytes, each.above_the_fold),
                *(times.get(each.id) for times in finished),
            )
            for each in named_loads[0].load.page.resources
        ],
        title="When each resource was complete, in ms since navigation start",
    )


def _share_table(named_loads: Sequence[NamedLoad], which: Which, what: str) -> Table[Any]:
    rows = []
    curves = [curve(named.load, which) for named in named_loads]
    for share in _TABLE_SHARES:
        # Sums of shares have rounding errors.
        reached = [
            next((at for at, y in zip(times, ys, strict=True) if y >= share - 1e-9), None)
            for times, ys in curves
        ]
        rows.append((f"{share:.0%}", *reached))
    return Table(
        ("share", *(f"{named.name}, ms" for named in named_loads)),
        rows,
        title=f"When so many of the bytes were there in whole resources ({what}), in ms",
    )


def _metrics_table(named_loads: Sequence[NamedLoad], baseline: NamedLoad) -> Table[Any]:
    rows = []
    for name, load in named_loads:
        indexes = []
        for which, _ in _RESOURCE_SETS:
            base_ms, own_ms = (each.byte_index_or_none(which) for each in (baseline.load, load))
            indexes += [own_ms, base_ms / own_ms if base_ms is not None and own_ms else None]
        hol, packets = load.hol, load.packets
        blocked = hol.stream_bytes, hol.connection_bytes
        losses = packets.lost - packets.queue_drops, packets.queue_drops
        rows.append((name, *indexes, load.page_load_ms, *blocked, packets.sent, *losses))
    against = f"speedup to {baseline.name}"
    return Table(
        (
            "load",
            "ByteIndex all, ms",
            f"{against}, all",
            "ByteIndex above the fold, ms",
            f"{against}, above the fold",
            "page load, ms",
            "bytes blocked within streams",
            "bytes blocked in one order",
            "packets sent",
            "packets lost on the way",
            "packets dropped by the queue",
        ),
        rows,
        title="Metrics; a speedup above 1 is faster",
    )


def _critical_path_table(named: NamedLoad) -> Table[Any]:
    """Return the critical path to the load event of a computed load."""
    return Table.select(
        named.load.critical_path(),
        ("what was done", "work"),
        ("resource", "id"),
        ("from", "began_ms"),
        ("to", "ended_ms"),
        ("network", "network_ms"),
        ("bandwidth", "bandwidth_ms"),
        ("computing", "computation_ms"),
        title=f"What the load event waited for with {named.name}, times in ms",
    )


def describe_log(measured: Measurement) -> ReportParts:
    """Return the verdict and the section of a measured log."""
    name = measured.log.title
    return ReportParts(name, _verdict_of_log(measured), _section_of_log(measured), [("log", name)])


def _verdict_of_log(measured: Measurement) -> list[str]:
    """Return the most important facts, in sentences."""
    known = measured.to_dict()
    n, index_ms = len(known["resources"]), known["byte_index_ms"]["all"]
    sentences = [
        f"{known['page']}, a log over {known['transport'].upper()}: the last of {n}"
        f" response{'s' * (n != 1)} was complete {known['page_load_ms']:,.0f} ms after the log"
        " began."
    ]
    if index_ms is not None:
        sentences.append(f"The ByteIndex of all responses is {index_ms:,.0f} ms.")
    packets, hol = known["packets"], known["hol"]
    sentences.append(f"{packets['lost']:,} of {packets['sent']:,} packets were lost.")
    if hol["stream_bytes"]:
        sentences.append(f"{hol['stream_bytes']:,} bytes waited for others of their own stream.")
    return [*sentences, *(f"Not known: {what}." for what in measured.unknown)]


def _section_of_log(measured: Measurement) -> Section:
    """Return the section of one log."""
    known, plots = measured.to_dict(), measured.plot
    name = known["page"]
    keys = ("stream_id", "id", "bytes", "requested_ms", "first_byte_ms", "finished_ms")
    responses = Table(
        ("stream", "resource", "bytes", "requested", "first byte", "finished"),
        [tuple(row[key] for key in keys) for row in known["resources"]],
        title="Responses, times in ms",
    )
    throughput = table_of_bins(measured.trace, plots.end_ms)
    return Section(
        title=f"{name}: {len(known['resources'])} responses",
        pictures=[
            picture(plots.byte_ranges(), title=f"{name}: byte ranges per stream", data=responses),
            picture(plots.throughput(), title=f"{name}: throughput", data=throughput),
        ],
        tables=[_hol_table(known["hol"])],
    )


def _hol_table(hol: dict[str, Any]) -> Table[Any]:
    return Table(
        ("order", "bytes", "ms summed over packets", "bytes as Sander 2022 counts"),
        [
            (order, hol[f"{of}_bytes"], hol[f"{of}_delay_ms"], hol[f"sander_{of}_bytes"])
            for order, of in (("within streams", "stream"), ("in one order", "connection"))
        ],
        title="Head-of-line blocking",
    )
