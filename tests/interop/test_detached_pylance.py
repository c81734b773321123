"""Versions beside the history, made by either library and read by the other."""

import datetime
import itertools
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest

import lance_format
from lance_format import LanceOperation, NotSupportedError, VersionNotFoundError, write_fragments
from tests.interop.test_table_pylance import assert_same


def append(library: Any, path: Path, value: int, version: int, *, detached: bool) -> int:
    if library is lance:
        fragments: Any = lance.fragment.write_fragments(pa.table({"a": [value]}), path)
        operation: Any = lance.LanceOperation.Append(fragments)
    else:
        operation = LanceOperation.Append(write_fragments({"a": [value]}, path))
    made = library.LanceDataset.commit(path, operation, read_version=version, detached=detached)
    return int(made.version)


@pytest.mark.parametrize(
    ("first", "second"), list(itertools.product([lance, lance_format], repeat=2)), ids=lambda x: x.__name__
)
@pytest.mark.parametrize("stable", [False, True])
def test_a_version_beside_the_history(tmp_path: Path, first: Any, second: Any, stable: bool) -> None:
    table = lance_format.write_dataset({"a": [0]}, tmp_path, enable_stable_row_ids=stable)
    beside = append(first, tmp_path, 1, 1, detached=True)
    assert beside >= 2**63
    lance_format.write_dataset({"a": [2]}, tmp_path, mode="append")
    further = append(second, tmp_path, 3, beside, detached=True)
    for library in (lance, lance_format):
        opened = library.dataset(tmp_path)
        assert opened.version == 2
        assert opened.to_table()["a"].to_pylist() == [0, 2]
        assert opened.checkout_version(beside).to_table()["a"].to_pylist() == [0, 1]
        assert library.dataset(tmp_path, further).to_table()["a"].to_pylist() == [0, 1, 3]
    lance_format.dataset(tmp_path).cleanup_old_versions(datetime.timedelta(0), delete_unverified=True)
    table = lance_format.dataset(tmp_path, further)
    table.validate()
    assert table.read_transaction(further).read_version == beside
    with pytest.raises(VersionNotFoundError):
        table.checkout_version(further ^ 1)
    assert_same(tmp_path)


def test_what_cannot_be_detached(tmp_path: Path) -> None:
    lance.write_dataset(pa.table({"a": [0]}), tmp_path, enable_v2_manifest_paths=False)
    if not (tmp_path / "_versions/1.manifest").exists():
        (manifest,) = (tmp_path / "_versions").glob("*.manifest")
        manifest.rename(tmp_path / "_versions/1.manifest")
    with pytest.raises(NotSupportedError, match="v1 manifest paths"):
        append(lance_format, tmp_path, 1, 1, detached=True)
