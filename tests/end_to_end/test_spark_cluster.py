"""Executors in processes of their own, without the driver's environment; Spark Connect."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from fixtures.pace import allow
from fixtures.server import VARIABLE
from fixtures.spark import ROOT, link_spark_home, options_of
from google.cloud.spanner_v1.database import Database

from emulator.process import ServerProcess
from watcher.process.spark.java import ensure_java

pytestmark = [pytest.mark.spark]

JOB = ROOT / "tests" / "end_to_end" / "cluster_job.py"
CONNECT = ROOT / "tests" / "end_to_end" / "connect_job.py"
MASTER = "local-cluster[2,1,1024]"
ROWS = 50
SECONDS, SECONDS_MAX = 500.0, 900.0
"""Limits of a job, and of one on a busy machine: pytest ends a test later, and shows no output."""


def write(database: Database) -> None:
    with database.batch() as batch:
        rows = [(k, "name") for k in range(ROWS)]
        batch.insert_or_update("Singers", ("SingerId", "LastName"), rows)


def environment(folder: Path, *paths: Path) -> dict[str, str]:
    """That of a user's shell: it knows no emulator, nothing of the tests, and Spark by its home."""
    ensure_java()
    kept = {name: value for name, value in os.environ.items() if name != VARIABLE}
    return kept | {
        "SPARK_HOME": str(link_spark_home(folder)),
        "PYSPARK_PYTHON": sys.executable,
        "PYTHONPATH": os.pathsep.join(map(str, paths)),
    }


def run(
    script: Path, argument: dict[str, Any], *paths: Path, submit: Sequence[str] = (), **more: str
) -> dict[str, Any]:
    """What a script printed of what it saw; ``submit``: the options of spark-submit."""
    there = environment(Path(argument["folder"]), *paths) | more
    runner = [f"{there['SPARK_HOME']}/bin/spark-submit", *submit] if submit else [sys.executable]
    command = [*runner, str(script), json.dumps(argument)]
    errors, limit = Path(argument["folder"]) / "stderr", min(allow(SECONDS), SECONDS_MAX)
    with errors.open("w") as file:
        try:
            done = subprocess.run(
                command,
                env=there,
                cwd=argument["folder"],
                stdout=subprocess.PIPE,
                stderr=file,
                text=True,
                timeout=limit,
                check=False,
            )
        except subprocess.TimeoutExpired:
            pytest.fail(f"not done after {limit:.0f} s: {shorten(errors.read_text())}")
    seen = [line[5:] for line in done.stdout.splitlines() if line.startswith("SEEN ")]
    assert done.returncode == 0, shorten(errors.read_text())
    return dict(json.loads(seen[0]))


def shorten(text: str) -> str:
    """The beginning, where Spark says what went wrong first, and the end."""
    return text if len(text) <= 8000 else f"{text[:3000]}\n[...]\n{text[-5000:]}"


def read_on_cluster(
    database: Database, server: ServerProcess, folder: Path, *submit: str, **more: str
) -> dict[str, Any]:
    """What the job saw on two executors, which have read every row, streaming and in a batch."""
    write(database)
    options = options_of(database)
    master = ("--master", MASTER)
    place = ("--conf", f"spark.executorEnv.{VARIABLE}={server.address}")
    argument = {
        "conf": {"spark.sql.session.timeZone": "UTC"},
        "options": options | {"startingTimestamp": "earliest", "rowsPerSlice": "10"},
        "batch": options,
        "folder": str(folder),
    }
    seen = run(JOB, argument, submit=[*master, *place, *submit], **more)
    assert (seen["executors"], seen["rows"], seen["batch"]) == (2, ROWS, ROWS), seen
    return seen


def zip_package(folder: Path) -> Path:
    """The package as docs/spark-clusters.md makes it."""
    path = folder / "spanner_watcher.zip"
    with zipfile.ZipFile(path, "w") as archive:
        for file in source_files():
            archive.write(file, file.relative_to(ROOT))
    return path


def source_files() -> Iterator[Path]:
    for package in ("watcher", "spanner_schema"):
        yield from (ROOT / package).rglob("*.py")


def test_executors_of_a_cluster_read_with_the_package_from_a_zip(
    singers: Database, server: ServerProcess, tmp_path: Path
) -> None:
    archive = zip_package(tmp_path)
    seen = read_on_cluster(singers, server, tmp_path, "--py-files", str(archive))
    assert all(place.endswith(archive.name) for place in (seen["driver"], *seen["places"])), seen


def pack_environment(folder: Path) -> Path:
    """The archive that docs/spark-clusters.md makes, without PySpark, which the cluster has (400 MB
    in 12,000 files, which each executor unpacks). The environment stays there for the driver."""
    environment, archive = folder / "environment", folder / "environment.tar.gz"
    python = environment / "bin/python"
    version = f"python-{sys.version_info.major}.{sys.version_info.minor}"
    tested = ROOT / "scripts" / "constraints" / f"{version}.txt"
    commands: list[list[str | Path]] = [
        [sys.executable, "-m", "venv", environment],
        [python, "-m", "pip", "install", "-q", "-c", tested, ROOT, "venv-pack"],
        [environment / "bin/venv-pack", "-q", "-p", environment, "-o", archive],
    ]
    for command in commands:
        subprocess.run(command, check=True, timeout=allow(600))
    return archive


@pytest.mark.timeout(1200)
def test_executors_of_a_cluster_read_with_an_environment_that_travels(
    singers: Database, server: ServerProcess, tmp_path: Path
) -> None:
    archives = ("--archives", f"{pack_environment(tmp_path)}#environment")
    python = {"PYSPARK_PYTHON": "./environment/bin/python"}
    seen = read_on_cluster(singers, server, tmp_path, *archives, **python)
    assert seen["driver"].startswith(f"{tmp_path}/environment/lib/"), seen
    unpacked = tmp_path / "spark-home" / "work"
    assert all(place.startswith(f"{unpacked}/") for place in seen["places"]), seen


def test_spark_connect_works(singers: Database, server: ServerProcess, tmp_path: Path) -> None:
    needed = pytest.importorskip("zstandard", reason="Spark Connect needs pyspark[connect]")
    installed = Path(needed.__file__).parent.parent
    write(singers)
    argument = {"options": options_of(singers), "folder": str(tmp_path)}
    seen = run(CONNECT, argument, ROOT, installed, **{VARIABLE: server.address})
    assert seen["client"] == "pyspark.sql.connect.session"
    assert (seen["rows"], seen["few"], seen["newest"]) == (ROWS, 5, ROWS)
    assert "did you mean 'table'" in seen["refused"]
