"""Figures as the text of a report: SVG, with equal bytes for equal figures."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

from h3sim.plots.files import alt_text, render
from h3sim.reporting.document import Picture

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from h3sim.reporting.document import ReportTable

__all__ = ["picture"]


def picture(drawn: Axes | Figure, *, title: str, data: ReportTable) -> Picture:
    """Return what was *drawn*, whose words stand with it, as a picture of a report."""
    figure = drawn.get_figure(root=True)
    assert figure is not None  # noqa: S101 - axes of h3sim.plots stand in a figure
    file = io.BytesIO()
    render(figure, file, "svg")
    return Picture(title=title, alt=alt_text(figure), svg=file.getvalue().decode(), data=data)
