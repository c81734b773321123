"""The table as users see it: `LanceDataset`, its mixins, and what hangs on it, such as tags and statistics."""
