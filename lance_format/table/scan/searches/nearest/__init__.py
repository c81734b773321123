"""Nearest neighbours: the rows whose vectors are nearest to others, exactly or by an index."""
