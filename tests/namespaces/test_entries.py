"""Namespaces that catalogs of any tables keep: AWS Glue on moto's server, and a Hive metastore."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import lance_format
from lance_format import DatasetExistsError, InvalidInputError, NamespaceListing, NotSupportedError, StorageError
from tests.namespaces.keepers import Keeper, glue_keeper, hive_keeper, new_database, write


@pytest.fixture(params=["glue", "hive"])
def keeper(request: pytest.FixtureRequest, tmp_path: Path) -> Keeper:
    if request.param == "glue":
        return glue_keeper(request.getfixturevalue("s3_server"), f"{tmp_path}/")
    return hive_keeper(request.getfixturevalue("hive_metastore"), f"{tmp_path}/")


@pytest.fixture
def db(keeper: Keeper) -> Iterator[str]:
    with new_database(keeper.namespace) as name:
        yield name


def test_namespaces(keeper: Keeper, db: str, tmp_path: Path) -> None:
    namespace = keeper.namespace
    given = {"comment": "mine", "location": f"file:{tmp_path}/a", "owner": "me", "team": "x"}
    name = f"{db}_other"
    namespace.create([name], given)
    namespace.create([name], {"owner": "you"})
    assert namespace.properties([name]) == given
    assert {db, name} <= set(namespace.listing().namespaces)
    assert namespace.listing([db]) == NamespaceListing((), ())
    assert namespace.exists([])
    assert namespace.exists([name.upper()])
    assert namespace.properties([]) == {}
    for absent in (["none"], [db, "inner"]):
        assert not namespace.exists(absent)
        assert namespace.properties(absent) is None
        assert namespace.listing(absent) is None
        with pytest.raises(StorageError, match=f"{keeper.name} has none of this name"):
            namespace.remove(absent)
    with pytest.raises(NotSupportedError, match="names of one part"):
        namespace.create([db, "inner"])
    assert namespace.remove([name])
    assert not namespace.exists([name])


def test_tables(keeper: Keeper, db: str, tmp_path: Path) -> None:
    namespace = keeper.namespace
    assert namespace.find([db, "t"]) is None
    place = namespace.declare([db, "T"])
    assert place.uri == f"{tmp_path}/{db}/t.lance"
    assert namespace.find([db, "t"]) == namespace.find([db.upper(), "T"]) == place
    with pytest.raises(DatasetExistsError, match=rf"declare the table {db}\.t"):
        namespace.declare([db, "t"])
    assert namespace.reserve([db, "t"]) == (place, False)
    with pytest.raises(InvalidInputError, match=r"the table db.*\.t is at .* already"):
        namespace.reserve([db, "t"], "/elsewhere")
    write(place, 1, 2)
    write(namespace.declare([db, "u"], str(tmp_path / "placed")), 3)
    assert namespace.listing([db]) == NamespaceListing((), ("t", "u"))
    assert not namespace.remove([db])
    namespace.rename([db, "t"], [db, "v"])
    assert namespace.find([db, "v"]) == place
    assert namespace.find([db, "t"]) is None
    with pytest.raises(DatasetExistsError, match="rename the table"):
        namespace.rename([db, "v"], [db, "u"])
    with pytest.raises(StorageError, match="no table of this name"):
        namespace.rename([db, "t"], [db, "x"])
    with pytest.raises(StorageError, match="cannot rename the table"):
        namespace.rename([db, "v"], ["none", "v"])
    assert namespace.find([db, "v"]) == place
    assert namespace.deregister([db, "v"])
    assert not namespace.deregister([db, "v"])
    assert lance_format.dataset(place.uri).count_rows() == 2
    assert namespace.drop([db, "u"])
    assert not namespace.drop([db, "u"])
    assert not (tmp_path / "placed").exists()
    namespace.declare([db, "declared"])
    assert namespace.drop([db, "declared"])


def test_names_of_other_lengths(keeper: Keeper, db: str) -> None:
    namespace = keeper.namespace
    for name in (["t"], [db, "a", "t"]):
        assert namespace.find(name) is None
        with pytest.raises(InvalidInputError, match="have two parts"):
            namespace.declare(name)
    with pytest.raises(StorageError, match=f"{keeper.name} has no namespace none"):
        namespace.declare(["none", "t"])
    service = {"Glue": "AWS Glue"}.get(keeper.name, keeper.name)
    with pytest.raises(StorageError, match=rf"cannot declare the table none\.t in {service}"):
        namespace.declare(["none", "t"], "/t")


def test_entries_of_others(keeper: Keeper, db: str, tmp_path: Path) -> None:
    namespace = keeper.namespace
    keeper.add(db, "ice", f"{tmp_path}/ice", {"table_type": "ICEBERG", "EXTERNAL": "TRUE"})
    keeper.add(db, "csv", f"{tmp_path}/csv", {"EXTERNAL": "TRUE"})
    place = namespace.declare([db, "t"])
    write(place, 1)
    assert namespace.listing([db]) == NamespaceListing((), ("t",))
    for act in (namespace.find, namespace.deregister, namespace.drop, lambda name: namespace.rename(name, [db, "x"])):
        with pytest.raises(
            NotSupportedError, match=f"is no Lance table: {keeper.name} has an entry of this name of type ICEBERG"
        ):
            act([db, "ice"])
    with pytest.raises(DatasetExistsError):
        namespace.declare([db, "csv"])
    assert not namespace.remove([db])
    with pytest.raises(InvalidInputError, match="entries that are no Lance tables, such as 'csv'"):
        namespace.remove([db], cascade=True)
    assert namespace.find([db, "t"]) == place
    for name in ("ice", "csv"):
        keeper.drop(db, name)
    assert namespace.remove([db], cascade=True)
    assert lance_format.dataset(place.uri).count_rows() == 1  # Only its name is gone.
