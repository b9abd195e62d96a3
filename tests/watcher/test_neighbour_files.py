"""Files of a user's beside his job that have the names of this distribution's packages."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

JOB = """
import sys
import watcher
from watcher.runners.spark.source import SpannerChanges
print(watcher.Watcher.__name__, SpannerChanges.name())
"""
OWN = {
    "emulator.py": "x = 1",
    "benchmarks/__init__.py": "",
    "ddl/tables.sql": "",
    "conformance.py": "",
}


def write_files(folder: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)


def run(folder: Path, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    environment = os.environ | variables
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )


def test_a_job_runs_beside_files_of_the_same_names(tmp_path: Path) -> None:
    write_files(tmp_path, {"job.py": JOB, **OWN})
    done = run(tmp_path, "job.py")
    assert (done.stdout, done.returncode) == ("Watcher spanner-changes\n", 0), done.stderr


@pytest.mark.parametrize("name", ["ddl.py", "ddl/__init__.py"])
def test_a_file_that_hides_a_package_is_named(tmp_path: Path, name: str) -> None:
    write_files(tmp_path, {"job.py": JOB, name: ""})
    done = run(tmp_path, "job.py")
    assert done.returncode == 1
    last = done.stderr.splitlines()[-1]
    assert f"{tmp_path / name} hides the package 'ddl' of spanner-watcher" in last


def test_a_job_that_has_imported_its_own_module_first_is_refused(tmp_path: Path) -> None:
    write_files(tmp_path, {"job.py": f"import ddl\n{JOB}", "ddl.py": ""})
    done = run(tmp_path, "job.py")
    assert f"{tmp_path / 'ddl.py'} hides the package 'ddl'" in done.stderr.splitlines()[-1]


@pytest.mark.parametrize(
    ("name", "command"),
    [("emulator.py", ["try"]), ("benchmarks/__init__.py", ["bench", "--help"])],
)
def test_a_command_names_what_hides_its_package(
    tmp_path: Path, name: str, command: list[str]
) -> None:
    write_files(tmp_path, {name: ""})
    start = "from watcher.cli import main; main()"
    done = run(tmp_path, "-c", start, *command, PYTHONPATH=str(tmp_path))
    assert done.returncode == 2
    assert f"error: {tmp_path / name} hides the package" in done.stderr
    assert "Traceback" not in done.stderr
