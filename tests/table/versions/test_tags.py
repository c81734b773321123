"""Tags, and versions by time."""

import dataclasses
import datetime
import json
import pickle
from pathlib import Path

import pytest

import lance_format
from lance_format import CorruptFileError, InvalidInputError, LanceDataset, StorageError, VersionNotFoundError
from lance_format.object_store.local_files import LocalWriter
from lance_format.table.versions.cleanup.tag_check import contradicting_tags
from lance_format.table.versions.refs import list_tags


@pytest.fixture
def table(tmp_path: Path) -> LanceDataset:
    for value in range(3):
        table = lance_format.write_dataset({"a": [value]}, tmp_path, mode="append")
    return table


def values(table: LanceDataset) -> list[int]:
    return [int(value) for value in table.to_table()["a"].to_pylist()]


def test_a_tag_names_a_version(table: LanceDataset, tmp_path: Path) -> None:
    table.tags.create("first", 1)
    table.tags.create("now")
    table.tags.create("again", "first")
    table.tags.create("main-2", ("main", 2))
    table.tags.create("latest", (None, None))
    assert {name: tag["version"] for name, tag in table.tags.list().items()} == {
        "again": 1,
        "first": 1,
        "latest": 3,
        "main-2": 2,
        "now": 3,
    }
    assert values(lance_format.dataset(tmp_path, "first")) == [0]
    assert values(table.checkout_version("main-2")) == [0, 1]
    assert values(lance_format.dataset(tmp_path, ("main", 2))) == [0, 1]
    assert table.tags.get_version("main-2") == 2
    assert [name for name, _ in table.tags.list_ordered()] == ["latest", "now", "main-2", "again", "first"]
    assert [name for name, _ in table.tags.list_ordered("asc")] == ["again", "first", "main-2", "latest", "now"]
    assert pickle.loads(pickle.dumps(table.checkout_version("first"))).version == 1


def test_a_tag_that_fails_leaves_nothing(table: LanceDataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(self: LocalWriter, data: bytes) -> None:
        raise StorageError("the disk is full")

    before = set(tmp_path.rglob("*"))
    monkeypatch.setattr(LocalWriter, "write", fail)
    with pytest.raises(StorageError):
        table.tags.create("t")
    monkeypatch.undo()
    assert set(tmp_path.rglob("*")) == before
    table.tags.create("t")


def test_a_tag_moves_and_goes(table: LanceDataset) -> None:
    table.tags.create("t", 1)
    before = table.tags.list()["t"]
    table.tags.replace_metadata("t", {"by": "me"})
    table.tags.update("t", 2)
    after = table.tags.list()["t"]
    assert (after["version"], after["metadata"], after["created_at"]) == (2, {"by": "me"}, before["created_at"])
    assert after["updated_at"] > before["updated_at"]
    table.tags.delete("t")
    assert table.tags.list() == {}


def test_what_is_not_there_is_told_with_what_is(table: LanceDataset, tmp_path: Path) -> None:
    table.tags.create("known")
    for act in (
        lambda: lance_format.dataset(tmp_path, "nope"),
        lambda: table.checkout_version("nope"),
        lambda: table.tags.get_version("nope"),
        lambda: table.tags.update("nope", 1),
        lambda: table.tags.delete("nope"),
        lambda: table.tags.create("new", "nope"),
        lambda: table.tags.replace_metadata("nope", {}),
    ):
        with pytest.raises(VersionNotFoundError, match="no tag 'nope'; it has known"):
            act()
    with pytest.raises(VersionNotFoundError, match=r"no version 9 .*versions 1 to 3"):
        table.tags.create("new", 9)
    with pytest.raises(VersionNotFoundError, match="no branch 'side'; it has none"):
        table.checkout_version(("side", 1))
    with pytest.raises(InvalidInputError, match=r"'known' .*exists"):
        table.tags.create("known", 1)
    assert list(table.tags.list()) == ["known"]
    assert table.tags.get_version("known") == 3


@pytest.mark.parametrize(
    "name",
    ["", "..", ".hidden", "end.", "a/b", "../x", "a\\b", "a b", "ü", "x.lock", "a..b", "a\0b", "x" * 300, 7, None],
)
def test_names_that_are_refused(table: LanceDataset, tmp_path: Path, name: str) -> None:
    files = sorted(tmp_path.rglob("*"))
    with pytest.raises(InvalidInputError):
        table.tags.create(name, 1)
    assert sorted(tmp_path.rglob("*")) == files


@pytest.mark.parametrize("name", ["", "..", ".", "/", "a//b", "a/", "/a", "a/../b", "a/./b", "a\\b", "ü", "x.lock", 7])
def test_branch_names_that_are_refused(table: LanceDataset, name: str) -> None:
    with pytest.raises(InvalidInputError):
        table.checkout_version((name, 1))


@pytest.mark.parametrize("reference", [True, 1.0, (1,), (None, "1"), (None, True), [None, 1]])
def test_references_that_make_no_sense(table: LanceDataset, tmp_path: Path, reference: object) -> None:
    with pytest.raises(InvalidInputError):
        table.checkout_version(reference)  # type: ignore[arg-type]
    with pytest.raises(InvalidInputError):
        lance_format.dataset(tmp_path, reference)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "content",
    [
        "",
        "7",
        "[]",
        "{}",
        '{"version": "1", "manifestSize": 1}',
        '{"version": -1, "manifestSize": 1}',
        '{"version": 1, "manifestSize": 1, "branch": 7}',
        '{"version": 1, "manifestSize": 1, "metadata": 7}',
        '{"version": 1, "manifestSize": 1, "createdAt": "soon"}',
        "[" * 100_000,
        b"\xff\xfe\x00",
    ],
)
def test_damaged_tags(table: LanceDataset, tmp_path: Path, content: str | bytes) -> None:
    table.tags.create("t")
    path = tmp_path / "_refs/tags/t.json"
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    with pytest.raises(CorruptFileError, match=r"t\.json"):
        table.checkout_version("t")
    with pytest.raises(CorruptFileError, match=r"t\.json"):
        table.tags.list()


def test_a_tag_leads_nowhere_else(table: LanceDataset, tmp_path: Path) -> None:
    table.tags.create("t")
    path = tmp_path / "_refs/tags/t.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "branch": "../../elsewhere"}))
    with pytest.raises(CorruptFileError, match="elsewhere"):
        table.checkout_version("t")


def test_tags_of_early_releases(table: LanceDataset, tmp_path: Path) -> None:
    (tmp_path / "_refs/tags").mkdir(parents=True)
    (tmp_path / "_refs/tags/old.json").write_text('{"version": 2, "manifestSize": 1}')
    assert table.checkout_version("old").version == 2
    assert table.tags.list()["old"]["created_at"] is None


def test_versions_by_time(table: LanceDataset, tmp_path: Path) -> None:
    times = [version["timestamp"] for version in table.versions()]
    moment = datetime.timedelta(microseconds=1)
    for number, time in enumerate(times, 1):
        assert lance_format.dataset(tmp_path, asof=time + moment).version == number
        assert lance_format.dataset(tmp_path, asof=str(time + moment)).version == number
        assert lance_format.dataset(tmp_path, asof=(time + moment).astimezone(datetime.UTC)).version == number
    assert lance_format.dataset(tmp_path, asof=times[2] - moment).version == 2
    assert lance_format.dataset(tmp_path, 3, times[0]).version == 3
    with pytest.raises(
        VersionNotFoundError, match=f"no version .* is as old as .*: the earliest, 1, was committed at {times[0]}"
    ):
        lance_format.dataset(tmp_path, asof=times[0])
    for nonsense in ("yesterday", 7, datetime.date(2026, 1, 1)):
        with pytest.raises(InvalidInputError, match="time"):
            lance_format.dataset(tmp_path, asof=nonsense)  # type: ignore[arg-type]


def test_the_latest_version_is_checked_out_in_place(table: LanceDataset) -> None:
    old = table.checkout_version(1)
    assert old.get_version() == table.versions()[0]
    assert old.version_refs() == [{"version": 1}, {"version": 2}, {"version": 3}]
    old.checkout_latest()
    assert old.version == 3


def damage(path: Path, **entries: object) -> None:
    path.write_text(json.dumps(json.loads(path.read_text()) | entries))


@pytest.mark.parametrize("version", [1, 9])
def test_a_cleanup_does_not_rely_on_a_damaged_tag(tmp_path: Path, version: int) -> None:
    for values_of_version in ([0], [0, 1], [2]):
        table = lance_format.write_dataset({"a": values_of_version}, tmp_path, mode="overwrite")
    table.update_config({"k": "v"})
    table.tags.create("kept", 3)
    damage(tmp_path / "_refs/tags/kept.json", version=version, updatedAt="2026-01-31T12:00:00.000000000Z")
    for act in (table.cleanup_old_versions, table.explain_cleanup_old_versions):
        with pytest.raises(CorruptFileError, match=rf"kept\.json: the tag 'kept' names version {version} with"):
            act(datetime.timedelta(0), error_if_tagged_old_versions=False)
    (found,) = table.verify().problems
    assert (found.path, found.type, found.status) == ("_refs/tags/kept.json", "reference", "inconsistent")
    assert f"names version {version}" in found.detail
    table.tags.update("kept", 3)
    assert not table.verify().problems
    assert table.cleanup_old_versions(datetime.timedelta(0), error_if_tagged_old_versions=False).old_versions == 2
    assert values(lance_format.dataset(tmp_path, "kept")) == [2]


def test_a_cleanup_ignores_a_tag_whose_writer_has_yet_to_look_for_its_version(
    table: LanceDataset, tmp_path: Path
) -> None:
    table.tags.create("new", 3)
    damage(tmp_path / "_refs/tags/new.json", version=9)
    assert table.cleanup_old_versions(datetime.timedelta(0)).old_versions == 2


def test_verify_reports_malformed_references(table: LanceDataset, tmp_path: Path) -> None:
    table.tags.create("t", 1)
    table.tags.create("u", 2)
    table.create_branch("b", 1)
    for name in ("tags/t", "branches/b"):
        path = tmp_path / f"_refs/{name}.json"
        path.write_bytes(path.read_bytes()[:-2])
    problems = table.verify().problems
    assert [finding.path for finding in problems] == ["_refs/tags/t.json", "_refs/branches/b.json"]
    assert all(f"{finding.path}: malformed reference" in finding.detail for finding in problems)


def test_a_tag_that_was_moved_since_is_not_doubted(table: LanceDataset) -> None:
    """Another cleanup may have removed the version that it named."""
    table.tags.create("t", 1)
    opened = table._table
    (tag,) = list_tags(opened.directory).values()
    stale = {"t": dataclasses.replace(tag, version=9, updated_at=None)}
    assert list(contradicting_tags(opened.directory, stale, None, opened.history())) == []
