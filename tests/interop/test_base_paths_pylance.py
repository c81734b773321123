"""Tables whose data files pylance distributes among several directories, besides that of the table."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import lance_format
from lance_format import LanceDataset, NotSupportedError
from tests.servers import ObjectServer, create_bucket

ROWS = pa.table({"id": range(10), "text": [f"number {number}" for number in range(10)]})
Place = tuple[str, dict[str, str]]


@pytest.fixture(params=[False, True], ids=["data files", "tables"])
def is_table(request: pytest.FixtureRequest) -> bool:
    """Whether the directories are laid out as tables."""
    return bool(request.param)


def write(root: str, options: dict[str, str], other: str | None = None, *, is_table: bool) -> Any:
    """Write rows to two directories, the second below another root, and then to that of the table."""
    paths = {"one": f"{root}/one", "two": f"{other or root}/two"}
    places = [lance.DatasetBasePath(path, name, is_dataset_root=is_table) for name, path in paths.items()]
    settings: dict[str, Any] = {"storage_options": options, "max_rows_per_file": 4}
    lance.write_dataset(ROWS, f"{root}/t", initial_bases=places, target_bases=["one"], **settings)
    lance.write_dataset(ROWS, f"{root}/t", mode="append", target_bases=["two"], **settings)
    return lance.write_dataset(ROWS, f"{root}/t", mode="append", **settings)


@pytest.fixture(params=["local", "s3", "buckets"])
def table(request: pytest.FixtureRequest, tmp_path: Path, is_table: bool) -> LanceDataset:
    root, options, other = str(tmp_path), {}, None
    if request.param != "local":
        server: ObjectServer = request.getfixturevalue("s3_server")
        root, options = server.new_root(), dict(server.options)
        if request.param == "buckets":
            create_bucket(server.endpoint, "more-tables")
            other = root.replace("s3://tables", "s3://more-tables")
    write(root, options, other, is_table=is_table)
    allowed = ",".join(filter(None, (root, other)))
    return lance_format.dataset(f"{root}/t", storage_options={**options, "allowed_base_paths": allowed})


def theirs(table: LanceDataset) -> Any:
    return lance.dataset(table.uri, storage_options=dict(table._table.storage_options))


def test_rows_are_read(table: LanceDataset) -> None:
    assert table.to_table().equals(pa.concat_tables([ROWS] * 3))
    assert table.take([0, 13, 29])["id"].to_pylist() == [0, 3, 9]
    assert table.to_table(filter="id = 7")["text"].to_pylist() == ["number 7"] * 3
    assert table.verify().problems == ()
    table.validate()
    files = table.tracked_files().read_all().filter(pc.field("type") == "data file")
    assert len({*files["base_uri"].to_pylist()}) == 3


def test_rows_are_changed(table: LanceDataset) -> None:
    table.delete("id = 3")
    table.update({"text": "'changed'"}, where="id = 4")
    table.merge_insert("id").when_not_matched_insert_all().execute(pa.table({"id": [100], "text": ["new"]}))
    table.create_scalar_index("id", "BTREE")
    expected = sorted([n for n in range(10) if n != 3] * 3 + [100])
    for dataset in (table, theirs(table)):
        assert sorted(dataset.to_table()["id"].to_pylist()) == expected
        assert dataset.to_table(filter="id = 4")["text"].to_pylist() == ["changed"] * 3
    table.optimize.compact_files()
    table.cleanup_old_versions(retain_versions=1)
    for dataset in (table, theirs(table)):
        assert sorted(dataset.to_table()["id"].to_pylist()) == expected
        dataset.validate()


def test_copies_branches_and_clones(table: LanceDataset, tmp_path: Path) -> None:
    table.deep_clone(str(tmp_path / "copy"), table.version)
    assert lance.dataset(tmp_path / "copy").to_table().equals(table.to_table())
    assert lance_format.dataset(tmp_path / "copy").verify().problems == ()
    branch = table.create_branch("b")
    assert branch.to_table().equals(table.to_table())
    root = table.uri.rpartition("/")[0]
    clone = table.shallow_clone(f"{root}/clone", table.version)
    assert clone.to_table().equals(table.to_table())
    assert theirs(clone).to_table().equals(table.to_table())


def test_directories_have_to_be_allowed(tmp_path: Path, is_table: bool) -> None:
    write(str(tmp_path), {}, is_table=is_table)
    for options, place in (({}, "one|two"), ({"allowed_base_paths": str(tmp_path / "one")}, "two")):
        with pytest.raises(NotSupportedError, match=f"has files outside of its directory, in '[^ ]*/({place})'"):
            lance_format.dataset(tmp_path / "t", storage_options=options)
