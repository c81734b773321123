"""Versions of a table in their order, by operation, with the rows after each."""

from __future__ import annotations

from collections.abc import Sequence
from xml.etree import ElementTree as ET

from lance_format.lazy_dataclasses import dataclass
from lance_format.pictures.drawing import FAINT, INK, LIVE, WIDTH, by_position, draw_chart

_MAX_TIMES = 6


@dataclass(frozen=True, slots=True)
class Commit:
    """A version: its number, when it was committed as text, its operation, and the rows after it."""

    version: int
    time: str
    operation: str
    rows: int


def draw_timeline(commits: Sequence[Commit]) -> ET.Element:
    """Draw versions, earliest first, at equal distances."""
    values = [
        {
            "version": commit.version,
            "operation": commit.operation,
            "rows": commit.rows,
            "title": f"version {commit.version}, {commit.time}: {commit.operation}, {commit.rows:,} rows",
        }
        for commit in commits
    ]
    x = {**by_position("version", ""), "scale": {"type": "point", "padding": 0.5}}
    lanes = {
        "field": "operation",
        "type": "nominal",
        "sort": None,
        "title": None,
        "axis": {"grid": True, "labelLimit": 160},
    }
    dots = {
        "name": "commit",
        "width": WIDTH,
        "height": {"step": 26},
        "mark": {"type": "circle", "color": LIVE, "opacity": 1, "size": 110 if len(commits) < 120 else 16},
        "encoding": {"x": {**x, "axis": None}, "y": lanes, "description": {"field": "title"}},
    }
    rows = {
        "field": "rows",
        "type": "quantitative",
        "title": "rows",
        "axis": {"format": "~s", "tickCount": 4, "tickMinStep": 1},
    }
    count = min(len(commits), _MAX_TIMES)
    chosen = sorted({round(index * (len(commits) - 1) / max(count - 1, 1)) for index in range(count)})
    ends = {0: "left", len(commits) - 1: "right"}
    times = [
        {
            "data": {"values": [{"version": commits[index].version, "time": commits[index].time[:16]}]},
            "mark": {"type": "text", "align": ends.get(index, "center"), "color": FAINT, "y": 142},
            "encoding": {"x": x, "text": {"field": "time"}},
        }
        for index in chosen
    ]
    line = {
        "mark": {"type": "line", "interpolate": "step-after", "color": INK, "strokeWidth": 1.5, "aria": False},
        "encoding": {"x": x, "y": rows},
    }
    views = [dots, {"width": WIDTH, "height": 110, "layer": [line, *times]}]
    return draw_chart({"data": {"values": values}, "vconcat": views}, "Versions by operation")
