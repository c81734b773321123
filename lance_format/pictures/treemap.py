"""Sizes as areas: groups, and parts within groups."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any
from xml.etree import ElementTree as ET

from lance_format.lazy_dataclasses import dataclass
from lance_format.pictures.drawing import FAINT, INK, PAPER, TINTS, WIDTH, bytes_text, draw_vega

_HEIGHT = 360
_HEADING = 20
_MAX_GROUPS = 80
_OTHERS = "others"
_OTHER_KINDS = "other encodings"


@dataclass(frozen=True, slots=True)
class Part:
    """An area: its group, its name within the group, the kind that has its colour, and its size in bytes."""

    group: str
    name: str
    kind: str
    size_bytes: int


def draw_treemap(parts: Sequence[Part]) -> ET.Element:
    """Draw a treemap, with a legend of the kinds."""
    parts = _limited([part for part in parts if part.size_bytes > 0])
    sizes: Counter[str] = Counter()
    kinds: Counter[str] = Counter()
    for part in parts:
        sizes[part.group] += part.size_bytes
        kinds[part.kind] += part.size_bytes
    shown = [name for name, _ in kinds.most_common(len(TINTS) - 1)]
    names = [*shown, _OTHER_KINDS] if len(kinds) > len(shown) else shown
    keys = {name: f"group {index}" for index, name in enumerate(sizes)}
    nodes: list[dict[str, Any]] = [{"key": "table"}]
    for group, size in sizes.items():
        text = bytes_text(size)
        nodes.append({"key": keys[group], "parent": "table", "name": f"{group} {text}", "title": f"{group}: {text}"})
    for index, part in enumerate(parts):
        text = f"{part.group}: {part.name}, {bytes_text(part.size_bytes)}"
        kind = part.kind if part.kind in shown else _OTHER_KINDS
        node = {"key": f"part {index}", "parent": keys[part.group], "size": part.size_bytes, "name": part.name}
        nodes.append({**node, "kind": kind, "title": text})
    return draw_vega(_specify(nodes, names) if parts else {"width": WIDTH, "height": 1}, "Bytes by column and encoding")


def _specify(nodes: Sequence[dict[str, Any]], names: Sequence[str]) -> dict[str, Any]:
    area = {"x": {"field": "x0"}, "y": {"field": "y0"}, "x2": {"field": "x1"}, "y2": {"field": "y1"}}
    tree = [
        {"type": "stratify", "key": "key", "parentKey": "parent"},
        {
            "type": "treemap",
            "field": "size",
            "sort": {"field": "value", "order": "descending"},
            "method": "squarify",
            "paddingOuter": 0,
            "size": [WIDTH, _HEIGHT],
        },
    ]
    return {
        "width": WIDTH,
        "height": _HEIGHT,
        "padding": 5,
        "data": [
            {"name": "nodes", "values": list(nodes), "transform": tree},
            {"name": "parts", "source": "nodes", "transform": [{"type": "filter", "expr": "datum.depth === 2"}]},
            {"name": "groups", "source": "nodes", "transform": [{"type": "filter", "expr": "datum.depth === 1"}]},
        ],
        "scales": [{"name": "tint", "type": "ordinal", "domain": list(names), "range": list(TINTS)}],
        "legends": [{"fill": "tint", "orient": "bottom", "direction": "horizontal", "columns": 4, "labelColor": FAINT}],
        "marks": [
            {
                "type": "rect",
                "name": "part_marks",
                "from": {"data": "parts"},
                "encode": {
                    "enter": {
                        **area,
                        "fill": {"scale": "tint", "field": "kind"},
                        "stroke": {"value": PAPER},
                        "description": {"field": "title"},
                    }
                },
            },
            _texts("parts", 26 + _HEADING, 11, 2 * _HEADING + 14),
            {
                "type": "rect",
                "name": "group_marks",
                "from": {"data": "groups"},
                "encode": {"enter": {**area, "stroke": {"value": INK}, "description": {"field": "title"}}},
            },
            _texts("groups", 16, 13, _HEADING),
        ],
    }


def _texts(data: str, below: float, size: float, least_height: float) -> dict[str, Any]:
    """Return the names of areas, cut to their widths, where the areas are high enough."""
    return {
        "type": "text",
        "from": {"data": data},
        "aria": False,
        "encode": {
            "enter": {
                "x": {"field": "x0", "offset": 6},
                "y": {"field": "y0", "offset": below},
                "fill": {"value": INK},
                "fontSize": {"value": size},
                "text": {
                    "signal": f"datum.y1 - datum.y0 > {least_height} && datum.x1 - datum.x0 > 40 ? datum.name : ''"
                },
                "limit": {"signal": "max(datum.x1 - datum.x0 - 12, 1)"},
            }
        },
    }


def _limited(parts: Sequence[Part]) -> list[Part]:
    """Gather the smallest groups into one if there are many."""
    sizes: Counter[str] = Counter()
    for part in parts:
        sizes[part.group] += part.size_bytes
    kept = {name for name, _ in sizes.most_common(_MAX_GROUPS)}
    left = sum(size for name, size in sizes.items() if name not in kept)
    found = [part for part in parts if part.group in kept]
    number = len(sizes) - len(kept)
    return [*found, Part(f"{number} more columns", _OTHERS, _OTHERS, left)] if left else found
