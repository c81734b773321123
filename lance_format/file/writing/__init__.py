"""From Arrow arrays to the pages of a file, and the metadata at its end."""
