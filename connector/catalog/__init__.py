"""Catalogs of Lance tables in directories: what SQL's statements on namespaces and tables do.

`connector/catalog/java` has the classes that Spark asks, `lance.Catalog` first of all. They ask `actions`, by the same
ways on which the planner bridge asks what it needs to know of a table.
"""
