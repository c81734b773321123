"""Catalogs of Lance tables in directories: the effects of SQL statements on namespaces and tables.

`connector/catalog/java` has the classes that Spark calls, `lance.Catalog` first of all. They call `actions`, in the
same two ways as the planner bridge asks about a table.
"""
