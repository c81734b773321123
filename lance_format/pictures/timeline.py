"""Versions of a table in their order, by operation, with the rows after each."""

from __future__ import annotations

from collections.abc import Sequence
from xml.etree import ElementTree as ET

from lance_format.lazy_dataclasses import dataclass
from lance_format.pictures.canvas import FAINT, INK, LIVE, WIDTH, Canvas, fitted

_LEFT = 130.0
_LANE = 26.0
_MAX_TIMES = 6
_ROWS_HEIGHT = 110.0


@dataclass(frozen=True, slots=True)
class Commit:
    """A version: its number, when it was committed as text, its operation, and the rows after it."""

    version: int
    time: str
    operation: str
    rows: int


def draw_timeline(commits: Sequence[Commit]) -> ET.Element:
    """Draw versions, earliest first, at equal distances."""
    lanes = list(dict.fromkeys(commit.operation for commit in commits))
    bottom = 10 + _LANE * len(lanes)
    rows_top, rows_bottom = bottom + 30, bottom + 30 + _ROWS_HEIGHT
    canvas = Canvas(rows_bottom + 40, "Versions by operation")
    step = (WIDTH - _LEFT - 20) / max(len(commits) - 1, 1)
    xs = [_LEFT + 10 + index * step for index in range(len(commits))]
    for lane, operation in enumerate(lanes):
        y = 10 + _LANE * (lane + 0.5)
        canvas.line([(_LEFT, y), (WIDTH, y)])
        canvas.text(_LEFT - 10, y + 4, fitted(operation, _LEFT - 14), anchor="end")
    radius = max(min(step / 2, 6), 2)
    for x, commit in zip(xs, commits, strict=True):
        y = 10 + _LANE * (lanes.index(commit.operation) + 0.5)
        title = f"version {commit.version}, {commit.time}: {commit.operation}, {commit.rows:,} rows"
        canvas.circle(x, y, radius, fill=LIVE, title=title, kind="commit")
    most = max((commit.rows for commit in commits), default=0)
    canvas.text(_LEFT, rows_top - 10, "rows", fill=FAINT)
    canvas.axis(_LEFT, rows_top, rows_bottom, most)
    heights = [rows_bottom - (_ROWS_HEIGHT * commit.rows / most if most else 0) for commit in commits]
    points: list[tuple[float, float]] = []
    for x, y in zip(xs, heights, strict=True):
        points += [(x, points[-1][1]), (x, y)] if points else [(x, y)]
    if points:
        canvas.line([*points, (WIDTH, points[-1][1])], stroke=INK, width=1.5)
    _label_times(canvas, xs, commits, rows_bottom)
    return canvas.root


def _label_times(canvas: Canvas, xs: Sequence[float], commits: Sequence[Commit], bottom: float) -> None:
    number = min(len(commits), _MAX_TIMES)
    chosen = sorted({round(index * (len(commits) - 1) / max(number - 1, 1)) for index in range(number)})
    for index in chosen:
        anchor = "start" if index == 0 else "end" if index == len(commits) - 1 else "middle"
        canvas.text(xs[index], bottom + 18, f"version {commits[index].version}", size=11, anchor=anchor, fill=FAINT)
        canvas.text(xs[index], bottom + 32, commits[index].time[:16], size=11, anchor=anchor, fill=FAINT)
