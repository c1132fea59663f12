"""Figures show names in any script that an installed font has, and say so where none has."""

import importlib
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from matplotlib import rc_context
from matplotlib.font_manager import fontManager

import h3sim
from h3sim.page import Kind, Page, Resource
from h3sim.reporting import style
from h3sim.reporting.labels import plain

NAME = "\u4eac.jpg"
LOAD = h3sim.simulate(
    Page(name=NAME, resources=(Resource(id=NAME, kind=Kind.IMAGE, size_bytes=9),))
)


# Untyped, and there because matplotlib needs it.
FONT_BUILDER: Any = importlib.import_module("fontTools.fontBuilder").FontBuilder
PEN: Any = importlib.import_module("fontTools.pens.ttGlyphPen").TTGlyphPen


def add_font(path: Path, family: str, characters: str) -> None:
    """Install a font for this process: a square for each of *characters*."""
    pen = PEN(None)
    pen.moveTo((0, 0))
    for point in ((0, 700), (700, 700), (700, 0)):
        pen.lineTo(point)
    pen.closePath()
    names = [".notdef", *(f"uni{ord(c):04X}" for c in characters)]
    font = FONT_BUILDER(1000, isTTF=True)
    font.setupGlyphOrder(names)
    font.setupCharacterMap(dict(zip(map(ord, characters), names[1:], strict=True)))
    glyph = pen.glyph()
    font.setupGlyf(dict.fromkeys(names, glyph))
    font.setupHorizontalMetrics(dict.fromkeys(names, (800, 0)))
    font.setupHorizontalHeader(ascent=800, descent=-200)
    font.setupNameTable({"familyName": family, "styleName": "Regular"})
    font.setupOS2()
    font.setupPost()
    font.save(path)
    fontManager.addfont(path)


@pytest.fixture(autouse=True)
def _fonts(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    own = [font for font in fontManager.ttflist if font.name.startswith("DejaVu")]
    monkeypatch.setattr(fontManager, "ttflist", own)
    monkeypatch.setattr(style, "_warned", set())
    style._available_families.cache_clear()
    yield
    style._available_families.cache_clear()


def test_what_no_font_has_is_a_square_and_reported_once() -> None:
    with pytest.warns(UserWarning, match="no font that is installed has \u4eac: .*CJK") as reported:
        assert [plain(NAME), plain("\u90fd")] == ["\u25a1.jpg", "\u25a1"]
    assert len(reported) == 1


def test_control_characters_are_no_matter_of_fonts() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert plain("a\x1b[2J\n") == "a\u25a1[2J\u25a1"


@pytest.mark.parametrize("family", ["Noto Sans CJK JP", "Mine"])
def test_a_font_that_is_installed_or_chosen_shows_what_dejavu_has_not(
    family: str, tmp_path: Path
) -> None:
    add_font(tmp_path / "font.ttf", family, "\u4eac")
    chosen: Any = {"font.family": [family]} if family == "Mine" else {}
    with warnings.catch_warnings(), rc_context(chosen):
        warnings.simplefilter("error")
        assert style.families() == ["DejaVu Sans", family]
        assert plain(NAME) == NAME
        with style.in_style():
            assert style.families() == ["DejaVu Sans", family]
        figure = LOAD.plot.figure()
        LOAD.plot.save(tmp_path / "figure.png")
    texts = [text.get_text() for ax in figure.axes for text in ax.get_yticklabels()]
    assert any(NAME in text for text in texts)


def test_no_font_that_is_not_installed_is_requested() -> None:
    assert style.families() == ["DejaVu Sans"]
