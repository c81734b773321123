"""The commands: one module per command, one row of `lance_cli.app.COMMANDS` each.

`lance_format` loads pyarrow and the kernels on first use of a table, so help needs neither.
"""
