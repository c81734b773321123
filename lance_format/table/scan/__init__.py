"""From columns, a filter and a window to record batches; single rows; scan tasks."""
