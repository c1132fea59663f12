"""Files of studies that others read: Parquet with the same types whatever the values are."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pyarrow.dataset
import pyarrow.parquet
import pytest

import h3sim
from h3sim.study import Results

if TYPE_CHECKING:
    from pathlib import Path

STUDIES: list[dict[str, Any]] = [
    {"network": "4g", "browser": "parse", "cc": "cubic"},
    {"network": "4g", "handshake": "0-rtt", "loss": "1%", "queue_bdp": 1.5},
    {"interval_ms": 0.5, "handshake": False, "reorder": "4:1-3"},
    {
        "network": "cable",
        "header_compression": "hpack",
        "transport": "tcp",
        "connections": "single",
    },
    {"network": "4g", "browser": "parse", "preload_scanner": False, "paint": "complete"},
]


@pytest.mark.parametrize("options", STUDIES)
def test_every_kind_of_study_has_columns_of_the_same_types(
    options: dict[str, Any], tmp_path: Path
) -> None:
    results = h3sim.sweep("davies-meenan", schemes="fifo", executor="serial", **options)
    first, second = tmp_path / "a.parquet", tmp_path / "b.parquet"
    results.to_parquet(first)
    # All values are missing but those of the load's identity.
    names = ("page", "scheme", "seed")
    Results.of([{n: r[n] if n in names else None for n in r} for r in results]).to_parquet(second)
    assert pyarrow.parquet.read_schema(first).equals(pyarrow.parquet.read_schema(second))
    table = pyarrow.dataset.dataset([first, second]).to_table()
    assert table.num_rows == 2
    row = next(iter(results))
    assert {name: table[name][0].as_py() for name in row} == row


def test_parquet_says_its_version_axes_and_units(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    rows = [{"page": "p", "scheme": "rr", "seed": 0, "page_load_ms": 1, "mine": "x"}]
    Results.of(rows, axes=["scheme"]).to_parquet(path)
    schema = pyarrow.parquet.read_schema(path)
    about = json.loads(schema.metadata[b"h3sim"])
    assert (about["version"], about["axes"]) == (h3sim.__version__, ["scheme"])
    assert schema.field("page_load_ms").metadata == {b"unit": b"ms"}
    assert str(schema.field("mine").type) == "string"
