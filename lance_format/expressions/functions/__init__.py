"""The functions of expressions: their table, and those that take more than a call of pyarrow."""
