"""Page layouts: one file each, a registry for reading, a strategy for writing."""
