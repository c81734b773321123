"""User-defined types: Python classes on top of a storage type, such as `VectorUDT`.

Values are stored as the class's `sqlType`, which every reader of Lance understands. Field metadata names the class:

=================== ============================
key                 value
=================== ============================
`spark:udt`         module and name of the class: `pyspark.ml.linalg.VectorUDT`
=================== ============================

A name in a file is never imported: importing runs code, which the writer of the file would choose. It is looked up
among the classes of Spark. A column of any other class is read as its storage type, unless the user gives a schema with
the class, which Spark imports.
"""

from __future__ import annotations

from importlib import import_module

from pyspark.sql.types import DataType, UserDefinedType

UDT_KEY = "spark:udt"

_CLASSES = {
    f"{module}.{name}": (module, name)
    for module in ("pyspark.ml.linalg", "pyspark.mllib.linalg")
    for name in ("MatrixUDT", "VectorUDT")
}


def name_class(spark_type: UserDefinedType) -> str:
    """Return the module and name of a user-defined type, as Spark itself refers to it."""
    return f"{spark_type.module()}.{type(spark_type).__name__}"


def find_class(name: str | None) -> UserDefinedType | None:
    """Return the user-defined type of Spark that a file names; None for other classes.

    Parameters
    ----------
    name : str or None
        A result of `name_class`, or any other text in a file.
    """
    if name not in _CLASSES:
        return None
    module, class_name = _CLASSES[name]
    # This import takes most of a second; only reads of such columns need it.
    found: UserDefinedType = getattr(import_module(module), class_name)()
    return found


def storage_type(spark_type: DataType) -> DataType:
    """Return the storage type of a type: the `sqlType` of a user-defined type, other types themselves."""
    return storage_type(spark_type.sqlType()) if isinstance(spark_type, UserDefinedType) else spark_type
