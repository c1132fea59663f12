"""The lesson of docs/lesson.md can be held as written: its slides, its plan, its handout."""

from __future__ import annotations

import re
from urllib.parse import parse_qs, urlsplit

import pytest

import h3sim
from tools import lesson

SLIDES = lesson.SLIDES.read_text("utf-8")
TITLES = re.findall(r"^## (.*)$", SLIDES, re.M)
PLAN, _, HANDOUT = lesson.LESSON.read_text("utf-8").partition("\n## Handout\n")


def test_each_slide_shows_its_title_and_what_its_code_draws_but_no_code() -> None:
    pages = list(lesson.slides(SLIDES))
    assert len(pages) == len(TITLES)
    n_figures = len(re.findall(r"^figure = ", SLIDES, re.M))
    assert sum(page.count("<img alt=") for page in pages) == n_figures
    assert not any("h3sim.simulate" in page or 'class="language-python"' in page for page in pages)


@pytest.mark.parametrize(
    ("stands", "untrue", "refused"),
    [("== [30, 50, 20]", "== [30, 50, 30]", AssertionError), (" 3711 ms", " 3712 ms", ValueError)],
    ids=["a wrong statement", "a wrong output"],
)
def test_a_slide_that_is_untrue_is_not_made(
    stands: str, untrue: str, refused: type[Exception]
) -> None:
    assert stands in SLIDES
    with pytest.raises(refused):
        list(lesson.slides(SLIDES.replace(stands, untrue)))


def test_the_plan_has_each_slide_once_and_ends_within_90_minutes() -> None:
    rows = re.findall(r"^\| (\d+) \|(?: (\d+),)?", PLAN, re.M)
    minutes = [int(minute) for minute, _ in rows]
    assert minutes == sorted(minutes)
    assert minutes[-1] < 90
    assert [int(slide) for _, slide in rows if slide] == list(range(1, len(TITLES) + 1))


def test_the_prepared_states_have_pages_and_schemes_that_there_are() -> None:
    states = re.findall(rf"\]\({re.escape(lesson.PLAYGROUND)}(#[^)]*)\)", PLAN)
    assert len(states) == 5
    for step, state in enumerate(states, start=1):
        fields = parse_qs(urlsplit(state).fragment)
        assert fields["lesson"] == [str(step)]
        page = h3sim.load_page(fields["page"][0])
        for scheme in fields["schemes"][0].split():
            assert h3sim.load_scheme(scheme).name == scheme
        assert page.resources


def test_the_handout_leaves_what_is_asked_empty() -> None:
    printed = lesson.handout(f"\n## Handout\n{HANDOUT}")
    assert printed.count("<h2>") == 2
    assert printed.count("<td></td>") == 3 * 5 + 4 * 2
