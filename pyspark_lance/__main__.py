"""Commands of the package.

    python -m pyspark_lance warm    compile kernels, planner and modules now, so that no first query waits for it

Wheels of a platform contain compiled kernels. Elsewhere compiled code belongs to a user and a processor model: it is
kept beside the package if the user may write there, else in the home directory, or in `NUMBA_CACHE_DIR`. Run the
command as the user of Spark's workers, on their machines. The planner is compiled for the Spark and the Java that are
installed, and is used by drivers. Bytecode of modules is kept beside them, if that user may write there; pip has made
it when it installed them.
"""

from __future__ import annotations

import argparse

from pyspark_lance.warm import warm


def main(arguments: list[str] | None = None) -> None:
    """Run a command.

    Parameters
    ----------
    arguments : list of str, optional
        By default those of the command line.
    """
    parser = argparse.ArgumentParser(prog="python -m pyspark_lance", description=__doc__)
    commands = parser.add_subparsers(required=True, metavar="command")
    command = commands.add_parser("warm", help="compile what a first query would wait for")
    command.set_defaults(run=warm)
    parser.parse_args(arguments).run()


if __name__ == "__main__":
    main()
