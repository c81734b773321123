"""Roles of processes that use a table while it is cleaned up."""

import time

import lance_format
from lance_format import DatasetNotFoundError, LanceDataset, RetryableCommitConflictError, VersionNotFoundError


def write(path: str, number: int) -> None:
    """Append a row, and move it."""
    try:
        lance_format.write_dataset({"a": [number]}, path, mode="append")
        lance_format.dataset(path).update({"a": "a"}, f"a = {number}")
    except RetryableCommitConflictError:  # A version between the planned-on and the latest one is gone.
        pass


def read(path: str, _: int) -> None:
    check(lance_format.dataset(path))


def check(table: LanceDataset) -> None:
    try:
        assert 0 in table.to_table()["a"].to_pylist()
    except DatasetNotFoundError:
        if table.version in [ref["version"] for ref in table.version_refs()]:
            raise


def tag(path: str, number: int) -> None:
    table = lance_format.dataset(path)
    name = f"t{number}"
    table.tags.create(name)
    tagged = table.checkout_version(name)
    assert 0 in tagged.to_table()["a"].to_pylist()
    assert tagged.version in [ref["version"] for ref in table.version_refs()]
    table.tags.delete(name)


def branch(path: str, number: int) -> None:
    made = lance_format.dataset(path).create_branch(f"b{number}")
    lance_format.write_dataset({"a": [number]}, made.uri, mode="append")
    assert {0, number} <= set(lance_format.dataset(made.uri).to_table()["a"].to_pylist())
    made.branches.delete(f"b{number}")


def clean(path: str, _: int) -> None:
    lance_format.dataset(path).cleanup_old_versions(retain_versions=2, error_if_tagged_old_versions=False)


ROLES = {work.__name__: work for work in (write, read, tag, branch, clean)}


def play(role: str, path: str, number: int, seconds: float) -> int:
    """Return how often the work was done, which is once at least: the seconds may be over when the process runs."""
    done = 0
    end = time.monotonic() + seconds
    while time.monotonic() < end or not done:
        number += 1
        try:
            ROLES[role](path, number)
            done += 1
        except VersionNotFoundError:
            if role == "clean":
                raise
    return done
