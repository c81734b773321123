"""Builds wheels into `dist`: a pure one, and one for this platform and Python that contains compiled kernels.

    python tools/build_wheels.py [--outdir DIRECTORY]

The kernels are compiled for a processor that most machines have (`portable_processor`), from the sources in the wheel.
Kernels that the wheel lacks are compiled on their first call, as with the pure wheel. So are all kernels on older
processors, and where other versions of Python or numba are installed.
"""

from __future__ import annotations

import argparse
import os
import platform
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path

from lance_format.kernels.disk_cache import SHIPPED, portable_processor

ROOT = Path(__file__).parents[1]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--outdir", type=Path, default=ROOT / "dist")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        pure = build_pure_wheel(Path(directory, "pure"))
        shutil.copy2(pure, _made(options.outdir))
        print(add_kernels(pure, Path(directory), options.outdir))


def build_pure_wheel(outdir: Path) -> Path:
    """Build the wheel for every platform, and return its path."""
    _run("build", "--wheel", "--outdir", outdir, ROOT)
    (wheel,) = outdir.glob("*.whl")
    return wheel


def add_kernels(pure: Path, directory: Path, outdir: Path) -> Path:
    """Add compiled kernels to a wheel, and return the path of the result, which is for this platform and Python."""
    _run("wheel", "unpack", "--dest", _made(directory / "unpacked"), pure)
    (content,) = (directory / "unpacked").iterdir()
    compiled = _made(content / SHIPPED.relative_to(ROOT))
    _compile(content, directory / "cache")
    for path in (directory / "cache").rglob("*.nbc"):
        shutil.copy(path, compiled)
    _run("wheel", "pack", "--dest-dir", _made(directory / "packed"), content)
    (packed,) = (directory / "packed").iterdir()
    python = f"cp{sys.version_info[0]}{sys.version_info[1]}"
    _run("wheel", "tags", "--remove", "--python-tag", python, "--platform-tag", _platform_tag(), packed)
    (tagged,) = (directory / "packed").iterdir()
    return Path(shutil.copy2(tagged, _made(outdir)))


def _compile(package: Path, cache: Path) -> None:
    name, _ = portable_processor(platform.machine())
    portable = {"NUMBA_CPU_NAME": name, "NUMBA_CPU_FEATURES": "", "NUMBA_CACHE_DIR": str(cache)}
    portable["PYTHONPYCACHEPREFIX"] = str(cache / "modules")  # Installers compile the modules of a wheel.
    environment = {**os.environ, **portable, "PYTHONPATH": str(package)}
    subprocess.run([sys.executable, "-m", "pyspark_lance.warm"], check=True, env=environment, cwd=package)


def _platform_tag() -> str:
    """Return the tag of the platform. Compiled kernels call no C library, so any version of it serves."""
    if sys.platform == "linux":
        return f"manylinux_2_17_{platform.machine()}"
    return sysconfig.get_platform().replace("-", "_").replace(".", "_")


def _run(module: str, *arguments: str | Path) -> None:
    subprocess.run([sys.executable, "-m", module, *map(str, arguments)], check=True, stdout=subprocess.DEVNULL)


def _made(directory: Path) -> Path:
    directory.mkdir(parents=True, exist_ok=True)
    return directory


if __name__ == "__main__":
    main()
