"""Pages of file format 2.0, which are trees of array encodings: one file per encoding, like page layouts."""
