"""`pyspark-lance warm`: the kernels, compiled before the first query."""

from __future__ import annotations

import time

from lance_cli.options import Json
from lance_cli.output import Answer, show


def run(as_json: Json = False) -> None:
    """Compile the kernels now, so that no first query waits for it; as the user of Spark, on its machines."""
    from lance_format.warming import compile_kernels  # imports the compiler, which takes most of a second

    started = time.perf_counter()
    compile_kernels()
    seconds = time.perf_counter() - started
    facts = {"seconds": round(seconds, 1)}
    show(Answer(facts, text=f"all kernels are compiled, after {seconds:.0f} s"), as_json=as_json)
