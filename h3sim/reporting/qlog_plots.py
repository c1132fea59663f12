"""Plots of measured logs and of any trace."""

from __future__ import annotations

from itertools import accumulate
from typing import TYPE_CHECKING

from h3sim.identification.send_order import StepKind
from h3sim.identification.workload import describe_signal
from h3sim.reporting import time_series
from h3sim.reporting.labels import plain, shortened
from h3sim.reporting.lane_layout import Window
from h3sim.reporting.output import (
    SavedPlots,
    ShownFigure,
    new_axes,
    new_figure,
    plot_methods,
    set_alt_text,
)
from h3sim.reporting.style import SMALL, finish_axes, line
from h3sim.values.errors import InputError
from h3sim.values.units import to_ms

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Unpack

    from matplotlib.axes import Axes

    from h3sim.identification.identification import Identification
    from h3sim.load.qlog_metrics import Measurement
    from h3sim.reporting.style import FigureStyle
    from h3sim.trace import Trace


_ROW_HEIGHT_IN = 0.42
_AXIS_HEIGHT_IN = 0.9
CURVE_HEIGHT_IN = 2.6
"""Height of a figure of curves over time."""


def byte_ranges_height_in(trace: Trace) -> float:
    """Return the height of a figure of byte ranges, in inches."""
    return _AXIS_HEIGHT_IN + _ROW_HEIGHT_IN * max(2, len(time_series.shown_streams(trace)))


_AXIS_MARGIN = 1.005
"""Length of the time axis relative to the last packet, whose mark stays inside the frame."""
_MAX_NAME_CHARS = 60
_TIME_LABEL = "time since the log began in ms"


def delivered_curve(trace: Trace) -> tuple[list[float], list[int]]:
    """Return the cumulative bytes delivered in order: times in ms, and sums."""
    columns = trace.packet_rows.columns
    deliveries = sorted(
        (at_ns, n_bytes)
        for at_ns, n_bytes in zip(columns.delivered_at_ns, columns.length_bytes, strict=True)
        if at_ns is not None
    )
    times = [0.0, *(to_ms(at_ns) for at_ns, _ in deliveries)]
    return times, [0, *accumulate(n_bytes for _, n_bytes in deliveries)]


@plot_methods
class LogPlots(SavedPlots):
    """Figures of measured *logs* over time since the start of each log.

    Each method returns the axes that it drew on, and `save` writes a file.

    Raises:
        InputError: if there is no log.
    """

    def __init__(self, logs: Sequence[Measurement]) -> None:
        self.logs = tuple(logs)
        if not self.logs:
            raise InputError.at("logs", "at least one is needed")

    def byte_ranges(
        self, ax: Axes | None = None, *, number: int = 1, **style: Unpack[FigureStyle]
    ) -> Axes:
        """Draw the arrival of each stream's bytes in log *number*, from 1, as qvis does.

        Returns *ax*, or the axes of a new figure.

        Raises:
            InputError: if there is no such log.
        """
        measured, description = self._log(number)
        trace, resources = measured.trace, measured.log.resources
        names = {
            request.stream_id: plain(shortened(resources[request.resource].id))
            for request in trace.requests
        }
        ax = ax or new_axes(byte_ranges_height_in(trace))
        words = time_series.draw_byte_ranges(
            ax,
            trace,
            f"Byte ranges per stream of {description}",
            Window(self.end_ms),
            labels=names,
            n_waited=measured.hol.stream_bytes,
        )
        ax.set_xlabel(_TIME_LABEL)
        set_alt_text(ax, f"{description}: {words}")
        return ax

    def throughput(
        self, ax: Axes | None = None, *, number: int = 1, **style: Unpack[FigureStyle]
    ) -> Axes:
        """Draw the rates at which bytes arrived in log *number*, and were delivered in order.

        Returns *ax*, or the axes of a new figure.

        Raises:
            InputError: if there is no such log.
        """
        measured, description = self._log(number)
        ax = ax or new_axes(CURVE_HEIGHT_IN)
        title = f"Throughput of {description}"
        words = time_series.draw_throughput(ax, measured.trace, title, Window(self.end_ms))
        ax.set_xlabel(_TIME_LABEL)
        set_alt_text(ax, f"{description}: {words}")
        return ax

    def progress(self, ax: Axes | None = None, **style: Unpack[FigureStyle]) -> Axes:
        """Draw the cumulative bytes delivered to the application, a line per log.

        Returns *ax*, or the axes of a new figure.
        """
        ax = ax or new_axes(CURVE_HEIGHT_IN)
        ends = []
        for number, (measured, name) in enumerate(zip(self.logs, self._names, strict=True)):
            look = line(number)
            times, sums = delivered_curve(measured.trace)
            ends.append(f"{name} reaches {sums[-1] / 1000:,.0f} kB after {times[-1]:,.0f} ms")
            ax.step(
                [*times, self.end_ms],
                [n_bytes / 1000 for n_bytes in (*sums, sums[-1])],
                where="post",
                color=look.color,
                linestyle=look.linestyle,
                label=f"{name}: {measured.page_load_ms:,.0f} ms",
            )
        ax.set_xlim(0, self.end_ms)
        ax.set_ylim(bottom=0)
        finish_axes(ax, title="Bytes delivered in order", x=_TIME_LABEL, y="kB", grid="both")
        ax.legend(loc="lower right", fontsize=SMALL)
        set_alt_text(
            ax, f"A line per log rises with what was delivered in order: {'; '.join(ends)}."
        )
        return ax

    def figure(self, **style: Unpack[FigureStyle]) -> ShownFigure:
        """Return a new figure of the byte ranges of each log, and the progress of all."""
        heights_in = [byte_ranges_height_in(measured.trace) for measured in self.logs]
        heights_in.append(CURVE_HEIGHT_IN)
        figure = new_figure(sum(heights_in))
        *ranges, last = figure.subplots(len(heights_in), height_ratios=heights_in)
        for number, ax in enumerate(ranges, start=1):
            self.byte_ranges(ax, number=number)
        self.progress(last)
        return figure

    def _log(self, number: int) -> tuple[Measurement, str]:
        if number not in range(1, len(self.logs) + 1):
            message = f"must be 1 to {len(self.logs)}, is {number!r}"
            raise InputError.at("number", message)
        return self.logs[number - 1], self._names[number - 1]

    def __repr__(self) -> str:
        return f"<Figures of {', '.join(measured.log.title for measured in self.logs)}>"

    @property
    def end_ms(self) -> float:
        """End of the time axis, a little after that of the last log."""
        return max(measured.page_load_ms for measured in self.logs) * _AXIS_MARGIN or 1.0

    @property
    def _names(self) -> list[str]:
        """The titles of the logs, with numbers if several are equal."""
        titles = [plain(shortened(measured.log.title, _MAX_NAME_CHARS)) for measured in self.logs]
        if len(set(titles)) == len(titles):
            return titles
        return [f"{title} ({number})" for number, title in enumerate(titles, start=1)]


_CONTRADICTION_COLOUR = "#c00000"
_MARK_SIZE = 4.0


@plot_methods
class IdentificationPlots(SavedPlots):
    """Figures of a server's picks, with those that contradict the mechanism that fits best.

    Each method returns the axes that it drew on, and `save` writes a file.
    """

    def __init__(self, found: Identification) -> None:
        self.found = found

    def picks(self, ax: Axes | None = None, **style: Unpack[FigureStyle]) -> Axes:
        """Draw a row per stream and a tick per frame; crosses mark contradictions.

        Returns *ax*, or the axes of a new figure.
        """
        found = self.found
        sent = [step for step in found.order.steps if step.kind is StepKind.SENT]
        resent = [step for step in found.order.steps if step.kind is StepKind.RESENT]
        rows = {key: row for row, key in enumerate(sorted({step.stream_id for step in sent}))}
        wrong = [(row.at_ms, rows[row.sent_stream]) for row in found.contradictions]
        expected = [
            (row.at_ms, rows[row.expected_stream])
            for row in found.contradictions
            if row.expected_stream in rows
        ]
        ax = ax or new_axes(_AXIS_HEIGHT_IN + _ROW_HEIGHT_IN * max(2, len(rows)))
        for steps, marker, label in ((sent, "|", "sent"), (resent, "^", "sent again")):
            points = [(to_ms(step.at_ns), rows[step.stream_id]) for step in steps]
            _draw_marks(ax, points, marker, "#1b1b1b", label)
        _draw_marks(ax, wrong, "x", _CONTRADICTION_COLOUR, "sent, and contradicts the mechanism")
        _draw_marks(ax, expected, "o", _CONTRADICTION_COLOUR, "expected instead")
        ax.set_yticks(list(rows.values()), [self._label(key) for key in rows])
        ax.set_ylim(len(rows) - 0.5, -0.5)
        finish_axes(ax, title=self._title(), x=_TIME_LABEL)
        ax.legend(loc="upper right", fontsize=SMALL)
        set_alt_text(
            ax,
            f"{self._title()}. A row per stream shows when its bytes were sent;"
            f" {len(wrong)} of {found.n_choices} picks contradict the mechanism.",
        )
        return ax

    def figure(self, **style: Unpack[FigureStyle]) -> ShownFigure:
        """Return a new figure of `picks`."""
        figure = self.picks(**style).figure
        assert isinstance(figure, ShownFigure)  # noqa: S101 - its axes are new
        return figure

    def _label(self, stream_id: int) -> str:
        order = self.found.order
        name = plain(
            shortened(order.paths.get(stream_id, f"stream {stream_id}"), _MAX_NAME_CHARS // 2)
        )
        signal = order.signals.get(stream_id) if order.has_signals else None
        return name if signal is None else f"{name} ({describe_signal(signal)})"

    def _title(self) -> str:
        row = self.found.rows[0]
        return (
            f"{plain(self.found.title)}: {row.mechanism} explains {row.percent:.1f} % of the picks"
        )


def _draw_marks(
    ax: Axes, points: Sequence[tuple[float, int]], marker: str, color: str, label: str
) -> None:
    if points:
        ax.plot(
            *zip(*points, strict=True),
            linestyle="",
            marker=marker,
            markersize=_MARK_SIZE,
            fillstyle="none",
            color=color,
            label=f"{label}: {len(points):,}",
        )
