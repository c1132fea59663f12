"""Options that were renamed: what users wrote before is read, or refused with the new name."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import pytest

import h3sim
from h3sim.cli.main import main
from h3sim.load.load_config import RENAMED_FLAGS, RENAMED_OPTIONS
from h3sim.study.study_file import StudyError, study_from_dict
from h3sim.values.errors import InputError, UnknownOptionError

_STUDY = {"format": "h3sim-study/1", "pages": "davies-meenan"}


def test_only_what_is_an_option_takes_the_place_of_an_old_one() -> None:
    known = {field.name for field in fields(h3sim.LoadConfig)}
    assert set(RENAMED_OPTIONS.values()) - known == {"send_buffers_kb", "record_packets"}
    assert not set(RENAMED_OPTIONS) & known


def test_an_old_option_is_refused_with_its_new_name() -> None:
    with pytest.raises(UnknownOptionError, match=r"^buffer_kb: was renamed to send_buffer_kb"):
        h3sim.simulate("davies-meenan", buffer_kb=14)


@pytest.mark.parametrize("table", ["settings", "axes"])
def test_a_study_file_with_an_old_key_is_refused_with_the_new_one(table: str) -> None:
    value: Any = [0.02] if table == "axes" else 0.02
    document = {**_STUDY, table: {"burst": value}}
    with pytest.raises(StudyError, match=rf"{table}\.burst: was renamed to mean_loss_burst"):
        study_from_dict(document)


@pytest.mark.parametrize("flag", sorted(RENAMED_FLAGS))
def test_an_old_flag_is_refused_with_its_new_name(
    flag: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as caught:
        main(["run", "davies-meenan", f"{flag}=1"])
    assert caught.value.code == 2
    assert f"{flag} was renamed to {RENAMED_FLAGS[flag]}" in capsys.readouterr().err


def test_a_load_that_was_saved_with_old_names_runs_again() -> None:
    load = h3sim.simulate(
        "davies-meenan",
        scheme="fifo",
        network="cable",
        send_buffer_kb=14,
        send_buffer_refill="when-empty",
        connections="per-host",
        header_compression="qpack",
    )
    document = load.to_dict()
    old_of = {new: old for old, new in RENAMED_OPTIONS.items()}
    old = {old_of.get(key, key): value for key, value in document["configuration"].items()}
    old |= {"send_buffer_refill": "when-empty", "connections": "per-host"}
    again = h3sim.study.load_from_dict({**document, "configuration": old}).run()
    assert again.to_dict() == document


@pytest.mark.parametrize("by", [3, (1, 3), [1, 3]])
def test_reordering_can_be_written_as_a_table(by: Any) -> None:
    text = "4:3" if by == 3 else "4:1-3"
    config = h3sim.LoadConfig(reorder={"every": 4, "by": by})
    assert config == h3sim.LoadConfig(reorder=text)
    study = study_from_dict(
        {**_STUDY, "settings": {"reorder": {"every": 4, "by": by if by == 3 else list(by)}}}
    )
    rows = list(study.run(executor="serial"))
    assert {row["reorder"] for row in rows} == {text}


def test_random_reordering_can_be_written_as_a_table() -> None:
    config = h3sim.LoadConfig(reorder={"share": 0.007, "by": (1, 3)})
    assert config == h3sim.LoadConfig(reorder="0.7%:1-3")


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"by": 1}, r"reorder\.every: or share is needed"),
        ({"every": 4, "share": 0.5, "by": 1}, r"reorder\.every: or share is needed, and not both"),
        ({"share": 0, "by": 1}, r"reorder\.share: must be 1e-09 to 1"),
        ({"every": 4}, r"reorder\.by: is missing"),
        ({"every": 4, "by": (3, 1)}, "max_overtaken: must be at least min_overtaken"),
        ({"every": 0, "by": 1, "of": 2}, r"reorder\.every: must be at least 1"),
        ({"every": 4, "by": (1, 2, 3)}, "must be 'none', or like '4:1-3'"),
    ],
)
def test_a_wrong_table_of_reordering_is_refused(given: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        h3sim.LoadConfig(reorder=given)
