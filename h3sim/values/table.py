"""Result tables: rows under columns as text, HTML, Markdown, JSON and data frames.

No library is used for the layout: importing one takes longer than loading a small page.
"""

from __future__ import annotations

import copy
import enum
import importlib
import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from operator import eq
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, Self, TypeVar, overload

from h3sim.values.errors import needing_extra
from h3sim.values.text import cell_width, escape_control, truncate, wrap

if TYPE_CHECKING:
    import pandas as pd


AnyRowT = TypeVar("AnyRowT", bound="Sequence[Any]")
RowT = TypeVar("RowT", bound=NamedTuple)
ValueT = TypeVar("ValueT")

RELATIVE_TOLERANCE = 0.005
"""Values that differ by less, relative to the larger, count as equal, and may look equal."""
FINE_TOLERANCE = 1e-4
"""The same for results of paired statistics, which distinguish much smaller differences."""
MISSING = "-"
"""Display form of None."""
_MAX_DECIMALS = 6
_MIN_FIXED_POINT = 100
"""Floats of a column without a fixed number of decimals have one decimal from here on."""
_MAX_NOTEBOOK_ROWS = 200
_MAX_OPEN_ROWS = 20
"""Longer tables that follow another are folded in a notebook."""
_COLUMN_GAP = "  "
_MIN_WIDTH, _MIN_FIRST_WIDTH = 8, 32
"""Least cells of a column, and of the first one while others can shrink: it identifies the row."""
_ALIGNED_RIGHT = ' style="text-align: right"'
"""HTML attribute of cells with numbers."""


def are_apart(low: float, high: float, *, tolerance: float = RELATIVE_TOLERANCE) -> bool:
    """Return whether two values differ by more than *tolerance* of the larger.

    >>> are_apart(100, 100.2), are_apart(100, 101)
    (False, True)
    """
    return high - low > tolerance * max(abs(low), abs(high))


def decimals_of(
    values: Iterable[float | None], *, least: int, tolerance: float = RELATIVE_TOLERANCE
) -> int:
    """Return the number of decimals with which different values of a column look different.

    That is *least*, or more where two values that differ by more than *tolerance*, relative to the
    larger, would be rounded to the same text.

    >>> decimals_of([5.04, 8.26, None], least=1), decimals_of([5.04, 4.96], least=1)
    (1, 2)
    """
    known = sorted(value for value in values if value is not None)
    decimals = least
    for low, high in pairwise(known):
        if are_apart(low, high, tolerance=tolerance):
            while decimals < _MAX_DECIMALS and f"{low:.{decimals}f}" == f"{high:.{decimals}f}":
                decimals += 1
    return decimals


def escaped(text: str) -> str:
    """Return *text* with its HTML special characters escaped."""
    import html  # on use: importing h3sim should stay quick

    return html.escape(text)


@dataclass(frozen=True)
class Column:
    """Column of a table: its heading, and how its numbers are formatted.

    Numbers have *decimals*, or more where values that differ by more than *tolerance*, relative to
    the larger, would look equal. Without *decimals* they have four significant digits, or more.

    >>> Column("ms", 1).format([1234.56, None]), Column("ms", 1).format([5.04, 4.96])
    (['1,234.6', '-'], ['5.04', '4.96'])
    >>> Column("ratio").format([1.0, 1.254, None]), Column("ratio").format([1.00004, 1.0003])
    (['1', '1.254', '-'], ['1.0000', '1.0003'])
    """

    name: str
    decimals: int | None = None
    tolerance: float = RELATIVE_TOLERANCE

    @classmethod
    def ms(cls, name: str) -> Column:
        """Return a column of times, with one decimal or more."""
        return cls(name, 1)

    @classmethod
    def ratio(cls, name: str, *, tolerance: float = RELATIVE_TOLERANCE) -> Column:
        """Return a column of ratios, with two decimals or more."""
        return cls(name, 2, tolerance)

    def format(self, values: Sequence[Any]) -> list[str]:
        """Return the values as text; None is a dash, and text is as it is."""
        texts = [_format(value) for value in values]
        if self.decimals is not None:
            has_decimals = _is_number
            numbers = filter(_is_number, values)
            decimals = decimals_of(numbers, least=self.decimals, tolerance=self.tolerance)
        else:
            has_decimals = _is_float
            text_by_float = {
                value: text for value, text in zip(values, texts, strict=True) if _is_float(value)
            }
            if not any(
                text_by_float[low] == text_by_float[high]
                and are_apart(low, high, tolerance=FINE_TOLERANCE)
                for low, high in pairwise(sorted(text_by_float))
            ):
                return texts  # four significant digits distinguish all values
            decimals = decimals_of(text_by_float, least=1, tolerance=FINE_TOLERANCE)
        return [
            f"{value:,.{decimals}f}" if has_decimals(value) else text
            for value, text in zip(values, texts, strict=True)
        ]


class RichDisplay:
    """Value that a notebook shows as sentences and tables."""

    def _display(self) -> Iterable[str | Table[Any]]:
        """Yield the sentences and tables in display order."""
        raise NotImplementedError

    def _repr_html_(self) -> str:
        parts, has_table = [], False
        for part in self._display():
            if isinstance(part, Table):
                shown = part.to_html()
                if has_table and len(part) > _MAX_OPEN_ROWS:
                    summary = f"<summary>{len(part):,} rows</summary>"
                    shown = f"<details>{summary}{shown}</details>"
                has_table = True
            else:
                shown = f"<p>{escaped(part)}</p>"
            parts.append(shown)
        return "".join(parts)


class Table(Sequence[AnyRowT], RichDisplay, Generic[AnyRowT]):
    """Rows under columns, as text, HTML, Markdown, JSON and a data frame.

    >>> table = Table(["scheme", Column.ms("ByteIndex ms")], [("rr", 1.5), ("fifo", 12.25)])
    >>> print(table)
    scheme  ByteIndex ms
    ------  ------------
    rr               1.5
    fifo            12.2
    >>> print(table.to_markdown())
    | scheme | ByteIndex ms |
    | --- | ---: |
    | rr | 1.5 |
    | fifo | 12.2 |
    >>> table.to_records()[1]
    {'scheme': 'fifo', 'ByteIndex ms': 12.25}
    """

    note: str = ""
    """Sentence below the rows, for example about what has none."""

    def __init__(
        self, columns: Iterable[str | Column], rows: Iterable[AnyRowT], *, title: str = ""
    ) -> None:
        self._columns = tuple(
            column if isinstance(column, Column) else Column(column) for column in columns
        )
        self._rows: Sequence[AnyRowT] = rows if isinstance(rows, NamedRows) else tuple(rows)
        self.title = title

    @classmethod
    def select(
        cls, rows: Iterable[Any], *columns: tuple[str | Column, str], title: str = ""
    ) -> Table[tuple[Any, ...]]:
        """Return the table of some attributes of *rows*, each under its column.

        >>> from fractions import Fraction
        >>> Table.select([Fraction(3, 7)], ("above", "numerator"))[0]
        (3,)
        """
        cells = (tuple(getattr(row, name) for _, name in columns) for row in rows)
        return Table((column for column, _ in columns), cells, title=title)

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns, in order."""
        return tuple(column.name for column in self._columns)

    def column(self, name: str) -> list[Any]:
        """Return one column as a list.

        Raises:
            KeyError: if there is no such column.
        """
        if name not in self.columns:
            raise KeyError(f"no column {name!r}; there are {', '.join(self.columns)}")
        number = self.columns.index(name)
        return [row[number] for row in self._rows]

    def texts(self, n: int | None = None) -> list[tuple[str, ...]]:
        """Return the cells of the first *n* rows, formatted."""
        shown = self._rows[:n]
        if not shown:
            return []
        cells = zip(*shown, strict=True)
        columns = (c.format(values) for c, values in zip(self._columns, cells, strict=True))
        return list(zip(*columns, strict=True))

    def to_records(self) -> list[dict[str, Any]]:
        """Return the rows as dicts."""
        return [dict(zip(self.columns, row, strict=True)) for row in self._rows]

    def to_json(self) -> str:
        """Return the records as JSON."""
        return json.dumps(self.to_records())

    def to_pandas(self) -> pd.DataFrame:
        """Return the table as a pandas DataFrame.

        Raises:
            MissingExtraError: if pandas is not installed.
        """
        with needing_extra("pandas", "analysis"):
            pandas = importlib.import_module("pandas")
        return with_floats(pandas.DataFrame(list(self._rows), columns=list(self.columns)))

    def to_text(self, width: int | None = None, *, shorten: bool = False) -> str:
        """Return an aligned text table, at most *width* cells wide where possible.

        To fit, headings are wrapped first, then the cells of the widest text columns: wrapped at
        spaces or, without any, truncated in the middle. With *shorten* all are truncated, so that
        each row stays on one line. Numbers are never cut.

        >>> table = Table(["scheme", Column("ByteIndex ms", 2)], [("rr", 1.5), ("fifo", 12.25)])
        >>> print(table.to_text(17))
                ByteIndex
        scheme         ms
        ------  ---------
        rr           1.50
        fifo        12.25
        """
        headers = self.columns
        body = [[escape_control(cell) for cell in row] for row in self.texts()]
        is_left = [any(_is_word(row[index]) for row in body) for index in range(len(headers))]
        widths = _widths(headers, body, is_left, width)
        heads = [wrap(head, limit) for head, limit in zip(headers, widths, strict=True)]
        n_lines = max(map(len, heads), default=0)
        # Empty lines above short headings: all end next to the rule.
        lines = [*_lines([[""] * (n_lines - len(head)) + head for head in heads], widths, is_left)]
        lines.append(_COLUMN_GAP.join("-" * limit for limit in widths))
        for row in body:
            cells = [
                [truncate(cell, limit)] if shorten and _has_letter(cell) else wrap(cell, limit)
                for cell, limit in zip(row, widths, strict=True)
            ]
            lines += _lines(cells, widths, is_left)
        if self.note:
            lines += ["", *(wrap(self.note, width) if width else [self.note])]
        return "\n".join(lines)

    @property
    def text_width(self) -> int:
        """The width of the text table if it is neither wrapped nor truncated."""
        cells = zip(self.columns, *self.texts(), strict=True)
        return _total([max(map(cell_width, column)) for column in cells])

    def to_html(self, *, most_rows: int = _MAX_NOTEBOOK_ROWS) -> str:
        """Return the table as HTML, with numbers to the right; further rows are counted.

        >>> Table(["id", "ms"], [("007", 1.23456)]).to_html().count("<td")
        1
        """
        is_number = [
            any(_is_number(row[index]) for row in self._rows[:most_rows])
            for index in range(len(self._columns))
        ]
        caption = f"<caption>{escaped(self.title)}</caption>" if self.title else ""
        head = "".join(
            f'<th scope="col"{_ALIGNED_RIGHT * right}>{escaped(name)}</th>'
            for name, right in zip(self.columns, is_number, strict=True)
        )
        body = "".join(
            f"<tr>{_html_cells(row, texts)}</tr>"
            for row, texts in zip(self._rows, self.texts(most_rows), strict=False)
        )
        left = len(self) - most_rows
        more = f"<p>and {left:,} rows more</p>" if left > 0 else ""
        more += f"<p>{escaped(self.note)}</p>" if self.note else ""
        return f"<table>{caption}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{more}"

    def to_markdown(self) -> str:
        """Return the table as Markdown, with numbers to the right."""
        texts = self.texts()
        rules = [
            "---:" if any(_is_number(row[index]) for row in self._rows) else "---"
            for index in range(len(self._columns))
        ]
        lines = ([cell.replace("|", "\\|") for cell in line] for line in (self.columns, *texts))
        head, *rows = (f"| {' | '.join(line)} |" for line in lines)
        return "\n".join((head, f"| {' | '.join(rules)} |", *rows))

    def _display(self) -> Iterable[str | Table[Any]]:
        yield self

    @overload
    def __getitem__(self, index: int) -> AnyRowT: ...
    @overload
    def __getitem__(self, index: slice) -> Self: ...
    def __getitem__(self, index: int | slice) -> AnyRowT | Self:
        if isinstance(index, slice):
            some = copy.copy(self)
            some._rows = self._rows[index]
            return some
        return self._rows[index]

    def __len__(self) -> int:
        return len(self._rows)

    def __iter__(self) -> Iterator[AnyRowT]:
        return iter(self._rows)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Table) and len(self) == len(other) and all(map(eq, self, other))

    def __hash__(self) -> int:
        return hash(tuple(self._rows))

    def __str__(self) -> str:
        return self.to_text()

    def __repr__(self) -> str:
        rows = f"{len(self)} row{'s' * (len(self) != 1)}"
        return f"<{rows} of {self._row_name}({', '.join(self.columns)})>"

    @property
    def _row_name(self) -> str:
        """The name of a row's type in the representation."""
        return type(self).__name__


class Rows(Table[RowT]):
    """Table whose rows are named tuples; *row_type* names its columns, even of an empty one.

    >>> class Point(NamedTuple):
    ...     x: int
    ...     y: int
    >>> points = Rows(Point, [Point(1, 2), Point(3, 4)])
    >>> points.columns, points[1].y, points.column("x")
    (('x', 'y'), 4, [1, 3])
    """

    def __init__(self, row_type: type[RowT], rows: Iterable[RowT]) -> None:
        super().__init__(row_type._fields, rows)
        self._row_type = row_type

    @property
    def _row_name(self) -> str:
        return self._row_type.__name__


def with_floats(frame: pd.DataFrame) -> pd.DataFrame:
    """Return *frame* with NaN, as floats, in columns where no row has a value.

    pandas makes them columns of objects, which allow neither means nor plots.
    """
    empty = [name for name in frame.columns if len(frame) and frame[name].isna().all()]
    return frame.astype(dict.fromkeys(empty, float))


class NamedRows(Sequence[RowT], Generic[RowT]):
    """A view of plain tuples as *row_type*, each constructed on access."""

    def __init__(self, row_type: type[RowT], rows: Sequence[tuple[Any, ...]]) -> None:
        self._row_type = row_type
        self._rows = rows

    @overload
    def __getitem__(self, index: int) -> RowT: ...
    @overload
    def __getitem__(self, index: slice) -> NamedRows[RowT]: ...
    def __getitem__(self, index: int | slice) -> RowT | NamedRows[RowT]:
        if isinstance(index, slice):
            return NamedRows(self._row_type, self._rows[index])
        return self._row_type._make(self._rows[index])

    def __len__(self) -> int:
        return len(self._rows)

    def __iter__(self) -> Iterator[RowT]:
        return map(self._row_type._make, self._rows)


class Listing(list[ValueT], RichDisplay):
    """A list of values that have a *name* and a *title*, displayed as a table.

    A prompt shows one line per value; a notebook also shows the further attributes *also*.

    >>> from h3sim.catalog import list_schemes
    >>> repr(list_schemes()).splitlines()[0].split()
    ['rr', 'Round', 'robin', '(Edge,', "HTTP/2's", 'default)']
    """

    def __init__(self, values: Iterable[ValueT], *, also: Sequence[str] = ()) -> None:
        super().__init__(values)
        self._also = tuple(also)

    def __repr__(self) -> str:
        rows = [self._row(value) for value in self]
        width = max((len(name) for name, *_ in rows), default=0)
        return "\n".join(f"{name:{width}}  {title}".rstrip() for name, title, *_ in rows) or "[]"

    def _display(self) -> Iterable[str | Table[Any]]:
        yield Table(("name", "title", *self._also), map(self._row, self))

    def _row(self, value: ValueT) -> list[Any]:
        cells = (getattr(value, attribute, "") for attribute in ("name", "title", *self._also))
        return [cell.value if isinstance(cell, enum.Enum) else cell for cell in cells]


def format_pairs(pairs: Sequence[tuple[str, str]], *, width: int | None = None) -> str:
    """Return names and values in two columns; long values are wrapped.

    >>> print(format_pairs([("packets", "1,168"), ("page load", "11,680.0 ms")]))
    packets    1,168
    page load  11,680.0 ms
    """
    name_width = max((cell_width(name) for name, _ in pairs), default=0)
    limit = None if width is None else max(width - name_width - len(_COLUMN_GAP), _MIN_WIDTH)
    lines: list[str] = []
    for name, text in pairs:
        parts = [escape_control(text)] if limit is None else wrap(escape_control(text), limit)
        lines += _lines([[name], parts], [name_width, 0], [True, True])
    return "\n".join(lines)


def _format(value: Any) -> str:
    if value is None:
        return MISSING
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:,.1f}" if abs(value) >= _MIN_FIXED_POINT else f"{value:,.4g}"
    return f"{value:,}" if isinstance(value, int) else str(value)


def _is_float(value: object) -> bool:
    return type(value) is float


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _html_cells(row: Sequence[Any], texts: Sequence[str]) -> str:
    first, *others = map(escaped, texts)
    cells = zip(row[1:], others, strict=True)
    return f'<th scope="row"{_ALIGNED_RIGHT * _is_number(row[0])}>{first}</th>' + "".join(
        f"<td{_ALIGNED_RIGHT * _is_number(value)}>{text}</td>" for value, text in cells
    )


def _widths(
    headers: Sequence[str], body: list[list[str]], is_left: list[bool], width: int | None
) -> list[int]:
    """Return the width of each column: headers shrink first, then the widest text columns."""
    body_widths = [
        max((cell_width(row[index]) for row in body), default=0) for index in range(len(headers))
    ]
    widths = [
        max(cells, cell_width(head)) for cells, head in zip(body_widths, headers, strict=True)
    ]
    if width is None or _total(widths) <= width:
        return widths
    word_widths = [max(map(cell_width, head.split(" "))) for head in headers]
    widths = [max(cells, word) for cells, word in zip(body_widths, word_widths, strict=True)]
    floors = [
        max(word, _MIN_WIDTH, *(_longest_number(row[index]) for row in body))
        for index, word in enumerate(word_widths)
    ]
    # The first column identifies the row: it shrinks last.
    _narrow(widths, [max(word_widths[0], _MIN_FIRST_WIDTH), *floors[1:]], is_left, width)
    _narrow(widths, floors, is_left, width)
    _widen_wrapped_headers(headers, widths, width)
    return widths


def _narrow(widths: list[int], floors: list[int], is_left: list[bool], width: int) -> None:
    """Shrink the widest text columns, down to their floors, until the table fits."""
    while _total(widths) > width:
        shrinkable = [
            index for index, floor in enumerate(floors) if is_left[index] and widths[index] > floor
        ]
        if not shrinkable:
            return
        # Of equally wide columns the rightmost.
        widths[max(shrinkable, key=lambda index: (widths[index], index))] -= 1


def _widen_wrapped_headers(headers: Sequence[str], widths: list[int], width: int) -> None:
    """Give the remaining width to the columns whose headers wrap into most lines."""
    while _total(widths) < width:
        heights = [len(wrap(head, limit)) for head, limit in zip(headers, widths, strict=True)]
        if max(heights) == 1:
            return
        widths[heights.index(max(heights))] += 1


def _total(widths: list[int]) -> int:
    """Return the width of a table with columns of these widths."""
    return sum(widths) + len(_COLUMN_GAP) * (len(widths) - 1)


def _lines(cells: list[list[str]], widths: list[int], is_left: list[bool]) -> Iterator[str]:
    """Yield the lines of a row whose cells are lists of lines."""
    for number in range(max(map(len, cells), default=0)):
        line = ""
        for parts, limit, left in zip(cells, widths, is_left, strict=True):
            part = parts[number] if number < len(parts) else ""
            room = " " * (limit - cell_width(part))
            line += f"{part}{room}{_COLUMN_GAP}" if left else f"{room}{part}{_COLUMN_GAP}"
        yield line.rstrip()


def _has_letter(cell: str) -> bool:
    return any(map(str.isalpha, cell))


def _longest_number(cell: str) -> int:
    """Return the width of the longest part of a cell that must not be cut; 0 for text."""
    return 0 if _has_letter(cell) else max(map(cell_width, cell.split(" ")))


def _is_word(cell: str) -> bool:
    """Return whether a cell is text, which is aligned to the left, not a number or missing."""
    digits = cell.replace(",", "").replace(".", "").removeprefix("-")
    return not digits.isdigit() and cell not in ("", MISSING)
