"""`docs/format_support.md` names each argument that is accepted and ignored."""

import re
from pathlib import Path

import pytest

from lance_format.table.changes.write import settings
from lance_format.table.maintenance import compaction_options
from lance_format.table.scan import options
from lance_format.table.scan.searches.nearest import query

_DOCUMENT = Path(__file__).parents[2] / "docs" / "format_support.md"


@pytest.mark.parametrize(
    ("row", "names"),
    [
        ("writes", {*settings.WriteTuning.__annotations__} - {*settings._UNSUPPORTED, "enable_v2_manifest_paths"}),
        ("`dataset()`", {*settings.OpeningTuning.__annotations__} - {*settings._UNSUPPORTED}),
        ("scanners", {*options.ScanTuning.__annotations__} - {*options._UNSUPPORTED}),
        ("`nearest`", {*query.TUNING}),
        ("`compact_files`", {*compaction_options._Tuning.__annotations__}),
    ],
)
def test_each_is_named(row: str, names: set[str]) -> None:
    _, _, section = _DOCUMENT.read_text().partition("## Options without effect")
    (line,) = [line for line in section.splitlines() if line.startswith(f"| {row} |")]
    assert set(re.findall(r"`(\w+)`", line.split("|")[2])) == set(names)
