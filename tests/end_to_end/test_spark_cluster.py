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
    done = subprocess.run(
        [*runner, str(script), json.dumps(argument)],
        env=there,
        cwd=argument["folder"],
        capture_output=True,
        text=True,
        timeout=500,
        check=False,
    )
    seen = [line[5:] for line in done.stdout.splitlines() if line.startswith("SEEN ")]
    assert done.returncode == 0, done.stderr[-5000:]
    return dict(json.loads(seen[0]))


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
    write(singers)
    options = options_of(singers)
    archive = zip_package(tmp_path)
    seen = run(
        JOB,
        {
            "conf": {"spark.sql.session.timeZone": "UTC"},
            "options": options | {"startingTimestamp": "earliest", "rowsPerSlice": "10"},
            "batch": options,
            "folder": str(tmp_path),
        },
        submit=[
            *("--master", MASTER),
            *("--conf", f"spark.executorEnv.{VARIABLE}={server.address}"),
            *("--py-files", str(archive)),
        ],
    )
    assert seen["executors"] == 2
    assert all(place.endswith(archive.name) for place in (seen["driver"], *seen["places"])), seen
    assert (seen["rows"], seen["batch"]) == (ROWS, ROWS)


def test_spark_connect_works(singers: Database, server: ServerProcess, tmp_path: Path) -> None:
    needed = pytest.importorskip("zstandard", reason="Spark Connect needs pyspark[connect]")
    installed = Path(needed.__file__).parent.parent
    write(singers)
    argument = {"options": options_of(singers), "folder": str(tmp_path)}
    seen = run(CONNECT, argument, ROOT, installed, **{VARIABLE: server.address})
    assert seen["client"] == "pyspark.sql.connect.session"
    assert (seen["rows"], seen["few"], seen["newest"]) == (ROWS, 5, ROWS)
    assert "did you mean 'table'" in seen["refused"]
