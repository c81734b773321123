"""Pictures: areas and marks are in proportion, colours are legible, and texts are escaped."""

from __future__ import annotations

import itertools
import math
import re
import sys
from collections import Counter
from xml.etree import ElementTree as ET

import pytest

from lance_format import NotSupportedError
from lance_format.pictures import drawing
from lance_format.pictures.drawing import groups
from lance_format.pictures.fragments import SKIPPED_COLOURS, draw_fragments, draw_marked_fragments
from lance_format.pictures.page import new_section, to_page
from lance_format.pictures.timeline import Commit, draw_timeline
from lance_format.pictures.treemap import Part, draw_treemap
from lance_format.pictures.zones import draw_zones
from tests.pictures.marks import marks_of

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


def _size(mark: ET.Element) -> tuple[float, float]:
    """Return the width and the height of a rectangle."""
    found = re.fullmatch(r"M[^hv]*h([\d.e-]+)v([\d.e-]+)h[^hv]*Z", mark.attrib["d"])
    assert found, mark.attrib["d"]
    return float(found[1]), float(found[2])


def test_texts_are_legible_and_marks_visible() -> None:
    assert all(_contrast(drawing.INK, tint) >= _LEGIBLE for tint in drawing.TINTS)
    assert _contrast(drawing.FAINT, drawing.PAPER) >= _LEGIBLE
    assert all(_contrast(mark, drawing.PAPER) >= _VISIBLE for mark in (drawing.LIVE, drawing.DELETED))


@pytest.mark.parametrize("colours", [drawing.TINTS, (drawing.LIVE, drawing.DELETED), tuple(SKIPPED_COLOURS.values())])
def test_colours_differ_to_colour_blind_eyes(colours: tuple[str, ...]) -> None:
    for first, second in itertools.combinations(colours, 2):
        for left, right in zip(_protan_and_deutan(first), _protan_and_deutan(second), strict=True):
            assert sum((a - b) ** 2 for a, b in zip(left, right, strict=True)) ** 0.5 > 0.1, (first, second)


def test_areas_of_a_treemap_are_in_proportion() -> None:
    parts = [Part("a", "x", "x", 300), Part("a", "y", "y", 100), Part("b", "x", "x", 100), Part("c", "z", "z", 0)]
    found = marks_of(draw_treemap(parts), "part")
    areas = {str(mark.findtext("title")): math.prod(_size(mark)) for mark in found}
    shares = {title: area / sum(areas.values()) for title, area in areas.items()}
    assert shares == pytest.approx({"a: x, 300 B": 0.6, "a: y, 100 B": 0.2, "b: x, 100 B": 0.2}, abs=0.001)
    many = draw_treemap([Part(f"column {index}", "x", f"kind {index % 9}", 1 + index) for index in range(1000)])
    assert len(marks_of(many, "part")) == 81
    assert any("920 more columns" in (title.text or "") for title in many.iter("title"))
    assert "other encodings" in ET.tostring(many, encoding="unicode")
    assert not marks_of(draw_treemap([]), "part")


@pytest.mark.parametrize("number", [0, 1, 3, 100, 241, 10_000])
def test_bars_of_fragments(number: int) -> None:
    rows = [100 + index % 7 for index in range(number)]
    deleted = [1 + index % 3 for index in range(number)]
    picture = draw_fragments(list(range(number)), rows, deleted, list(range(number)))
    live, gone, added = (marks_of(picture, kind) for kind in ("live", "deleted", "added"))
    assert len(live) == len(gone) == len(added) == min(number, drawing.MAX_MARKS)
    spans = groups(number)
    for bar, other, (begin, end) in zip(live, gone, spans, strict=True):
        share = sum(deleted[begin:end]) / sum(rows[begin:end])
        heights = [_size(mark)[1] for mark in (bar, other)]
        assert heights[1] / sum(heights) == pytest.approx(share, abs=0.001)
    assert [begin for begin, _ in spans][1:] == [end for _, end in spans][:-1]
    assert sum(end - begin for begin, end in spans) == number
    if number == 3:
        assert [mark.findtext("title") for mark in live] == [
            f"fragment {index}: {100 + index} rows, {1 + index} of them deleted" for index in range(3)
        ]


def test_marked_fragments_have_the_shares_of_their_marks() -> None:
    marks = ["read" if index % 10 == 0 else "skipped by statistics" for index in range(4800)]
    found = marks_of(draw_marked_fragments(range(4800), marks, SKIPPED_COLOURS), "mark")
    assert Counter(mark.attrib["fill"] for mark in found) == {drawing.LIVE: 240, drawing.SKIPPED: 240}
    heights = {mark.attrib["fill"]: _size(mark)[1] for mark in found}
    assert heights[drawing.LIVE] / sum(heights.values()) == pytest.approx(0.1, abs=0.001)


def test_commits_and_zones() -> None:
    commits = [Commit(index, "2026-01-01", ("append", "delete")[index % 2], index) for index in range(1, 6)]
    found = marks_of(draw_timeline(commits), "commit")
    assert [mark.findtext("title") for mark in found] == [
        f"version {index}, 2026-01-01: {('append', 'delete')[index % 2]}, {index} rows" for index in range(1, 6)
    ]
    assert len({re.split("[,()]", mark.attrib["transform"])[2] for mark in found}) == 2
    assert not marks_of(draw_timeline([]), "commit")
    bars = marks_of(draw_zones([0.0, 0.5], [0.5, 1.0], "1", "9", "zones"), "zone")
    assert [_size(bar)[1] for bar in bars] == pytest.approx([59.4, 59.4], abs=0.1)
    assert len(marks_of(draw_zones([0.0] * 5000, [1.0] * 5000, "1", "9", "zones"), "zone")) == drawing.MAX_MARKS


def test_without_its_package_the_error_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "vl_convert", None)
    with pytest.raises(NotSupportedError, match=r"pip install 'pyspark-lance\[report\]'"):
        draw_treemap([Part("a", "x", "x", 1)])


def test_texts_are_escaped() -> None:
    hostile = "</script></style><script>alert(1)</script>&\x00\ud800"
    section = new_section()
    section.heading(hostile)
    section.facts({hostile: hostile})
    section.table((hostile,), [(hostile,)], hostile)
    section.picture(draw_treemap([Part(hostile, hostile, hostile, 1)]))
    section.picture(draw_timeline([Commit(1, hostile, hostile, 1)]))
    section.picture(draw_zones([0.0], [1.0], hostile, hostile, hostile))
    page = to_page(section, hostile, {"x": hostile})
    page.encode()
    assert "<script>" not in page
    assert page.count("</script>") == 1
    assert page.count("</style>") == 1
