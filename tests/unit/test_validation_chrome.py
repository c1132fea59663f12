"""The made-up sites that are held against a real Chromium, and what is said of their edits."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from validation.chrome import EditRow
from validation.chrome_sites import MadeSite, made_sites

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(scope="module")
def sites() -> tuple[MadeSite, ...]:
    """The sites; on use, for their fonts take seconds."""
    return tuple(made_sites())


def test_every_edit_changes_the_markup_of_its_site(
    sites: tuple[MadeSite, ...], tmp_path: Path
) -> None:
    for site in sites:
        _check_edits(site, tmp_path / site.name)


def _check_edits(site: MadeSite, folder: Path) -> None:
    site.write(folder / "plain")
    plain = (folder / "plain" / "index.html").read_text("utf-8")
    for number, edit in enumerate(site.edits):
        edited = folder / str(number)
        site.write(edited, edit)
        is_other = (edited / "index.html").read_text("utf-8") != plain
        # Early Hints leave the markup as it is, and need a server that thinks.
        assert is_other != bool(edit.early_hints), edit.name
        assert site.think_ms or not edit.early_hints
    named = {path.name for path in (folder / "plain").iterdir()} - {"index.html"}
    text = plain + "".join(content.decode("latin-1") for content in site.files.values())
    assert all(name in text for name in named), site.name


def test_the_sites_are_the_same_in_each_run(sites: tuple[MadeSite, ...]) -> None:
    again = made_sites()
    assert [(each.html, each.files) for each in again] == [(s.html, s.files) for s in sites]


@pytest.mark.parametrize(
    ("measured_ms", "simulated_ms", "verdict"),
    [
        (-100, -40, "right"),
        (100, 35, "right"),
        (20, -29, "right"),
        (-100, 0, "missed"),
        (10, 90, "missed"),
        (-100, 90, "opposite"),
    ],
)
def test_an_edit_is_right_where_both_paints_move_the_same_way(
    measured_ms: float, simulated_ms: float, verdict: str
) -> None:
    assert EditRow("s", "e", 900, measured_ms, simulated_ms).verdict == verdict


def test_a_sign_is_right_or_wrong_only_where_the_paint_moves_in_chromium() -> None:
    moved = [EditRow("s", "e", 1000, ms, -5) for ms in (-21, 21, -20)]
    assert [edit.sign for edit in moved] == [True, False, None]
    fcp = [EditRow("s", "e", 1000, 0, 0, 500, ms, 1) for ms in (11, -11, 10)]
    assert [edit.fcp_sign for edit in fcp] == [True, False, None]


def test_no_two_edits_of_a_site_are_recorded_in_one_file(sites: tuple[MadeSite, ...]) -> None:
    for site in sites:
        files = {edit.name.replace("…", "") for edit in site.edits}
        assert len(files) == len(site.edits), site.name


def test_most_sites_have_five_edits(sites: tuple[MadeSite, ...]) -> None:
    assert sum(len(site.edits) >= 5 for site in sites) >= 14
