"""Tables in the folders of Iceberg's Hadoop catalog, in which this process replaces rows."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from fixtures.iceberg_copies import write_iceberg
from fixtures.named_rows import make_rows, read_content
from fixtures.replicas import CONSUMER
from numpy.typing import NDArray
from pyiceberg.exceptions import CommitFailedException
from pyiceberg.table import StaticTable
from pyiceberg.table.update import SetPropertiesUpdate

from watcher.model.errors import CopyConflictError, ReplicaError
from watcher.replica.copies import DELETED_COLUMN, Replacement, ReplacingCopy
from watcher.replica.iceberg import folder_tables
from watcher.replica.iceberg.copies import open_iceberg_copies
from watcher.replica.iceberg.folder_tables import FolderTables
from watcher.replica.iceberg.names import MERGE_MODE
from watcher.replica.stores.stored_files import create_new

TABLE, END = "T", 100
NAMES = {number: f"n{number}" for number in range(20)}


class SomeKeys:
    """The keys 3 and 5."""

    columns = ("Id",)

    def find(self, batch: pa.RecordBatch) -> NDArray[np.bool_]:
        return np.isin(batch.column("Id").to_numpy(), [3, 5])


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A replica as Spark leaves it: the table has Hadoop's checksum of the hint beside it."""
    rows = make_rows(NAMES, 0).drop_columns([DELETED_COLUMN])
    write_iceberg(tmp_path, TABLE, rows, END)
    set_merging(tmp_path, "merge-on-read")
    (tmp_path / TABLE / "metadata" / ".version-hint.text.crc").write_bytes(b"of another number")
    return tmp_path


def set_merging(folder: Path, merging: str) -> None:
    tables = FolderTables(str(folder))
    table = tables.load(TABLE)
    assert table is not None
    tables.catalog.commit_table(table, (), (SetPropertiesUpdate(updates={MERGE_MODE: merging}),))


def open_copy(folder: Path) -> ReplacingCopy:
    copy = open_iceberg_copies(str(folder), CONSUMER)(TABLE)
    assert isinstance(copy, ReplacingCopy)
    return copy


def make_replacement() -> Replacement:
    """The row 3 goes, 5 is changed."""
    rows = make_rows({5: "right"}, 1).drop_columns([DELETED_COLUMN])
    return Replacement(END, SomeKeys(), rows, "repair")  # type: ignore[arg-type]


def test_rows_are_replaced_in_the_next_file_of_metadata(folder: Path) -> None:
    copy = open_copy(folder)
    assert copy.explain_fixed() == ""
    state = copy.replace_rows(make_replacement(), END)
    assert (state.version, state.end) == (END, END)
    expected = {key: name for key, name in NAMES.items() if key != 3} | {5: "right"}
    assert read_content(open_copy(folder)) == expected
    metadata = folder / TABLE / "metadata"
    assert (metadata / "version-hint.text").read_text() == "4"
    assert not (metadata / ".version-hint.text.crc").exists(), "it was of the hint before"
    rows = StaticTable.from_metadata(str(folder / TABLE)).scan().to_arrow().to_pylist()
    assert {row["Id"]: row["Name"] for row in rows} == expected


def test_a_copy_that_was_changed_meanwhile_is_left_alone(folder: Path) -> None:
    late, first = open_copy(folder), open_copy(folder)
    assert late.explain_fixed() == first.explain_fixed() == ""
    first.replace_rows(make_replacement(), END + 1)
    with pytest.raises((CopyConflictError, ReplicaError)):
        late.replace_rows(make_replacement(), END)
    assert open_copy(folder).find_end(END + 1) == END + 1


def test_the_hint_may_be_behind(folder: Path) -> None:
    """A writer of Hadoop writes it after the file of metadata."""
    (folder / TABLE / "metadata" / "version-hint.text").write_text("1")
    table = FolderTables(str(folder)).load(TABLE)
    assert table is not None
    assert table.metadata_location.endswith("/v3.metadata.json")


def test_the_next_file_is_whose_is_first(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tables = FolderTables(str(folder))
    table = tables.load(TABLE)
    assert table is not None

    def be_faster(place: str, name: str, content: bytes) -> bool:
        assert create_new(place, name, b"of somebody else")
        return create_new(place, name, content)

    monkeypatch.setattr(folder_tables, "create_new", be_faster)
    with pytest.raises(CommitFailedException, match="v4"):
        tables.catalog.commit_table(table, (), (SetPropertiesUpdate(updates={"a": "b"}),))
    metadata = folder / TABLE / "metadata"
    assert (metadata / "v4.metadata.json").read_text() == "of somebody else"
    assert (metadata / "version-hint.text").read_text() == "3"


def test_what_is_merged_by_whole_files_is_not_repaired_by_deletes(folder: Path) -> None:
    set_merging(folder, "copy-on-write")
    assert "position deletes" in open_copy(folder).explain_fixed()
