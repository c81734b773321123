"""The marks of pictures."""

from __future__ import annotations

from xml.etree import ElementTree as ET


def marks_of(picture: ET.Element, name: str) -> list[ET.Element]:
    """Return the marks of the view of a name, or of the mark of a name, which have titles."""
    groups = [node for node in picture.iter("g") if f"{name}_marks" in node.get("class", "").split()]
    return [mark for group in groups for mark in group if mark.findtext("title")]
