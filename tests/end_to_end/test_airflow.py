"""examples/airflow_dag.py: Airflow runs a Spark job that takes what has changed, and ends."""

from __future__ import annotations

import runpy
import sys
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pyspark
import pytest
from fixtures.airflow import Airflow
from fixtures.singers import address_of, write_singers
from google.cloud.spanner_v1.database import Database

from watcher.process.spark.java import ensure_java

pytestmark = [pytest.mark.spark, pytest.mark.long, pytest.mark.timeout(1500)]

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "examples"
DAG = "singers_to_parquet"


def render_dag(database: Database, copy: Path) -> str:
    """The example, with this database, the job in its place, and where the copy is."""
    address = address_of(database)
    text = (EXAMPLES / "airflow_dag.py").read_text()
    for ours, theirs in (
        ("spark-submit", str(Path(pyspark.__file__).parent / "bin/spark-submit")),
        ("/jobs/", f"{EXAMPLES}/"),
        ("my-project", address.project),
        ("my-instance", address.instance),
        ("my-database", address.database),
        ("/data/singers", str(copy)),
    ):
        assert ours in text
        text = text.replace(ours, theirs)
    return text


def read_names(copy: Path) -> dict[int, str]:
    """The table as the job has left it."""
    example: dict[str, Any] = runpy.run_path(str(EXAMPLES / "upsert_parquet.py"))
    newest = pq.read_table(example["tables"](copy)[-1], columns=["SingerId", "LastName"])
    return dict(zip(*newest.to_pydict().values(), strict=True))


def test_each_run_takes_what_has_changed_since_the_one_before(
    singers: Database, tmp_path: Path
) -> None:
    ensure_java()
    copy = tmp_path / "singers"
    home = tmp_path / "airflow"
    home.mkdir()
    airflow = Airflow(home, {"PYSPARK_PYTHON": sys.executable, "PYTHONPATH": str(ROOT)})
    (airflow.dags / "dag.py").write_text(render_dag(singers, copy))
    write_singers(singers, range(5), "before")
    airflow.call("dags", "test", DAG)
    assert read_names(copy) == dict.fromkeys(range(5), "before")
    write_singers(singers, range(3, 7), "after")
    airflow.call("dags", "test", DAG)
    expected = dict.fromkeys(range(3), "before") | dict.fromkeys(range(3, 7), "after")
    assert read_names(copy) == expected
