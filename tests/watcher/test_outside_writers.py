"""Others write to the copies of a replica: maintenance is welcome, and all else is noticed."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from deltalake import DeltaTable, Field, write_deltalake
from deltalake.schema import PrimitiveType
from fixtures.commands import run_command
from fixtures.replicas import (
    CONSUMER,
    assert_equal,
    last_cut,
    make_replicator,
    open_table,
    read_delta,
    read_rows,
    replicate,
    verify_folder,
)
from fixtures.server import CopyDatabase
from fixtures.singers import address_of, make_singers, write_singers
from google.cloud.spanner_v1.database import Database

from watcher.model.errors import ConfigurationError, CopyConflictError
from watcher.replica.copies import CopyState
from watcher.replica.cuts.cut import Cause
from watcher.replica.cuts.manifest import Manifest
from watcher.replica.cuts.owner import Owner
from watcher.replica.delta.copy import DeltaCopy
from watcher.replica.iceberg.lineage import Ancestor, disown_stale, list_outside
from watcher.replica.loads import LoadProgress, WholeTable

Act = Callable[[DeltaTable], object]
DIFFERS, EQUAL = 10, 0


def append_rows(table: DeltaTable) -> None:
    rows = read_delta(table).filter(pc.field("SingerId") == 5)
    write_deltalake(table, rows, mode="append")


def overwrite(table: DeltaTable) -> None:
    rows = read_delta(table).filter(pc.field("SingerId") != 5)
    write_deltalake(table, rows, mode="overwrite")


WRITES: dict[str, Act] = {
    "append": append_rows,
    "overwrite": overwrite,
    "delete": lambda table: table.delete('"SingerId" = 3'),
    "update": lambda table: table.update({"LastName": "'outside'"}, predicate='"SingerId" = 3'),
    "restore": lambda table: table.restore(1),
}
MAINTENANCE: dict[str, Act] = {
    "compact": lambda table: table.optimize.compact(),
    "z-order": lambda table: table.optimize.z_order(["SingerId"]),
    "vacuum": lambda table: table.vacuum(0, dry_run=False, enforce_retention_duration=False),
    "properties": lambda table: table.alter.set_table_properties({"delta.appendOnly": "false"}),
    "checkpoint": lambda table: table.create_checkpoint(),
}


def start(database: Database, folder: Path) -> None:
    """Two versions of the copy, and an exact cut."""
    write_singers(database, range(6), "first")
    replicate(database, folder)
    write_singers(database, range(3), "second")
    replicate(database, folder)
    assert last_cut(folder) == Manifest(str(folder)).read_last()


@pytest.mark.parametrize("what", WRITES)
def test_a_write_by_others_is_noticed_until_the_copy_is_loaded(
    singers: Database, tmp_path: Path, what: str
) -> None:
    start(singers, tmp_path)
    before = last_cut(tmp_path)
    WRITES[what](open_table(tmp_path, "Singers"))
    assert not verify_folder(singers, tmp_path).untouched, "verify sees it at once"
    for number in range(2):
        write_singers(singers, [1], f"later {number}")
        (report,) = replicate(singers, tmp_path)
        (reason,) = report.cut.tables["Singers"].reasons
        assert (report.cut.exact, reason.cause) == (False, Cause.OUTSIDE_WRITE)
        assert "has changed rows" in report.cut.explain()
    assert last_cut(tmp_path) == before, "readers keep to what is known to be right"
    assert_equal(singers, tmp_path, before)
    assert not verify_folder(singers, tmp_path, Manifest(str(tmp_path)).find_comparable()).equal
    shutil.rmtree(tmp_path / "Singers")
    (report,) = replicate(singers, tmp_path)
    assert (report.cut.exact, report.loaded) == (True, {"Singers": 6})
    assert_equal(singers, tmp_path)


@pytest.mark.parametrize("what", MAINTENANCE)
def test_maintenance_leaves_cuts_exact(singers: Database, tmp_path: Path, what: str) -> None:
    start(singers, tmp_path)
    MAINTENANCE[what](open_table(tmp_path, "Singers"))
    for number in range(2):
        write_singers(singers, [1], f"later {number}")
        (report,) = replicate(singers, tmp_path)
        assert report.cut.exact, report.cut.explain()
    assert_equal(singers, tmp_path)
    assert verify_folder(singers, tmp_path).untouched


def test_a_column_that_others_add_has_the_table_loaded(singers: Database, tmp_path: Path) -> None:
    start(singers, tmp_path)
    mine = Field("Mine", PrimitiveType("long"), nullable=True)
    open_table(tmp_path, "Singers").alter.add_columns([mine])
    write_singers(singers, [1], "later")
    (report,) = replicate(singers, tmp_path)
    assert (report.cut.exact, report.loaded) == (True, {"Singers": 6})
    assert_equal(singers, tmp_path)


def test_what_is_verified_is_exact_again(singers: Database, tmp_path: Path) -> None:
    """Somebody has written a row as it was: nothing is wrong, but only a comparison can say it."""
    start(singers, tmp_path)
    open_table(tmp_path, "Singers").update({"LastName": "'first'"}, predicate='"SingerId" = 5')
    arguments = ("verify", "--to", f"delta:{tmp_path}", "-d", str(address_of(singers)), "--json")
    early = run_command(*arguments)
    assert early.returncode == DIFFERS, "the newest version is not ours"
    (table,) = json.loads(early.stdout)["tables"]
    assert table["equal"]
    assert table["outside"] == ["version 3: UPDATE has changed rows"]
    replicate(singers, tmp_path)
    write_singers(singers, [1], "later")
    (marked,) = replicate(singers, tmp_path)
    assert not marked.cut.exact
    ignoring = run_command(*arguments, "--ignore-column", "LastName")
    assert ignoring.returncode == EQUAL
    assert not Manifest(str(tmp_path)).find_comparable().exact, "not all was compared"
    settling = run_command(*arguments)
    assert settling.returncode == EQUAL, settling.stderr
    assert "UPDATE has changed rows" in json.loads(settling.stdout)["not_exact"]
    assert last_cut(tmp_path).end == marked.cut.end
    write_singers(singers, [2], "later")
    (report,) = replicate(singers, tmp_path)
    assert report.cut.exact
    assert_equal(singers, tmp_path)


def test_a_running_replicator_notices_it_too(singers: Database, tmp_path: Path) -> None:
    start(singers, tmp_path)
    exact: list[bool] = []

    def follow(cut_is_exact: bool) -> None:
        exact.append(cut_is_exact)
        if len(exact) == 1:
            open_table(tmp_path, "Singers").delete('"SingerId" = 3')
            write_singers(singers, [1], "later")
        elif not cut_is_exact or len(exact) > 100:
            replicator.stop()

    replicator = make_replicator(singers, tmp_path, lambda report: follow(report.cut.exact))
    replicator.run()
    assert not exact[-1]
    assert {row["SingerId"] for row in read_rows(tmp_path, "Singers")} == set(range(6))


def test_a_load_replaces_what_others_write_while_it_reads(tmp_path: Path) -> None:
    """Rows are read once: only the commit is made again. A later chunk keeps them, and they are
    noticed."""
    schema = pa.schema([("Id", pa.int64())])
    copy = DeltaCopy(str(tmp_path), "c")
    copy.load(schema, pa.table({"Id": [1, 2]}, schema).to_batches(), 100)

    def meet(*ids: int) -> Iterator[pa.RecordBatch]:
        write_deltalake(str(tmp_path), pa.table({"Id": [7]}, schema), mode="append")
        DeltaTable(str(tmp_path)).optimize.compact()
        yield from pa.table({"Id": list(ids)}, schema).to_batches()

    progress = LoadProgress((3,), 1, 8, 1, 200)
    state = copy.load_chunk(schema, WholeTable(meet(3), progress=progress), 200)
    assert read_ids(copy, state) == [3]
    assert copy.list_outside(None, state.version) == ()
    state = copy.load_chunk(schema, WholeTable(meet(4), first=False), 200)
    assert read_ids(copy, state) == [3, 4, 7]
    (noticed,) = copy.list_outside(None, state.version)
    assert noticed.detail == "WRITE has changed rows"
    assert copy.list_outside(None, copy.load(schema, meet(5), 300).version) == ()


def read_ids(copy: DeltaCopy, state: CopyState) -> list[int]:
    return sorted(n for batch in copy.scan(state.version) for n in batch["Id"].to_pylist())


def test_snapshots_of_iceberg_are_judged_by_their_lineage() -> None:
    load = Ancestor(1, None, "append", 100, "load")
    merge = Ancestor(2, 1, "overwrite", 200, "merge")
    rewrite = Ancestor(3, 2, "replace", 0, None)
    last = Ancestor(4, 3, "overwrite", 300, "merge")
    assert list_outside([load, merge, rewrite, last], None, 300) == []
    foreign = Ancestor(3, 2, "append", 0, None)
    (found,) = list_outside([load, merge, foreign, last], 200, 300)
    assert found.version == 300
    assert "append by somebody else" in found.detail
    assert list_outside([load, merge, foreign, last], 100, 200) == []
    assert list_outside([foreign, Ancestor(5, None, "append", 400, "load")], None, 400) == []


def test_snapshots_of_a_load_by_spark_are_judged_by_the_chunks_that_they_knew() -> None:
    """Chunks of one window have its end; one whose writer was taken over is no version."""
    load = Ancestor(1, None, "append", 100, "load", "a")
    merge = Ancestor(2, 1, "overwrite", 200, "merge", "a")
    first = Ancestor(3, 2, "append", 200, "chunk", "b", "a")
    foreign = Ancestor(4, 3, "append", 0, None)
    second = Ancestor(5, 4, "append", 200, "chunk", "c", "b")
    assert disown_stale([load, merge, first, foreign, second]) == [
        *(load, merge, first, foreign, second)
    ]
    assert list_outside([load, merge, first, second], 200, 200) == []
    (found,) = list_outside([load, merge, first, foreign, second], 200, 200)
    assert "snapshot 4" in found.detail
    stale = Ancestor(6, 5, "append", 200, "chunk", "d", "b")
    last = Ancestor(7, 6, "overwrite", 300, "merge", "c")
    judged = disown_stale([load, merge, first, second, stale, last])
    assert [each.end for each in judged] == [100, 200, 200, 200, 0, 300]
    (found,) = list_outside(judged, 200, 300)
    assert "snapshot 6" in found.detail
    assert disown_stale([second, last]) == [second, last], "what was before it is expired"
    late = Ancestor(8, None, "append", 200, "load", "e", "")
    assert [each.end for each in disown_stale([load, merge, first, late])] == [100, 200, 200, 0]


def test_two_replicators_do_not_share_a_folder(singers: Database, tmp_path: Path) -> None:
    write_singers(singers, range(3), "name")
    replicate(singers, tmp_path, consumer="one")
    with pytest.raises(ConfigurationError, match=r"'one'.*not to.*'two'"):
        replicate(singers, tmp_path, consumer="two")
    (tmp_path / "_owner.json").unlink()  # as an earlier release has left it
    with pytest.raises(ConfigurationError, match=r"'one'.*not to.*'two'"):
        replicate(singers, tmp_path, consumer="two")
    replicate(singers, tmp_path, consumer="one")
    assert (tmp_path / "_owner.json").exists()


def test_the_owner_is_named_before_anything_is_written(tmp_path: Path) -> None:
    one, two = Owner("d", "one", "delta"), Owner("d", "two", "delta")
    first, second = Manifest(str(tmp_path / "new")), Manifest(str(tmp_path / "new"))
    assert not first.claim(one)
    assert [path.name for path in (tmp_path / "new").iterdir()] == ["_owner.json"]
    with pytest.raises(ConfigurationError, match="--take-over"):
        second.claim(two)
    first.owner.check(one)
    assert second.claim(two, take_over=True)
    with pytest.raises(CopyConflictError, match="belongs to d by consumer 'two'"):
        first.owner.check(one)


def test_of_two_that_create_a_folder_at_once_one_has_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both have seen that there is no owner."""
    one, two = Owner("d", "one", "delta"), Owner("d", "two", "delta")
    first, second = Manifest(str(tmp_path)), Manifest(str(tmp_path))
    looked = iter([None])
    read = second.owner.read
    monkeypatch.setattr(second, "find_owner", lambda: None)
    monkeypatch.setattr(second.owner, "read", lambda: next(looked, None) or read())
    first.claim(one)
    with pytest.raises(ConfigurationError, match=r"to d by consumer 'one'.*not to d by consumer"):
        second.claim(two)
    assert first.owner.read() == one


def test_a_folder_is_taken_over(singers: Database, tmp_path: Path) -> None:
    write_singers(singers, range(3), "name")
    replicate(singers, tmp_path, consumer="one")
    write_singers(singers, range(2), "other")
    arguments = ("replicate", "--once", "-d", str(address_of(singers)), "-t", "Singers")
    target = ("--to", f"delta:{tmp_path}", "--consumer", "two")
    refused = run_command(*arguments, *target)
    assert refused.returncode == 2, refused.stderr
    planned = run_command(*arguments, *target, "--take-over", "--dry-run")
    assert "Singers: load" in planned.stdout
    taken = run_command(*arguments, *target, "--take-over", "--json")
    assert taken.returncode == 0, taken.stderr
    assert json.loads(taken.stdout.splitlines()[0])["loaded"] == {"Singers": 3}
    assert last_cut(tmp_path).consumer == "two"
    assert_equal(singers, tmp_path)
    with pytest.raises(ConfigurationError, match=r"'two'.*not to.*'one'"):
        replicate(singers, tmp_path, consumer="one")


def test_a_folder_that_is_taken_over_by_another_database_is_loaded(
    singers: Database, copy_database: CopyDatabase, tmp_path: Path
) -> None:
    """Also if its consumer has the same name, and an earlier position."""
    write_singers(singers, range(3), "here")
    replicate(singers, tmp_path / "before", create_folders=True)
    other = copy_database(make_singers)
    write_singers(other, range(9), "there")
    replicate(other, tmp_path / "lake", create_folders=True)
    taken = run_command(
        *("replicate", "--once", "-d", str(address_of(singers)), "-t", "Singers", "--take-over"),
        *("--to", f"delta:{tmp_path / 'lake'}", "--consumer", CONSUMER, "--json"),
    )
    assert taken.returncode == 0, taken.stderr
    assert json.loads(taken.stdout.splitlines()[0])["loaded"] == {"Singers": 3}
    assert_equal(singers, tmp_path / "lake")
