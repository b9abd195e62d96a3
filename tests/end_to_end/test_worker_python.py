"""Which Python runs the source: jobs of people who have activated no environment."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest
from fixtures.listings import DOCS, read_listings
from fixtures.singers import address_of
from google.cloud.spanner_v1.database import Database

from watcher.process.spark.java import ensure_java

ROOT = Path(__file__).resolve().parents[2]
SECONDS_MAX = 500
JOB = """
import sys
import watcher
from pyspark.sql import SparkSession

spark = SparkSession.builder.config("spark.ui.enabled", "false").getOrCreate()
watcher.register(spark)
project, instance, database = sys.argv[1:]
rows = (
    spark.read.format("spanner-changes")
    .options(project=project, instance=instance, database=database, table="Singers")
    .load()
)
print("ROWS", rows.count())
"""
VARIABLES = ("PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON", "VIRTUAL_ENV", "PYTHONPATH")
pytestmark = [pytest.mark.spark, pytest.mark.timeout(SECONDS_MAX * 2)]


def run_job(database: Database, folder: Path, **more: str) -> subprocess.CompletedProcess[str]:
    """A job that is started by the path of its Python, with another one first on PATH."""
    ensure_java()
    job = folder / "job.py"
    job.write_text(JOB)
    address = address_of(database)
    return subprocess.run(
        [sys.executable, str(job), address.project, address.instance, address.database],
        env=make_bare_environment(folder) | more,
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=SECONDS_MAX,
        check=False,
    )


def make_bare_environment(folder: Path) -> dict[str, str]:
    """The variables of people who have set none, with another Python first on PATH."""
    kept = {name: value for name, value in os.environ.items() if name not in VARIABLES}
    return kept | {"PATH": f"{make_other_python(folder)}:/usr/bin:/bin"}


def make_other_python(folder: Path) -> Path:
    """A folder with a ``python3`` that is another one than that of the job."""
    other = folder / "other"
    other.mkdir(exist_ok=True)
    write_script(other / "python3", 'echo "this Python runs nothing" >&2; exit 1')
    return other


def make_python_without_the_product(folder: Path) -> Path:
    """A Python that has the libraries, and not the product."""
    hidden = folder / "hidden"
    hidden.mkdir()
    hook = "import sys; sys.modules['watcher'] = None\n"
    (hidden / "sitecustomize.py").write_text(hook)
    path = folder / "bare-python"
    write_script(path, f'PYTHONPATH="{hidden}:$PYTHONPATH" exec "{sys.executable}" "$@"')
    return path


def make_python_with_another_version(folder: Path) -> Path:
    """A Python with version 99 of the product."""
    metadata = folder / "newer" / "spanner_watcher-99.dist-info"
    metadata.mkdir(parents=True)
    text = "Metadata-Version: 2.1\nName: spanner-watcher\nVersion: 99\n"
    (metadata / "METADATA").write_text(text)
    path = folder / "newer-python"
    write_script(path, f'PYTHONPATH="{metadata.parent}:$PYTHONPATH" exec "{sys.executable}" "$@"')
    return path


def write_script(path: Path, line: str) -> None:
    path.write_text(f"#!{shutil.which('sh')}\n{line}\n")
    path.chmod(0o755)


def write_singer(database: Database) -> None:
    with database.batch() as batch:
        batch.insert_or_update("Singers", ("SingerId", "LastName"), [(1, "name")])


def read_first_listing(database: Database, folder: Path) -> str:
    """The first listing of the page about Spark, with names and folders of this machine."""
    listings = [each for each in read_listings(DOCS / "spark.md") if "writeStream" in each.text]
    address = address_of(database)
    names = (("project", address.project), ("instance", address.instance))
    text = listings[0].text.replace('"/data/', f'"{folder}/')
    for option, value in (*names, ("database", address.database)):
        text, count = re.subn(f'{option}="[a-z]"', f'{option}="{value}"', text)
        assert count == 1, listings[0].place
    return text


def test_the_first_listing_delivers_rows(singers: Database, tmp_path: Path) -> None:
    ensure_java()
    job = tmp_path / "job.py"
    job.write_text(read_first_listing(singers, tmp_path))
    log = tmp_path / "job.log"
    with log.open("w") as output:
        process = subprocess.Popen(
            [sys.executable, str(job)],
            env=make_bare_environment(tmp_path),
            cwd=tmp_path,
            stdout=output,
            stderr=subprocess.STDOUT,
        )
    try:
        ends_at = time.monotonic() + SECONDS_MAX
        while not any(tmp_path.glob("singers/part-*.parquet")):
            write_singer(singers)
            running = process.poll() is None and time.monotonic() < ends_at
            assert running, log.read_text()[-3000:]
    finally:
        process.terminate()
        process.wait(60)


def test_a_job_that_is_started_by_its_path_runs_its_own_python(
    singers: Database, tmp_path: Path
) -> None:
    write_singer(singers)
    done = run_job(singers, tmp_path)
    assert "ROWS 1" in done.stdout, done.stderr[-3000:]


def test_workers_without_the_product_say_which_python_they_run(
    singers: Database, tmp_path: Path
) -> None:
    python = make_python_without_the_product(tmp_path)
    done = run_job(singers, tmp_path, PYSPARK_PYTHON=str(python))
    assert done.returncode != 0
    assert "which has no module 'watcher'" in done.stderr
    assert "set PYSPARK_PYTHON to a Python with spanner-watcher[spark]" in done.stderr
    assert f"the driver runs {sys.executable}" in done.stderr


def test_workers_with_another_version_are_refused(singers: Database, tmp_path: Path) -> None:
    write_singer(singers)
    python = make_python_with_another_version(tmp_path)
    done = run_job(singers, tmp_path, PYSPARK_PYTHON=str(python))
    assert done.returncode != 0
    assert "with spanner-watcher 99, the driver has" in done.stderr
