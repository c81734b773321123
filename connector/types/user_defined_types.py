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
    """Return the user-defined type of Spark that a file names; None if it is no part of Spark.

    Parameters
    ----------
    name : str or None
        Of `name_class`, or anything else that a file holds.
    """
    if name not in _CLASSES:
        return None
    module, class_name = _CLASSES[name]
    # Costs most of a second, which only those pay who read such a column.
    found: UserDefinedType = getattr(import_module(module), class_name)()
    return found


def storage_type(spark_type: DataType) -> DataType:
    """Return what values of a type are made of: of a user-defined type its `sqlType`, of others the type itself."""
    return storage_type(spark_type.sqlType()) if isinstance(spark_type, UserDefinedType) else spark_type
