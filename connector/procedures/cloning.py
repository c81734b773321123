"""`clone`: a version of a table as a table of its own, with a copy of its files or with the same ones."""

from __future__ import annotations

from pyspark.sql.types import LongType, StringType

from connector.procedures.declaring import Result, Target, columns
from lance_format import InvalidInputError

CLONE_SCHEMA = columns(location=StringType(), version=LongType(), allowed_base_paths=StringType())


def clone(target: Target, *, to: str, version: int | None, tag: str | None, shallow: bool | None) -> Result:
    """Clone a version, by default the latest; see `LanceDataset.deep_clone` and `LanceDataset.shallow_clone`.

    Parameters
    ----------
    target : Target
    to : str
        The directory of the clone, as an absolute path or a URI.
    version, tag
        One of them may name the version.
    shallow : bool, optional
        Whether the clone shares the files, instead of getting copies.

    Returns
    -------
    Result
        With the option of the storage that reads of a shallow clone need.

    Raises
    ------
    InvalidInputError
        If both a version and a tag are given, or the directory is relative or not allowed.
    """
    if not to.startswith("/") and "://" not in to and not to.startswith("file:/"):
        raise InvalidInputError(
            f"clone takes the directory of the clone as an absolute path or a URI, not {to!r}; in a catalog, that of a"
            " table t is <root>/<namespace>/t.lance"
        )
    if version is not None and tag is not None:
        raise InvalidInputError("clone takes one of the arguments version and tag, not both")
    dataset = target.open()
    chosen = dataset.version if version is None else version
    made = (dataset.shallow_clone if shallow else dataset.deep_clone)(to, chosen if tag is None else tag)
    allowed = made.storage_options.get("allowed_base_paths") if shallow else None
    return Result(CLONE_SCHEMA, [(made.uri, made.version, allowed)])
