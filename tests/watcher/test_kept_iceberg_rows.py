"""Copies in Iceberg that keep deleted rows, or every version: random histories against plain
Python, read by the product, pyiceberg and polars."""

from __future__ import annotations

import shutil
from tempfile import TemporaryDirectory

import pyarrow as pa
import pytest
from fixtures.copied_tables import CopiedTable, copied_tables
from fixtures.copy_histories import EAGER
from fixtures.iceberg_histories import TABLE, read_by_others
from fixtures.kept_copies import WINDOW, ExpectedRows, merge_random_changes
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from watcher.replica.cuts.modes import HISTORY, KEEP_DELETED, Mode
from watcher.replica.iceberg import files as iceberg_files
from watcher.replica.iceberg.copies import IcebergTableCopy, open_written_copies
from watcher.replica.layout import Layout
from watcher.replica.row_versions import extend_schema
from watcher.replica.writing import compactor, new_files
from watcher.replica.writing.live_rows import index_folder

ACTS = ("nothing", "restart", "lose the index", "rewrite", "rewrite")


@pytest.fixture
def small_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    """Loads and rewrites make several files, and files several groups of rows."""
    monkeypatch.setattr(Layout, "file_bytes", 600)
    monkeypatch.setattr(compactor, "SMALL_SHARE", 1e-4)
    monkeypatch.setattr(new_files, "GROUP_ROWS", 2)
    monkeypatch.setattr(iceberg_files, "BATCH_ROWS", 2)


def reopen(folder: str, mode: Mode) -> IcebergTableCopy:
    """The copy as a process that starts finds it."""
    copy = open_written_copies(folder, "c", policy=EAGER, mode=mode)(TABLE)
    assert isinstance(copy, IcebergTableCopy)
    copy.read_state()
    return copy


def act(
    kind: str, copy: IcebergTableCopy, folder: str, table: CopiedTable, mode: Mode
) -> IcebergTableCopy:
    """Something between two windows."""
    if kind == "rewrite":
        copy.compact(table.key, whole=True)
    elif kind == "lose the index":
        shutil.rmtree(index_folder(f"{folder}/{TABLE}"), ignore_errors=True)
    return reopen(folder, mode) if kind in ("restart", "lose the index") else copy


def check(copy: IcebergTableCopy, folder: str, expected: ExpectedRows) -> None:
    """What the product reads, pyiceberg, and polars."""
    state = copy.read_state()
    assert state is not None
    schema = expected.table.schema
    assert copy.read_schema(state.version) == schema
    expected.assert_live(pa.Table.from_batches(copy.scan(state.version), schema).to_pylist())
    whole = extend_schema(schema, expected.mode)
    everything = pa.Table.from_batches(copy.scan_all(state.version), whole)
    expected.assert_all(everything.to_pylist())
    for rows in read_by_others(folder):
        expected.assert_all(rows.cast(whole).to_pylist())


@pytest.mark.parametrize("mode", [KEEP_DELETED, HISTORY])
@settings(
    max_examples=8,
    deadline=None,
    print_blob=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
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
            4,
        )
        check(copy, folder, expected)
        assert copy.find_loaded(WINDOW) == WINDOW
