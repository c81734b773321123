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
from lance_format import InvalidInputError, VersionNotFoundError
from lance_format.table.format.manifest_file import parse_manifest
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
        for moment in (-2, 2):  # Pylance rounds to microseconds.
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


@pytest.fixture(params=[False, True], ids=["addresses", "stable ids"])
def grown(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    uri = str(tmp_path / "t")
    lance.write_dataset(pa.table({"a": range(10)}), uri, max_rows_per_file=4, enable_stable_row_ids=request.param)
    lance.write_dataset(pa.table({"a": range(10, 13)}), uri, mode="append")
    lance.dataset(uri).delete("a % 3 = 0")
    lance.dataset(uri).create_scalar_index("a", "BTREE")
    return tmp_path / "t"


def change(table: Any) -> None:
    """Change a branch in every way that both libraries know."""
    table.delete("a % 5 = 1")
    table.update({"a": "a + 100"}, where="a < 6")
    table.add_columns({"b": "a * 2"})
    table.merge_insert("a").when_matched_update_all().when_not_matched_insert_all().execute(
        pa.table({"a": [7, 70], "b": [1, 2]})
    )
    table.delete("a = 107 or a = 10")
    table.update_config({"k": "v"})


@pytest.mark.slow
@pytest.mark.parametrize("ours_creates", [True, False], ids=["our branch", "their branch"])
@pytest.mark.parametrize("ours_writes", [True, False], ids=["our changes", "their changes"])
def test_branches(grown: Path, ours_creates: bool, ours_writes: bool) -> None:
    before = lance.dataset(str(grown)).to_table()
    creator: Any = lance_format.dataset(grown) if ours_creates else lance.dataset(str(grown))
    branch = creator.create_branch("feat/a")
    assert (branch.version, branch.to_table()) == (4, before)
    assert_same(grown / "tree/feat/a")
    writer: Any = lance_format if ours_writes else lance
    opened = writer.dataset(str(grown)).checkout_version(("feat/a", None))
    change(opened)
    writer.write_dataset(pa.table({"a": [500], "b": [7]}), str(grown / "tree/feat/a"), mode="append")
    changed = assert_same(grown / "tree/feat/a")
    assert changed.version == 11
    changed.validate()
    assert {500, 105} <= set(changed.to_table()["a"].to_pylist())
    creator.create_branch("sub", ("feat/a", 6))
    assert_same(grown / "tree/sub")
    for at in (None, 5, 9):
        theirs = lance.dataset(str(grown)).checkout_version(("feat/a", at))
        assert lance_format.dataset(grown, ("feat/a", at)).to_table() == theirs.to_table()
    creator.tags.create("there", ("feat/a", 7))
    assert lance_format.dataset(grown, "there").to_table() == lance.dataset(str(grown), "there").to_table()
    assert lance_format.dataset(grown).branches.list() == lance.dataset(str(grown)).branches.list()
    assert assert_same(grown).to_table() == before
    for name in ("feat/a", "sub"):
        lance_format.dataset(grown, (name, None)).optimize.compact_files()
        assert_same(grown / "tree" / name)
    opened.checkout_version(5).restore()
    assert (
        assert_same(grown / "tree/feat/a").to_table()
        == lance.dataset(str(grown), "there").checkout_version(("feat/a", 5)).to_table()
    )


def test_branch_files(path: Path) -> None:
    """The files that name branches, and the first versions of branches, are those of pylance."""
    lance.dataset(str(path)).create_branch("theirs", 2)
    lance.dataset(str(path)).create_branch("theirs/sub", ("theirs", None))
    lance_format.dataset(path).create_branch("ours", 2)
    lance_format.dataset(path).create_branch("ours/sub", ("ours", None))
    for ending in ("", "%2Fsub"):
        ours, theirs = (json.loads((path / f"_refs/branches/{x}{ending}.json").read_text()) for x in ("ours", "theirs"))
        assert list(ours) == list(theirs)
        for ref in (ours, theirs):
            assert [version for version, _ in ref["identifier"]["version_mapping"]] == [2] * (2 if ending else 1)
            del ref["identifier"], ref["createAt"], ref["manifestSize"]
            ref["parentBranch"] = str(ref["parentBranch"]).replace("theirs", "ours")
        assert ours == theirs
        messages = []
        for name in ("ours", "theirs"):
            (file,) = (path / "tree" / f"{name}{ending}".replace("%2F", "/") / "_versions").glob("*.manifest")
            message = parse_manifest(file.read_bytes(), path=str(file), version=2).message
            message.base_paths.sort(key=lambda base: base.id)
            sections = ("transaction_section", "transaction_section_deprecated")
            for key in ("timestamp", "writer_version", "transaction_file", *sections):
                message.ClearField(key)
            messages.append(str(message).replace("theirs", "ours"))
        assert messages[0] == messages[1]


def test_shallow_clones_stay_refused(path: Path, tmp_path: Path) -> None:
    lance.dataset(str(path)).shallow_clone(str(tmp_path / "clone"), 1)
    with pytest.raises(lance_format.NotSupportedError, match="base paths"):
        lance_format.dataset(tmp_path / "clone")


def test_branches_go(grown: Path) -> None:
    table = lance_format.dataset(grown)
    main = table.to_table()
    branch = table.create_branch("a")
    lance_format.write_dataset({"a": [1]}, branch.uri, mode="append")
    table.create_branch("a/b", ("a", 4))
    table.create_branch("c")
    branch.tags.create("t", ("a", 5))
    with pytest.raises(InvalidInputError, match="'a/b' starts from 'a'"):
        table.branches.delete("a")
    table.branches.delete("a/b")
    with pytest.raises(InvalidInputError, match="tag 't' names"):
        table.branches.delete("a")
    table.tags.delete("t")
    table.create_branch("a/b")
    table.branches.delete("a")
    assert sorted(file.name for file in (grown / "tree").iterdir()) == ["a", "c"]
    assert [file.name for file in (grown / "tree/a").iterdir()] == ["b"]
    assert list(table.branches.list()) == sorted(lance.dataset(str(grown)).branches.list()) == ["a/b", "c"]
    for name in ("a/b", "c"):
        assert_same(grown / "tree" / name)
        table.branches.delete(name)
    assert not (grown / "tree").exists()
    assert assert_same(grown).to_table() == main
    with pytest.raises(VersionNotFoundError, match="no branch 'a'; it has none"):
        table.branches.delete("a")
