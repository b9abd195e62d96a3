"""Copies that keep deleted rows, or every version: random histories against plain Python, read by
the product, delta-rs and polars."""

from __future__ import annotations

import shutil
from tempfile import TemporaryDirectory

import polars as pl
import pyarrow as pa
import pytest
from deltalake import DeltaTable
from fixtures.copied_tables import CopiedTable, copied_tables
from fixtures.copy_histories import EAGER, small_groups
from fixtures.kept_copies import ExpectedRows, merge_random_changes
from fixtures.replicas import read_delta
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from watcher.replica.cuts.modes import HISTORY, KEEP_DELETED, Mode
from watcher.replica.delta.copy import DeltaCopy
from watcher.replica.row_versions import extend_schema, keep_valid

__all__ = ["small_groups"]
ACTS = ("nothing", "restart", "lose the index", "compact", "checkpoint", "rewrite", "rewrite")


def reopen(folder: str, mode: Mode) -> DeltaCopy:
    """The copy as a process that starts finds it."""
    copy = DeltaCopy(folder, "c", policy=EAGER, mode=mode)
    copy.read_state()
    return copy


def act(kind: str, copy: DeltaCopy, folder: str, table: CopiedTable, mode: Mode) -> DeltaCopy:
    """Something between two windows."""
    if kind == "rewrite":
        copy.compact(table.key, whole=True)
    elif kind == "compact":
        DeltaTable(folder).optimize.compact()
    elif kind == "checkpoint":
        DeltaTable(folder).create_checkpoint()
    elif kind == "lose the index":
        shutil.rmtree(f"{folder}/_keys", ignore_errors=True)
    return reopen(folder, mode) if kind in ("restart", "lose the index") else copy


def check(copy: DeltaCopy, folder: str, expected: ExpectedRows) -> None:
    """What the product reads, delta-rs, and polars."""
    version = DeltaTable(folder).version()
    schema = expected.table.schema
    assert copy.read_schema(version) == schema
    expected.assert_live(pa.Table.from_batches(copy.scan(version), schema).to_pylist())
    whole = extend_schema(schema, expected.mode)
    everything = pa.Table.from_batches(copy.scan_all(version), whole)
    expected.assert_all(everything.to_pylist())
    expected.assert_all(read_delta(DeltaTable(folder)).to_pylist())
    expected.assert_all(pl.read_delta(folder).to_arrow().cast(whole).to_pylist())
    if expected.mode == HISTORY:
        for at in sorted({row["_valid_from"] for row in everything.to_pylist()}):
            micros = int(at.timestamp() * 1e6 + 0.5)
            expected.assert_valid(keep_valid(everything, micros).to_pylist(), at)


@pytest.mark.parametrize("mode", [KEEP_DELETED, HISTORY])
@settings(max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_random_histories_leave_what_plain_python_leaves(
    data: st.DataObject, mode: Mode, small_groups: None
) -> None:
    table = data.draw(copied_tables())
    expected = ExpectedRows(table, mode)
    with TemporaryDirectory() as folder:
        copy = merge_random_changes(
            data,
            expected,
            reopen(folder, mode),
            lambda copy: act(data.draw(st.sampled_from(ACTS)), copy, folder, table, mode),
            5,
        )
        check(copy, folder, expected)
