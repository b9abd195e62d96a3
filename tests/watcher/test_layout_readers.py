"""Copies whose partitions have odd texts, read by others: DuckDB, delta-rs, plain Python."""

from __future__ import annotations

import os
import tempfile
from dataclasses import replace
from pathlib import Path

import pytest
from fixtures.copied_tables import ODD_TEXTS, copied_tables, layouts, read_delta_files
from fixtures.copy_histories import CopyHistory, live
from fixtures.duckdb_reader import ReadByDuckDb
from fixtures.iceberg_histories import IcebergHistory, open_table
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from watcher.replica.copies import COPY_ON_WRITE, MERGE_ON_READ, Merging
from watcher.replica.layout import ALL, IDENTITY

EXAMPLES = int(os.environ.get("COPY_EXAMPLES", "6"))
some = settings(max_examples=EXAMPLES, suppress_health_check=[HealthCheck.function_scoped_fixture])


@pytest.mark.parametrize("merging", [MERGE_ON_READ, COPY_ON_WRITE])
@some
@given(data=st.data())
def test_random_histories_of_delta(
    small_groups: None, read_by_duckdb: ReadByDuckDb, merging: Merging, data: st.DataObject
) -> None:
    table = data.draw(copied_tables())
    layout = data.draw(layouts(table, (IDENTITY,)))
    if merging == COPY_ON_WRITE:
        layout = replace(layout, sort_by=())
    with tempfile.TemporaryDirectory() as folder:
        place = f"{folder}/t"
        chosen = replace(table, layout=layout, partition_texts=ODD_TEXTS)
        history = CopyHistory(place, chosen, merging)
        live(data, history, ("nothing", "rewrite"))
        history.check_odd()
        history.expected.assert_equals(read_delta_files(Path(place)))
        rows = read_by_duckdb("delta", place)
        history.expected.assert_equals(rows.cast(table.schema).to_pylist())


@some
@given(data=st.data())
def test_random_histories_of_iceberg(
    small_groups: None, read_by_duckdb: ReadByDuckDb, data: st.DataObject
) -> None:
    table = data.draw(copied_tables())
    layout = data.draw(layouts(table, ALL))
    with tempfile.TemporaryDirectory() as folder:
        chosen = replace(table, layout=layout, partition_texts=("", *ODD_TEXTS))
        history = IcebergHistory(folder, chosen)
        live(data, history, ("nothing", "rewrite"))
        history.check()
        rows = read_by_duckdb("iceberg", open_table(folder).metadata_location)
        history.expected.assert_equals(rows.cast(table.schema).to_pylist())
