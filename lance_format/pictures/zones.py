"""Zones of a column: the range of values in each, in the order of the table."""

from __future__ import annotations

from collections.abc import Sequence
from xml.etree import ElementTree as ET

from lance_format.pictures.drawing import FAINT, LIVE, WIDTH, by_position, draw_chart, gap, groups

_LEFT = 120
_LEAST_SHARE = 0.01


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
    values = []
    for begin, end in groups(len(lower)):
        least, most = min(lower[begin:end]), max(upper[begin:end])
        title = f"zone {begin}" if end - begin == 1 else f"zones {begin} to {end - 1}"
        values.append({"zone": begin, "least": least, "most": max(most, least + _LEAST_SHARE), "title": title})
    x = {**by_position("zone", "zone"), "scale": {"paddingInner": gap(len(values))}}
    share = {"type": "quantitative", "title": None, "scale": {"domain": [0, 1 + _LEAST_SHARE], "nice": False}}
    bounds = [{"share": 0, "bound": lowest}, {"share": 1, "bound": highest}]
    texts = {"type": "text", "align": "right", "baseline": "middle", "limit": _LEFT, "color": FAINT, "x": -8}
    spec = {
        "width": WIDTH,
        "height": 120,
        "padding": {"left": _LEFT + 14, "right": 5, "top": 8, "bottom": 44},
        "layer": [
            {
                "name": "zone",
                "data": {"values": values},
                "mark": {"type": "bar", "color": LIVE},
                "encoding": {
                    "x": x,
                    "y": {"field": "least", "axis": {"values": [0, 1], "labels": False}, **share},
                    "y2": {"field": "most"},
                    "description": {"field": "title"},
                },
            },
            {
                "data": {"values": bounds},
                "mark": texts,
                "encoding": {"y": {"field": "share", **share}, "text": {"field": "bound"}},
            },
        ],
        "autosize": "none",
    }
    return draw_chart(spec, label)
