"""Sizes as areas: groups, and parts within groups."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TypeVar
from xml.etree import ElementTree as ET

from lance_format.lazy_dataclasses import dataclass
from lance_format.pictures.canvas import FAINT, INK, PAPER, TINTS, WIDTH, Canvas, bytes_text, fitted

_HEIGHT = 360.0
_LEGEND_HEIGHT = 30.0
_MAX_GROUPS = 80
_HEADING = 18.0
_OTHERS = "others"

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Part:
    """An area: its group, its name within the group, the kind that has its colour, and its size in bytes."""

    group: str
    name: str
    kind: str
    size_bytes: int


@dataclass(frozen=True, slots=True)
class _Box:
    x: float
    y: float
    width: float
    height: float


def draw_treemap(parts: Sequence[Part]) -> ET.Element:
    """Draw a treemap, with a legend of the kinds."""
    canvas = Canvas(_HEIGHT + _LEGEND_HEIGHT, "Bytes by column and encoding")
    parts = _limited([part for part in parts if part.size_bytes > 0])
    sizes: Counter[str] = Counter()
    kinds: Counter[str] = Counter()
    for part in parts:
        sizes[part.group] += part.size_bytes
        kinds[part.kind] += part.size_bytes
    names = [name for name, _ in kinds.most_common()]
    colours = {name: TINTS[min(index, len(TINTS) - 1)] for index, name in enumerate(names)}
    for (group, size), box in _layout(sizes.most_common(), _Box(0, 0, WIDTH, _HEIGHT)):
        inside = sorted((part for part in parts if part.group == group), key=lambda part: -part.size_bytes)
        for (part, _), area in _layout([(part, part.size_bytes) for part in inside], box):
            title = f"{group}: {part.name}, {bytes_text(part.size_bytes)}"
            canvas.rect(
                area.x, area.y, area.width, area.height, fill=colours[part.kind], title=title, stroke=PAPER, kind="part"
            )
            if area.height > 2 * _HEADING + 14:
                canvas.text(area.x + 6, area.y + 48, fitted(part.name, area.width - 12, 11), size=11)
        canvas.rect(box.x, box.y, box.width, box.height, fill="none", stroke=INK)
        if box.height > _HEADING:
            canvas.text(box.x + 6, box.y + 16, fitted(group, box.width - 12, 13), size=13)
        if box.height > 2 * _HEADING:
            canvas.text(box.x + 6, box.y + 32, fitted(bytes_text(size), box.width - 12, 11), size=11)
    _draw_legend(canvas, names, colours)
    return canvas.root


def _draw_legend(canvas: Canvas, names: Sequence[str], colours: dict[str, str]) -> None:
    shown = list(names[: len(TINTS) - 1]) + (["other encodings"] if len(names) >= len(TINTS) else [])
    x = 0.0
    for index, name in enumerate(shown):
        canvas.rect(x, _HEIGHT + 10, 14, 14, fill=colours.get(name, TINTS[index]), stroke=INK)
        canvas.text(x + 20, _HEIGHT + 22, name, fill=FAINT)
        x += 40 + 7 * len(name)


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


def _layout(items: Sequence[tuple[T, int]], box: _Box) -> list[tuple[tuple[T, int], _Box]]:
    """Divide a box into areas of some sizes, which descend."""
    import squarify  # of the extra `cli`; only the treemap needs it

    if not items or box.width <= 0 or box.height <= 0:
        return []
    sizes = squarify.normalize_sizes([size for _, size in items], box.width, box.height)
    found = squarify.squarify(sizes, box.x, box.y, box.width, box.height)
    return [(item, _Box(each["x"], each["y"], each["dx"], each["dy"])) for item, each in zip(items, found, strict=True)]
