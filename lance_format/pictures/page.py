"""Self-contained HTML of headings, texts, tables and pictures."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from xml.etree import ElementTree as ET

from lance_format.pictures.drawing import clean

_STYLE = """
.lance-report{font:15px/1.5 system-ui,sans-serif;color:#1a1a1a;background:#fff;max-width:980px;
margin:0 auto;padding:16px}
.lance-report h1{font-size:24px;margin:0 0 4px;overflow-wrap:anywhere}
.lance-report h2{font-size:18px;margin:32px 0 4px}
.lance-report h3{font-size:15px;margin:16px 0 0;overflow-wrap:anywhere}
.lance-report p{margin:4px 0 10px;color:#404040}
.lance-report svg{display:block;width:100%;height:auto;background:#fff}
.lance-report dl{display:flex;flex-wrap:wrap;gap:8px 28px;margin:12px 0}
.lance-report dt{font-size:12px;color:#595959}
.lance-report dd{margin:0;font-size:18px;font-variant-numeric:tabular-nums;overflow-wrap:anywhere}
.lance-report table{border-collapse:collapse;font-size:13px;margin:8px 0;color:#1a1a1a}
.lance-report th,.lance-report td{text-align:left;padding:3px 14px 3px 0;border-bottom:1px solid #d4d4d4;
background:#fff;vertical-align:top;overflow-wrap:anywhere}
.lance-report .n{text-align:right;font-variant-numeric:tabular-nums;white-space:nowrap}
.lance-report summary{cursor:pointer;color:#004488}
"""


class Section:
    """A part of a page.

    Parameters
    ----------
    parent : ET.Element
        Elements are added to it.
    """

    def __init__(self, parent: ET.Element) -> None:
        self.root = parent

    def heading(self, text: str, level: int = 2) -> None:
        """Add a heading."""
        ET.SubElement(self.root, f"h{level}").text = text

    def text(self, text: str) -> None:
        """Add a paragraph."""
        ET.SubElement(self.root, "p").text = text

    def picture(self, picture: ET.Element) -> None:
        """Add an SVG picture."""
        self.root.append(picture)

    def facts(self, facts: Mapping[str, object]) -> None:
        """Add names with their values, side by side."""
        parent = ET.SubElement(self.root, "dl")
        for name, value in facts.items():
            item = ET.SubElement(parent, "div")
            ET.SubElement(item, "dt").text = name
            ET.SubElement(item, "dd").text = str(value)

    def table(self, names: Sequence[str], rows: Sequence[Sequence[object]], summary: str = "") -> None:
        """Add a table.

        Parameters
        ----------
        names : sequence of str
        rows : sequence of sequence
            Texts, and numbers, which are aligned to the right.
        summary : str
            Shown in place of the table until a click on it.
        """
        parent = self.root
        if summary:
            parent = ET.SubElement(self.root, "details")
            ET.SubElement(parent, "summary").text = summary
        table = ET.SubElement(parent, "table")
        head = ET.SubElement(ET.SubElement(table, "thead"), "tr")
        for name in names:
            ET.SubElement(head, "th").text = name
        body = ET.SubElement(table, "tbody")
        for row in rows:
            line = ET.SubElement(body, "tr")
            for value in row:
                is_number = isinstance(value, (int, float))
                cell = ET.SubElement(line, "td", {"class": "n"} if is_number else {})
                cell.text = f"{value:,}" if is_number else str(value)


def new_section() -> Section:
    """Return an empty part with the style of reports, for a page or a notebook."""
    root = ET.Element("div", {"class": "lance-report"})
    ET.SubElement(root, "style").text = _STYLE
    return Section(root)


def to_html(section: Section) -> str:
    """Return a part as HTML."""
    return _serialize(section.root)


def to_page(section: Section, title: str, facts: Mapping[str, object]) -> str:
    """Return a whole page.

    Parameters
    ----------
    section : Section
    title : str
    facts : mapping
        JSON values that the page contains for programs.
    """
    html = ET.Element("html", {"lang": "en"})
    head = ET.SubElement(html, "head")
    ET.SubElement(head, "meta", {"charset": "utf-8"})
    ET.SubElement(head, "meta", {"name": "viewport", "content": "width=device-width, initial-scale=1"})
    policy = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"
    ET.SubElement(head, "meta", {"http-equiv": "Content-Security-Policy", "content": policy})
    ET.SubElement(head, "link", {"rel": "icon", "href": "data:,"})
    ET.SubElement(head, "title").text = title
    body = ET.SubElement(html, "body", {"style": "margin:0;background:#fff"})
    body.append(section.root)
    data = ET.SubElement(body, "script", {"type": "application/json", "id": "facts"})
    data.text = json.dumps(facts, allow_nan=False).replace("<", "\\u003c")  # No text ends the element.
    return f"<!DOCTYPE html>\n{_serialize(html)}"


def _serialize(element: ET.Element) -> str:
    return str(clean(ET.tostring(element, encoding="unicode", method="html")))
