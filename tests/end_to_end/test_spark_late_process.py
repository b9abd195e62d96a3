"""Spark gives up a stream whose Python process is slow to start: the command starts it again."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from fixtures.changing_schemas import watchable_ddl, write_everywhere
from fixtures.replicas import assert_equal
from fixtures.server import CreateDatabase
from fixtures.spark_formats import require_format
from fixtures.spark_replica_process import read_log, run_replicate, write_config

from watcher.replica.formats import PARQUET
from watcher.runners.spark_job import LATE_PROCESS

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark")]

LATE_ONCE = """#!/bin/sh
# A machine with too much work, once: Spark waits ten seconds for the process of a stream.
case "$*" in
*python_streaming_source_runner*)
    if mkdir "{mark}" 2>/dev/null; then sleep 30; fi ;;
esac
exec "{python}" "$@"
"""


def test_a_process_that_starts_late_is_started_again(
    request: pytest.FixtureRequest, create_database: CreateDatabase, tmp_path: Path
) -> None:
    config = write_config(tmp_path / "job.toml", require_format(request, PARQUET), PARQUET)
    mark, python = tmp_path / "late", tmp_path / "python"
    python.write_text(LATE_ONCE.format(mark=mark, python=sys.executable))
    python.chmod(0o755)
    database = create_database(*watchable_ddl("A"))
    write_everywhere(database, ("A",), 1)
    assert run_replicate(database, config, ("A",), python=str(python)) == 0
    assert mark.exists()
    said = read_log(config)
    assert LATE_PROCESS in said
    assert said.count("starting the query again") == 1
    assert_equal(database, tmp_path / "lake")
