"""ZONEMAP indices: their zones, files, and how they are made and read."""
