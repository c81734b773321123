"""Single data files as users see them, by the names of pylance's `lance.file`. Nothing below imports it."""
