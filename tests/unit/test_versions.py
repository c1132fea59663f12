"""What `h3sim.show_versions()` prints."""

from __future__ import annotations

from typing import TYPE_CHECKING

import h3sim

if TYPE_CHECKING:
    import pytest


def test_versions_of_h3sim_and_of_what_it_uses_are_shown(
    capsys: pytest.CaptureFixture[str],
) -> None:
    h3sim.show_versions()
    shown = dict(line.split(maxsplit=1) for line in capsys.readouterr().out.splitlines())
    assert shown["h3sim"].startswith(f"{h3sim.__version__} (commit ")
    assert {"Python", "system", "simpy", "matplotlib", "pandas"} <= set(shown)
    # What only the developers use says nothing of a mistake.
    assert "ruff" not in shown
