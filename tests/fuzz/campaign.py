"""Damaged files by the thousand, each read in a child process with little memory and little time.

    python -m tests.fuzz.campaign [--cases N] [--seed N] [--mode compiled|checked|guarded] [--kind file|table]

`compiled` runs kernels as users do, `checked` compiles them with numba's bounds checks, `guarded` interprets them on
arrays that also refuse negative indices and slices that reach too far. Every case ends in rows or in a `LanceError`;
anything else - another exception, a warning, a crash, more memory, more time - is printed with its number, and
`--only N` runs that case alone, in this process.
"""

from __future__ import annotations

import argparse
import collections
import os
import pickle
import random
import resource
import selectors
import shutil
import signal
import subprocess
import sys
import tempfile
import traceback
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pyarrow as pa
from google.protobuf.message import DecodeError

import lance_format
from lance_format import LanceError
from lance_format.file import ColumnProjection, FileReader, Verification, column_indices
from lance_format.proto import array_encodings_pb2, file_pb2, table_pb2
from tests.fuzz import guarded
from tests.fuzz.damage import (
    Container,
    MemoryReader,
    Pool,
    collect,
    copy_container,
    damage_bytes,
    damage_message,
    encoding_of,
    layout_of,
    open_container,
    set_encoding,
    set_layout,
)

CASE_SECONDS = 10.0
"""Of CPU time."""
SILENT_SECONDS = 600.0
"""Maximum silence of a child, on a loaded machine."""
ROOM_BYTES = 1 << 30
"""Memory that a case may use beyond that of a process that has read every sample."""

_MANY_ROWS = 20_000
_BATCHES = 5
_ROWS = {"compiled": 1500, "checked": 1500, "guarded": 130}


@dataclass
class Report:
    """The result of a campaign."""

    outcomes: collections.Counter[str] = field(default_factory=collections.Counter)
    defects: list[str] = field(default_factory=list)

    def kinds(self) -> dict[str, list[str]]:
        """Return the defects by the place where they arose."""
        kinds: dict[str, list[str]] = {}
        for defect in self.defects:
            lines = [line for line in defect.splitlines() if "lance_format" in line] or [""]
            kinds.setdefault(lines[-1].strip(), []).append(defect)
        return kinds


class Cases:
    """Numbered cases, each made from the seed and its number alone."""

    def __init__(self, kind: str, samples: Path, seed: int) -> None:
        self._kind = kind
        self._seed = seed
        self._pool: Pool = {}
        if kind == "file":
            self._files: dict[str, bytes] = pickle.loads((samples / "files").read_bytes())
            self._containers = {
                name: open_container(data) for name, data in self._files.items() if not name.startswith("legacy")
            }
            for container in self._containers.values():
                encodings = [encoding_of(column) for column in container.columns]
                for message in (container.descriptor, *container.columns, *encodings):
                    collect(self._pool, message)
                for page in (page for column in container.columns for page in column.pages):
                    collect(self._pool, layout_of(page))
        else:
            self._directory = Path(tempfile.mkdtemp(dir=samples))
            self._table = self._directory / "table"
            shutil.copytree(samples / "table", self._table)
            self._manifest = sorted((self._table / "_versions").glob("*.manifest"))[0]
            others = [*(self._table / "_transactions").glob("*.txn"), *(self._table / "_deletions").iterdir()]
            self._targets = {path: path.read_bytes() for path in [self._manifest, *sorted(others)]}
            message = table_pb2.Manifest.FromString(self._manifest_body())
            collect(self._pool, message)

    def warm_up(self) -> None:
        """Read every sample once, so that all kernels are there before memory is limited."""
        if self._kind == "file":
            for name, data in self._files.items():
                assert read_file(data, random.Random(0)), name
        else:
            assert self._read_table()

    def run(self, number: int) -> tuple[str, bool]:
        """Run a case; return the damage, and whether the file was read nevertheless."""
        rng = random.Random(f"{self._seed}:{number}")
        if self._kind == "table":
            return self._run_table(rng)
        name = rng.choice(list(self._files))
        how, data = self._damage_file(rng, name)
        return f"{how}; {name}", read_file(data, rng)

    def _damage_file(self, rng: random.Random, name: str) -> tuple[str, bytes]:
        chance = rng.random()
        whole = self._files[name]
        if chance < 0.05:
            return "truncation", whole[: rng.randrange(len(whole))]
        if chance < 0.1:
            return "bytes", damage_bytes(rng, whole)
        if name not in self._containers:  # Files of format 0.1 have most of what says something at their end.
            return "end", damage_bytes(rng, whole, (max(0, len(whole) - rng.choice([100, 500, 3000])), len(whole)))
        container = copy_container(self._containers[name])
        if len(container.metadata.global_buffers) > 1 and rng.random() < 0.5:
            return "statistics", _damage_statistics(rng, container)
        indexed = [column for column in container.columns if encoding_of(column).HasField("zone_index")]
        if indexed and rng.random() < 0.6:
            return "zone index", _damage_zone_index(rng, container, rng.choice(indexed))
        if chance < 0.5:
            return "payload", _damage_payload(rng, container)
        if chance < 0.6:
            damage_message(rng, container.descriptor, self._pool)
            if rng.random() < 0.2:
                container.columns *= 2
            return "descriptor", container.build()
        if chance < 0.75:
            column = rng.choice(container.columns)
            if rng.random() < 0.5:
                encoding = encoding_of(column)
                damage_message(rng, encoding, self._pool)
                set_encoding(column, encoding)
            else:
                damage_message(rng, column, self._pool)
            return "column metadata", container.build()
        if chance < 0.8:
            _lie_about_rows(rng, container)
            return "rows", container.build()
        page = rng.choice(rng.choice(container.columns).pages)
        layout = layout_of(page)
        damage_message(rng, layout, self._pool)
        set_layout(page, layout)
        if rng.random() < 0.2:
            _lie_about_rows(rng, container)
        if rng.random() < 0.2:
            return "layout and payload", _damage_payload(rng, container)
        return "layout", container.build()

    def _manifest_body(self) -> bytes:
        data = self._targets[self._manifest]
        position = int.from_bytes(data[-16:-8], "little")
        size = int.from_bytes(data[position : position + 4], "little")
        return data[position + 4 : position + 4 + size]

    def _run_table(self, rng: random.Random) -> tuple[str, bool]:
        path = rng.choice([self._manifest, *self._targets])
        whole = self._targets[path]
        chance = rng.random()
        if chance < 0.15:
            how, data = "truncation", whole[: rng.randrange(len(whole))]
        elif chance < 0.55 or path != self._manifest:
            how, data = "bytes", damage_bytes(rng, whole)
        else:
            message = table_pb2.Manifest.FromString(self._manifest_body())
            damage_message(rng, message, self._pool)
            body = message.SerializeToString()
            position = int.from_bytes(whole[-16:-8], "little")
            how, data = "message", whole[:position] + len(body).to_bytes(4, "little") + body + whole[-16:]
        path.write_bytes(data)
        try:
            return f"{how} of {path.parent.name}", self._read_table()
        finally:
            path.write_bytes(whole)

    def _read_table(self) -> bool:
        try:
            table = lance_format.dataset(self._table, verify_checksums=False)
            table.versions()
            rows = table.count_rows()
            found = 0
            for batch in table.to_batches(batch_size=16):
                found += batch.num_rows
                if found > _MANY_ROWS:
                    return True
            assert rows == found, f"{rows} rows are counted, {found} found"
            table.scanner(with_row_id=True, with_row_address=True, limit=_MANY_ROWS).to_table()
            table.take_rows([2, 31])
            table.take([0, rows // 2, rows - 1] if rows else [])
        except LanceError:
            return False
        return True


def _damage_payload(rng: random.Random, container: Container) -> bytes:
    pages = [page for column in container.columns for page in column.pages]
    ranges = [pair for page in pages for pair in zip(page.buffer_offsets, page.buffer_sizes, strict=False) if pair[1]]
    if ranges:
        offset, size = rng.choice(ranges)
        if offset + size <= len(container.data):
            container.data = damage_bytes(rng, container.data, (offset, offset + size))
    return container.build()


def _damage_statistics(rng: random.Random, container: Container) -> bytes:
    """Damage a global buffer, or its location in the schema."""
    metadata = container.descriptor.schema.metadata
    if metadata and rng.random() < 0.1:
        key = rng.choice(sorted(metadata))
        metadata[key] = (
            damage_bytes(rng, metadata[key]) if rng.random() < 0.5 else metadata[rng.choice(sorted(metadata))]
        )
        return container.build()
    buffer = rng.choice(container.metadata.global_buffers[1:])
    end = buffer.offset + buffer.size
    # Offsets are at the end, of Arrow's files and ours.
    start = max(buffer.offset, end - rng.choice([100, 1000, 10_000]))
    container.data = damage_bytes(rng, container.data, (start, end))
    return container.build()


def _damage_zone_index(rng: random.Random, container: Container, column: file_pb2.ColumnMetadata) -> bytes:
    """Damage the file of a zone index, mostly its end, or its entry in the column."""
    if rng.random() < 0.3:
        encoding = encoding_of(column)
        damage_message(rng, encoding, {})
        set_encoding(column, encoding)
        return container.build()
    begin = column.buffer_offsets[0]
    end = begin + column.buffer_sizes[0]
    container.data = damage_bytes(rng, container.data, (max(begin, end - rng.choice([60, 1000, 10_000])), end))
    return container.build()


def _lie_about_rows(rng: random.Random, container: Container) -> None:
    """Change the rows of the file and of its pages alike, and maybe of their layouts."""
    lie = rng.choice(
        (0, 1, 2, 100, 1024, 5000, 2**20, 2**31, 2**32, 2**40, 2**48, 2**61, 2**62, 2**63 - 1, 2**63, 2**64 - 1)
    )
    container.descriptor.length = lie
    for column in container.columns:
        for page in column.pages:
            page.length = lie if rng.random() < 0.9 else rng.choice((lie // 2, 1))
            try:
                layout = layout_of(page)
            except DecodeError:
                continue  # it has been nested too deep
            if isinstance(layout, array_encodings_pb2.ArrayEncoding):
                if layout.HasField("list"):
                    layout.list.num_items = lie
                    set_layout(page, layout)
                continue
            if layout.HasField("mini_block_layout") and rng.random() < 0.8:
                layout.mini_block_layout.num_items = lie
                set_layout(page, layout)
            if layout.HasField("full_zip_layout") and rng.random() < 0.5:
                layout.full_zip_layout.num_items = lie % 2**32
                set_layout(page, layout)


def read_file(data: bytes, rng: random.Random) -> bool:
    """Read a file every way there is; returns whether it was not refused."""
    try:
        reader = FileReader(MemoryReader(data), verification=Verification(is_wanted=False))
        indices = column_indices(reader.schema, reader.version)
        columns = [ColumnProjection(top, indices) for top in reader.schema.fields]
        many = reader.num_rows > _MANY_ROWS
        for statistics in reader.zone_statistics(columns).values():
            assert int(statistics.num_rows.sum()) == reader.num_rows
            _validate(pa.record_batch({"lower": statistics.lower, "upper": statistics.upper}))
        whole = reader.read(columns, 0, reader.num_rows, batch_size=700)
        for count, batch in enumerate(whole):
            _validate(batch)
            if many and count == _BATCHES:
                break
        rows = sorted(rng.randrange(min(reader.num_rows, 2**40)) for _ in range(5)) if reader.num_rows else []
        _validate(reader.take(columns, np.array(rows, np.int64)))
        start = rng.randrange(reader.num_rows + 1)
        for batch in reader.read(columns, start, min(start + 50, reader.num_rows), batch_size=20):
            _validate(batch)
    except LanceError:
        return False
    return True


def _validate(batch: pa.RecordBatch) -> None:
    """Check what Arrow relies on; of times and dates, values that no clock shows are harmless."""
    for column in batch.columns:
        try:
            column.validate(full=True)
        except pa.ArrowInvalid as error:
            if "time" not in str(error) and "date64" not in str(error):
                raise


def make_samples(directory: Path, kind: str, mode: str) -> None:
    from tests.fuzz import samples  # imports pylance, which has no business in the child

    if kind == "file":
        (directory / "files").write_bytes(pickle.dumps(samples.make_files(_ROWS[mode])))
    else:
        samples.make_table(directory / "table")


def work(cases: Cases, first: int, count: int) -> None:
    """Run cases, telling each number before and each outcome after, a line each."""
    cases.warm_up()
    limit = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize() + ROOM_BYTES
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    for number in range(first, first + count):
        os.write(1, f"case {number}\n".encode())
        signal.setitimer(signal.ITIMER_PROF, CASE_SECONDS)  # Its signal ends the process.
        try:
            what, was_read = cases.run(number)
            line = f"{'read' if was_read else 'refused'}: {what.partition(';')[0]}"
        except BaseException:
            line = "defect: " + traceback.format_exc(limit=-7).replace("\n", "\\n")
        os.write(1, (line + "\n").encode())


def run_campaign(kind: str, mode: str, seed: int, cases: int, samples: Path) -> Report:
    """Run cases in child processes, a new one after each that died."""
    report = Report()
    first = 0
    while first < cases:
        first = _run_child(kind, mode, seed, first, cases - first, samples, report)
    return report


def _run_child(kind: str, mode: str, seed: int, first: int, count: int, samples: Path, report: Report) -> int:
    """Run cases in one child; returns the number of the next case."""
    command = [sys.executable, "-W", "error", "-m", "tests.fuzz.campaign", "--worker", str(samples), "--kind", kind]
    command += ["--mode", mode, "--seed", str(seed), "--only", str(first), "--cases", str(count)]
    environment = dict(os.environ, OMP_NUM_THREADS="1", ARROW_DEFAULT_MEMORY_POOL="system")
    if mode == "checked":
        environment |= {"NUMBA_BOUNDSCHECK": "1", "NUMBA_CACHE_DIR": str(samples / "numba")}
    with tempfile.TemporaryFile() as errors:
        child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, env=environment)
        assert child.stdout is not None
        try:
            current = first - 1
            for line in _lines(child):
                word, _, rest = line.partition(" ")
                if word == "case":
                    current = int(rest)
                elif word == "defect:":
                    report.outcomes["defect"] += 1
                    report.defects.append(f"case {current}: {rest}".replace("\\n", "\n"))
                else:
                    report.outcomes[line] += 1
            if current == first + count - 1 and child.wait() == 0:
                return first + count
        finally:
            child.kill()
            child.wait()
            child.stdout.close()
        errors.seek(0)
        report.outcomes["defect"] += 1
        said = errors.read().decode(errors="replace")[-4000:]
        report.defects.append(f"case {current}: died or hung, exit {child.returncode}\n{said}")
        return max(current, first) + 1


def _lines(child: subprocess.Popen[bytes]) -> Iterator[str]:
    """Yield lines until the child ends or is silent for too long."""
    assert child.stdout is not None
    rest = b""
    with selectors.DefaultSelector() as selector:
        selector.register(child.stdout, selectors.EVENT_READ)
        while selector.select(SILENT_SECONDS):
            piece = os.read(child.stdout.fileno(), 1 << 16)
            if not piece:
                return
            *lines, rest = (rest + piece).split(b"\n")
            yield from (line.decode(errors="replace") for line in lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--cases", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--mode", choices=_ROWS, default="compiled")
    parser.add_argument("--kind", choices=("file", "table"), default="file")
    parser.add_argument("--only", type=int, help="run this case alone")
    parser.add_argument("--worker", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.mode == "guarded" and options.worker:
        guarded.install()
    if options.worker:
        warnings.simplefilter("error")
        work(Cases(options.kind, Path(options.worker), options.seed), options.only, options.cases)
        return
    with tempfile.TemporaryDirectory() as directory:
        make_samples(Path(directory), options.kind, options.mode)
        if options.only is None:
            report = run_campaign(options.kind, options.mode, options.seed, options.cases, Path(directory))
        else:
            report = Report()
            _run_child(options.kind, options.mode, options.seed, options.only, 1, Path(directory), report)
    for outcome, count in sorted(report.outcomes.items()):
        print(f"{count:9} {outcome}")
    for kind, defects in report.kinds().items():
        print(f"\n{len(defects)} times {kind}, first in {defects[0]}")
    sys.exit(bool(report.defects))


if __name__ == "__main__":
    main()
