"""Which faces of a font family a page needs: by weight and slant, as CSS Fonts 4 § 5.2 chooses."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from h3sim.capture.markup.css import Face

__all__ = ["BOLD", "BOLD_ELEMENTS", "NORMAL", "SLANTED_ELEMENTS", "chosen_faces", "nearest_weights"]

BOLD_ELEMENTS = "h1, h2, h3, h4, h5, h6, b, strong, th"
SLANTED_ELEMENTS = "i, em, cite, var, dfn, address"
"""What browsers set in bold and in italics when nothing else is said."""
NORMAL, BOLD = 400, 700
"""Weights of faces by name (CSS Fonts 4 § 2.2)."""
_MEDIUM = 500


def chosen_faces(faces: Sequence[Face], weights: Iterable[int], *, is_slanted: bool) -> list[Face]:
    """Return the faces of one family that text of these weights, upright or not, is set in.

    Slanted text is taken to have the normal weight. All faces of one weight and slant are returned:
    they may be of different characters.
    """
    wanted = [(weight, False) for weight in weights] + [(NORMAL, True)] * is_slanted
    kept: dict[Face, None] = {}
    for weight, slanted in wanted:
        alike = [face for face in faces if face.is_slanted is slanted] or list(faces)
        best = nearest_weights([face.weights for face in alike], weight)
        kept |= dict.fromkeys(face for face in alike if face.weights == best)
    return [face for face in faces if face in kept]


def nearest_weights(given: Sequence[tuple[float, float]], wanted: float) -> tuple[float, float]:
    """Return the range of weights that is taken for *wanted*.

    >>> nearest_weights([(300, 300), (500, 500), (700, 700)], 400)
    (500, 500)
    >>> nearest_weights([(300, 300), (500, 500), (700, 700)], 600)
    (700, 700)
    """

    def rank(weights: tuple[float, float]) -> tuple[float, float]:
        low, high = weights
        if low <= wanted <= high:
            return (0, 0)
        is_above = low > wanted
        distance = low - wanted if is_above else wanted - high
        if NORMAL <= wanted <= _MEDIUM:
            return (1 if is_above and low <= _MEDIUM else 2 if not is_above else 3, distance)
        return (1 if is_above == (wanted > _MEDIUM) else 2, distance)

    return min(given, key=rank)
