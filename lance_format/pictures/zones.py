"""Zones of a column: the range of values in each, in the order of the table."""

from __future__ import annotations

from collections.abc import Sequence
from xml.etree import ElementTree as ET

from lance_format.pictures.canvas import FAINT, LIVE, WIDTH, Canvas, fitted, groups

_LEFT = 130.0
_TOP, _BOTTOM = 8.0, 128.0


def draw_zones(lower: Sequence[float], upper: Sequence[float], lowest: str, highest: str, label: str) -> ET.Element:
    """Draw zones as bars from the lowest to the highest value; neighbours share a bar if there are many.

    Parameters
    ----------
    lower, upper : sequence of float
        Share of all values below the bounds of each zone, and up to them, from 0 to 1.
    lowest, highest : str
        The least and the greatest bound.
    label : str
    """
    canvas = Canvas(_BOTTOM + 26, label)
    height = _BOTTOM - _TOP
    for y, text in ((_TOP, highest), (_BOTTOM, lowest)):
        canvas.line([(_LEFT, y), (WIDTH, y)])
        canvas.text(_LEFT - 8, y + 4, fitted(text, _LEFT - 10, 11), size=11, anchor="end", fill=FAINT)
    spans = groups(len(lower))
    width = (WIDTH - _LEFT) / max(len(spans), 1)
    gap = min(width * 0.2, 3)
    for position, (begin, end) in enumerate(spans):
        least, most = min(lower[begin:end]), max(upper[begin:end])
        title = f"zone {begin}" if end - begin == 1 else f"zones {begin} to {end - 1}"
        bar = max((most - least) * height, 1.5)
        canvas.rect(
            _LEFT + position * width + gap / 2,
            _BOTTOM - most * height,
            width - gap,
            bar,
            fill=LIVE,
            title=title,
            kind="zone",
        )
    canvas.text(_LEFT, _BOTTOM + 18, "first zone", size=11, fill=FAINT)
    canvas.text(WIDTH, _BOTTOM + 18, "last zone", size=11, anchor="end", fill=FAINT)
    return canvas.root
