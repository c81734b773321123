"""Fragments side by side: their rows, their deleted rows, and the versions that added them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from xml.etree import ElementTree as ET

from lance_format.pictures.drawing import (
    DELETED,
    INK,
    LIVE,
    MAX_MARKS,
    PEAK,
    SKIPPED,
    WIDTH,
    by_position,
    draw_chart,
    gap,
    groups,
    palette,
)

SKIPPED_COLOURS = {
    "read": LIVE,
    "skipped by statistics": SKIPPED,
    "skipped by an index": "#eedd88",
    "skipped by row numbers": "#ffffff",
}
"""The colours of `draw_marked_fragments` for a query."""
_AXIS = {"axis": {"format": "~s", "tickCount": 5, "tickMinStep": 1}, "type": "quantitative"}

_BARS: tuple[tuple[str, str, str, str, dict[str, object]], ...] = (
    ("peak", "largest of the fragments that share a bar", PEAK, "most", {"field": "rows"}),
    ("live", "live rows", LIVE, "rows", {"field": "deleted"}),
    ("deleted", "deleted rows", DELETED, "deleted", {"datum": 0}),
)
"""Name, kind, colour, the field of the upper end, and the lower end of the bars of a fragment."""


def draw_fragments(
    ids: Sequence[int], rows: Sequence[int], deleted: Sequence[int], versions: Sequence[int] | None
) -> ET.Element:
    """Draw fragments in the order of the table; neighbours share a bar if there are many.

    Parameters
    ----------
    ids, rows, deleted : sequence of int
        Id, physical rows and deleted rows per fragment.
    versions : sequence of int, optional
        The version that added each fragment.
    """
    values = []
    for begin, end in groups(len(ids)):
        number = end - begin
        physical, gone = sum(rows[begin:end]) / number, sum(deleted[begin:end]) / number
        name = f"fragment {ids[begin]}" if number == 1 else f"{number} fragments, {ids[begin]} to {ids[end - 1]}, mean"
        added = (0, 0) if versions is None else (min(versions[begin:end]), max(versions[begin:end]))
        values.append(
            {
                "id": ids[begin],
                "rows": physical,
                "deleted": gone,
                "most": max(rows[begin:end]),
                "title": f"{name}: {physical:,.10g} rows, {gone:,.10g} of them deleted",
                "first": added[0],
                "last": added[1],
                "added": f"version {added[0]}" if added[0] == added[1] else f"versions {added[0]} to {added[1]}",
            }
        )
    bars = _BARS if len(ids) > MAX_MARKS else _BARS[1:]
    colours = palette({kind: colour for _, kind, colour, _, _ in bars})
    layers = [
        {
            "name": name,
            "mark": {"type": "bar"},
            "encoding": {
                "y": {"field": top, "title": "rows", **_AXIS},
                "y2": bottom,
                "color": {"datum": kind, "scale": colours},
                "description": {"field": "title"},
            },
        }
        for name, kind, _, top, bottom in bars
    ]
    x = {**by_position("id", "fragment"), "scale": {"paddingInner": gap(len(values))}}
    views: list[Mapping[str, object]] = [
        {"width": WIDTH, "height": 170, "layer": layers, "encoding": {"x": x}},
    ]
    if versions:
        axis = {"format": "d", "tickMinStep": 1, "tickCount": 4}
        views.append(
            {
                "name": "added",
                "width": WIDTH,
                "height": 84,
                "mark": {"type": "rule", "strokeWidth": 3, "strokeCap": "square", "color": INK},
                "encoding": {
                    "x": {**x, "axis": None},
                    "y": {
                        "field": "first",
                        "type": "quantitative",
                        "title": "added by version",
                        "scale": {"zero": False},
                        "axis": axis,
                    },
                    "y2": {"field": "last"},
                    "description": {"field": "added"},
                },
            }
        )
    return draw_chart({"data": {"values": values}, "vconcat": views}, "Rows and deleted rows of fragments")


def draw_marked_fragments(ids: Sequence[int], marks: Sequence[str], colours: Mapping[str, str]) -> ET.Element:
    """Draw a strip of fragments, whose bars have the shares of the marks of their fragments.

    Parameters
    ----------
    ids : sequence of int
    marks : sequence of str
        One per fragment.
    colours : mapping of str to str
        The colours of marks, in the order of the legend.
    """
    used = {mark: colour for mark, colour in colours.items() if mark in marks}
    spans = groups(len(ids))
    values = []
    for begin, end in spans:
        for order, mark in enumerate(used):
            count = sum(found == mark for found in marks[begin:end])
            several = f"fragments {ids[begin]} to {ids[end - 1]}: {mark} {count}"
            title = several if end - begin > 1 else f"fragment {ids[begin]}: {mark}"
            if count:
                values.append({"id": ids[begin], "mark": mark, "count": count, "order": order, "title": title})
    spec = {
        "name": "mark",
        "data": {"values": values},
        "width": WIDTH,
        "height": 60,
        "mark": {"type": "bar", "stroke": SKIPPED, "strokeWidth": 0.3},
        "encoding": {
            "x": {**by_position("id", "fragment"), "scale": {"paddingInner": gap(len(spans))}},
            "y": {"field": "count", "type": "quantitative", "stack": "normalize", "axis": None},
            "order": {"field": "order"},
            "color": {"field": "mark", "type": "nominal", "scale": palette(used)},
            "description": {"field": "title"},
        },
    }
    return draw_chart(spec, "Fragments that the query reads and skips")
