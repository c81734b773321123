"""Options of reads and writes, parsed once into values, and the version that they choose."""
