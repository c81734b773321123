"""Tables of early releases: their manifests open; their data files are of versions that cannot be read yet."""

import shutil
from pathlib import Path

import lance
import pytest

import lance_format
from lance_format import DatasetNotFoundError, NotSupportedError
from tests.table.builders import rows

TABLES = Path(__file__).parents[2] / "data" / "old_tables"


def table_names() -> list[str]:
    return sorted(str(path.parent.relative_to(TABLES)) for path in TABLES.glob("*/*/_versions"))


@pytest.mark.parametrize("name", table_names())
def test_manifests_open_as_in_pylance(name: str) -> None:
    ours, reference = lance_format.dataset(TABLES / name), lance.dataset(str(TABLES / name))
    assert ours.schema == reference.schema
    assert (ours.version, ours.latest_version) == (reference.version, reference.latest_version)
    assert [entry["version"] for entry in ours.versions()] == [entry["version"] for entry in reference.versions()]
    assert ours.data_storage_version == reference.data_storage_version
    assert [f.fragment_id for f in ours.get_fragments()] == [f.fragment_id for f in reference.get_fragments()]


@pytest.mark.parametrize(
    ("name", "error"),
    [
        ("v0.5.9/dataset_with_fragments", DatasetNotFoundError),
        ("v0.7.5/with_deletions", NotSupportedError),
        ("v0.15.0/v1_with_files.lance", NotSupportedError),
        ("v0.15.0/v2_with_files.lance", NotSupportedError),
    ],
)
def test_data_that_cannot_be_read_is_a_clear_error(name: str, error: type[Exception]) -> None:
    table = lance_format.dataset(TABLES / name)
    with pytest.raises(error, match=table.get_fragments()[0].data_files()[0].path):
        table.to_table()


@pytest.mark.parametrize("name", ["v0.5.9/no_fragments", "v0.15.0/v1_no_files.lance", "v0.15.0/v2_no_files.lance"])
def test_tables_without_rows_are_read(name: str) -> None:
    table = lance_format.dataset(TABLES / name)
    assert table.count_rows() == table.to_table().num_rows == 0


def test_rows_are_counted_where_the_manifest_tells(tmp_path: Path) -> None:
    for name in ("v0.15.0/v1_with_files.lance", "v0.15.0/v2_with_files.lance"):
        assert lance_format.dataset(TABLES / name).count_rows() == 3


def test_an_overwrite_takes_an_old_table_over(tmp_path: Path) -> None:
    shutil.copytree(TABLES / "v0.5.9/dataset_with_fragments", tmp_path / "t")
    with pytest.raises(NotSupportedError, match=r"0\.1"):
        lance_format.write_dataset(rows(0, 5), tmp_path / "t", mode="overwrite")
    ours = lance_format.write_dataset(rows(0, 5), tmp_path / "t", mode="overwrite", data_storage_version="2.2")
    assert (ours.version, ours.get_fragments()[0].fragment_id) == (4, 3)
    assert (tmp_path / "t/_versions/4.manifest").exists()
    reference = lance.dataset(str(tmp_path / "t"))
    reference.validate()
    assert reference.to_table() == ours.to_table() == rows(0, 5)


def test_an_append_to_a_table_of_the_first_file_format_is_refused(tmp_path: Path) -> None:
    shutil.copytree(TABLES / "v0.15.0/v1_with_files.lance", tmp_path / "t")
    table = lance_format.dataset(tmp_path / "t")
    with pytest.raises(lance_format.InvalidInputError, match="cannot be appended"):
        lance_format.write_dataset(
            table.schema.empty_table(), tmp_path / "t", mode="append", data_storage_version="2.2"
        )
