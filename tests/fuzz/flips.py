"""Single damages to all files of a table: each must be an error that names the file, or change nothing that is read.

Files of older versions and transactions belong to it. What no read notices, `verify` must find.

python -m tests.fuzz.flips [--how flip|truncation|zeros|repetition|exchange] [--cases N] [--seed N]
"""

from __future__ import annotations

import argparse
import collections
import random
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa

import lance_format
from lance_format import LanceError
from tests.arrays import FLAT_TYPES, make_array
from tests.nested_arrays import RandomValues

VERSIONS = ("2.0", "2.1", "2.2")


def every_type(num_rows: int, version: str) -> pa.Table:
    """Return a column of every type, and an id."""
    values = RandomValues(random.Random(0), 0.1, 0.2, 4, null_structs=version != "2.0")
    nested = [
        pa.list_(pa.int32()),
        pa.list_(pa.float32(), 3),
        pa.struct([("x", pa.int32()), ("y", pa.string())]),
        pa.list_(pa.struct([("x", pa.int32()), ("names", pa.list_(pa.string()))])),
    ]
    columns = [make_array(kind, num_rows, "some nulls", "random", seed) for seed, kind in enumerate(FLAT_TYPES)]
    columns += [values.array(kind, num_rows) for kind in nested]
    names = [f"c{number}" for number in range(len(columns))]
    columns.append(pa.array([f"item {row % 7}" for row in range(num_rows)]).dictionary_encode())
    return pa.table([pa.array(range(num_rows)), *columns], names=["id", *names, "keys"])


def make_table(path: Path, version: str, num_rows: int = 900) -> None:
    """Write a table of every type, with deletion files, several fragments and versions, and an index."""
    table = every_type(num_rows, version)
    lance_format.write_dataset(table, path, data_storage_version=version, max_rows_per_file=num_rows // 3)
    dataset = lance_format.dataset(path)
    dataset.delete("id % 7 = 3")
    dataset.create_scalar_index("id", "ZONEMAP")
    dataset.delete(f"id % 7 = 4 AND id < {num_rows // 2}")


def read_latest(path: Path) -> list[object]:
    """Return what the latest version holds, read in several ways."""
    dataset = lance_format.dataset(path)
    return [
        dataset.to_table(),
        dataset.to_table(columns=["id"], filter="id >= 500 and id < 520"),
        dataset.take([1, dataset.count_rows() - 2]),
        (dataset.count_rows(), repr(dataset.read_transaction(dataset.version))),
    ]


def read_older(path: Path) -> list[object]:
    """Return what a version before the latest one holds; each reads some of its columns."""
    found: list[object] = []
    for version in (1, 2, 3):
        dataset = lance_format.dataset(path, version=version)
        found += [dataset.to_table(columns=["id", "c3", "keys"]), repr(dataset.read_transaction(version))]
    return found


def read_history(path: Path) -> list[object]:
    """Return the descriptions of all versions."""
    dataset = lance_format.dataset(path)
    return [dataset.versions(), repr(list(dataset.version_log()))]


READS: tuple[Callable[[Path], list[object]], ...] = (read_latest, read_older, read_history)


def flip(rng: random.Random, data: bytes) -> bytes:
    """Change one bit."""
    damaged = bytearray(data)
    damaged[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
    return bytes(damaged)


def truncate(rng: random.Random, data: bytes) -> bytes:
    """Cut the end."""
    return data[: rng.randrange(len(data))]


def zero(rng: random.Random, data: bytes) -> bytes:
    """Fill a sector with zeros."""
    size = rng.choice((64, 512, 4096))
    start = rng.randrange(len(data)) // size * size
    return (data[:start] + bytes(size) + data[start + size :])[: len(data)]


def repeat(rng: random.Random, data: bytes) -> bytes:
    """Let a sector hold what another one holds."""
    size = rng.choice((64, 512, 4096))
    start, other = (rng.randrange(len(data)) // size * size for _ in range(2))
    part = data[other : other + size]
    return (data[:start] + part + data[start + len(part) :])[: len(data)]


DAMAGES: dict[str, Callable[[random.Random, bytes], bytes]] = {
    "flip": flip,
    "truncation": truncate,
    "zeros": zero,
    "repetition": repeat,
}


EXCHANGE = "exchange"
"""Another file in the place of one: of the same table, or of one with the same rows."""


class Campaign:
    """Damages files of one table, one at a time.

    Parameters
    ----------
    path : Path
        The table.
    other : Path
        Another table with the same rows.
    """

    def __init__(self, path: Path, other: Path) -> None:
        self._path = path
        self._others = {file: file.read_bytes() for file in self._files_of(other)}
        self._files = {file: file.read_bytes() for file in self._files_of(path)}
        self._expected = [read(path) for read in READS]
        self._weights = [len(data) ** 0.5 for data in self._files.values()]

    @staticmethod
    def _files_of(path: Path) -> Iterator[Path]:
        """Yield all files of all versions."""
        for directory in ("_versions", "_transactions", "data", "_deletions", "_indices"):
            yield from sorted(file for file in (path / directory).rglob("*") if file.is_file())

    def run(self, rng: random.Random, how: str) -> tuple[str, str]:
        """Damage a file; return its kind, and the result: see `run_campaign`."""
        (file,) = rng.choices(list(self._files), self._weights)
        kind, data = file.relative_to(self._path).parts[0], self._files[file]
        damaged = self._exchange(rng, file) if how == EXCHANGE else DAMAGES[how](rng, data)
        if damaged == data:
            return kind, "unchanged"
        file.write_bytes(damaged)
        try:
            return kind, self._read(file, how)
        finally:
            file.write_bytes(data)

    def _read(self, file: Path, how: str) -> str:
        """Read a table with a damaged file in all ways, each of which may fail; return the worst result."""
        named = [file, *self._others] if how == EXCHANGE else [file]  # Another manifest names its own files.
        is_found = False
        for read, expected in zip(READS, self._expected, strict=True):
            try:
                if read(self._path) != expected:
                    return f"WRONG ANSWER of {read.__name__} after damage to {file}"
            except LanceError as error:
                if not any(one.name in str(error) for one in named):
                    return f"the error of {read.__name__} does not name {file}: {error}"
                is_found = True
            except Exception as error:  # Anything else is a defect, which the campaign reports.
                return f"{type(error).__name__} of {read.__name__} after damage to {file}: {error}"
        if is_found:
            return "found"
        if file.suffix == ".json":  # A hint, which readers do not rely on.
            return "harmless"
        return "found by verify" if self._is_verified(file) else f"UNNOTICED in {file}"

    def _is_verified(self, file: Path) -> bool:
        """Return whether `verify` finds a damage."""
        problems = lance_format.dataset(self._path).verify().problems
        return any(file.name in f"{found.path} {found.detail}" for found in problems)

    def _exchange(self, rng: random.Random, file: Path) -> bytes:
        """Return the bytes of another file of the same kind, half of the time made as long as those of this one."""
        kind, size = file.relative_to(self._path).parts[0], len(self._files[file])
        files = {**self._files, **self._others}
        data = files[rng.choice([other for other in files if kind in other.parts and other != file])]
        return data[:size].ljust(size, b"\0") if rng.random() < 0.5 else data


def run_campaign(
    directory: Path, cases: int, seed: int, how: str = "flip", num_rows: int = 900
) -> collections.Counter[tuple[str, str]]:
    """Damage files of tables of all versions; return how often there was each result per kind of files.

    The result is `unchanged` if the damage has changed no byte, `found` if a read failed with an error that names the
    file, `found by verify` if no read noticed it and all answers were right, `harmless` for hints, or a text that says
    what is wrong.
    """
    results: collections.Counter[tuple[str, str]] = collections.Counter()
    for version in VERSIONS:
        path = directory / f"{how}-{version}"
        other = directory / f"{how}-{version}-other"
        for place in (path, other):
            make_table(place, version, num_rows)
        campaign = Campaign(path, other)
        rng = random.Random(f"{seed} {version}")
        results.update(campaign.run(rng, how) for _ in range(cases // len(VERSIONS)))
    return results


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--cases", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--how", choices=[*DAMAGES, EXCHANGE], default="flip")
    options = parser.parse_args()
    directory = Path(tempfile.mkdtemp(prefix="verify-flips-"))
    try:
        for (kind, result), count in run_campaign(directory, options.cases, options.seed, options.how).most_common():
            print(f"{count:9} {kind:13} {result}")
    finally:
        shutil.rmtree(directory)


if __name__ == "__main__":
    main()
