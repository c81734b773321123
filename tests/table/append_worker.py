"""Appends one row a commit: `python -m tests.table.append_worker ours|pylance PATH START COUNT`."""

import sys

import pyarrow as pa


def main(kind: str, path: str, start: int, count: int) -> None:
    if kind == "ours":
        import lance_format as library
    else:
        import lance as library
    for number in range(start, start + count):
        library.write_dataset(pa.table({"a": [number]}), path, mode="append")


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
