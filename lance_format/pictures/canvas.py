"""Shapes and texts of an SVG picture, its colours, and its scales."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from xml.etree import ElementTree as ET

WIDTH = 960.0
INK, FAINT, GRID, PAPER = "#1a1a1a", "#595959", "#d4d4d4", "#ffffff"
LIVE, DELETED, SKIPPED = "#4477aa", "#cc3311", "#bbbbbb"
TINTS = ("#77aadd", "#ee8866", "#eedd88", "#44bb99", "#ffaabb", "#99ddff", "#bbcc33", "#dddddd")
"""Paul Tol's light scheme: distinct to colour-blind eyes, and light enough for dark labels."""
MAX_MARKS = 240
"""Maximum number of marks side by side; neighbours share a mark if there are more."""
_WIDTH_OF_CHARACTER = 0.62


class Canvas:
    """An SVG picture.

    Parameters
    ----------
    height : float
        The width is `WIDTH`.
    label : str
        Description for people who do not see it.
    """

    def __init__(self, height: float, label: str) -> None:
        self.root = ET.Element(
            "svg",
            {
                "xmlns": "http://www.w3.org/2000/svg",
                "viewBox": f"0 0 {_number(WIDTH)} {_number(height)}",
                "role": "img",
                "aria-label": label,
                "font-family": "system-ui, sans-serif",
            },
        )

    def rect(
        self,
        x: float,
        y: float,
        width: float,
        height: float,
        *,
        fill: str,
        title: str = "",
        stroke: str = "",
        kind: str = "",
    ) -> None:
        """Draw a rectangle.

        Parameters
        ----------
        x, y, width, height : float
            The corner at the top left, and the size.
        fill : str
        title : str
            Shown by browsers under the pointer.
        stroke : str
            Colour of the border, if it has one.
        kind : str
            Class of the element, for tests and styles.
        """
        element = self._add("rect", x=x, y=y, width=max(width, 0), height=max(height, 0), fill=fill)
        if stroke:
            element.set("stroke", stroke)
        if kind:
            element.set("class", kind)
        _describe(element, title)

    def circle(self, x: float, y: float, radius: float, *, fill: str, title: str = "", kind: str = "") -> None:
        """Draw a disc; see `rect`."""
        element = self._add("circle", cx=x, cy=y, r=radius, fill=fill)
        if kind:
            element.set("class", kind)
        _describe(element, title)

    def text(self, x: float, y: float, text: str, *, size: float = 12, anchor: str = "start", fill: str = INK) -> None:
        """Write a text.

        Parameters
        ----------
        x, y : float
            The start of the base line; its middle or end with another anchor.
        text : str
        size : float
        anchor : {"start", "middle", "end"}
        fill : str
        """
        element = self._add("text", x=x, y=y, fill=fill)
        element.set("font-size", _number(size))
        if anchor != "start":
            element.set("text-anchor", anchor)
        element.text = text

    def line(self, points: Sequence[tuple[float, float]], *, stroke: str = GRID, width: float = 1) -> None:
        """Draw a line; see `rect`."""
        element = ET.SubElement(self.root, "polyline", {"fill": "none", "stroke": stroke})
        element.set("stroke-width", _number(width))
        element.set("points", " ".join(f"{_number(x)},{_number(y)}" for x, y in points))

    def axis(self, left: float, top: float, bottom: float, most: float) -> None:
        """Draw horizontal lines with round numbers at the left.

        Parameters
        ----------
        left, top, bottom : float
            The start of the lines, and the heights of the maximum and of 0.
        most : float
            The maximum.
        """
        for tick in ticks(most):
            y = bottom - (bottom - top) * tick / most if most else bottom
            self.line([(left, y), (WIDTH, y)])
            self.text(left - 6, y + 4, short_count(tick), size=11, anchor="end", fill=FAINT)

    def _add(self, tag: str, **numbers: float | str) -> ET.Element:
        values = {name: value if isinstance(value, str) else _number(value) for name, value in numbers.items()}
        return ET.SubElement(self.root, tag, values)


def fitted(text: str, width: float, size: float = 12) -> str:
    """Return a text cut to a width.

    Parameters
    ----------
    text : str
    width : float
    size : float
        Size of the font.

    Returns
    -------
    str
        Empty if hardly anything fits.
    """
    room = int(width / (size * _WIDTH_OF_CHARACTER))
    if room >= len(text):
        return text
    return "" if room < 4 else text[: room - 1] + "…"


def ticks(most: float) -> list[float]:
    """Return a few round numbers from 0 to a maximum."""
    if most <= 0:
        return [0.0]
    step = 10.0 ** math.floor(math.log10(most))
    step = next(step * factor for factor in (0.2, 0.5, 1.0, 2.0, 5.0) if most / (step * factor) <= 5)
    step = max(step, 1.0)
    return [step * index for index in range(int(most / step) + 1)]


def short_count(value: float) -> str:
    """Return a number with a unit, such as `1.5 M`."""
    for unit, size in (("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if abs(value) >= size:
            return f"{value / size:.3g} {unit}"
    return f"{value:g}"


def bytes_text(size: float) -> str:
    """Return a number of bytes in a fitting unit."""
    for unit, power in (("TiB", 40), ("GiB", 30), ("MiB", 20), ("KiB", 10)):
        if size >= 1 << power:
            return f"{size / (1 << power):.1f} {unit}"
    return f"{size:.0f} B"


def groups(number: int) -> list[tuple[int, int]]:
    """Divide positions into at most `MAX_MARKS` ranges of neighbours of about the same size."""
    count = min(number, MAX_MARKS)
    borders = [number * index // count for index in range(count + 1)] if count else [0]
    return list(itertools.pairwise(borders))


def _describe(element: ET.Element, title: str) -> None:
    if title:
        ET.SubElement(element, "title").text = title


def _number(value: float) -> str:
    return f"{value:.2f}".rstrip("0").rstrip(".")
