"""What notebooks get: columns of numbers, units beside them, and what an interrupt leaves."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

import h3sim
from h3sim.reporting.document import Report, Section, body_of
from h3sim.values.table import Table, decimals_of
from h3sim.values.units import unit_of

if TYPE_CHECKING:
    from pathlib import Path

PAGE = "davies-meenan"


def test_columns_in_which_no_row_has_a_value_are_floats() -> None:
    pytest.importorskip("pandas")
    results = h3sim.sweep(PAGE, schemes=["rr", "fifo"], executor="serial")
    frames = [results.to_pandas(), h3sim.compare(PAGE, schemes=["rr"]).to_pandas()]
    for frame in frames:
        empty = [name for name in frame.columns if frame[name].isna().all()]
        assert "first_paint_ms" in empty
        assert {str(frame[name].dtype) for name in empty} == {"float64"}
    assert frames[0].groupby("scheme")["first_paint_ms"].mean().isna().all()


def test_a_table_without_rows_keeps_its_columns() -> None:
    pytest.importorskip("pandas")
    load = h3sim.simulate(PAGE)
    frame = h3sim.trace.Rows(type(load.timings[0]), []).to_pandas()
    assert list(frame.columns) == list(load.timings.columns)


def test_datasets_state_the_units_of_figures_and_axes() -> None:
    pytest.importorskip("xarray")
    results = h3sim.sweep(
        PAGE, schemes=["rr", "fifo"], rate_mbps=[2, 5], send_buffer_kb=[0, 14], executor="serial"
    )
    dataset = results.to_xarray()
    assert dataset["byte_index_all_ms"].attrs == {"units": "ms", "long_name": "ByteIndex, all"}
    assert dataset["hol_stream_bytes"].attrs["units"] == "bytes"
    assert dataset["rate_mbps"].attrs == {"units": "Mbit/s"}
    assert dataset["send_buffer_kb"].attrs == {"units": "kB"}
    assert dataset["scheme"].attrs == {}


def test_every_time_and_size_among_figures_has_a_unit() -> None:
    figures = h3sim.simulate(PAGE).figures
    ended = {name for name in figures if name.endswith(("_ms", "_bytes"))}
    assert len(ended) > 20
    assert None not in {unit_of(name) for name in ended}


@pytest.mark.parametrize(("stored", "reported"), [(True, "kept in "), (False, "use a store")])
def test_an_interrupted_sweep_states_what_is_kept(
    tmp_path: Path, stored: bool, reported: str
) -> None:
    store = tmp_path / "study.db" if stored else None

    def interrupt(done: int, total: int) -> None:
        assert 0 < done < total
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt) as caught:
        h3sim.sweep(PAGE, seeds=range(2000), store=store, progress=interrupt, executor="serial")
    (note,) = caught.value.__notes__
    assert reported in note
    if store is not None:
        kept = h3sim.study.read_results(store)
        assert note.startswith(f"{len(kept):,} finished")
        assert str(store) in note


def test_values_that_differ_look_different_in_every_kind_of_table() -> None:
    close = (7.0001, 7.1)
    assert decimals_of(close, least=0) == 1
    assert decimals_of((7.0, 7.0), least=0) == 0
    rows = [("a", 0.00011), ("b", 0.00012)]
    assert "0.00011" in Table(("name", "value"), rows).to_html()
    assert "0.00012" in Table(("name", "value"), rows).to_html()
    table = Table(("name", "ratio"), [("a", 1.0), ("b", 1.0003)], title="t")
    made = Table[Any](("a", "b"), [], title="made")
    shown = body_of(
        Report(title="r", verdict=[], parts=[Section(title="s", tables=[table])], made=made)
    )
    assert "1.0000" in shown
    assert "1.0003" in shown
