"""Spark's daemon that has imported the source: what it forks reads, and what it does not import."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest
from fixtures.singers import SINGERS, address_of, make_watchable
from google.cloud.spanner_v1.database import Database

from watcher.process.spark.java import ensure_java

ROWS = 40
SECONDS_MAX = 300

FORK_AND_READ = """
import json, os, sys, threading
from watcher.process.spark.preload import preload
from watcher.spark_daemon import choose_modules

preload(choose_modules("pyspark.worker"))
assert [each.name for each in threading.enumerate()] == ["MainThread"]
from watcher.runners.spark.batch import make_batch_reader
from watcher.runners.spark.resolution import resolve_scan
from watcher.settings.spark_parsing import parse_source_options
from watcher.spanner.sessions import get_cached_session

assert get_cached_session.cache_info().currsize == 0, "no channel is open before a fork"

def read():
    reader = make_batch_reader(resolve_scan(parse_source_options(json.loads(sys.argv[1]))))
    return sum(rows.num_rows for part in reader.partitions() for rows in reader.read(part))

children = []
for _ in range(3):
    child = os.fork()
    if child == 0:
        status = 1
        try:
            # A worker is used again for the next task.
            status = 0 if [read(), read()] == [int(sys.argv[2])] * 2 else 2
        finally:
            os._exit(status)
    children.append(child)
statuses = [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]
print(json.dumps(statuses))
"""

LIST_MODULES = """
import json, sys
from watcher.process.spark.preload import preload
from watcher.spark_daemon import choose_modules

preload(choose_modules({!r}))
print(json.dumps(sorted({{name.partition(".")[0] for name in sys.modules}} | {{
    name for name in sys.modules if name.startswith(("pyspark.testing", "watcher.runners"))
}})))
"""


def run_python(script: str, *arguments: str) -> object:
    """What a process prints, as JSON. As Spark's processes it has JAVA_HOME."""
    done = subprocess.run(
        [sys.executable, "-c", script, *arguments],
        env=os.environ | {"JAVA_HOME": ensure_java()},
        stdout=subprocess.PIPE,
        text=True,
        timeout=SECONDS_MAX,
        check=True,
    )
    return json.loads(done.stdout)


@pytest.mark.ddl(SINGERS)
@pytest.mark.parametrize("changes", [{"startingTimestamp": "earliest"}, {}], ids=["poll", "whole"])
def test_workers_that_are_forked_side_by_side_read_and_read_again(
    database: Database, changes: dict[str, str]
) -> None:
    make_watchable(database)
    with database.batch() as batch:
        rows = [(key, "name") for key in range(ROWS)]
        batch.insert("Singers", ("SingerId", "LastName"), rows)
    address = address_of(database)
    options = changes | {
        "project": address.project,
        "instance": address.instance,
        "database": address.database,
        "table": "Singers",
    }
    assert run_python(FORK_AND_READ, json.dumps(options), str(ROWS)) == [0, 0, 0]


def list_preloaded(worker_module: str | None) -> set[str]:
    modules = run_python(LIST_MODULES.format(worker_module))
    assert isinstance(modules, list)
    return set(modules)


def test_what_no_worker_needs_is_not_imported() -> None:
    modules = list_preloaded(None)
    assert {"pyspark", "pyarrow", "grpc", "watcher.runners.spark.slices"} <= modules
    assert modules.isdisjoint(
        {"pandas", "pyspark.testing", "sqlglot", "emulator", "watcher.runners.watcher", "rich"}
    )


def test_a_daemon_whose_workers_never_load_the_source_is_light() -> None:
    modules = list_preloaded("pyspark.sql.worker.lookup_data_sources")
    assert modules.isdisjoint({"grpc", "pyarrow", "watcher.runners"})
