"""Numbers of a report of a table: bytes by encoding, fragments, versions, zones, reads of a filter."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lance_format.expressions import FieldPath
from lance_format.expressions.zones import ZoneStatistics
from lance_format.file import describe_encoding
from lance_format.file.columns.json_columns import with_text
from lance_format.table.dataset.methods.history import DatasetHistory
from lance_format.table.dataset.methods.reads import DatasetReads
from lance_format.table.format.fragment import FragmentMetadata
from lance_format.table.versions.table_version import TableVersion

MAX_FILES_FRAGMENTS = 200
"""Maximum number of fragments whose files are opened for sizes and zones, evenly spread over the table."""
_MAX_VERSIONS = 200
_MAX_COLUMNS = 8
_MAX_TEXT = 40
_QUANTILES = np.array([0.1, 0.3, 0.5, 0.7, 0.9])
"""Where values are taken to lie between the bounds of a zone."""


class ReadableDataset(DatasetReads, DatasetHistory):
    """The methods of `LanceDataset` that reports need."""


def sampled_fragments(table: TableVersion) -> list[FragmentMetadata]:
    """Return the fragments whose files a report opens: all, or some that are evenly spread."""
    fragments = table.manifest.fragments
    number = min(len(fragments), MAX_FILES_FRAGMENTS)
    return [fragments[len(fragments) * index // number] for index in range(number)]


def collect_storage(table: TableVersion, fragments: Sequence[FragmentMetadata]) -> list[dict[str, Any]]:
    """Sum the bytes of the pages of each column by their layout and compression."""
    names = dict(_field_paths(table))
    sizes: Counter[tuple[str, str, str]] = Counter()
    for fragment in fragments:
        with table.scan(fragment, table.manifest.schema).open() as files:
            for file in fragment.files:
                reader = files.reader(file)
                for field_id, column in zip(file.fields, file.column_indices, strict=False):
                    if field_id in names and column >= 0:
                        for page in reader.pages(column):
                            encoding = describe_encoding(page.layout)
                            sizes[names[field_id], *encoding] += sum(buffer.size for buffer in page.buffers)
    return [
        {"column": column, "layout": layout, "compression": compression, "size_bytes": size}
        for (column, layout, compression), size in sizes.most_common()
        if size
    ]


def collect_fragments(table: TableVersion) -> dict[str, Any]:
    """Return ids, rows, deleted rows and bytes of all fragments, and the versions that added them if they are known.

    Versions are looked up among the latest ones. `added_by` has the first of these for fragments that are older.
    """
    columns = table.manifest.fragments.columns
    history = table.history()
    numbers = sorted((number for number in history.names if number <= table.manifest.version), reverse=True)
    ids = columns.ids
    added = np.full(ids.size, table.manifest.version, np.int64)
    for number in numbers[1:_MAX_VERSIONS]:
        present = np.isin(ids, history.load(number).fragments.columns.ids)
        if not present.any():
            break
        added[present] = number
    return {
        "ids": ids.tolist(),
        "rows": columns.physical_rows.tolist(),
        "deleted_rows": columns.num_deleted_rows.clip(0).tolist(),
        "size_bytes": columns.size_bytes.tolist(),
        "added_by": added.tolist(),
    }


def collect_versions(dataset: ReadableDataset) -> list[dict[str, Any]]:
    """Return the latest versions, earliest first."""
    found = []
    for version, transaction in dataset.version_log(_MAX_VERSIONS):
        found.append(
            {
                "version": version["version"],
                "timestamp": version["timestamp"].astimezone().isoformat(" ", "seconds"),
                "operation": "unknown" if transaction is None else transaction.operation.name,
                "rows": int(version["metadata"]["total_rows"]),
            }
        )
    return found[::-1]


def collect_zones(
    table: TableVersion, fragments: Sequence[FragmentMetadata], first: Sequence[str]
) -> list[dict[str, Any]]:
    """Return for each column with statistics how well its zones separate the values.

    Parameters
    ----------
    table : TableVersion
    fragments : sequence of FragmentMetadata
    first : sequence of str
        Dotted paths of columns that come first.

    Returns
    -------
    list of dict
        `column`; `zones`, their number; `zones_per_value`, the mean number of zones that a value lies in, so that
        filters for one value read about as many; `lower` and `upper`, the share of all values below and up to the
        bounds; `lowest` and `highest`, the extreme bounds as texts. Values are taken to be evenly spread within zones.
    """
    found: dict[FieldPath, list[ZoneStatistics]] = {}
    schema = with_text(table.manifest.schema)
    for fragment in fragments:
        with table.scan(fragment, schema).open() as files:
            for path, statistics in files.zone_statistics(schema).items():
                found.setdefault(path, []).append(statistics)
    described = [(".".join(path), _separation(parts)) for path, parts in found.items()]
    ordered = sorted(described, key=lambda item: item[0] not in first)
    return [{"column": name, **facts} for name, facts in ordered if facts is not None][:_MAX_COLUMNS]


def collect_reads(dataset: ReadableDataset, filter: str, columns: Sequence[str] | None) -> dict[str, Any]:
    """Return the planned reads of a query; see `LanceScanner.plan_reads`."""
    scanner = dataset.scanner(columns=None if columns is None else list(columns), filter=filter)
    reads = scanner.plan_reads()
    names = [field.name for field in dataclasses.fields(reads.fragments[0])] if reads.fragments else []
    totals = [name for name in names if name not in ("fragment_id", "skipped_by")]
    return {
        "filter": scanner.filter_text,
        "filter_columns": list(reads.filter_columns),
        "columns_without_statistics": list(reads.columns_without_statistics),
        "num_fragments": len(reads.fragments),
        "fragments_read": reads.fragments_read,
        **{name: reads.total(name) for name in totals},
        "ids": [fragment.fragment_id for fragment in reads.fragments],
        "skipped_by": [fragment.skipped_by for fragment in reads.fragments],
    }


def _field_paths(table: TableVersion) -> Iterator[tuple[int, str]]:
    pending = [(field, field.name) for field in table.manifest.schema.fields]
    while pending:
        field, path = pending.pop()
        yield field.id, path
        pending += [(child, f"{path}.{child.name}") for child in field.children]


def _separation(parts: Sequence[ZoneStatistics]) -> dict[str, Any] | None:
    """Return how well zones separate values; None if no bounds are known."""
    types = {part.lower.type for part in parts}
    if len(types) != 1:  # The column was cast in some of the files.
        return None
    lower, upper = (pa.chunked_array([getattr(part, name) for part in parts]) for name in ("lower", "upper"))
    known = np.asarray(lower.is_valid()) & np.asarray(upper.is_valid())
    if not known.any():
        return None
    mask = pa.array(known)
    lower, upper = lower.filter(mask).combine_chunks(), upper.filter(mask).combine_chunks()
    numbers = _as_numbers(pa.concat_arrays([lower, upper]))
    if numbers is None:
        return None
    low, high = numbers[: len(lower)], numbers[len(lower) :]
    values = np.sort((low[:, None] + (high - low)[:, None] * _QUANTILES).ravel())
    return {
        "zones": len(lower),
        "zones_per_value": round(float(_covering(low, high, values).mean()), 2),
        "lower": np.round(np.searchsorted(values, low, side="left") / values.size, 4).tolist(),
        "upper": np.round(np.searchsorted(values, high, side="right") / values.size, 4).tolist(),
        "lowest": _as_text(lower[int(np.argmin(low))]),
        "highest": _as_text(upper[int(np.argmax(high))]),
    }


def _as_numbers(bounds: pa.Array) -> npt.NDArray[np.float64] | None:
    """Return numbers in the order of bounds; of texts and bytes, those of the first bytes that differ."""
    kind = bounds.type
    if pa.types.is_boolean(kind):
        bounds, kind = bounds.cast(pa.int8()), pa.int8()
    if pa.types.is_decimal(kind) or pa.types.is_floating(kind) or pa.types.is_integer(kind):
        found = bounds.cast(pa.float64()).to_numpy(zero_copy_only=False)
        finite = found[np.isfinite(found)]
        least, most = (finite.min(), finite.max()) if finite.size else (0.0, 0.0)
        return np.asarray(np.nan_to_num(found, nan=most, posinf=most, neginf=least), np.float64)
    if pa.types.is_temporal(kind):
        width = pa.int32() if kind.bit_width == 32 else pa.int64()
        return np.asarray(bounds.cast(width).to_numpy(zero_copy_only=False), np.float64)
    texts = [value.encode() if isinstance(value, str) else value for value in bounds.to_pylist()]
    if not all(isinstance(value, bytes) for value in texts):
        return None
    least, most = min(texts), max(texts)
    start = next((index for index, pair in enumerate(zip(least, most, strict=False)) if pair[0] != pair[1]), len(least))
    return np.array([int.from_bytes(text[start : start + 8].ljust(8, b"\0"), "big") for text in texts], np.float64)


def _as_text(bound: pa.Scalar) -> str:
    value = bound.as_py()
    return f"{value:.6g}" if isinstance(value, float) else str(value)[:_MAX_TEXT]


def _covering(
    low: npt.NDArray[np.float64], high: npt.NDArray[np.float64], values: npt.NDArray[np.float64]
) -> npt.NDArray[np.int64]:
    """Return the number of zones that each value lies in."""
    return np.searchsorted(np.sort(low), values, side="right") - np.searchsorted(np.sort(high), values, side="left")
