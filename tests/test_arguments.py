"""Wrong arguments of every public function and method end in an error of the library.

Calls are derived from signatures: a new method is covered as soon as it is there.
"""

import functools
import inspect
import types
import typing
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import lance_format
from lance_format import LanceDataset, LanceError, LanceFragment
from lance_format.arguments import argument_hints
from lance_format.file import LanceFileReader, LanceFileSession, LanceFileWriter, ReaderResults
from lance_format.object_store import resolve
from lance_format.query import BooleanQuery, BoostQuery, MatchQuery, MultiMatchQuery, PhraseQuery
from lance_format.table.dataset.branches import Branches
from lance_format.table.dataset.fragment import FragmentSession
from lance_format.table.dataset.optimize import DatasetOptimizer
from lance_format.table.dataset.stats import LanceStats
from lance_format.table.dataset.tags import Tags
from lance_format.table.maintenance.compaction import CompactionPlan

GLUE = {"region": "us-east-1", "access_key_id": "key", "secret_access_key": "s3cret"}
ROWS = pa.table({"id": range(4), "name": list("abcd"), "point": [{"x": 1, "y": 2.0}] * 4})
WRONG: list[Any] = [
    None, 5, -1, 2**70, 2.5, True, b"x", object(), [], [5], [None], ["\ud800"], {}, {"id": 5}, {5: "id"},
    {"\ud800": "1"}, "", "x", "\ud800", "a\0b", "x" * 300, (1, 2), set(), print, pa.schema([]),
    pa.array([None]), ROWS,
]  # fmt: skip
GIVEN: dict[str, Any] = {
    "on": "id",
    "predicate": "id = 1",
    "filter": "id = 1",
    "where": "id = 1",
    "updates": {"name": "'x'"},
    "columns": ["id"],
    "column": "id",
    "uri": "memory://given",
    "dataset_uri": "memory://given",
    "base_uri": "memory://given",
    "path": "memory://given/x.lance",
    "data_obj": ROWS,
    "data": ROWS,
    "new_data": ROWS,
    "transforms": {"more": "id + 1"},
    "value_func": {"more": "id + 1"},
    "indices": [0],
    "offsets": [0],
    "row_ids": [0],
    "requests": [],
    "selector": "indices",
    "left_on": "id",
    "schema": ROWS.schema,
    "batch": ROWS.to_batches()[0],
    "query": "owl",
    "positive": MatchQuery("owl", "name"),
    "negative": MatchQuery("emu", "name"),
    "index_type": "ZONEMAP",
    "operation": None,
}
OF_TYPE: dict[Any, Any] = {
    str: "id",
    int: 1,
    float: 0.5,
    bool: False,
    bytes: b"x",
    timedelta: timedelta(0),
}


@functools.cache
def table_content() -> dict[str, bytes]:
    """Return the objects of a table of two fragments."""
    lance_format.write_dataset(ROWS, "memory://table", max_rows_per_file=2)
    store, root = resolve("memory://table")
    return {found.path: store.read(found.path, 1 << 20) for found in store.list_tree(root)}


def new_table() -> lance_format.LanceDataset:
    content = table_content()
    store, root = resolve("memory://table")
    store.delete_all([found.path for found in store.list_tree(root)])
    for path, data in content.items():
        store.put(path, data)
    return lance_format.dataset("memory://table")


def new_file(path: str = "file.lance") -> str:
    with LanceFileWriter(path, ROWS.schema) as writer:
        writer.write_batch(ROWS)
    return path


MAKERS: dict[type, Callable[[], Any]] = {
    LanceDataset: new_table,
    LanceFragment: lambda: new_table().get_fragments()[0],
    FragmentSession: lambda: new_table().get_fragments()[0].open_session(),
    lance_format.LanceScanner: lambda: new_table().scanner(),
    lance_format.ScannerBuilder: lambda: lance_format.ScannerBuilder(new_table()),
    lance_format.MergeInsertBuilder: lambda: new_table().merge_insert("id").when_matched_update_all(),
    Tags: lambda: new_table().tags,
    Branches: lambda: new_table().branches,
    DatasetOptimizer: lambda: new_table().optimize,
    LanceStats: lambda: new_table().stats,
    lance_format.LanceSchema: lambda: new_table().lance_schema,
    lance_format.DatasetDelta: lambda: new_table().delta(begin_version=0, end_version=1),
    lance_format.TableWrite: lambda: lance_format.plan_write("memory://planned", ROWS.schema, mode="overwrite"),
    lance_format.BatchUDF: lambda: lance_format.batch_udf()(lambda batch: batch),
    lance_format.Compaction: lambda: lance_format.Compaction,
    CompactionPlan: lambda: lance_format.Compaction.plan(new_table()),
    lance_format.ChangeLog: lambda: lance_format.ChangeLog(new_table()),
    lance_format.NamespaceDirectory: lambda: lance_format.NamespaceDirectory("memory://namespaces"),
    lance_format.RestNamespace: lambda: lance_format.RestNamespace("http://127.0.0.1:1"),
    lance_format.GlueNamespace: lambda: lance_format.GlueNamespace(endpoint="http://127.0.0.1:1", **GLUE),
    lance_format.HiveNamespace: lambda: lance_format.HiveNamespace("thrift://127.0.0.1:1"),
    LanceFileReader: lambda: LanceFileReader(new_file()),
    LanceFileWriter: lambda: LanceFileWriter("written.lance", ROWS.schema),
    LanceFileSession: lambda: LanceFileSession("."),
    ReaderResults: lambda: LanceFileReader(new_file()).read_all(),
}
CONSTRUCTED: list[type] = [
    lance_format.ColumnOrdering,
    lance_format.IndexConfig,
    lance_format.Transaction,
    lance_format.ScannerBuilder,
    lance_format.RestNamespace,
    lance_format.GlueNamespace,
    lance_format.HiveNamespace,
    lance_format.Session,
    MatchQuery,
    PhraseQuery,
    MultiMatchQuery,
    BoostQuery,
    BooleanQuery,
    LanceFragment,
    LanceFileReader,
    LanceFileWriter,
    LanceFileSession,
]
"""What users make themselves; the others are made by methods."""
VALUES = {
    "BackfilledFragments", "BatchMarker", "BlobFile", "ChangePlan", "ChangeTask", "CleanupCandidateFile",
    "CleanupExplanation", "CleanupStats", "ColumnBackfill", "ColumnBounds", "CompactionKeywords",
    "CompactionMetrics", "DataFile",
    "DeletionFile", "FileVersion", "FragmentMetadata", "FragmentReads", "FragmentWriteProgress", "IndexDescription",
    "IndexSegmentDescription", "LanceField",
    "LanceOperation", "LostRows", "Namespace", "NamespaceListing", "PlannedReads", "Progress", "RowChange", "RowDelta",
    "RowDeltaChanges", "RowRewrite", "ScanMetrics", "ScanTask", "TablePlace", "TableReport", "VerificationReport",
    "WriterPlan",
}  # fmt: skip
"""What holds values, or is a file of Python's own kind."""


SPOILED_BY_ERRORS = ("FragmentSession.", "LanceFileSession.", "LanceFileWriter.", "ReaderResults.")
"""What may answer a call after one that failed differently; of all others a call that is refused changes nothing."""


def public_methods(owner: type) -> list[str]:
    found = []
    for name in dir(owner):
        member = inspect.getattr_static(owner, name)
        if not name.startswith("_") and isinstance(member, types.FunctionType | staticmethod | classmethod):
            found.append(name)
    return found


def calls() -> Iterator[tuple[str, Callable[..., Any], Callable[[], Callable[..., Any]]]]:
    """Yield every public function and method by its name, itself, and what makes it ready to be called."""
    for name in lance_format.__all__:
        function = getattr(lance_format, name)
        if isinstance(function, types.FunctionType):
            yield name, function, lambda function=function: function
    for kind in CONSTRUCTED:
        yield kind.__name__, kind, lambda kind=kind: kind
    for kind, make in MAKERS.items():
        for name in public_methods(kind):
            called = getattr(kind, name)
            yield f"{kind.__name__}.{name}", called, lambda make=make, name=name: getattr(make(), name)


CALLS = {name: (called, ready) for name, called, ready in calls()}


def parameters_of(called: Callable[..., Any]) -> Iterator[str]:
    """Yield the names of arguments, those of further keyword arguments too so far as they have types."""
    function = inspect.unwrap(called.__init__ if isinstance(called, type) else called)
    for parameter in inspect.signature(called).parameters.values():
        if parameter.kind is parameter.VAR_KEYWORD:
            hints = argument_hints(function)[parameter.name]
            yield from hints if isinstance(hints, dict) else ()
        elif parameter.name != "self":
            yield parameter.name


PARAMETERS = [(name, parameter) for name, (called, _) in CALLS.items() for parameter in parameters_of(called)]


def plausible(name: str, hint: Any) -> Any:
    if name in GIVEN:
        return GIVEN[name]
    for option in (hint, *typing.get_args(hint)):
        if option in OF_TYPE:
            return OF_TYPE[option]
    return None


def use(result: Any) -> None:
    """Go through what is read only when it is used."""
    if isinstance(result, Iterator):
        for _ in result:
            pass
    if isinstance(result, lance_format.LanceScanner):
        result.to_table()
    if isinstance(result, lance_format.ScannerBuilder):
        result.to_scanner().to_table()


def call(name: str, ready: Callable[..., Any], parameter: str, value: Any) -> None:
    """Call with one argument that is given, and others that make sense as far as they are needed."""
    called, _ = CALLS[name]
    function = inspect.unwrap(called.__init__ if isinstance(called, type) else called)
    hints = argument_hints(function)
    args, kwargs = [], {}
    for other in inspect.signature(called).parameters.values():
        if other.name == "self" or other.kind is other.VAR_KEYWORD:
            continue
        if other.name != parameter and other.default is not other.empty:
            continue
        if other.name != parameter and other.kind is other.VAR_POSITIONAL:
            continue
        given = value if other.name == parameter else plausible(other.name, hints.get(other.name, Any))
        if other.kind in (other.POSITIONAL_ONLY, other.VAR_POSITIONAL):
            args.append(given)
        else:
            kwargs[other.name] = given
    if parameter not in inspect.signature(called).parameters:
        kwargs[parameter] = value
    use(ready(*args, **kwargs))


@pytest.mark.slow
@pytest.mark.parametrize(("name", "parameter"), PARAMETERS, ids=lambda part: part)
def test_wrong_arguments(name: str, parameter: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    _, make_ready = CALLS[name]
    ready = None
    for value in WRONG:
        ready = ready or make_ready()
        try:
            call(name, ready, parameter, value)
        except LanceError:
            if name.startswith(SPOILED_BY_ERRORS):
                ready = None
            continue
        except Exception as error:
            raise AssertionError(f"{name}({parameter}={value!r}) ends in {error!r}") from error
        ready = None


def test_all_that_is_public_is_called() -> None:
    known = {kind.__name__ for kind in MAKERS} | {kind.__name__ for kind in CONSTRUCTED} | VALUES
    for name in lance_format.__all__:
        kind = getattr(lance_format, name)
        if isinstance(kind, type) and not issubclass(kind, Exception):
            assert name in known, f"say how to make a {name}"


def test_types_of_arguments_are_known() -> None:
    for name, (called, _) in CALLS.items():
        function = called.__init__ if isinstance(called, type) else called
        if set(inspect.signature(called).parameters) <= {"self"}:
            continue
        assert hasattr(function, "__wrapped__"), f"{name} does not check its arguments"
        for parameter, hint in argument_hints(inspect.unwrap(function)).items():
            assert not isinstance(hint, str), (name, parameter)
