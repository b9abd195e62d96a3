"""A process that has imported what Spark's Python processes import, and is forked for each of them.

Spark starts a Python process of its own kind to make a source, to plan with it, for a stream, and
for tasks, and each would import PySpark, the source and the client for Spanner: over a second of
CPU time. On one machine Spark starts ``spanner-watcher-python``, which asks here for a fork. The
driver starts this process (``template_start.py``), and it ends with the driver.
"""

from __future__ import annotations

import os
import runpy
import shutil
import socket
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from watcher.process.forks import Command, fork_for_commands
from watcher.process.spark.installed_spark import PATH, drop_zips, split_path, use_installed_spark
from watcher.process.spark.preload import SOURCE, preload

MODULES = (
    SOURCE,
    "pyspark.worker",
    "pyspark.sql.worker.create_data_source",
    "pyspark.sql.worker.plan_data_source_read",
    "pyspark.sql.streaming.python_streaming_source_runner",
)
"""What the processes of a source run; ``pyspark.daemon``, with which all begin, needs no more."""
READ_AT_START = "PYTHON"
RUN_MODULE = "-m"


def main() -> None:
    """``worker_template LISTENER LIFE``: two descriptors, a Unix socket that listens, and a pipe
    whose other end the driver has."""
    use_installed_spark()
    own = split_path(os.environ)
    installed = [entry for entry in sys.path if entry not in own]
    preload(MODULES)
    with socket.socket(fileno=int(sys.argv[1])) as listener:
        address = Path(listener.getsockname())
        command = fork_for_commands(listener, int(sys.argv[2]), starts_alike)
    if command is not None:
        become(command, installed)
    else:
        shutil.rmtree(address.parent, ignore_errors=True)


def starts_alike(command: Command) -> bool:
    """Whether a command runs a module, and is this process as far as Python fixes at its start."""
    return (
        len(command.arguments) > 1
        and command.arguments[0] == RUN_MODULE
        and command.executable == sys.executable
        and choose_start(command.environment) == choose_start(os.environ)
    )


def choose_start(environment: Mapping[str, str]) -> dict[str, str]:
    """The variables that Python reads when it starts and never again, such as PYTHONHASHSEED.
    Those of Spark's that begin alike go on with an underscore; a fork sets its own PYTHONPATH."""
    return {
        name: value
        for name, value in environment.items()
        if name.removeprefix(READ_AT_START)[:1].isalpha()
        and name.startswith(READ_AT_START)
        and name != PATH
    }


def become(command: Command, installed: Sequence[str]) -> None:
    """Runs the module of a command as Python does. ``installed`` is the path behind PYTHONPATH."""
    os.chdir(command.folder)
    os.environ.clear()
    os.environ.update(command.environment)
    own = drop_zips(split_path(os.environ), installed)
    os.environ[PATH] = os.pathsep.join(own)
    sys.path[:] = [command.folder, *own, *installed]
    module = command.arguments[1]
    sys.argv = command.arguments[1:]
    # A module that was imported already would be run beside itself.
    sys.modules.pop(module, None)
    runpy.run_module(module, run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
