"""INVERTED indices: their files, how they are made, and their partitions as searches read them."""
