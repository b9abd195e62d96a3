"""Files of a user's beside his job that have the names of this distribution's packages."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from fixtures.commands import SECONDS
from fixtures.pace import allow
from fixtures.singers import address_of, write_singers
from fixtures.warm_python import run_cold
from google.cloud.spanner_v1.database import Database

JOB = """
import sys
import benchmarks, conformance, ddl, emulator
from watcher import Watcher
from watcher.runners.spark.source import SpannerChanges
watcher = Watcher(database=sys.argv[1], consumer="beside", tables=["Singers"], start="earliest")
watcher.on_change(lambda change: print(change.table, change.key))
watcher.run_once()
own = [module.__file__ for module in (benchmarks, conformance, ddl, emulator)]
print(SpannerChanges.name(), all(file.startswith(sys.path[0]) for file in own))
"""
START = "from watcher.cli import main; main()"
NEIGHBOURS = {
    "benchmarks/__init__.py": "",
    "conformance.py": "",
    "ddl.py": "",
    "emulator.py": "",
}


def write_files(folder: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)


def run(folder: Path, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    return run_cold(arguments, os.environ | variables, allow(SECONDS), folder)


def test_a_job_has_its_own_modules_of_the_same_names(singers: Database, tmp_path: Path) -> None:
    write_files(tmp_path, {"job.py": JOB, **NEIGHBOURS})
    write_singers(singers, [1], "Marc")
    done = run(tmp_path, "job.py", str(address_of(singers)))
    assert done.stdout == "Singers {'SingerId': 1}\nspanner-changes True\n", done.stderr


def test_commands_of_a_running_watcher_need_none_of_them(singers: Database, tmp_path: Path) -> None:
    write_files(tmp_path, NEIGHBOURS)
    where = ("-d", str(address_of(singers)))
    for command in ("watch --once --consumer c", "clear -t Singers"):
        done = run(tmp_path, "-c", START, *command.split(), *where, PYTHONPATH=str(tmp_path))
        assert done.returncode == 0, done.stderr


def test_a_file_that_hides_what_a_job_needs_is_named(tmp_path: Path) -> None:
    write_files(tmp_path, {"job.py": "import watcher", "spanner_schema.py": ""})
    done = run(tmp_path, "job.py")
    assert done.returncode == 1
    last = done.stderr.splitlines()[-1]
    assert f"{tmp_path / 'spanner_schema.py'} hides the package 'spanner_schema'" in last


@pytest.mark.parametrize(
    ("name", "command"),
    [
        ("emulator.py", ["try"]),
        ("benchmarks/__init__.py", ["bench", "--help"]),
        ("ddl.py", ["ddl", "status", "-d", "spanner://projects/p/instances/i1/databases/d1"]),
        ("ddl.py", ["ddl", "change-stream", "create", "--help"]),
        ("ddl/__init__.py", ["ddl", "lint", "--schema", "-"]),
        ("ddl/__init__.py", ["try"]),
        ("ddl.py", ["check", "-d", "spanner://projects/p/instances/i1/databases/d1"]),
    ],
)
def test_a_command_names_what_hides_its_package(
    tmp_path: Path, name: str, command: list[str]
) -> None:
    write_files(tmp_path, {name: ""})
    done = run(tmp_path, "-c", START, *command, PYTHONPATH=str(tmp_path))
    assert done.returncode == 2
    assert f"error: {tmp_path / name} hides the package" in done.stderr
    assert "Traceback" not in done.stderr
