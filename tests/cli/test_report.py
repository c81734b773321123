"""`pyspark-lance report`: the page renders in a browser, without errors, and shows the numbers of the API."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

import lance_format
from lance_format.pictures.drawing import bytes_text
from tests.cli.command_line import execute, json_of, text_of
from tests.pictures.marks import marks_of

pytestmark = pytest.mark.system

_BROWSER = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
_needs_browser = pytest.mark.skipif(_BROWSER is None, reason="there is no Chromium to open the page in")


def _open(page: Path, profile: Path) -> tuple[str, list[str]]:
    """Return the document that a browser has made of a page, and its messages."""
    assert _BROWSER is not None
    options = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", f"--user-data-dir={profile}"]
    offline = ["--host-resolver-rules=MAP * ~NOTFOUND"]
    logging = ["--enable-logging=stderr", "--v=0"]
    command = [_BROWSER, *options, *offline, *logging, "--dump-dom", page.as_uri()]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120)
    return done.stdout, [line for line in done.stderr.splitlines() if "CONSOLE" in line]


def test_the_command_writes_the_page(table: Path, tmp_path: Path) -> None:
    output = tmp_path / "report.html"
    assert text_of("report", table, "-o", output) == f"wrote {output}\n"
    found = json_of("report", table, "-o", output, "--filter", "id = 7", "--columns", "name")
    assert found["facts"] == lance_format.dataset(table).report("id = 7", columns=["name"]).facts
    assert execute("report", table, "-o", tmp_path / "nowhere" / "report.html").code == 2
    assert execute("report", table, "--filter", "nonsense = 1", "-o", output).code == 1


@_needs_browser
def test_a_browser_shows_the_numbers_without_an_error(table: Path, tmp_path: Path) -> None:
    output = tmp_path / "report.html"
    text_of("report", table, "-o", output, "--filter", "score > 0.5")
    document, messages = _open(output, tmp_path / "profile")
    assert messages == []
    dataset = lance_format.dataset(table)
    shown = dict(re.findall(r"<dt>(.*?)</dt><dd>(.*?)</dd>", document))
    assert shown["rows"] == f"{dataset.count_rows():,}"
    assert shown["fragments"] == "3"
    (facts,) = re.findall(r'id="facts">(.*?)</script>', document, re.DOTALL)
    assert json.loads(facts) == dataset.report("score > 0.5").facts
    reads = dataset.scanner(filter="score > 0.5").plan_reads()
    rows = re.findall(r"<tr><td>([^<]*)</td><td[^>]*>([\d,]+)</td><td[^>]*>([\d,]+)</td>", document)
    numbers = {name: (int(read.replace(",", "")), int(whole.replace(",", ""))) for name, read, whole in rows[:5]}
    assert numbers["rows"] == (reads.total("rows_read"), reads.total("rows"))
    assert numbers["zones with statistics"] == (reads.total("zones_read"), reads.total("zones"))
    page = ET.fromstring(f"<page>{''.join(re.findall(r'<svg.*?</svg>', document, re.DOTALL))}</page>")
    marks = {name: [mark.findtext("title", "") for mark in marks_of(page, name)] for name in ("part", "commit", "live")}
    assert sorted(marks["part"]) == sorted(
        f"{each['column']}: {each['layout']}: {each['compression']}, {bytes_text(each['size_bytes'])}"
        for each in json.loads(facts)["storage"]
    )
    assert [title.split()[1] for title in marks["commit"]] == [f"{each['version']}," for each in dataset.versions()]
    assert len(marks["live"]) == 3
