"""Transactions of versions, as both libraries return them."""

import datetime
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest

import lance_format
from lance_format import InvalidInputError, RetryableCommitConflictError, VersionNotFoundError
from lance_format.table.transaction.operations import Append, Delete, Overwrite, Update


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Versions 1 to 6, alternately by either library."""
    table = pa.table({"a": range(10)})
    lance_format.write_dataset(table, tmp_path, commit_message="begin", transaction_properties={"by": "us"})
    lance.write_dataset(table, tmp_path, mode="append", transaction_properties={"by": "pylance"})
    lance_format.dataset(tmp_path).delete("a = 1")
    lance.dataset(tmp_path).delete("a = 2")
    lance_format.dataset(tmp_path).update({"a": "a + 1"})
    lance_format.write_dataset(table, tmp_path, mode="overwrite", commit_message="")
    return tmp_path


def known(transaction: Any) -> tuple[Any, ...]:
    properties = transaction.transaction_properties
    return transaction.read_version, transaction.uuid, type(transaction.operation).__name__, properties


def test_transactions(path: Path) -> None:
    ours, reference = lance_format.dataset(path), lance.dataset(path)
    for version in range(1, 7):
        assert known(ours.read_transaction(version)) == known(reference.read_transaction(version))
    assert [type(ours.read_transaction(version).operation) for version in range(1, 7)] == [
        Overwrite,
        Append,
        Delete,
        Delete,
        Update,
        Overwrite,
    ]
    for version, count in ((6, 10), (6, 2), (3, 2), (1, 5)):
        found, expected = (table.checkout_version(version).get_transactions(count) for table in (ours, reference))
        assert list(map(known, found)) == list(map(known, expected))
    for missing in (0, 7):
        with pytest.raises(VersionNotFoundError):
            ours.read_transaction(missing)


def test_transactions_of_versions_that_are_left(path: Path) -> None:
    ours, reference = lance_format.dataset(path), lance.dataset(path)
    ours.cleanup_old_versions(retain_versions=2)
    assert [known(found) for found in ours.get_transactions()] == list(map(known, reference.get_transactions()))
    assert len(ours.get_transactions()) == 2


def test_a_change_that_starts_again_only_for_a_time(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = lance_format.dataset(path)
    tries = []

    def refuse(*_: object, **__: object) -> None:
        tries.append(1)
        raise RetryableCommitConflictError("somebody was faster")

    monkeypatch.setattr(lance_format.table.versions.table_version.TableVersion, "commit", refuse)
    for timeout, expected in ((datetime.timedelta(0), 1), (datetime.timedelta(minutes=1), 4), (None, 4)):
        for change in (
            lambda timeout=timeout: table.delete("a = 1", conflict_retries=3, retry_timeout=timeout),
            lambda timeout=timeout: table.update({"a": "1"}, conflict_retries=3, retry_timeout=timeout),
        ):
            tries.clear()
            with pytest.raises(RetryableCommitConflictError):
                change()
            assert len(tries) == expected
    for timeout in (datetime.timedelta(-1), 3):
        with pytest.raises(InvalidInputError, match="timeout"):
            table.delete("a = 1", retry_timeout=timeout)
