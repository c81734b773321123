"""Files of format 2.3, which pylance writes and calls unstable, are refused by name, with the reason."""

from pathlib import Path

import lance
import pyarrow as pa
import pytest

import lance_format
from lance_format import NotSupportedError

_REASON = r"file format version 2\.3.*unstable.*'PlanarLayout'"


def test_version_2_3_is_refused_by_name(tmp_path: Path) -> None:
    lance.write_dataset(pa.table({"x": [1, 2]}), tmp_path / "t", data_storage_version="2.3")
    table = lance_format.dataset(tmp_path / "t")
    assert table.data_storage_version == "2.3"
    with pytest.raises(NotSupportedError, match=rf"\.lance: .*{_REASON}"):
        table.to_table()
    with pytest.raises(NotSupportedError, match=_REASON):
        table.insert(pa.table({"x": [3]}))
