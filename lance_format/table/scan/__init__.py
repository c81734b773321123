"""Scans: from columns, a filter, limit and offset to record batches; single rows; scan tasks."""
