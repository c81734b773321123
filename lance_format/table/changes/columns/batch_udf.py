"""Functions that compute new columns batch by batch, and the file that keeps their results.

A checkpoint keeps the results of a slow function until they are committed, so that the next run continues an
interrupted one. The key of a result is its input: the files of the fragment with its deleted rows, the columns, and the
batch size. The function itself is not part of the key: delete the file if it changes.
"""

from __future__ import annotations

import contextlib
import functools
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, SupportsIndex, TypeAlias

import pyarrow as pa

from lance_format.arguments import checked, checked_methods
from lance_format.errors import CorruptFileError, StorageError

if TYPE_CHECKING:
    import sqlite3

BatchFunction: TypeAlias = Callable[[pa.RecordBatch], pa.RecordBatch | pa.Table]

_TABLE = "lance_results"


@checked_methods
class BatchUDF:
    """A function for `LanceDataset.add_columns`. Made by `batch_udf`.

    Parameters
    ----------
    func : callable
    output_schema : pa.Schema, optional
    checkpoint_file : str or path, optional
    """

    def __init__(
        self,
        func: BatchFunction,
        output_schema: pa.Schema | None = None,
        checkpoint_file: str | os.PathLike[str] | None = None,
    ) -> None:
        functools.update_wrapper(self, func, updated=())
        self.func = func
        self.output_schema = output_schema
        self.checkpoint_file = None if checkpoint_file is None else os.fspath(checkpoint_file)

    def __call__(self, batch: pa.RecordBatch) -> Any:
        """Call the function."""
        return self.func(batch)

    def __reduce_ex__(self, protocol: SupportsIndex) -> str | tuple[Any, ...]:
        """Pickle by name, as functions do: the decorated function has taken the name of the plain one."""
        name = getattr(self.func, "__qualname__", "")
        module = getattr(self.func, "__module__", None)
        if module != "__main__" and getattr(sys.modules.get(module or ""), name, None) is self:
            return str(name)
        return super().__reduce_ex__(protocol)


@checked
def batch_udf(
    output_schema: pa.Schema | None = None, checkpoint_file: str | os.PathLike[str] | None = None
) -> Callable[[BatchFunction], BatchUDF]:
    """Return a decorator for functions that compute new columns from record batches.

    Parameters
    ----------
    output_schema : pa.Schema, optional
        The new columns. By default the function is called on the first rows to find them.
    checkpoint_file : str or path, optional
        A local file that keeps the results until they are committed, and is deleted then. `add_columns` with the same
        file continues an interrupted run. Delete the file if the function changes.
    """
    return lambda func: BatchUDF(func, output_schema, checkpoint_file)


class Checkpoint:
    """Results that are not committed yet, in a file.

    Parameters
    ----------
    path : str
        Created if it does not exist.

    Raises
    ------
    CorruptFileError
        If it is no such file.
    """

    def __init__(self, path: str) -> None:
        self._path = path
        with self._connect() as connection:
            connection.execute(
                f"CREATE TABLE IF NOT EXISTS {_TABLE} (part BLOB, place INTEGER, batch BLOB, PRIMARY KEY (part, place))"
            )

    def find(self, part: bytes, position: int) -> pa.Table | None:
        """Return a result, or None if there is none.

        Parameters
        ----------
        part : bytes
            Key of the inputs of a fragment.
        position : int
            Index of the batch in the fragment.

        Raises
        ------
        CorruptFileError
            If the stored result is malformed.
        """
        with self._connect() as connection:
            row = connection.execute(
                f"SELECT batch FROM {_TABLE} WHERE part = ? AND place = ?", (part, position)
            ).fetchone()
        if row is None:
            return None
        try:
            with pa.ipc.open_stream(row[0]) as stream:
                return stream.read_all()
        except (pa.ArrowException, TypeError) as error:
            raise CorruptFileError(f"result {position} cannot be read: {error}", path=self._path) from error

    def keep(self, part: bytes, position: int, made: pa.RecordBatch | pa.Table) -> None:
        """Keep a result; see `find`."""
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, made.schema) as stream:
            stream.write(made)
        with self._connect() as connection:
            connection.execute(
                f"INSERT OR REPLACE INTO {_TABLE} VALUES (?, ?, ?)", (part, position, memoryview(sink.getvalue()))
            )

    def remove(self) -> None:
        """Delete the file. If that fails, its results belong to fragments that no longer exist."""
        with contextlib.suppress(OSError):
            Path(self._path).unlink()

    @contextlib.contextmanager
    def _connect(self) -> Iterator[sqlite3.Connection]:
        import sqlite3  # The import takes milliseconds, and only this needs it.

        try:
            with contextlib.closing(sqlite3.connect(self._path)) as connection, connection:
                yield connection
        except sqlite3.OperationalError as error:
            raise StorageError(f"the checkpoint {self._path} cannot be used: {error}") from error
        except sqlite3.DatabaseError as error:
            raise CorruptFileError(f"this is no checkpoint: {error}", path=self._path) from error
