"""Queries by Spark that are killed while they compact a copy, or remove what no cut needs: rows
stay, kept cuts can be read, and the next query goes on."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Mapping
from pathlib import Path

import pytest
from fixtures.changing_schemas import STREAM_DDL, watchable_ddl, write_everywhere
from fixtures.consumers import expire_lease
from fixtures.old_files import age_files
from fixtures.pace import allow
from fixtures.replicas import CONSUMER, assert_equal, list_commits, list_summaries
from fixtures.server import CreateDatabase
from fixtures.spark_formats import require_format
from fixtures.spark_replica_process import (
    SECONDS_MAX,
    read_log,
    start_replicate,
    write_config,
)
from fixtures.spark_replicas import replicate_by_spark
from fixtures.warm_python import find_executable
from google.cloud.spanner_v1.database import Database
from pyspark.sql import SparkSession

from watcher.replica.cuts.cut import DELTA, END
from watcher.replica.cuts.manifest import Manifest, name_of
from watcher.replica.formats import ICEBERG
from watcher.replica.reading import as_of
from watcher.spanner.timestamps import format_timestamp

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark")]

TABLES = ("A", "B")
REWRITTEN, REMOVED = "after-rewrite-commit", "after-files-removed"
DAY = 86_400_000_000
LONG_AGO = 9
"""Days: cuts are kept for seven."""
FLAGS = ("--stream", "S", "--interval", "0s", "--compaction-small-files", "1")
SUFFIXES = (".parquet", ".bin", ".avro")
Content = Mapping[int, int]


@pytest.fixture
def database(create_database: CreateDatabase) -> Database:
    """Two tables that can be polled, and a change stream of them."""
    return create_database(*(ddl for name in TABLES for ddl in watchable_ddl(name)), STREAM_DDL)


@pytest.fixture(params=[DELTA, ICEBERG])
def format_(request: pytest.FixtureRequest) -> str:
    require_format(request, request.param)
    return str(request.param)


@pytest.fixture
def replica(
    request: pytest.FixtureRequest,
    spark: SparkSession,
    database: Database,
    tmp_path: Path,
    format_: str,
) -> KilledReplica:
    """One with two windows, whose cuts are kept."""
    settings = require_format(request, format_)
    config = write_config(tmp_path / "job.toml", settings, format_)
    replica = KilledReplica(spark, database, config, format_)
    for _ in range(2):
        replica.write()
        replica.go_on()
    return replica


class KilledReplica:
    """A replica that queries follow, in this process or in one that is killed."""

    def __init__(self, spark: SparkSession, database: Database, config: Path, format_: str) -> None:
        self._spark = spark
        self._database = database
        self._config = config
        self.format = format_
        self.lake = config.parent / "lake"
        self._windows = 0

    def write(self) -> None:
        """Changes rows of both tables."""
        self._windows += 1
        write_everywhere(self._database, TABLES, self._windows)

    def go_on(self, queries: int = 1) -> None:
        """Queries up to now. One finishes the window that another has left, and no more."""
        place = (self._spark, self._database, self.lake, TABLES)
        for _ in range(queries):
            replicate_by_spark(*place, format=self.format, stream="S", compaction_small_files=1)

    def run_until_killed(self, place: str) -> None:
        """A query of its own process that follows the tables, until it gets to a place."""
        process = start_replicate(
            self._database, self._config, TABLES, *FLAGS, place=place, python=find_executable()
        )
        code = process.wait(allow(SECONDS_MAX))
        assert code == -signal.SIGKILL, (place, read_log(self._config)[-5000:])
        expire_lease(self._database, CONSUMER)

    def read_cuts(self) -> dict[int, Content]:
        """The rows of A at each exact cut, which is equal to Spanner."""
        contents: dict[int, Content] = {}
        for cut in Manifest(str(self.lake)).iterate_exact():
            assert_equal(self._database, self.lake, cut)
            at = format_timestamp(cut.end)
            rows = as_of(f"{self.format}:{self.lake}", at).read("A").to_pylist()
            contents[cut.end] = {row["Id"]: row["Version"] for row in rows}
        return contents

    def make_old(self, *ends: int) -> None:
        """Makes cuts those of long ago, as all files are then, too."""
        for end in ends:
            path = self.lake / "_cuts" / name_of(end)
            stored = json.loads(path.read_text()) | {"end": end - LONG_AGO * DAY}
            path.unlink()
            path.with_name(name_of(stored["end"])).write_text(json.dumps(stored))
        for name in TABLES:
            age_files(self.lake / name, LONG_AGO)

    def list_files(self) -> set[str]:
        """The files of A and B that have rows, deletes, or the names of others."""
        return {
            os.path.relpath(path, self.lake)
            for name in TABLES
            for path in (self.lake / name).rglob("*")
            if path.suffix in SUFFIXES and "_delta_log" not in path.parts
        }

    def count_rewrites(self) -> int:
        """How many commits of A are compactions."""
        if self.format == ICEBERG:
            return sum(END not in each for each in list_summaries(self.lake, "A"))
        return sum(each["operation"] == "OPTIMIZE" for each in list_commits(self.lake, "A"))


def test_cuts_are_exact_after_a_kill_in_compaction(replica: KilledReplica) -> None:
    """Its commit is there, and the query has not heard of it."""
    seen, before = replica.read_cuts(), replica.count_rewrites()
    replica.write()
    replica.run_until_killed(REWRITTEN)
    killed = replica.count_rewrites()
    assert killed == before + 1
    after = replica.read_cuts()
    assert after.items() > seen.items()
    replica.write()
    replica.go_on(2)
    assert replica.count_rewrites() > killed
    assert replica.read_cuts().items() > after.items()


def test_kept_cuts_are_exact_after_a_kill_during_the_removal_of_others(
    replica: KilledReplica,
) -> None:
    """The files of one copy are gone, and those of the other one are not."""
    replica.write()
    replica.go_on()
    seen = replica.read_cuts()
    old = sorted(seen)[:2]
    replica.make_old(*old)
    files = replica.list_files()
    replica.write()
    replica.run_until_killed(REMOVED)
    removed = files - replica.list_files()
    assert removed, "the files of A"
    assert all(path.startswith("A/") for path in removed), "those of B were not reached"
    after = replica.read_cuts()
    assert after.items() > {end: seen[end] for end in seen.keys() - old}.items()
    assert min(after) > max(old), "their cuts are gone"
    replica.make_old(min(after))
    replica.write()
    replica.go_on(2)
    del after[min(after)]
    assert replica.read_cuts().items() > after.items()
    left = files - replica.list_files()
    assert any(path.startswith("B/") for path in left), "the next query removes them"
