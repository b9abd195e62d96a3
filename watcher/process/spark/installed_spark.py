"""PySpark as it is installed, in place of Spark's own zip of it, for the Python processes of Spark.

Spark puts the zip first on the path of each process that it starts. A zip has no bytecode: every
process compiles PySpark again, which takes half a second of CPU time.
"""

from __future__ import annotations

import os
import sys
import sysconfig
from collections.abc import Sequence
from importlib.machinery import PathFinder
from pathlib import Path

COMMAND = "spanner-watcher-python"
PATH = "PYTHONPATH"
ZIPPED = ("pyspark", "py4j")
LIBRARY = Path("python", "lib")
"""Where an installed PySpark has its zips."""


def find_zips(path: Sequence[str]) -> list[str]:
    """The entries of a path that are zips of the PySpark which is installed on it. None where Spark
    came in another way, or another PySpark is installed."""
    zips = [entry for entry in path if entry.endswith(".zip")]
    others = [entry for entry in path if entry not in zips]
    specs = [PathFinder.find_spec(name, others) for name in ZIPPED] if zips else []
    origins = [spec.origin for spec in specs if spec is not None and spec.origin is not None]
    if len(origins) < len(ZIPPED):
        return []
    library = (Path(origins[0]).parent / LIBRARY).resolve()
    return [entry for entry in zips if Path(entry).resolve().parent == library]


def use_installed_spark() -> None:
    """Takes the zips off the path of this process, before it imports PySpark."""
    zips = find_zips(sys.path)
    sys.path[:] = [entry for entry in sys.path if entry not in zips]


def find_worker_python() -> str:
    """What Spark is to start for a Python process: the command ``spanner-watcher-python`` of this
    environment, or the interpreter where it was not installed."""
    command = Path(sysconfig.get_path("scripts"), COMMAND)
    return str(command) if os.name == "posix" and os.access(command, os.X_OK) else sys.executable


def run_python() -> None:
    """The command ``spanner-watcher-python``: becomes this interpreter, with the same arguments
    and without the zips in PYTHONPATH."""
    zips = find_zips(sys.path)
    entries = os.environ.get(PATH, "").split(os.pathsep)
    os.environ[PATH] = os.pathsep.join(entry for entry in entries if entry not in zips)
    os.execv(sys.executable, [sys.executable, *sys.argv[1:]])
