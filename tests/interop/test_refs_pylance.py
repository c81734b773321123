"""Tags and branches: what either library makes, both read."""

import datetime
import json
import shutil
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest

import lance_format
from tests.interop.test_table_pylance import assert_same


@pytest.fixture
def path(tmp_path: Path) -> Path:
    lance.write_dataset(pa.table({"a": range(10)}), str(tmp_path / "t"), max_rows_per_file=4)
    lance.write_dataset(pa.table({"a": range(10, 13)}), str(tmp_path / "t"), mode="append")
    lance.dataset(str(tmp_path / "t")).delete("a % 3 = 0")
    return tmp_path / "t"


def stored(path: Path) -> dict[str, Any]:
    """Return the tag files without the times."""
    found = {}
    for file in sorted((path / "_refs/tags").iterdir()):
        found[file.name] = json.loads(file.read_text())
        assert found[file.name].pop("createdAt") <= found[file.name].pop("updatedAt")
    return found


def test_tags(path: Path) -> None:
    ours, reference = lance_format.dataset(path), lance.dataset(str(path))
    for table in (ours, reference):
        prefix = "ours" if table is ours else "theirs"
        table.tags.create(f"{prefix}-1", 1)
        table.tags.create(f"{prefix}-now")
        table.tags.create(f"{prefix}.x_2", ("main", 2))
        table.tags.update(f"{prefix}-now", f"{prefix}-1")
        table.tags.replace_metadata(f"{prefix}-now", {"k": "ü"})
        table.tags.create(f"{prefix}-gone", 1)
        table.tags.delete(f"{prefix}-gone")
    files = stored(path)
    assert len(files) == 6
    for name in ("-1.json", "-now.json", ".x_2.json"):
        assert files[f"ours{name}"] == files[f"theirs{name}"]
        assert list(files[f"ours{name}"]) == list(files[f"theirs{name}"])
    assert ours.tags.list() == reference.tags.list()
    assert ours.tags.list_ordered() == reference.tags.list_ordered()
    assert ours.tags.list_ordered("asc") == reference.tags.list_ordered("asc")
    for name in ours.tags.list():
        assert ours.tags.get_version(name) == reference.tags.get_version(name)
        opened = lance_format.dataset(path, name)
        assert opened.version == lance.dataset(str(path), name).version
        assert opened.to_table() == lance.dataset(str(path), name).to_table()


def test_versions(path: Path) -> None:
    ours, reference = assert_same(path), lance.dataset(str(path))
    assert ours.version_refs() == reference.version_refs()
    assert ours.get_version()["metadata"] == reference.get_version()["metadata"]
    for version in reference.versions():
        for moment in (-2, 2):  # Microseconds, to which pylance rounds.
            asof = version["timestamp"] + datetime.timedelta(microseconds=moment)
            if version["version"] > 1 or moment > 0:
                assert lance_format.dataset(path, asof=asof).version == lance.dataset(str(path), asof=asof).version


def test_manifests_get_other_names(tmp_path: Path) -> None:
    for number in range(3):
        lance.write_dataset(pa.table({"a": [number]}), str(tmp_path), mode="append", enable_v2_manifest_paths=False)
    versions = tmp_path / "_versions"
    assert (versions / "3.manifest").exists()
    shutil.copytree(tmp_path, tmp_path / "copy")
    table = lance_format.dataset(tmp_path)
    shutil.copy(versions / "1.manifest", versions / f"{2**64 - 2}.manifest")  # As if it had been interrupted.
    for _ in range(2):
        table.migrate_manifest_paths_v2()
        names = sorted(file.name for file in versions.glob("*.manifest"))
        assert names == [f"{2**64 - 1 - number}.manifest" for number in (3, 2, 1)]
    lance.dataset(str(tmp_path / "copy")).migrate_manifest_paths_v2()
    assert names == sorted(file.name for file in (tmp_path / "copy/_versions").glob("*.manifest"))
    assert_same(tmp_path)
    lance_format.write_dataset({"a": [3]}, tmp_path, mode="append")
    assert assert_same(tmp_path).to_table()["a"].to_pylist() == [0, 1, 2, 3]
