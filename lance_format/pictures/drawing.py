"""From a specification of Vega or Vega-Lite to an SVG element; the colours, and what pictures share."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from typing import Any
from xml.etree import ElementTree as ET

from lance_format.errors import NotSupportedError

Spec = Mapping[str, Any]

WIDTH = 860
INK, FAINT, GRID, PAPER = "#1a1a1a", "#595959", "#d4d4d4", "#ffffff"
LIVE, DELETED, SKIPPED, PEAK = "#4477aa", "#cc3311", "#bbbbbb", "#e4e4e4"
TINTS = ("#77aadd", "#ee8866", "#eedd88", "#44bb99", "#ffaabb", "#99ddff", "#bbcc33", "#dddddd")
"""Paul Tol's light scheme: distinct to colour-blind eyes, and light enough for dark labels."""
MAX_MARKS = 240
"""Maximum number of marks side by side; neighbours share a mark if there are more."""
_NAMESPACE = "{http://www.w3.org/2000/svg}"
_CONFIG = {
    "font": "sans-serif",
    "background": PAPER,
    "view": {"stroke": None},
    "axis": {
        "labelColor": FAINT,
        "titleColor": FAINT,
        "titleFontWeight": "normal",
        "gridColor": GRID,
        "domain": False,
        "ticks": False,
        "labelPadding": 6,
        "labelFontSize": 11,
        "titleFontSize": 12,
    },
    "legend": {
        "orient": "top",
        "title": None,
        "labelColor": FAINT,
        "labelFontSize": 12,
        "labelLimit": 0,
        "symbolType": "square",
    },
}


def draw_chart(spec: Spec, label: str) -> ET.Element:
    """Render a specification of Vega-Lite.

    Parameters
    ----------
    spec : mapping
        Without its schema, and without what all pictures have in common. The description of a mark is shown by browsers
        under the pointer.
    label : str
        Description of the picture for people who do not see it.

    Raises
    ------
    NotSupportedError
        If the package that renders is missing.
    """
    whole = {"$schema": "https://vega.github.io/schema/vega-lite/v5.json", "config": _CONFIG, **spec}
    return _to_element(_converter().vegalite_to_svg(clean(whole), allowed_base_urls=[]), label)


def draw_vega(spec: Spec, label: str) -> ET.Element:
    """Render a specification of Vega; see `draw_chart`."""
    whole = {"$schema": "https://vega.github.io/schema/vega/v5.json", "config": _CONFIG, **spec}
    return _to_element(_converter().vega_to_svg(clean(whole), allowed_base_urls=[]), label)


def clean(value: Any) -> Any:
    """Return texts, and what is made of them, without characters that XML cannot hold."""
    if isinstance(value, str):
        return "".join(c if (c >= " " and not "\ud800" <= c <= "\udfff") or c in "\n\t" else "\ufffd" for c in value)
    if isinstance(value, Mapping):
        return {name: clean(each) for name, each in value.items()}
    return [clean(each) for each in value] if isinstance(value, list | tuple) else value


def by_position(field: str, label: str) -> dict[str, Any]:
    """Return the encoding of marks side by side, which are labelled as far as there is room."""
    axis = {"labelAngle": 0, "labelOverlap": "greedy", "labelSeparation": 24, "grid": False, "title": label}
    return {"field": field, "type": "ordinal", "sort": None, "axis": axis}


def groups(number: int) -> list[tuple[int, int]]:
    """Divide positions into at most `MAX_MARKS` ranges of neighbours of about the same size."""
    count = min(number, MAX_MARKS)
    borders = [number * index // count for index in range(count + 1)] if count else [0]
    return list(itertools.pairwise(borders))


def gap(number: int) -> float:
    """Return the share of its place that is left free beside each of some marks."""
    return 0.15 if number < MAX_MARKS else 0.0


def palette(colours: Mapping[str, str]) -> dict[str, Any]:
    """Return the scale of the colours of kinds, in the order of the legend."""
    return {"domain": list(colours), "range": list(colours.values())}


def bytes_text(size: float) -> str:
    """Return a number of bytes in a fitting unit."""
    for unit, power in (("TiB", 40), ("GiB", 30), ("MiB", 20), ("KiB", 10)):
        if size >= 1 << power:
            return f"{size / (1 << power):.1f} {unit}"
    return f"{size:.0f} B"


def _converter() -> Any:
    try:
        import vl_convert  # of the extra `report`
    except ModuleNotFoundError as error:
        raise NotSupportedError(
            "pictures need the package vl-convert-python: run  pip install 'pyspark-lance[report]'"
        ) from error
    return vl_convert


def _to_element(svg: str, label: str) -> ET.Element:
    """Return a picture whose marks have titles, which browsers show, in the place of labels."""
    root = ET.fromstring(svg)
    for node in root.iter():
        node.tag = node.tag.removeprefix(_NAMESPACE)
    width, height = root.attrib.pop("width"), root.attrib.pop("height")
    root.attrib.update({"viewBox": f"0 0 {width} {height}", "role": "img", "aria-label": label})
    for node in root.iter():
        is_mark = node.get("role") == "graphics-symbol" and node.get("aria-roledescription") not in ("axis", "legend")
        if is_mark and "aria-label" in node.attrib:
            del node.attrib["role"], node.attrib["aria-roledescription"]
            ET.SubElement(node, "title").text = node.attrib.pop("aria-label")
    return root
