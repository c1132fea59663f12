"""Keys of network and profile files, and parameters of page generators, as axes of a study."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from h3sim.catalog import load_profile
from h3sim.cli import main
from h3sim.page import generate, page_from_dict, page_to_dict, synthetic
from h3sim.study import Results, load_study, sweep
from h3sim.study.study_file import study_from_dict
from h3sim.values.errors import InputError

if TYPE_CHECKING:
    from pathlib import Path

ACK_EVERY = "profile.quic.ack_every"
QUEUE = "network.down.queue_bytes"


def swept(**axes: Any) -> Results:
    return sweep("creative", schemes="rr", executor="serial", **{"network": "cable", **axes})


def test_a_key_of_a_profile_changes_the_load_and_is_a_number_in_its_row() -> None:
    results = swept(**{ACK_EVERY: [2, 10]})
    assert results.axes == (ACK_EVERY,)
    assert results.column(ACK_EVERY) == [2, 10]
    profile = load_profile("default").with_(quic={"ack_every": 10})
    (by_hand,) = swept(transport_profile=profile)
    assert results[1]["page_load_ms"] == by_hand["page_load_ms"] != results[0]["page_load_ms"]
    # The name is still that of the profile, since the change has a column of its own.
    assert {row["transport_profile"] for row in results} == {"default"}


def test_a_key_of_a_network_is_that_of_its_file() -> None:
    (slow,) = swept(**{"network.rtt_ms": 200})
    (by_option,) = swept(rtt_ms=200)
    assert slow["page_load_ms"] == by_option["page_load_ms"]
    assert (slow["network"], slow["rtt_ms"], slow["network.rtt_ms"]) == ("cable", 200.0, 200)


def test_a_profile_of_a_network_keeps_its_controller_when_another_key_changes() -> None:
    names = {"network": "sander-10mbps-100ms"}
    assert swept(**names, **{ACK_EVERY: 4}).column("cc") == swept(**names).column("cc")


def test_values_of_a_key_are_compared_in_pairs() -> None:
    """The digests of network and profile follow from the compared keys, so nothing is refused."""
    results = sweep(
        ["creative", "davies-meenan", "http2rulez"],
        schemes=["rr", "fifo"],
        network="cable",
        executor="serial",
        **{ACK_EVERY: [2, 10], QUEUE: [65_536, 10**6]},  # type: ignore[arg-type]
    )
    rows = results.compare(2, over=ACK_EVERY, by=["scheme"], pool=[QUEUE])
    assert [(row.level, row.pairs) for row in rows] == [(10, 6), (10, 6)]
    with pytest.raises(InputError, match=QUEUE):
        results.compare(2, over=ACK_EVERY, by=["scheme"])


@pytest.mark.parametrize(
    ("axes", "message"),
    [
        ({"profile.quic.ack_evry": 2}, r"profile\.quic\.ack_evry: .*ack_every"),
        ({ACK_EVERY: "often"}, rf"{ACK_EVERY}: must be a whole number"),
        ({"network.rtt_ms.x": 2}, r"network\.rtt_ms\.x: "),
        ({"network": "marx-2019", ACK_EVERY: 2}, rf"{ACK_EVERY}: needs links"),
    ],
)
def test_a_wrong_key_is_named_before_anything_runs(axes: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        swept(**axes)


def test_the_same_values_have_the_same_cache_keys_and_others_do_not() -> None:
    def keys(**axes: Any) -> list[bytes]:
        study = load_study("creative", schemes="rr", network="cable", **axes)
        return [study.keys().key(index) for index in range(len(study))]

    both = keys(**{ACK_EVERY: [2, 10]})
    assert len({*both}) == 2
    assert keys(**{ACK_EVERY: 10}) == both[1:]


def test_study_files_and_the_command_line_have_the_same_axes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = 'format = "h3sim-study/1"\npages = ["creative"]\nsettings = {network = "cable"}\n'
    document = {"format": "h3sim-study/1", "pages": ["creative"], "settings": {"network": "cable"}}
    study = study_from_dict({**document, "axes": {ACK_EVERY: [2, 10]}})
    path, rows = tmp_path / "study.toml", tmp_path / "rows.csv"
    path.write_text(text)
    assert main(["sweep", str(path), "--vary", f"{ACK_EVERY}=2,10", "--csv", str(rows)]) == 0
    capsys.readouterr()
    study.run(executor="serial").to_csv(tmp_path / "same.csv")
    assert rows.read_text() == (tmp_path / "same.csv").read_text()
    assert main(["sweep", str(path), "--vary", "rtt=5"]) == 2
    assert "rtt_ms" in capsys.readouterr().err
    assert main(["sweep", str(path), "--vary", "rtt_ms=5", "--vary", "rtt_ms=9"]) == 2
    assert "rtt_ms" in capsys.readouterr().err


def test_parameters_of_a_generator_name_its_pages_and_are_columns() -> None:
    pages = generate(synthetic, n_resources=[10, 40], seed=range(2), script_share=0.5)
    assert [page.name for page in pages] == [
        "synthetic n_resources=10 seed=0",
        "synthetic n_resources=10 seed=1",
        "synthetic n_resources=40 seed=0",
        "synthetic n_resources=40 seed=1",
    ]
    results = sweep(pages, schemes=["rr", "fifo"], executor="serial")
    means = results.summary("page_load_ms", by=["page.n_resources"])
    assert means.column("page.n_resources") == [10, 40]
    assert set(results.column("page.script_share")) == {0.5}
    copies = [page_from_dict(page_to_dict(page)) for page in pages]
    assert [*sweep(copies, schemes=["rr", "fifo"], executor="serial")] == [*results]


def test_sampled_settings_are_one_dimension_and_combined_ones_another_each() -> None:
    """64 samples of four ranges are 64 coordinates, not a grid of 64^4 cells."""
    names = ("rtt_ms", "rate_mbps", "loss", "queue_bdp")
    rows = [
        {"page": "p", "scheme": scheme, "seed": 0, "transport": transport}
        | {name: float(sample * factor) for factor, name in enumerate(names, 1)}
        | {"page_load_ms": float(sample)}
        for sample in range(64)
        for transport in ("tcp", "quic")
        for scheme in ("rr", "fifo")
    ]
    results = Results.of(rows, axes=[*names, "transport", "scheme"])
    dataset = results.to_xarray("page_load_ms")
    assert dict(dataset.sizes) == {"sample": 64, "transport": 2, "scheme": 2}
    assert dataset["rate_mbps"].to_numpy().tolist() == [2.0 * sample for sample in range(64)]
    chosen = dataset["page_load_ms"].sel(sample=9, transport="tcp", scheme="fifo")
    assert (float(chosen), float(chosen["loss"])) == (9.0, 27.0)


def test_a_grid_that_lost_a_load_stays_a_grid() -> None:
    rows = [
        {"page": "p", "scheme": "rr", "seed": 0, "rtt_ms": rtt, "loss": loss, "page_load_ms": 1.0}
        for rtt in (10.0, 20.0, 30.0)
        for loss in (0.0, 0.02)
    ]
    dataset = Results.of(rows[1:], axes=["rtt_ms", "loss"]).to_xarray("page_load_ms")
    assert dict(dataset.sizes) == {"rtt_ms": 3, "loss": 2}
