"""Compilation of all kernels, so that no first query waits for it: `python -m pyspark_lance.warm`."""

from __future__ import annotations

import time


def warm() -> None:
    """Compile the kernels of all file formats that can be written, unless they are compiled already."""
    from lance_format.warming import compile_kernels  # imports what a start of the command line does without

    started = time.perf_counter()
    compile_kernels()
    print(f"All kernels are compiled, after {time.perf_counter() - started:.0f} s.")


if __name__ == "__main__":
    warm()
