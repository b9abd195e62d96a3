"""Copies without Spark that keep deleted rows, or versions, are read by Spark."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest
from fixtures.named_rows import KEY, load_rows, make_rows
from pyspark.sql import SparkSession

from watcher.model.errors import ConfigurationError
from watcher.replica.cuts.cut import DELTA, Cut, TableCut
from watcher.replica.cuts.manifest import Manifest
from watcher.replica.cuts.modes import HISTORY, KEEP_DELETED, LATEST, Mode
from watcher.replica.delta.copy import DeltaCopy
from watcher.replica.frame_copies import make_open_copy
from watcher.replica.frame_reading import as_of
from watcher.replica.row_versions import KEY_ONLY

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark")]


@pytest.mark.parametrize("mode", [KEEP_DELETED, HISTORY])
def test_spark_reads_live_rows_and_refuses_to_write_another_mode(
    spark: SparkSession,
    delta: Mapping[str, str],
    tmp_path: Path,
    mode: Mode,
) -> None:
    copy = DeltaCopy(str(tmp_path / "T"), "c", mode=mode)
    load_rows(copy, 3)
    rows = make_rows({0: None, 1: "changed"}, 1)
    rows = rows.append_column(KEY_ONLY, rows.column(rows.num_columns - 1))
    state = copy.merge(rows, KEY, 200)
    tables = {"T": TableCut(state.version, KEY)}
    Manifest(str(tmp_path)).write(Cut("d", "c", 200, tables, mode=mode))
    read = as_of(spark, f"delta:{tmp_path}").read("T")
    assert sorted((row.Id, row.Name) for row in read.collect()) == [(1, "changed"), (2, "n2")]
    assert read.columns == ["Id", "Name", "_spanner_commit_timestamp"]
    written = make_open_copy(spark, DELTA, str(tmp_path), "c", mode=LATEST)(spark, "T")
    with pytest.raises(ConfigurationError, match=f"mode = '{mode}'"):
        written.read_state()
