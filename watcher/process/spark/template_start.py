"""Starts the template of Spark's Python processes, which ends when this process does."""

from __future__ import annotations

import atexit
import os
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from watcher.process.spark.class_archive import offer_archive
from watcher.process.spark.installed_spark import PYTHON_VARIABLE, TEMPLATE, find_worker_python

HASH_SEED = "PYTHONHASHSEED"
SPARK_SEED = "0"
"""What Spark sets for its Python processes, if nobody has chosen another."""
MODULE = "watcher.process.spark.worker_template"
SET_BY_SPARK = {"PYTHONUNBUFFERED": "YES"}
"""What Spark sets for each Python process, and Python reads when it starts."""
WAITING_MAX = 128


def prestart() -> None:
    """Starts the template before there is a session on this machine, whose Python processes are
    then its forks, unless PYSPARK_PYTHON names another Python. Its Java takes the archive of
    classes that ``spark-archive`` has made."""
    offer_archive()
    python = find_worker_python()
    if python == sys.executable or os.environ.setdefault(PYTHON_VARIABLE, python) != python:
        return
    seed = os.environ.get(HASH_SEED, SPARK_SEED)
    if (address := offer_template({HASH_SEED: seed})) is not None:
        os.environ[TEMPLATE] = address


def offer_template(environment: Mapping[str, str]) -> str | None:
    """The address of this process's template, which is started at the first call for Spark's
    Python processes with this environment. None where forks cannot be followed: other systems than
    Linux, and a folder for temporary files whose path is too long for a socket."""
    if not sys.platform.startswith("linux"):
        return None
    try:
        return start_template(tuple(sorted(environment.items())))
    except OSError:
        return None


@cache
def start_template(environment: tuple[tuple[str, str], ...]) -> str:
    """Starts it. What asks for forks while it still imports waits in the queue of its socket; if it
    ends, or has another environment, Python is started instead. Raises OSError."""
    folder = Path(tempfile.mkdtemp(prefix="spanner-watcher-"))
    address = str(folder / "template")
    life, end = os.pipe()
    with socket.socket(socket.AF_UNIX) as listener:
        try:
            listener.bind(address)
            listener.listen(WAITING_MAX)
            process = subprocess.Popen(
                # -P: nothing is imported from the folder that the driver happens to run in.
                [sys.executable, "-P", "-m", MODULE, str(listener.fileno()), str(life)],
                env=os.environ | dict(environment) | SET_BY_SPARK,
                pass_fds=(listener.fileno(), life),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                start_new_session=True,
            )
        except OSError:
            os.close(end)
            folder.rmdir()
            raise
        finally:
            os.close(life)
    atexit.register(end_template, process, end, folder)
    return address


def end_template(process: subprocess.Popen[bytes], end: int, folder: Path) -> None:
    """Ends the template, which may still import. Its forks are Spark's, which ends them. A driver
    that is killed does not come here: the template sees that its end of the pipe is closed."""
    process.terminate()
    process.wait()
    os.close(end)
    shutil.rmtree(folder, ignore_errors=True)
