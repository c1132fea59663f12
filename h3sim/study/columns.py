"""Columns of a study in memory: what statistics need of its rows, read in one pass."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import islice, repeat
from typing import Any, TypeAlias

Row: TypeAlias = Mapping[str, Any]
_ROWS_PER_BATCH = 1000
"""Rows that are transposed together."""


class Columns:
    """Some columns of rows, and a hash of all others; a column with one value is held once.

    `names` are all columns of the first row, held or not. A column that a row lacks is None.

    >>> rows = [{"page": "p", "seed": seed, "ms": 1.0 + seed} for seed in (0, 1)]
    >>> columns = Columns.read(rows, ["page", "seed", "loss"])
    >>> len(columns), columns["seed"], columns["page"], columns["loss"]
    (2, [0, 1], ['p', 'p'], [None, None])
    >>> columns.names, columns.is_constant("page"), len(set(columns.others))
    (('page', 'seed', 'ms'), True, 2)
    """

    def __init__(
        self,
        lists: Mapping[str, list[Any]],
        constants: Mapping[str, Any],
        others: list[int],
        *,
        names: tuple[str, ...],
        axes: tuple[str, ...],
    ) -> None:
        varied = {name: own for name, own in lists.items() if len({*own}) > 1}
        self._lists = varied
        same = {name: next(iter(own), None) for name, own in lists.items() if name not in varied}
        self._constants = {**constants, **same}
        self.others = others
        """Hash of all columns of each row that are not held, for comparisons in this process."""
        self.names = names
        self.axes = axes

    @classmethod
    def read(
        cls, rows: Iterable[Row], held: Collection[str], *, axes: Sequence[str] = ()
    ) -> Columns:
        """Read the columns *held* of all rows."""
        names = tuple(dict.fromkeys(held))
        lists: dict[str, list[Any]] = {}
        constants: dict[str, Any] = dict.fromkeys(names)
        others: list[int] = []
        others_of_shape: dict[tuple[str, ...], tuple[str, ...]] = {}
        first: tuple[str, ...] = ()
        remaining = iter(rows)
        while batch := list(islice(remaining, _ROWS_PER_BATCH)):
            cells = zip(*(map(row.get, names) for row in batch), strict=True)
            for name, values in zip(names, cells, strict=True):
                if not others:
                    constants[name] = values[0]
                if name not in lists and {*values} != {constants[name]}:
                    lists[name] = [constants.pop(name)] * len(others)
                if name in lists:
                    lists[name] += values
            for row in batch:
                shape = tuple(row)
                if (rest := others_of_shape.get(shape)) is None:
                    held_ones = {*names}
                    rest = tuple(name for name in row if name not in held_ones)
                    others_of_shape[shape] = rest
                others.append(hash((rest, tuple(map(row.__getitem__, rest)))))
            first = first or tuple(batch[0])
        return cls(lists, constants, others, names=first, axes=tuple(axes))

    def __len__(self) -> int:
        return len(self.others)

    def __getitem__(self, name: str) -> list[Any]:
        """Return the column *name*, one value per row."""
        if name in self._lists:
            return list(self._lists[name])
        return [self._constants.get(name)] * len(self)

    def is_constant(self, name: str) -> bool:
        """Return whether all rows have the same value of the column *name*."""
        return name not in self._lists

    def constants(self) -> dict[str, Any]:
        """Return the columns that have the same value in all rows, with that value."""
        return dict(self._constants)

    def distinct(self, name: str) -> list[Any]:
        """Return the values of the column *name*, in order of first occurrence."""
        if name in self._lists:
            return [*dict.fromkeys(self._lists[name])]
        return [self._constants.get(name)] * bool(self)

    def tuples(self, names: Sequence[str]) -> Iterator[tuple[Any, ...]]:
        """Yield the values of the columns *names* of each row."""
        columns = (
            self._lists[name] if name in self._lists else repeat(self._constants.get(name))
            for name in names
        )
        # The last column ends where the rows end, if all others are constants.
        return (values[:-1] for values in zip(*columns, self.others, strict=False))

    def group(self, by: Sequence[str]) -> dict[tuple[Any, ...], Columns]:
        """Group the rows by the values of the columns *by*, in order of first occurrence."""
        positions: dict[tuple[Any, ...], list[int]] = {}
        for position, key in enumerate(self.tuples(by)):
            positions.setdefault(key, []).append(position)
        return {key: self.take(own) for key, own in positions.items()}

    def take(self, positions: Sequence[int]) -> Columns:
        """Return the rows at *positions*."""
        lists = {name: [own[at] for at in positions] for name, own in self._lists.items()}
        others = [self.others[at] for at in positions]
        return Columns(lists, self._constants, others, names=self.names, axes=self.axes)
