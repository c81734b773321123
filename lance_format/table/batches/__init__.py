"""Record batches in memory: taken from users, fitted to a schema, cut, joined by key. They know nothing of tables."""
