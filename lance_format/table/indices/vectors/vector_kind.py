"""Vector indices: `IVF_FLAT`, `IVF_PQ`, `IVF_SQ` and `IVF_RQ`, and with graphs, except the last, `IVF_HNSW_…`.

The planner fits a model to a sample of the vectors: centroids of partitions, and codes. Tasks encode the vectors of
their fragments, and write a part of the index each, of which the commit makes one. With graphs it does not: building
them takes longer than all else. There are fewer tasks then. An update keeps the model.
"""

from __future__ import annotations

import dataclasses
import logging
import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from itertools import chain
from typing import Any

import numpy as np
import pyarrow as pa
from google.protobuf.message import DecodeError, Message

from lance_format.datatypes import Field, Schema
from lance_format.errors import InvalidInputError, LanceError, NotSupportedError
from lance_format.lazy_dataclasses import dataclass
from lance_format.proto import index_pb2
from lance_format.table.format.fragment import FragmentMetadata
from lance_format.table.format.index_metadata import IndexMetadata
from lance_format.table.fragments.joined_take import take_fragments
from lance_format.table.fragments.row_columns import ROW_ID, LiveRows, row_column
from lance_format.table.indices.column_values import narrowed, read_covered, values_below
from lance_format.table.indices.index_kind import IndexKind, PlannedIndexPart, refuse_others, take_whole_number
from lance_format.table.indices.opening import index_path
from lance_format.table.indices.row_finder import UnusableError, is_of_version
from lance_format.table.indices.vectors.gathered_vectors import GatheredVectors, united
from lance_format.table.indices.vectors.quantization import AnyQuantization
from lance_format.table.indices.vectors.quantizations import QUANTIZATIONS
from lance_format.table.indices.vectors.vector_file import write_vectors
from lance_format.table.indices.vectors.vector_index import (
    Partition,
    VectorIndexReader,
    check_vectors,
)
from lance_format.table.indices.written_parts import WrittenParts, plan_row_update, write_part
from lance_format.table.versions.table_version import Draft, TableVersion
from lance_format.vectors.graphs import GraphParameters
from lance_format.vectors.metrics import Vectors, parse_metric, vectors_of
from lance_format.vectors.training import ModelParameters, VectorModel, as_compared, usable

_LOGGER = logging.getLogger(__name__)
_DETAILS = "lance.index.pb.VectorIndexDetails"
_BATCH_ROWS = 16 * 1024
_METRICS = {"l2": 0, "cosine": 1, "dot": 2}
_SIZES = ("num_partitions", "target_partition_size")
"""Parameters that are the same as not given if they are 0 or None."""
_MOST_PARTITIONS = 4096
"""By default: more of them take long to find."""
_MOST_BYTES = 1 << 30
"""Of a sample of vectors."""
_LEAST_NEIGHBORS, _MOST_NEIGHBORS = 4, 1024
_MOST_CHOICE, _MOST_LEVELS = 65_536, 64
"""Of a vector in a graph: `m`, `ef_construction`, `max_level`."""
_TASKS_PER_GRAPH_TASK = 4
"""A search looks into every part, so that few large ones are better."""


@dataclass(frozen=True, slots=True, eq=False)
class VectorDetails:
    """Parameters of a vector index, and its model once there is one. Can be pickled.

    Parameters
    ----------
    parameters : ModelParameters
        `num_partitions` of 0 stands for the number that the rows call for.
    model : VectorModel, optional
    graphs : GraphParameters, optional
        None if there are no graphs.
    """

    parameters: ModelParameters
    model: VectorModel | None = None
    graphs: GraphParameters | None = None


@dataclass(frozen=True, slots=True)
class VectorKind(IndexKind[VectorDetails, WrittenParts]):
    """Kind of a vector index.

    Parameters
    ----------
    name : str
        As `IVF_PQ`.
    quantization : Quantization
    has_graphs : bool
    """

    name: str
    quantization: AnyQuantization
    has_graphs: bool = False

    def configure(self, parameters: Mapping[str, Any], field: Field) -> VectorDetails:
        """See `IndexKind.configure`."""
        dimension = _dimension(field, self.name)
        left = {name: value for name, value in parameters.items() if value or name not in _SIZES}
        metric = _take_metric(left)
        found = {
            **{name: take_whole_number(left, name, 0) if name in left else 0 for name in _SIZES},
            "sample_rate": take_whole_number(left, "sample_rate", 256),
            "max_iters": take_whole_number(left, "max_iters", 50),
        }
        known = ["metric", *_SIZES, "sample_rate", "max_iters"]
        found |= self.quantization.configure(left, dimension)
        known += self.quantization.parameters
        graphs = None
        if self.has_graphs:
            graphs = _graph_parameters(left)
            known += [field.name for field in dataclasses.fields(GraphParameters)]
        refuse_others(left, self.name, known)
        return VectorDetails(ModelParameters(metric, **found), None, graphs)

    def prepare(
        self, table: TableVersion, part: PlannedIndexPart, path: Sequence[Field], positions: Sequence[int]
    ) -> PlannedIndexPart:
        """Fit a model to vectors of the fragments, if there is none; see `IndexKind.prepare`."""
        details: VectorDetails = part.details
        if details.model is not None:
            return part
        num_rows = int(table.num_rows()[list(positions)].sum()) if len(positions) else 0
        parameters = details.parameters
        if not parameters.num_partitions:
            parameters = dataclasses.replace(parameters, num_partitions=_partitions_of(num_rows, parameters))
        vector = path[-1].to_arrow_type()
        wanted = max(parameters.sample_rows, self.quantization.least_sample(parameters))
        share = min(wanted, _MOST_BYTES // (4 * vector.list_size)) / max(num_rows, 1)
        sample = _sample(table, path, positions, parameters.metric, share)
        num_partitions = min(parameters.num_partitions, max(len(sample), 1))  # Others would be empty.
        parameters = dataclasses.replace(parameters, num_partitions=num_partitions)
        model = VectorModel.trained(parameters, sample, vector.value_type, self.quantization.fit)
        return dataclasses.replace(part, details=dataclasses.replace(details, parameters=parameters, model=model))

    def join(self, groups: Sequence[tuple[int, ...]]) -> Sequence[tuple[int, ...]]:
        """See `IndexKind.join`."""
        if not self.has_graphs:
            return groups
        step = _TASKS_PER_GRAPH_TASK
        return [tuple(chain(*groups[start : start + step])) for start in range(0, len(groups), step)]

    def knows(self, index: IndexMetadata) -> bool:
        """See `IndexKind.knows`."""
        return vector_kind_of(index) == self.name and is_of_version(index, self.quantization.newest_version)

    def stored_details(self, table: TableVersion, index: IndexMetadata) -> VectorDetails:
        """Return the model of a part; none if it cannot be read, or had no rows. See `IndexKind.stored_details`."""
        message = index_pb2.VectorIndexDetails.FromString(index.message.index_details.value)
        metric = {number: name for name, number in _METRICS.items()}.get(message.metric, "l2")
        parameters = ModelParameters(
            metric,
            0,
            target_partition_size=message.target_partition_size,
            **self.quantization.parameters_of(message),
        )
        graphs = _told_graphs(message.graph) if self.has_graphs else None
        try:
            with VectorIndexReader(table, index) as reader:
                found = reader.index
        except (LanceError, UnusableError) as error:  # It is about to be written again, perhaps because it is damaged.
            _LOGGER.info("index %r gets another model: %s", index.name, error)
            return VectorDetails(parameters, None, graphs)
        parameters = dataclasses.replace(parameters, metric=found.metric)
        if not found.lengths.any():  # It has been made without rows.
            return VectorDetails(parameters, None, graphs)
        parameters = dataclasses.replace(parameters, num_partitions=len(found.centroids))
        model = VectorModel(found.centroids, found.codes, found.metric, found.number, 0.0)
        return VectorDetails(parameters, model, graphs)

    def untrained(self, details: VectorDetails) -> VectorDetails:
        """Return the parameters of an index that is trained again, for as many partitions as its rows then call for."""
        return VectorDetails(dataclasses.replace(details.parameters, num_partitions=0), None, details.graphs)

    def told(self, index: IndexMetadata) -> Mapping[str, Any]:
        """See `IndexKind.told`; pylance's names."""
        message = index_pb2.VectorIndexDetails.FromString(index.message.index_details.value)
        found: dict[str, Any] = {"metric_type": message.Metric.Name(message.metric)}
        if message.target_partition_size:
            found["target_partition_size"] = message.target_partition_size
        if self.has_graphs:
            found["hnsw"] = dict(_fields_of(message.graph))
        if codes := dict(_fields_of(getattr(message, self.quantization.message))):
            found["compression"] = {"type": self.quantization.name.lower(), **codes}
        return found

    def check(self, table: TableVersion, index: IndexMetadata) -> None:
        """See `IndexKind.check`."""
        check_vectors(table, index)

    def train(
        self,
        table: TableVersion,
        uuid: str,
        part: PlannedIndexPart,
        path: Sequence[Field],
        fragments: Sequence[FragmentMetadata],
    ) -> WrittenParts:
        """Encode vectors, and write a part of the index; see `IndexKind.train`."""
        model = _model(part)
        gathered, covered = GatheredVectors(model), list[int]()
        for finished, values, rows in read_covered(table, path, fragments, batch_size=_BATCH_ROWS):
            covered += finished
            if rows:
                row_ids = np.concatenate([row_column(ROW_ID, each).to_numpy() for each in rows])
                is_there = values.is_valid().to_numpy(zero_copy_only=False)
                vectors = vectors_of(values)[is_there]
                kept = usable(vectors, model.metric)
                gathered.add(vectors[kept], row_ids[is_there][kept])
        if not covered:
            return WrittenParts(())
        return WrittenParts.of([self._write(table, uuid, part, gathered.partitions(), covered)])

    def write(
        self, draft: Draft, part: PlannedIndexPart, contents: Sequence[WrittenParts]
    ) -> tuple[IndexMetadata, ...]:
        """Make one part of those of the tasks, if they have no graphs; see `IndexKind.write`."""
        found = [index for content in contents for index in content.parse()]
        if len(found) == 1 or (found and self.has_graphs):
            return tuple(found)
        draft.superseded += [
            index_path(draft.table, index, file.path) for index in found for file in index.message.files
        ]
        covered = sorted({number for index in found for number in index.fragment_ids or ()})
        with ExitStack() as stack:
            readers = [stack.enter_context(VectorIndexReader(draft.table, index)) for index in found]
            model = _model(part)
            partitions = (
                united((reader.read(number) for reader in readers), model.codes)
                for number in range(len(model.centroids))
            )
            return (self._write(draft.table, draft.uuid, part, partitions, covered),)

    def plan_update(
        self, table: TableVersion, parts: Sequence[IndexMetadata], path: Sequence[Field], num_to_merge: int | None
    ) -> tuple[PlannedIndexPart, Sequence[int]] | None:
        """Encode the vectors of parts that are merged again; see `RowIndexKind.plan_update`."""
        return plan_row_update(self, table, parts, path, num_to_merge)

    def _write(
        self,
        table: TableVersion,
        uuid: str,
        part: PlannedIndexPart,
        partitions: Iterator[Partition],
        fragment_ids: Sequence[int],
    ) -> IndexMetadata:
        model = _model(part)
        details = index_pb2.VectorIndexDetails(
            metric=_METRICS[model.metric],  # type: ignore[arg-type]
            target_partition_size=part.details.parameters.target_partition_size,
        )
        self.quantization.describe(part.details.parameters, details)
        graphs: GraphParameters | None = part.details.graphs
        if graphs is not None:
            details.graph.max_connections = graphs.m
            details.graph.construction_ef = graphs.ef_construction
            details.graph.max_level = graphs.max_level
        return write_part(
            table,
            uuid,
            part,
            fragment_ids,
            (_DETAILS, details.SerializeToString(deterministic=True)),
            lambda open_file: write_vectors(self.name, self.quantization, model, partitions, open_file, graphs=graphs),
            index_version=self.quantization.newest_version,
        )


def vector_kind_of(index: IndexMetadata) -> str | None:
    """Return the kind of a vector index, as `IVF_PQ`; None if it is not made here."""
    message = _parse_details(index)
    return None if message is None or message.metric not in _METRICS.values() else _form_of(message)


def vector_form_of(index: IndexMetadata) -> str | None:
    """Return the kind of a vector index, by whichever metric; None if it has codes that are not made here."""
    message = _parse_details(index)
    return None if message is None else _form_of(message)


def _parse_details(index: IndexMetadata) -> index_pb2.VectorIndexDetails | None:
    try:
        return index_pb2.VectorIndexDetails.FromString(index.message.index_details.value)
    except DecodeError:
        return None


def _form_of(details: index_pb2.VectorIndexDetails) -> str | None:
    told = details.WhichOneof("codes")
    codes = next((found.name for found in QUANTIZATIONS.values() if found.message == told), None)
    if codes is None:
        return None
    return f"IVF_HNSW_{codes}" if details.HasField("graph") else f"IVF_{codes}"


def _dimension(field: Field, kind: str) -> int:
    value_type = field.to_arrow_type()
    if not pa.types.is_fixed_size_list(value_type) or not pa.types.is_floating(value_type.value_type):
        raise NotSupportedError(
            f"column {field.name!r} is of type {value_type}, which {kind} indices made here cannot hold; they are of"
            " fixed-size lists of floating-point numbers"
        )
    return int(value_type.list_size)


def _partitions_of(num_rows: int, parameters: ModelParameters) -> int:
    """Return how many partitions rows call for: the square root of their number, unless the size of one is given."""
    if parameters.target_partition_size:
        return max(num_rows // parameters.target_partition_size, 1)
    return min(max(round(math.sqrt(num_rows)), 1), _MOST_PARTITIONS)


def _take_metric(parameters: dict[str, Any]) -> str:
    """Remove the metric from parameters; it has the name of pylance, or that of the JVM connector."""
    given = {name: parameters.pop(name) for name in ("metric", "distance_type") if name in parameters}
    if len(given) > 1:
        raise InvalidInputError("metric and distance_type are given; they are the same: leave one out")
    name, text = next(iter(given.items()), ("metric", "l2"))
    return parse_metric(text, name=name, known=_METRICS)


def _graph_parameters(parameters: dict[str, Any]) -> GraphParameters:
    """Remove the parameters of graphs from others."""
    default = GraphParameters()
    found = GraphParameters(
        **{
            field.name: take_whole_number(parameters, field.name, getattr(default, field.name))
            for field in dataclasses.fields(default)
        }
    )
    if not _LEAST_NEIGHBORS <= found.m <= _MOST_NEIGHBORS:
        needed = f"a whole number from {_LEAST_NEIGHBORS} to {_MOST_NEIGHBORS}"
        raise InvalidInputError(f"m is {found.m}; {needed} is needed")
    if found.max_level > _MOST_LEVELS:
        raise InvalidInputError(f"max_level is {found.max_level}; a whole number from 1 to {_MOST_LEVELS} is needed")
    if not found.m <= found.ef_construction <= _MOST_CHOICE:
        needed = f"a whole number from m, {found.m}, to {_MOST_CHOICE}"
        raise InvalidInputError(f"ef_construction is {found.ef_construction}; {needed} is needed")
    return found


def _fields_of(message: Message) -> Iterator[tuple[str, int]]:
    for field in message.DESCRIPTOR.fields:
        yield field.name, getattr(message, field.name)


def _told_graphs(message: index_pb2.VectorIndexDetails.Graph) -> GraphParameters:
    """Return the parameters of graphs that the metadata of an index tells, within the limits of those made here."""
    default = GraphParameters()
    m = min(max(message.max_connections or default.m, _LEAST_NEIGHBORS), _MOST_NEIGHBORS)
    choice = min(max(message.construction_ef or default.ef_construction, m), _MOST_CHOICE)
    return GraphParameters(m, choice, min(message.max_level or default.max_level, _MOST_LEVELS))


def _model(part: PlannedIndexPart) -> VectorModel:
    model: VectorModel | None = part.details.model
    assert model is not None
    return model


def _sample(table: TableVersion, path: Sequence[Field], positions: Sequence[int], metric: str, share: float) -> Vectors:
    """Return a share of the vectors of fragments that an index can hold, at random, as `as_compared` returns them.

    They are equal for the same fragments.
    """
    random = np.random.default_rng(0)
    width = path[-1].to_arrow_type().list_size
    found = [np.zeros((0, width), np.float32)]
    schema = Schema((narrowed(path),), {})
    chosen = []
    for position in positions:
        fragment = table.manifest.fragments[position]
        if fragment.id in table.manifest.fragments.repeated_ids:
            continue
        scan = table.scan(fragment, schema)
        live = np.setdiff1d(np.arange(scan.physical_rows()), scan.deleted_rows(), assume_unique=True)
        live = live[random.random(live.size) < share] if share < 1 else live
        if live.size:
            chosen.append(LiveRows(scan, live, 0))
    for batch, _ in take_fragments(chosen, schema):
        values = values_below(batch.column(0), path[1:]).drop_null()
        kept = vectors_of(values)
        kept = kept[usable(kept, metric)]
        found.append(as_compared(kept, metric).astype(np.float32, copy=False))
    return np.concatenate(found)
