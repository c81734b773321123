"""Single damages to all files of a table: each must be an error that names the file, or change nothing that is read.

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
    """Write a table of every type, with deletion files, several fragments, and an index."""
    table = every_type(num_rows, version)
    lance_format.write_dataset(table, path, data_storage_version=version, max_rows_per_file=num_rows // 3)
    dataset = lance_format.dataset(path)
    dataset.delete("id % 7 = 3")
    dataset.create_scalar_index("id", "ZONEMAP")


def read_all(path: Path) -> tuple[pa.Table, ...]:
    """Return what a table holds, read in several ways."""
    dataset = lance_format.dataset(path)
    return (
        dataset.to_table(),
        dataset.to_table(columns=["id"], filter="id >= 500 and id < 520"),
        dataset.take([1, dataset.count_rows() - 2]),
        pa.table({"rows": [dataset.count_rows()], "changed": [repr(dataset.read_transaction(dataset.version))]}),
    )


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
        self._expected = read_all(path)
        self._weights = [len(data) ** 0.5 for data in self._files.values()]

    @staticmethod
    def _files_of(path: Path) -> Iterator[Path]:
        """Yield the files that reading the latest version reads."""
        yield max((path / "_versions").glob("*.manifest"), key=lambda file: _version_of(file.name))
        for directory in ("data", "_deletions", "_indices"):
            yield from sorted(file for file in (path / directory).rglob("*") if file.is_file())

    def run(self, rng: random.Random, how: str) -> str:
        """Damage a file, and return the result: `harmless`, `found`, or what is wrong."""
        (file,) = rng.choices(list(self._files), self._weights)
        data = self._files[file]
        damaged = self._exchange(rng, file) if how == EXCHANGE else DAMAGES[how](rng, data)
        if damaged == data:
            return "harmless"
        file.write_bytes(damaged)
        try:
            found = read_all(self._path)
        except LanceError as error:
            named = [file, *self._others] if how == EXCHANGE else [file]  # Another manifest names its own files.
            return (
                "found" if any(one.name in str(error) for one in named) else f"the error does not name {file}: {error}"
            )
        except Exception as error:  # Anything else is a defect, which the campaign reports.
            return f"{type(error).__name__} after damage to {file}: {error}"
        finally:
            file.write_bytes(data)
        if found != self._expected:
            return f"WRONG ANSWER after damage to {file}"
        return "harmless"

    def _exchange(self, rng: random.Random, file: Path) -> bytes:
        """Return the bytes of another file of the same kind, half of the time made as long as those of this one."""
        kind, size = file.relative_to(self._path).parts[0], len(self._files[file])
        files = {**self._files, **self._others}
        data = files[rng.choice([other for other in files if kind in other.parts and other != file])]
        return data[:size].ljust(size, b"\0") if rng.random() < 0.5 else data


def _version_of(name: str) -> int:
    """Return the version in the name of a manifest."""
    return 2**64 - 1 - int(name.partition(".")[0])


def run_campaign(
    directory: Path, cases: int, seed: int, how: str = "flip", num_rows: int = 900
) -> collections.Counter[str]:
    """Damage files of tables of all versions; returns how often there was each result."""
    results: collections.Counter[str] = collections.Counter()
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
        for result, count in run_campaign(directory, options.cases, options.seed, options.how).most_common():
            print(f"{count:9} {result}")
    finally:
        shutil.rmtree(directory)


if __name__ == "__main__":
    main()
