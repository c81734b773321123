"""Fragments side by side: their rows, their deleted rows, and the versions that added them."""

from __future__ import annotations

from collections.abc import Sequence
from xml.etree import ElementTree as ET

from lance_format.pictures.canvas import DELETED, FAINT, INK, LIVE, SKIPPED, WIDTH, Canvas, groups, short_count

_LEFT = 56.0
_TOP, _BOTTOM = 30.0, 200.0
_VERSIONS_TOP, _VERSIONS_BOTTOM = 236.0, 320.0


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
    has_versions = versions is not None and len(versions) > 0
    canvas = Canvas(_VERSIONS_BOTTOM + 24 if has_versions else _BOTTOM + 24, "Rows and deleted rows of fragments")
    most = max(rows, default=0)
    spans = groups(len(ids))
    width = (WIDTH - _LEFT) / max(len(spans), 1)
    gap = min(width * 0.15, 3) if len(ids) == len(spans) else 0
    _draw_legend(canvas, is_grouped=len(ids) > len(spans))
    canvas.axis(_LEFT, _TOP, _BOTTOM, most)
    scale = (_BOTTOM - _TOP) / most if most else 0
    for position, (begin, end) in enumerate(spans):
        x = _LEFT + position * width + gap / 2
        number = end - begin
        physical, gone = sum(rows[begin:end]) / number, sum(deleted[begin:end]) / number
        title = _title(ids[begin], ids[end - 1], number, physical, gone)
        if number > 1:
            peak = max(rows[begin:end]) * scale
            canvas.rect(x, _BOTTOM - peak, width - gap, peak, fill="#e4e4e4")
        canvas.rect(
            x, _BOTTOM - physical * scale, width - gap, (physical - gone) * scale, fill=LIVE, title=title, kind="live"
        )
        canvas.rect(x, _BOTTOM - gone * scale, width - gap, gone * scale, fill=DELETED, title=title, kind="deleted")
    if ids:
        _label_ends(canvas, ids, _VERSIONS_BOTTOM if has_versions else _BOTTOM)
    if versions is not None and has_versions:
        _draw_versions(canvas, spans, versions, width)
    return canvas.root


def draw_marked_fragments(ids: Sequence[int], marks: Sequence[str], colours: dict[str, str]) -> ET.Element:
    """Draw a strip of fragments, whose bars have the shares of the marks of their fragments.

    Parameters
    ----------
    ids : sequence of int
    marks : sequence of str
        One per fragment.
    colours : mapping of str to str
        The colours of marks, in the order of the legend.
    """
    canvas = Canvas(112, "Fragments that the query reads and skips")
    x = _LEFT
    used = {mark: colour for mark, colour in colours.items() if mark in marks}
    for mark, colour in used.items():
        canvas.rect(x, 4, 14, 14, fill=colour, stroke=INK)
        canvas.text(x + 20, 16, mark, fill=FAINT)
        x += 50 + 7 * len(mark)
    spans = groups(len(ids))
    width = (WIDTH - _LEFT) / max(len(spans), 1)
    gap = min(width * 0.15, 3) if len(ids) == len(spans) else 0
    for position, (begin, end) in enumerate(spans):
        top = 30.0
        for mark, colour in used.items():
            count = sum(found == mark for found in marks[begin:end])
            height = 60 * count / (end - begin)
            title = (
                f"fragments {ids[begin]} to {ids[end - 1]}: {mark} {count}"
                if end - begin > 1
                else f"{ids[begin]}: {mark}"
            )
            if count:
                canvas.rect(
                    _LEFT + position * width + gap / 2, top, width - gap, height, fill=colour, title=title, kind="mark"
                )
            top += height
    if ids:
        _label_ends(canvas, ids, 90)
    return canvas.root


def _draw_legend(canvas: Canvas, *, is_grouped: bool) -> None:
    canvas.rect(_LEFT, 4, 14, 14, fill=LIVE, stroke=INK)
    canvas.text(_LEFT + 20, 16, "live rows", fill=FAINT)
    canvas.rect(_LEFT + 100, 4, 14, 14, fill=DELETED, stroke=INK)
    canvas.text(_LEFT + 120, 16, "deleted rows", fill=FAINT)
    if is_grouped:
        canvas.rect(_LEFT + 220, 4, 14, 14, fill="#e4e4e4", stroke=INK)
        canvas.text(_LEFT + 240, 16, "a bar has the mean of several fragments; grey: the largest of them", fill=FAINT)


def _draw_versions(canvas: Canvas, spans: Sequence[tuple[int, int]], versions: Sequence[int], width: float) -> None:
    low, high = min(versions), max(versions)
    height = _VERSIONS_BOTTOM - _VERSIONS_TOP
    canvas.text(_LEFT, _VERSIONS_TOP - 10, "added by version", fill=FAINT)
    for version in dict.fromkeys((low, high)):
        y = _VERSIONS_BOTTOM - height * _share(version, low, high)
        canvas.line([(_LEFT, y), (WIDTH, y)])
        canvas.text(_LEFT - 6, y + 4, str(version), size=11, anchor="end", fill=FAINT)
    for position, (begin, end) in enumerate(spans):
        least, most = min(versions[begin:end]), max(versions[begin:end])
        top = _VERSIONS_BOTTOM - height * _share(most, low, high)
        bottom = _VERSIONS_BOTTOM - height * _share(least, low, high)
        title = f"version {least}" if least == most else f"versions {least} to {most}"
        x = _LEFT + position * width
        canvas.rect(
            x, top - 2, max(width - min(width * 0.15, 3), 1), bottom - top + 4, fill=INK, title=title, kind="added"
        )


def _share(value: int, low: int, high: int) -> float:
    return (value - low) / (high - low) if high > low else 0.0


def _title(first: int, last: int, number: int, physical: float, gone: float) -> str:
    name = f"fragment {first}" if number == 1 else f"{number} fragments, {first} to {last}, on average"
    return f"{name}: {short_count(physical)} rows, {short_count(gone)} of them deleted"


def _label_ends(canvas: Canvas, ids: Sequence[int], bottom: float) -> None:
    canvas.text(_LEFT, bottom + 18, f"fragment {ids[0]}", size=11, fill=FAINT)
    if len(ids) > 1:
        canvas.text(WIDTH, bottom + 18, f"fragment {ids[-1]}", size=11, anchor="end", fill=FAINT)


SKIPPED_COLOURS = {
    "read": LIVE,
    "skipped by statistics": SKIPPED,
    "skipped by an index": "#eedd88",
    "skipped by row numbers": "#ffffff",
}
"""The colours of `draw_marked_fragments` for a query."""
