"""PySpark as it is installed, in place of Spark's own zip of it, for the Python processes of Spark.

Spark puts the zip first on the path of each process that it starts. A zip has no bytecode: every
process compiles PySpark again, which takes half a second of CPU time. And before Spark 4.2 a worker
has Python read the directories of all zips and jars on its path again at each task, 60 to 130 ms of
CPU time: those of PySpark, and Spark's own jar, in which there is no Python.
"""

from __future__ import annotations

import os
import sys
import sysconfig
from collections.abc import Mapping, Sequence
from importlib.machinery import PathFinder
from pathlib import Path
from zipfile import BadZipFile, ZipFile
from zlib import crc32

from watcher.process.forks import Command, end_as, run_as_fork

COMMAND = "spanner-watcher-python"
PATH = "PYTHONPATH"
PYTHON_VARIABLE = "PYSPARK_PYTHON"
TEMPLATE = "SPANNER_WATCHER_TEMPLATE"
"""The variable that names the socket of a template, in the environment of Spark's processes."""
ZIPPED = ("pyspark", "py4j")
NOT_INSTALLED = frozenset({"tests", "benchmark"})
LIBRARY = Path("python", "lib")
"""Where an installed PySpark has its zips."""
CORE_JAR = "spark-core_*.jar"
WORKER = "pyspark.worker_util"
"""What every worker of Spark's has imported, and no driver."""


def find_zips(path: Sequence[str]) -> list[str]:
    """The entries of a path that are zips of the PySpark which is installed on it, or equal to it.
    None where Spark came in another way, or another PySpark is installed."""
    zips = [entry for entry in path if entry.endswith(".zip")]
    folders = [find_package(name, path) for name in ZIPPED] if zips else []
    packages = [folder for folder in folders if folder is not None]
    if len(packages) < len(ZIPPED):
        return []
    library = (packages[0] / LIBRARY).resolve()
    parents = {package.parent for package in packages}
    return [
        entry
        for entry in zips
        if Path(entry).resolve().parent == library
        or any(is_installed(Path(entry), each) for each in parents)
    ]


def find_jars(path: Sequence[str]) -> list[str]:
    """The entries of a path that are Spark's own jar, which Spark puts there."""
    return [entry for entry in path if Path(entry).match(CORE_JAR)]


def find_package(name: str, path: Sequence[str]) -> Path | None:
    """The folder of a package on a path, without its zips."""
    spec = PathFinder.find_spec(name, [entry for entry in path if not entry.endswith(".zip")])
    return Path(spec.origin).parent if spec is not None and spec.origin is not None else None


def is_installed(archive: Path, folder: Path) -> bool:
    """Whether a folder has all modules of a zip of PySpark or py4j as the zip has them: on a
    cluster Spark comes with zips, and the Python of its workers with a PySpark."""
    try:
        with ZipFile(archive) as file:
            entries = [each for each in file.infolist() if is_module(each.filename)]
        return bool(entries) and all(
            crc32((folder / each.filename).read_bytes()) == each.CRC for each in entries
        )
    except (OSError, BadZipFile):
        return False


def is_module(name: str) -> bool:
    """Whether an entry of a zip is a module that is installed, too: tests are not."""
    folders = name.split("/")
    return name.endswith(".py") and folders[0] in ZIPPED and NOT_INSTALLED.isdisjoint(folders)


def use_installed_spark() -> None:
    """Takes the zips and the jar off the path of this process, before it imports PySpark."""
    leave((*find_zips(sys.path), *find_jars(sys.path)))


def leave(left: tuple[str, ...]) -> None:
    """Takes entries off the path, and off the cache of what was found at each place of it, which
    Python reads again, too: it looked there for the module with which the process began."""
    sys.path[:] = [entry for entry in sys.path if entry not in left]
    for entry in [each for each in sys.path_importer_cache if each.startswith(left)]:
        del sys.path_importer_cache[entry]


def is_worker() -> bool:
    """Whether this process is a worker of Spark's."""
    return WORKER in sys.modules


def leave_zips() -> None:
    """The same in a worker, which has imported PySpark from the zip already: what follows comes
    from the installed one, and nothing looks into the zip any more, nor into Spark's own jar. Does
    nothing in other processes."""
    if not is_worker():
        return
    zips = find_zips(sys.path)
    left = (*zips, *find_jars(sys.path))
    if not left:
        return
    folders = {name: find_package(name, sys.path) for name in ZIPPED if zips}
    for name, module in list(sys.modules.items()):
        package, *inner = name.split(".")
        if (folder := folders.get(package)) is not None and hasattr(module, "__path__"):
            module.__path__ = [str(folder.joinpath(*inner))]
    leave(left)


def find_worker_python() -> str:
    """What Spark is to start for a Python process: the command ``spanner-watcher-python`` of this
    environment, or the interpreter where it was not installed."""
    command = Path(sysconfig.get_path("scripts"), COMMAND)
    return str(command) if os.name == "posix" and os.access(command, os.X_OK) else sys.executable


def split_path(environment: Mapping[str, str]) -> list[str]:
    """The entries of PYTHONPATH."""
    return [entry for entry in environment.get(PATH, "").split(os.pathsep) if entry]


def drop_zips(entries: Sequence[str], rest: Sequence[str]) -> list[str]:
    """Entries of PYTHONPATH without the zips and the jar; ``rest`` is what is installed."""
    left = (*find_zips([*entries, *rest]), *find_jars(entries))
    return [entry for entry in entries if entry not in left]


def run_python() -> None:
    """The command ``spanner-watcher-python``: becomes this interpreter, with the same arguments
    and without the zips and the jar in PYTHONPATH; or a fork of the template, if there is one."""
    arguments = sys.argv[1:]
    if address := os.environ.get(TEMPLATE):
        command = Command(sys.executable, arguments, dict(os.environ), os.getcwd())
        code = run_as_fork(address, command)
        if code is not None:
            end_as(code)
    os.environ[PATH] = os.pathsep.join(drop_zips(split_path(os.environ), sys.path))
    os.execv(sys.executable, [sys.executable, *arguments])
