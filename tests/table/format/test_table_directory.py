"""The directory of a table: the one value that composes the paths below it."""

import ast
from pathlib import Path

import pytest

import lance_format
from lance_format.errors import InvalidInputError
from lance_format.object_store.memory import MemoryStore
from lance_format.table.format.base_paths import BasePath
from lance_format.table.format.file_entries import DataFile
from lance_format.table.format.layout import ManifestNaming
from lance_format.table.format.table_directory import TableDirectory
from tests.table.builders import rows

HERE = TableDirectory(MemoryStore(), "memory://a/t")


def test_paths_lie_below_the_directory() -> None:
    assert HERE.data == "memory://a/t/data"
    assert HERE.manifest(3) == f"memory://a/t/_versions/{2**64 - 4}.manifest"
    assert HERE.manifest(3, ManifestNaming.V1) == "memory://a/t/_versions/3.manifest"
    assert HERE.transaction("2-x.txn") == "memory://a/t/_transactions/2-x.txn"
    assert HERE.index("u") == "memory://a/t/_indices/u"
    assert HERE.relative(HERE.tags) == "_refs/tags"
    assert str(HERE) == HERE.root


@pytest.mark.parametrize("name", ["b", "a/b", None])
def test_a_branch_knows_the_main_one(name: str | None) -> None:
    branch = HERE.branch(name)
    assert branch.root == (HERE.root if name is None else f"{HERE.root}/tree/{name}")
    assert branch.main(name) == HERE
    assert branch.store is HERE.store


def test_an_entry_may_lie_in_another_branch() -> None:
    own = DataFile("x.lance", (), (), 2, 1, 0)
    shared = DataFile("x.lance", (), (), 2, 1, 0, base_id=4)
    branch = HERE.branch("b")
    assert branch.holding(own, {}) == branch.holding(None, {}) == branch
    assert branch.holding(shared, {4: BasePath(HERE.root)}) == HERE
    files = branch.holding(shared, {4: BasePath("/files", is_table=False)})
    assert [files.path(shared.relative_path), files.data] == ["/files/x.lance", "/files"]


def test_a_uri_names_it(tmp_path: Path) -> None:
    lance_format.write_dataset(rows(0, 3), tmp_path / "t")
    found = TableDirectory.at(tmp_path / "t")
    assert [found.relative(info.path).split("/")[0] for info in found.store.list_objects(found.data)] == ["data"]
    with pytest.raises(InvalidInputError, match="empty"):
        TableDirectory.at("")


def test_no_other_room_names_directories() -> None:
    table = Path(lance_format.__file__).parent / "table"
    found = [
        f"{path.relative_to(table)}: {name.name}"
        for path in table.rglob("*.py")
        if path.parent.name != "format"
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.ImportFrom) and node.module == "lance_format.table.format.layout"
        for name in node.names
        if name.name.isupper()
    ]
    assert found == []
