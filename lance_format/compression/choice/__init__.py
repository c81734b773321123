"""Choice of the compression of a page when it is written, by the kind of its values."""
