"""Commands of the package.

    python -m pyspark_lance warm    compile the kernels now, so that no first query waits for it

It compiles the kernels of the writable file formats, 2.1 and 2.2.

Compiled code goes into numba's cache, which belongs to a user and a processor model: beside the package if the user may
write there, else in the home directory, or in `NUMBA_CACHE_DIR`. Run the command as the user of Spark's workers, on
their machines.
"""

from __future__ import annotations

import argparse
import time


def main(arguments: list[str] | None = None) -> None:
    """Run a command.

    Parameters
    ----------
    arguments : list of str, optional
        By default those of the command line.
    """
    parser = argparse.ArgumentParser(prog="python -m pyspark_lance", description=__doc__)
    commands = parser.add_subparsers(required=True, metavar="command")
    warm = commands.add_parser("warm", help="compile the kernels now, so that no first query waits for it")
    warm.set_defaults(run=_warm)
    parser.parse_args(arguments).run()


def _warm() -> None:
    from lance_format.warming import compile_kernels  # The parser does not need it.

    started = time.perf_counter()
    compile_kernels()
    print(f"The kernels of file formats 2.1 and 2.2 are compiled, after {time.perf_counter() - started:.0f} s.")


if __name__ == "__main__":
    main()
