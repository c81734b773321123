"""DELETE, UPDATE and MERGE: in the driver, or as deltas of rows that tasks write."""
