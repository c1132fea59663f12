"""Text tables, fitted to the terminal, and the tables of a load.

No library is used for the layout: importing one takes longer than loading a small page.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from h3sim.metrics import SAMPLE_MS
from h3sim.text import APART, cell_width, decimals_of, escape_control, truncate, wrap

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from h3sim.results import Load, Which


_NONE = "-"
_GAP = "  "
_NARROWEST, _FIRST = 8, 32
"""Least widths of a column and, while others can shrink, of the first."""


def print_text(text: str, width: int | None) -> None:
    """Print *text* without control characters, wrapped to *width* cells."""
    print(fitted(escape_control(text), width))


def print_table(
    rows: Iterable[Any], *described: Sequence[Any], width: int | None, shorten: bool = True
) -> None:
    """Print the table of *rows* with the columns *described*, as `columns` takes them."""
    print(table(*columns(rows, *described), width=width, shorten=shorten))


def columns(rows: Iterable[Any], *described: Sequence[Any]) -> tuple[list[str], list[list[str]]]:
    """Return the headers and cells of a table of *rows*, to be passed to `table`.

    Each column is *described* by its header, the attribute or function that gives its values and,
    unless they are texts, by a function that formats all values of the column.

    >>> columns([("rr", 1), ("fifo", 2)], ("scheme", lambda row: row[0]))
    (['scheme'], [['rr'], ['fifo']])
    """
    listed = [*rows]
    cells = []
    for _, value, *formats in described:
        values = [value(row) if callable(value) else getattr(row, value) for row in listed]
        cells.append(formats[0](values) if formats else [*map(str, values)])
    return [column[0] for column in described], [list(row) for row in zip(*cells, strict=True)]


def table(
    headers: Sequence[str],
    rows: Iterable[Sequence[Any]],
    *,
    width: int | None = None,
    shorten: bool = False,
) -> str:
    """Return an aligned text table, at most *width* cells wide where possible.

    To fit, headers are wrapped first, then the cells of the widest text columns: wrapped at
    spaces or, without any, truncated in the middle. With *shorten* all texts are truncated, so that
    each row stays on one line. Numbers are never cut.

    >>> print(table(["scheme", "ByteIndex ms"], [["rr", "1.50"], ["fifo", "12.25"]], width=17))
            ByteIndex
    scheme         ms
    ------  ---------
    rr           1.50
    fifo        12.25
    """
    body = [[escape_control(str(cell)) for cell in row] for row in rows]
    is_left = [any(_is_word(row[index]) for row in body) for index in range(len(headers))]
    widths = _widths(headers, body, is_left, width)
    heads = [wrap(head, limit) for head, limit in zip(headers, widths, strict=True)]
    n_lines = max(map(len, heads), default=0)
    # Empty lines above short headers: all headers end next to the rule.
    lines = [*_lines([[""] * (n_lines - len(head)) + head for head in heads], widths, is_left)]
    lines.append(_GAP.join("-" * limit for limit in widths))
    for row in body:
        cells = [
            [truncate(cell, limit)] if shorten and _has_letter(cell) else wrap(cell, limit)
            for cell, limit in zip(row, widths, strict=True)
        ]
        lines += _lines(cells, widths, is_left)
    return "\n".join(lines)


def figures(rows: Sequence[tuple[str, str]], *, width: int | None = None) -> str:
    """Return names and values in two columns; long values are wrapped.

    >>> print(figures([("packets", "1,168"), ("page load", "11,680.0 ms")]))
    packets    1,168
    page load  11,680.0 ms
    """
    first = max((cell_width(name) for name, _ in rows), default=0)
    limit = None if width is None else max(width - first - len(_GAP), _NARROWEST)
    lines: list[str] = []
    for name, text in rows:
        parts = [escape_control(text)] if limit is None else wrap(escape_control(text), limit)
        lines += _lines([[name], parts], [first, 0], [True, True])
    return "\n".join(lines)


def fitted(text: str, width: int | None) -> str:
    """Wrap *text* to lines of at most *width* cells.

    >>> print(fitted("so many words", 8))
    so many
    words
    """
    return text if width is None else "\n".join(wrap(text, width))


def in_ms(value_ms: float | None) -> str:
    """Format a time with one decimal; None is a dash."""
    return _NONE if value_ms is None else f"{value_ms:,.1f}"


def each_ms(column: Iterable[float | None]) -> list[str]:
    """Format times with one decimal each; None is a dash."""
    return [*map(in_ms, column)]


def counts(column: Iterable[int | None]) -> list[str]:
    """Format whole numbers with commas; None is a dash."""
    return [_NONE if value is None else f"{value:,}" for value in column]


def marked(column: Iterable[object]) -> list[str]:
    """Format truth values: "yes", or nothing."""
    return ["yes" if value else "" for value in column]


def ratio(value: float | None) -> str:
    """Format a ratio with two decimals; None is a dash."""
    return _NONE if value is None else f"{value:.2f}"


def times(column: Iterable[float | None]) -> list[str]:
    """Format times with one decimal, or more where unequal times would look equal.

    >>> times([1234.56, None]), times([5.04, 4.96])
    (['1,234.6', '-'], ['5.04', '4.96'])
    """
    return _decimal(column, least=1)


def ratios(column: Iterable[float | None], *, apart: float = APART) -> list[str]:
    """Format ratios with two decimals, or more where unequal ratios would look equal.

    Ratios are unequal if they differ by more than *apart*, relative to the larger.

    >>> ratios([1, 1.254]), ratios([1, 1.004], apart=0.001)
    (['1.00', '1.25'], ['1.000', '1.004'])
    """
    return _decimal(column, least=2, apart=apart)


def _decimal(column: Iterable[float | None], *, least: int, apart: float = APART) -> list[str]:
    values = list(column)
    decimals = decimals_of(values, least=least, apart=apart)
    return [_NONE if value is None else f"{value:,.{decimals}f}" for value in values]


def plural(number: int, noun: str) -> str:
    """Return the number with its noun.

    >>> plural(1, "page"), plural(1200, "page")
    ('1 page', '1,200 pages')
    """
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def _widths(
    headers: Sequence[str], body: list[list[str]], is_left: list[bool], width: int | None
) -> list[int]:
    """Return the width of each column: headers shrink first, then the widest text columns."""
    full = [
        max((cell_width(row[index]) for row in body), default=0) for index in range(len(headers))
    ]
    widths = [max(limit, cell_width(head)) for limit, head in zip(full, headers, strict=True)]
    if width is None or _total(widths) <= width:
        return widths
    words = [max(map(cell_width, head.split(" "))) for head in headers]
    widths = [max(limit, word) for limit, word in zip(full, words, strict=True)]
    floors = [
        max(word, _NARROWEST, *(_longest_number(row[index]) for row in body))
        for index, word in enumerate(words)
    ]
    # The first column identifies the row: it shrinks last.
    _narrow(widths, [max(words[0], _FIRST), *floors[1:]], is_left, width)
    _narrow(widths, floors, is_left, width)
    _raise_heads(headers, widths, width)
    return widths


def _narrow(widths: list[int], floors: list[int], is_left: list[bool], width: int) -> None:
    """Shrink the widest text columns, down to their floors, until the table fits."""
    while _total(widths) > width:
        wide = [
            (limit, index)
            for index, limit in enumerate(widths)
            if is_left[index] and limit > floors[index]
        ]
        if not wide:
            return
        widths[max(wide)[1]] -= 1


def _raise_heads(headers: Sequence[str], widths: list[int], width: int) -> None:
    """Give the remaining width to the columns whose headers wrap into most lines."""
    while _total(widths) < width:
        heights = [len(wrap(head, limit)) for head, limit in zip(headers, widths, strict=True)]
        if max(heights) == 1:
            return
        widths[heights.index(max(heights))] += 1


def _total(widths: list[int]) -> int:
    return sum(widths) + len(_GAP) * (len(widths) - 1)


def _lines(cells: list[list[str]], widths: list[int], is_left: list[bool]) -> Iterator[str]:
    """Yield the lines of a row whose cells are lists of lines."""
    for number in range(max(map(len, cells), default=0)):
        line = ""
        for parts, limit, left in zip(cells, widths, is_left, strict=True):
            part = parts[number] if number < len(parts) else ""
            room = " " * (limit - cell_width(part))
            line += f"{part}{room}{_GAP}" if left else f"{room}{part}{_GAP}"
        yield line.rstrip()


def _is_word(cell: str) -> bool:
    digits = cell.replace(",", "").replace(".", "").removeprefix(_NONE)
    return not digits.isdigit() and cell not in ("", _NONE)


def _has_letter(cell: str) -> bool:
    return any(map(str.isalpha, cell))


def _longest_number(cell: str) -> int:
    """Return the width of the longest part of a cell that must not be cut; 0 for text."""
    return 0 if _has_letter(cell) else max(map(cell_width, cell.split(" ")))


def full_width(headers: Sequence[str], rows: Iterable[Sequence[Any]]) -> int:
    """Return the width of a table that is neither wrapped nor truncated."""
    widths = [max(map(cell_width, map(str, cells))) for cells in zip(headers, *rows, strict=True)]
    return _total(widths)


def connections_table(load: Load, width: int | None) -> str:
    """Return the table of connections."""
    shown = columns(
        load.connections,
        ("connection", "number"),
        ("hosts", lambda row: ", ".join(row.hosts)),
        ("RTT ms", "rtt_ms", each_ms),
        ("opened ms", "opened_ms", each_ms),
        ("ready ms", "ready_ms", each_ms),
        ("requests", "n_requests"),
        ("bytes", "stream_bytes", counts),
    )
    return table(*shown, width=width, shorten=True)


def roots_table(load: Load, width: int | None) -> str:
    """Return the table of navigations, with times since each was requested."""
    computed = [("load event ms", "load_event_ms", each_ms)]
    shown = columns(
        load.roots,
        ("root", "id"),
        ("requested at ms", "requested_ms", each_ms),
        ("resources", "resources"),
        ("bytes", "bytes", counts),
        ("ByteIndex all ms", "byte_index_ms", each_ms),
        ("above fold ms", "byte_index_atf_ms", each_ms),
        ("complete ms", "finished_ms", each_ms),
        *(computed if load.load_event_ms is not None else ()),
    )
    return table(*shown, width=width, shorten=True)


def path_table(load: Load, width: int | None) -> str:
    """Return the critical path as a table, with its time by activity."""
    path = load.critical_path()
    parts = ("network", "bandwidth", "computation", "blocking")
    shown = columns(
        path,
        ("critical path", "work"),
        ("resource", lambda row: row.id or ""),
        ("from ms", lambda row: row[2], each_ms),
        ("to ms", lambda row: row[3], each_ms),
        ("network ms", "network_ms", each_ms),
        ("bandwidth ms", "bandwidth_ms", each_ms),
        ("compute ms", "computation_ms", each_ms),
        ("blocking ms", "blocking_ms", each_ms),
    )
    sums = ", ".join(f"{part} {in_ms(sum(path.column(f'{part}_ms')))} ms" for part in parts)
    return f"{table(*shown, width=width, shorten=True)}\n\n{fitted(sums, width)}"


def sampled_every(sample_ms: float) -> str:
    """Return the label that tells a sampled ByteIndex from the exact integral.

    >>> sampled_every(100)
    'sampled every 100 ms, as in Marx 2019'
    """
    as_there = ", as in Marx 2019" if sample_ms == SAMPLE_MS else ""
    return f"sampled every {sample_ms:g} ms{as_there}"


def load_figures(load: Load, *, sample_ms: float | None = None) -> list[tuple[str, str]]:
    """Return the metrics of a load as (name, value); *sample_ms* adds sampled ByteIndexes."""
    hol = load.hol
    return [
        ("ByteIndex, all", _index(load, "all")),
        ("ByteIndex, above the fold", _index(load, "atf")),
        *_sampled(load, sample_ms),
        ("page load", _ms(load.page_load_ms)),
        *_milestones(load),
        ("packets", _packets(load)),
        ("HOL blocking within streams", _hol(hol.stream_bytes, hol.stream_delay_ms)),
        ("HOL blocking across streams", _hol(hol.connection_bytes, hol.connection_delay_ms)),
        ("delivery batches", batches(hol.stack_histogram)),
    ]


def _sampled(load: Load, sample_ms: float | None) -> list[tuple[str, str]]:
    if sample_ms is None:
        return []
    how = sampled_every(sample_ms)
    return [
        (f"ByteIndex, all, {how}", _index(load, "all", sample_ms)),
        (f"ByteIndex, above the fold, {how}", _index(load, "atf", sample_ms)),
    ]


def _milestones(load: Load) -> list[tuple[str, str]]:
    """Return paint and load-event times, which only computing browsers have."""
    if load.first_paint_ms is None:
        return []
    return [
        ("first paint", _ms(load.first_paint_ms)),
        ("largest paint", _ms(load.largest_paint_ms)),
        (
            "SpeedIndex",
            "the page has no viewport shares"
            if load.speed_index_ms is None
            else _ms(load.speed_index_ms),
        ),
        ("DOMContentLoaded", _ms(load.dom_content_loaded_ms)),
        ("load event", _ms(load.load_event_ms)),
    ]


def multiplexing_figures(load: Load) -> list[tuple[str, str]]:
    """Return the metrics of multiplexing and prioritization that apply to the load."""
    found, visual = load.multiplexing, load.visual
    window = f"in {in_ms(found.window_ms)} ms"
    rows: list[tuple[str, str | None]] = [
        ("interleaving", f"{found.interleaving:.3f}, runs of {found.mean_run_packets:.1f} packets"),
        ("streams in flight", f"{found.streams_in_flight:.1f} {window}"),
        ("Jain's index", _or_none(found.jain_index, f"{{:.3f}} {window}")),
        ("priority inversion", _or_none(found.inversion_bytes, "{:,} bytes")),
        ("reprioritization delay", _or_none(found.reprioritization_delay_ms, "{:,.1f} ms")),
        ("TTFB slope", _or_none(found.ttfb_slope_ms, "{:+,.1f} ms per request")),
        ("ImageIndex", _or_none(load.image_index_ms, "{:,.1f} ms")),
        ("loss bursts", batches(found.loss_bursts) or None),
    ]
    if visual is not None:
        shown = ", ".join(in_ms(value_ms) for value_ms in visual)
        rows.append(("first change, VC85, 95, 99, last", f"{shown} ms"))
    return [(name, text) for name, text in rows if text is not None]


def _or_none(value: float | None, text: str) -> str | None:
    return None if value is None else text.format(value)


def batches(histogram: Mapping[Any, int]) -> str:
    """Describe the sizes of delivery batches.

    >>> batches({1: 1168, 2: 3})
    '1,168 x 1 packet, 3 x 2 packets'
    """
    return ", ".join(f"{n:,} x {plural(int(height), 'packet')}" for height, n in histogram.items())


def _packets(load: Load) -> str:
    packets = load.packets
    return f"{packets.sent:,} sent, {packets.lost:,} lost, {packets.retransmitted:,} retransmitted"


def _index(load: Load, which: Which, sample_ms: float | None = None) -> str:
    index_ms = load.byte_index_or_none(which, sample_ms=sample_ms)
    return load.missing_reason(which) if index_ms is None else f"{in_ms(index_ms)} ms"


def _ms(value_ms: float | None) -> str:
    return "unknown" if value_ms is None else f"{in_ms(value_ms)} ms"


def _hol(n_bytes: int, delay_ms: float) -> str:
    """Format bytes and delay; the delay is a sum over packets and may exceed the load's time."""
    return f"{n_bytes:,} bytes, {in_ms(delay_ms)} ms summed over packets"
