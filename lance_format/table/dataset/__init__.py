"""The table as users see it: `LanceDataset`, and what hangs on it, such as tags and statistics."""
