"""Pictures: areas and marks are in proportion, colours are legible, and texts are escaped."""

from __future__ import annotations

import itertools
from collections import Counter
from xml.etree import ElementTree as ET

import pytest

from lance_format.pictures import canvas
from lance_format.pictures.canvas import groups, ticks
from lance_format.pictures.fragments import SKIPPED_COLOURS, draw_fragments, draw_marked_fragments
from lance_format.pictures.page import new_section, to_page
from lance_format.pictures.timeline import Commit, draw_timeline
from lance_format.pictures.treemap import Part, draw_treemap
from lance_format.pictures.zones import draw_zones

_LEGIBLE, _VISIBLE = 4.5, 3.0  # WCAG 2.2, 1.4.3 and 1.4.11


def _luminance(colour: str) -> float:
    parts = [int(colour[index : index + 2], 16) / 255 for index in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def _contrast(first: str, second: str) -> float:
    light, dark = sorted((_luminance(first), _luminance(second)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def _protan_and_deutan(colour: str) -> list[tuple[float, float, float]]:
    """Return a colour as two kinds of colour-blind eyes see it (Machado et al., 2009, severity 1), in linear light."""
    matrices = (
        ((0.152, 1.053, -0.205), (0.115, 0.786, 0.099), (-0.004, -0.048, 1.052)),
        ((0.367, 0.861, -0.228), (0.280, 0.673, 0.047), (-0.012, 0.043, 0.969)),
    )
    rgb = [(int(colour[index : index + 2], 16) / 255) ** 2.2 for index in (1, 3, 5)]
    return [tuple(sum(w * c for w, c in zip(row, rgb, strict=True)) for row in matrix) for matrix in matrices]  # type: ignore[misc]


def _marks(picture: ET.Element, kind: str) -> list[ET.Element]:
    return [node for node in picture.iter() if node.get("class") == kind]


def test_texts_are_legible_and_marks_visible() -> None:
    assert all(_contrast(canvas.INK, tint) >= _LEGIBLE for tint in canvas.TINTS)
    assert _contrast(canvas.FAINT, canvas.PAPER) >= _LEGIBLE
    assert all(_contrast(mark, canvas.PAPER) >= _VISIBLE for mark in (canvas.LIVE, canvas.DELETED))


@pytest.mark.parametrize("colours", [canvas.TINTS, (canvas.LIVE, canvas.DELETED), tuple(SKIPPED_COLOURS.values())])
def test_colours_differ_to_colour_blind_eyes(colours: tuple[str, ...]) -> None:
    for first, second in itertools.combinations(colours, 2):
        for left, right in zip(_protan_and_deutan(first), _protan_and_deutan(second), strict=True):
            assert sum((a - b) ** 2 for a, b in zip(left, right, strict=True)) ** 0.5 > 0.1, (first, second)


def test_areas_of_a_treemap_are_in_proportion() -> None:
    parts = [Part("a", "x", "x", 300), Part("a", "y", "y", 100), Part("b", "x", "x", 100), Part("c", "z", "z", 0)]
    found = _marks(draw_treemap(parts), "part")
    areas = [float(mark.attrib["width"]) * float(mark.attrib["height"]) for mark in found]
    assert [area / sum(areas) for area in areas] == pytest.approx([0.6, 0.2, 0.2], abs=0.001)
    assert [mark.findtext("title") for mark in found] == ["a: x, 300 B", "a: y, 100 B", "b: x, 100 B"]
    many = draw_treemap([Part(f"column {index}", "x", "x", 1 + index) for index in range(1000)])
    assert len(_marks(many, "part")) == 81
    assert any("920 more columns" in (title.text or "") for title in many.iter("title"))
    assert not _marks(draw_treemap([]), "part")


@pytest.mark.parametrize("number", [0, 1, 3, 100, 241, 10_000])
def test_bars_of_fragments(number: int) -> None:
    rows = [100 + index % 7 for index in range(number)]
    deleted = [index % 3 for index in range(number)]
    picture = draw_fragments(list(range(number)), rows, deleted, list(range(number)))
    live, gone = (_marks(picture, kind) for kind in ("live", "deleted"))
    assert len(live) == len(gone) == min(number, canvas.MAX_MARKS)
    spans = groups(number)
    for bar, other, (begin, end) in zip(live, gone, spans, strict=True):
        share = sum(deleted[begin:end]) / sum(rows[begin:end])
        heights = [float(mark.attrib["height"]) for mark in (bar, other)]
        assert heights[1] / sum(heights) == pytest.approx(share, abs=0.001)
    assert [begin for begin, _ in spans][1:] == [end for _, end in spans][:-1]
    assert sum(end - begin for begin, end in spans) == number


def test_marked_fragments_have_the_shares_of_their_marks() -> None:
    marks = ["read" if index % 10 == 0 else "skipped by statistics" for index in range(4800)]
    found = Counter(
        mark.attrib["fill"] for mark in _marks(draw_marked_fragments(range(4800), marks, SKIPPED_COLOURS), "mark")
    )
    assert found == {canvas.LIVE: 240, canvas.SKIPPED: 240}


def test_commits_and_zones() -> None:
    commits = [Commit(index, "2026-01-01", ("append", "delete")[index % 2], index) for index in range(1, 6)]
    found = _marks(draw_timeline(commits), "commit")
    assert len(found) == 5
    assert len({mark.attrib["cy"] for mark in found}) == 2
    assert not _marks(draw_timeline([]), "commit")
    bars = _marks(draw_zones([0.0, 0.5], [0.5, 1.0], "1", "9", "zones"), "zone")
    assert [float(bar.attrib["height"]) for bar in bars] == [60, 60]
    assert len(_marks(draw_zones([0.0] * 5000, [1.0] * 5000, "1", "9", "zones"), "zone")) == canvas.MAX_MARKS


@pytest.mark.parametrize(
    ("most", "expected"), [(0, [0]), (1, [0, 1]), (7, [0, 2, 4, 6]), (30_000, [0, 10_000, 20_000, 30_000])]
)
def test_ticks_are_round(most: float, expected: list[float]) -> None:
    assert ticks(most) == expected


def test_texts_are_escaped() -> None:
    hostile = "</script></style><script>alert(1)</script>&\x00\ud800"
    section = new_section()
    section.heading(hostile)
    section.facts({hostile: hostile})
    section.table((hostile,), [(hostile,)], hostile)
    section.picture(draw_treemap([Part(hostile, hostile, hostile, 1)]))
    page = to_page(section, hostile, {"x": hostile})
    page.encode()
    assert "<script>" not in page
    assert page.count("</script>") == 1
    assert page.count("</style>") == 1
