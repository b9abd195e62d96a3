"""``verify --repair``: what others have done to a copy is undone, named, and proved by an
independent reader; whatever happens meanwhile, no copy is made worse."""

from __future__ import annotations

import json
import random
import signal
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, write_deltalake
from fixtures.any_copy import AnyTable, any_tables
from fixtures.changing_schemas import change_schema
from fixtures.commands import run_command
from fixtures.consumers import expire_lease
from fixtures.dialects import create_in
from fixtures.replicas import (
    CONSUMER,
    SMALL,
    assert_equal,
    last_cut,
    make_replicator,
    open_table,
    read_delta,
    replicate,
    verify_folder,
)
from fixtures.server import NUMBERS
from fixtures.singers import address_of, write_singers
from google.cloud.spanner_v1 import KeySet
from google.cloud.spanner_v1.database import Database
from google.cloud.spanner_v1.instance import Instance
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from watcher.consumers.positions import TABLE
from watcher.model.errors import (
    CopyConflictError,
    LeaseHeldError,
    ReplicaError,
)
from watcher.process.failpoints import VARIABLE
from watcher.replica.copies import Replacement
from watcher.replica.cuts.cut import Cause, Cut, Reason
from watcher.replica.cuts.manifest import Manifest
from watcher.replica.delta.copy import DeltaCopy
from watcher.replica.formats import PARQUET, open_copies
from watcher.replica.parquet import ParquetVersion, VersionStore
from watcher.replica.reading import as_of
from watcher.replica.verification.copied_rows import CopiedRows
from watcher.replica.verification.repairs import RepairOptions
from watcher.replica.verification.report import Report
from watcher.runners.repair import LeasePlace, repair_replica
from watcher.spanner.queries import QueryClient

Act = Callable[[DeltaTable], object]
EQUAL, DIFFERS, REFUSED = 0, 10, 6
MERGES = ["merge-on-read", "copy-on-write"]
PLACES = ["after-repair-files", "after-repair-commit", "after-repair-tables", "after-repair-cut"]
STREAM = "CREATE CHANGE STREAM S FOR ALL OPTIONS (value_capture_type = 'NEW_ROW')"
COLUMNS = ("SingerId", "FirstName", "LastName")
WIDE = replace(SMALL, ranges_max=1_000, shown_max=100_000)


def append(table: DeltaTable, rows: pa.Table) -> None:
    write_deltalake(table, rows, mode="append")


def damage(table: DeltaTable) -> None:
    """Rows that are missing, changed in a column or two, there twice, and of a key of nobody's."""
    table.delete('"SingerId" IN (5, 150)')
    table.update({"LastName": "'damaged'"}, predicate='"SingerId" IN (7, 90, 91)')
    table.update({"FirstName": "NULL"}, predicate='"SingerId" = 90')
    rows = read_delta(table)
    append(table, rows.filter(pc.field("SingerId") == 9))
    foreign = rows.filter(pc.field("SingerId") == 10)
    append(table, foreign.set_column(0, "SingerId", pa.array([5_000])))


FOUND = {"missing": 2, "extra": 2, "changed": 3, "columns": {"FirstName": 1, "LastName": 3}}


def in_folder(folder: Path, merge: str = "merge-on-read") -> dict[str, Any]:
    return {"replica": {"to": f"delta:{folder}", "merge": merge}}


def start(database: Database, folder: Path, rows: int = 200, merge: str = "merge-on-read") -> None:
    """A copy that was loaded, and merged into."""
    with database.batch() as batch:
        named = [(key, f"f{key}", f"l{key}") for key in range(rows)]
        batch.insert_or_update("Singers", COLUMNS, named)
    replicate(database, folder, **in_folder(folder, merge))
    write_singers(database, range(3), "second")
    replicate(database, folder, **in_folder(folder, merge))


def read_spanner(database: Database) -> list[tuple[Any, ...]]:
    with database.snapshot() as snapshot:
        return sorted(map(tuple, snapshot.read("Singers", COLUMNS, KeySet(all_=True))))


def read_newest(folder: Path) -> list[tuple[Any, ...]]:
    """The newest version, as delta-rs reads it."""
    rows = read_delta(open_table(folder, "Singers")).select(COLUMNS).to_pylist()
    return sorted(tuple(row.values()) for row in rows)


def repair(database: Database, folder: Path | str, format_: str = "delta", **more: Any) -> Report:
    manifest = Manifest(str(folder))
    values: dict[str, Any] = {"tables": ("*",), "depth": WIDE} | more
    options = RepairOptions(**values)
    copies = open_copies(format_, str(folder), CONSUMER)
    place = LeasePlace(address_of(database), TABLE)
    return repair_replica(QueryClient(address_of(database)), copies, manifest, options, place)


def run_repair(database: Database, folder: Path, *more: str, **environment: str) -> Any:
    source = ("--to", f"delta:{folder}", "-d", str(address_of(database)))
    return run_command("verify", *source, "--repair", *more, **environment)


@pytest.mark.parametrize("merge", MERGES)
def test_damage_is_repaired_and_named(singers: Database, tmp_path: Path, merge: str) -> None:
    start(singers, tmp_path, merge=merge)
    before = read_delta(open_table(tmp_path, "Singers")).sort_by("SingerId")
    damage(open_table(tmp_path, "Singers"))
    damaged = open_table(tmp_path, "Singers").version()
    looked = run_repair(singers, tmp_path, "--dry-run", "--json")
    assert looked.returncode == DIFFERS, looked.stderr
    (table,) = json.loads(looked.stdout)["tables"]
    assert table["repair"] == FOUND | {"version": None}
    assert {(each["kind"], each["key"]["SingerId"]) for each in table["differences"]} == {
        *(("missing", key) for key in (5, 150)),
        *(("changed", key) for key in (7, 90, 91)),
        *(("extra", key) for key in (9, 5_000)),
    }
    assert open_table(tmp_path, "Singers").version() == damaged, "a dry run changes nothing"
    done = run_repair(singers, tmp_path)
    assert done.returncode == EQUAL, done.stderr
    assert "2 missing, 2 extra, 3 changed" in done.stdout
    assert "FirstName (1 rows), LastName (3 rows)" in done.stdout
    assert read_newest(tmp_path) == read_spanner(singers)
    assert read_delta(open_table(tmp_path, "Singers")).sort_by("SingerId").equals(before)
    assert_equal(singers, tmp_path)
    assert verify_folder(singers, tmp_path).untouched
    again = run_repair(singers, tmp_path, "--json")
    assert again.returncode == EQUAL
    assert "repair" not in json.loads(again.stdout)["tables"][0]
    assert open_table(tmp_path, "Singers").version() == damaged + 1, "one commit"


@pytest.mark.parametrize("merge", MERGES)
def test_what_a_replicator_has_built_on_is_repaired(
    singers: Database, tmp_path: Path, merge: str
) -> None:
    """The damage came before the last cut, which is not exact because of it."""
    start(singers, tmp_path, merge=merge)
    damage(open_table(tmp_path, "Singers"))
    write_singers(singers, [7, 20], "later")
    (marked,) = replicate(singers, tmp_path, **in_folder(tmp_path, merge))
    assert not marked.cut.exact
    (table,) = repair(singers, tmp_path).tables
    assert table.repair is not None
    assert table.repair.changed == 2, "one of three was written since"
    cut = last_cut(tmp_path)
    assert cut.end == marked.cut.end, "the cut is exact now"
    assert_equal(singers, tmp_path)
    write_singers(singers, [8], "last")
    (report,) = replicate(singers, tmp_path, **in_folder(tmp_path, merge))
    assert report.cut.exact
    assert report.loaded == {}
    assert read_newest(tmp_path) == read_spanner(singers)


@pytest.mark.parametrize("merge", MERGES)
def test_windows_after_a_repair_leave_what_spanner_has(
    singers: Database, tmp_path: Path, merge: str
) -> None:
    """Random damage and random changes, one after another."""
    seed = random.randrange(2**32)
    print("seed", seed)
    chooser = random.Random(seed)
    start(singers, tmp_path, 60, merge)
    for number in range(4):
        chosen = ", ".join(str(chooser.randrange(60)) for _ in range(6))
        act = chooser.choice([delete_some, update_some, repeat_some])
        act(open_table(tmp_path, "Singers"), f'"SingerId" IN ({chosen})')
        repair(singers, tmp_path)
        assert_equal(singers, tmp_path)
        write_singers(singers, [chooser.randrange(70) for _ in range(9)], f"name {number}")
        (report,) = replicate(singers, tmp_path, **in_folder(tmp_path, merge))
        assert report.cut.exact
        assert read_newest(tmp_path) == read_spanner(singers)


def delete_some(table: DeltaTable, where: str) -> None:
    table.delete(where)


def update_some(table: DeltaTable, where: str) -> None:
    table.update({"LastName": "'x'"}, predicate=where)


def repeat_some(table: DeltaTable, where: str) -> None:
    keys = [int(each) for each in where.split("(")[1].rstrip(")").split(",")]
    append(table, read_delta(table).filter(pc.field("SingerId").isin(keys)))


@pytest.mark.parametrize("place", PLACES)
def test_a_repair_that_is_killed_is_done_by_the_next_one(
    singers: Database, tmp_path: Path, place: str
) -> None:
    start(singers, tmp_path)
    damage(open_table(tmp_path, "Singers"))
    killed = run_repair(singers, tmp_path, **{VARIABLE: place})
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    expire_lease(singers, CONSUMER)
    if place == "after-repair-commit":
        write_singers(singers, [1], "meanwhile")
        (report,) = replicate(singers, tmp_path)
        assert not report.cut.exact, "nobody has proved it yet"
    repair(singers, tmp_path)
    assert last_cut(tmp_path) == Manifest(str(tmp_path)).read_last()
    assert_equal(singers, tmp_path)
    assert verify_folder(singers, tmp_path).untouched
    write_singers(singers, [2], "later")
    (report,) = replicate(singers, tmp_path)
    assert report.cut.exact
    assert read_newest(tmp_path) == read_spanner(singers)


def test_a_running_replicator_is_not_disturbed(singers: Database, tmp_path: Path) -> None:
    start(singers, tmp_path)
    errors: list[Exception] = []

    def try_repair(_: object) -> None:
        try:
            repair(singers, tmp_path)
        except LeaseHeldError as error:
            errors.append(error)
        replicator.stop()

    replicator = make_replicator(singers, tmp_path, try_repair, lease="2s")
    replicator.run()
    assert "another instance runs as consumer 'copier'" in str(errors[0])


def test_a_copy_that_changes_meanwhile_is_not_repaired(
    singers: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    start(singers, tmp_path)
    damage(open_table(tmp_path, "Singers"))
    read = CopiedRows.read

    def read_slowly(rows: CopiedRows, keys: Any, at: int) -> pa.Table:
        open_table(tmp_path, "Singers").delete('"SingerId" = 60')
        return read(rows, keys, at)

    monkeypatch.setattr(CopiedRows, "read", read_slowly)
    before = last_cut(tmp_path)
    with pytest.raises(CopyConflictError, match="stop who writes there"):
        repair(singers, tmp_path)
    assert last_cut(tmp_path) == before
    monkeypatch.undo()
    repair(singers, tmp_path)
    assert read_newest(tmp_path) == read_spanner(singers)


def test_a_repair_that_is_wrong_is_not_believed(
    singers: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    start(singers, tmp_path)
    damage(open_table(tmp_path, "Singers"))
    read, before = CopiedRows.read, Manifest(str(tmp_path)).read_last()

    def lose_a_row(rows: CopiedRows, keys: Any, at: int) -> pa.Table:
        return read(rows, keys, at).slice(1)

    monkeypatch.setattr(CopiedRows, "read", lose_a_row)
    with pytest.raises(ReplicaError, match="still differs after its repair"):
        repair(singers, tmp_path)
    assert Manifest(str(tmp_path)).read_last() == before, "no cut names it"


def change_table(cut: Cut, **changes: Any) -> Cut:
    return replace(cut, tables={"Singers": replace(cut.tables["Singers"], **changes)})


REFUSALS: dict[str, tuple[Callable[[Cut], Cut], str]] = {
    "earlier release": (lambda cut: change_table(cut, source=None), "an earlier release"),
    "ahead": (lambda cut: replace(cut, end=cut.end - 1), "run 'replicate --once' first"),
    "read late": (
        lambda cut: replace(cut, reasons=(Reason(Cause.READ_LATE, "rows were read later"),)),
        "rows were read later",
    ),
    "loading": (
        lambda cut: change_table(cut, reasons=(Reason(Cause.LOADING, "up to key 5"),)),
        "up to key 5",
    ),
}


@pytest.mark.parametrize("what", REFUSALS)
def test_what_cannot_be_repaired_is_refused_before_anything_is_changed(
    singers: Database, tmp_path: Path, what: str
) -> None:
    start(singers, tmp_path)
    damage(open_table(tmp_path, "Singers"))
    version, manifest = open_table(tmp_path, "Singers").version(), Manifest(str(tmp_path))
    change, message = REFUSALS[what]
    cut = last_cut(tmp_path)
    changed = change(cut)
    if changed.end != cut.end:
        for file in (tmp_path / "_cuts").iterdir():
            file.unlink()
    manifest.write(changed)
    with pytest.raises(ReplicaError, match=message):
        repair(singers, tmp_path)
    assert open_table(tmp_path, "Singers").version() == version
    assert manifest.read_last() == changed


def test_a_table_that_asks_for_more_is_not_repaired(singers: Database, tmp_path: Path) -> None:
    start(singers, tmp_path)
    damage(open_table(tmp_path, "Singers"))
    open_table(tmp_path, "Singers").alter.set_table_properties({"delta.appendOnly": "true"})
    refused = run_repair(singers, tmp_path)
    assert refused.returncode == REFUSED
    assert "the property delta.appendOnly = true" in refused.stderr
    assert "remove the folder" in refused.stderr


def test_options_that_do_not_go_together_are_refused(singers: Database, tmp_path: Path) -> None:
    start(singers, tmp_path, 3)
    for more in (("--at", "2026-01-01"), ("--ignore-column", "LastName"), ("--data-boost",)):
        assert run_repair(singers, tmp_path, *more).returncode == 2
    source = ("verify", "--to", f"delta:{tmp_path}", "-d", str(address_of(singers)))
    assert run_command(*source, "--dry-run").returncode == 2
    unknown = run_repair(singers, tmp_path, "--positions-table", "OtherPositions")
    assert unknown.returncode == 4, unknown.stderr
    assert "consumer 'copier' does not exist" in unknown.stderr


def test_too_much_damage_is_a_load(singers: Database, tmp_path: Path) -> None:
    start(singers, tmp_path)
    open_table(tmp_path, "Singers").update({"LastName": "'x'"})
    with pytest.raises(ReplicaError, match="'replicate' loads it again"):
        repair(singers, tmp_path, depth=replace(SMALL, ranges_max=2))


def test_a_stale_version_is_not_replaced(tmp_path: Path) -> None:
    schema = pa.schema([("Id", pa.int64())])
    rows = pa.table({"Id": [1, 2]}, schema)
    copy = DeltaCopy(str(tmp_path), "c")
    state = copy.load(schema, rows.to_batches(), 100)
    DeltaTable(str(tmp_path)).delete('"Id" = 1')
    nothing = Replacement(state.version, NoKeys(), rows.slice(0, 0), "repair")  # type: ignore[arg-type]
    with pytest.raises(CopyConflictError):
        copy.replace_rows(nothing, 100)


class NoKeys:
    """A set of keys without any."""

    columns = ("Id",)


def copy_to_parquet(source: Path, target: Path) -> VersionStore:
    """The copy of Singers at the last cut as two files of Parquet, as Spark would have put it."""
    cut, rows = last_cut(source), as_of(str(source)).read("Singers")
    store, folder = VersionStore(str(target / "Singers")), "_files/1-x"
    (target / "Singers" / folder).mkdir(parents=True)
    pq.write_table(rows.slice(0, 100), target / "Singers" / folder / "0.parquet")
    pq.write_table(rows.slice(100), target / "Singers" / folder / "1.parquet")
    written = store.describe_files(folder)
    store.write(ParquetVersion(CONSUMER, cut.end, "load", rows.schema, written))
    table = replace(cut.tables["Singers"], version=cut.end)
    Manifest(str(target)).write(replace(cut, tables={"Singers": table}, copies=PARQUET))
    return store


def test_a_file_of_parquet_without_its_rows_is_repaired(singers: Database, tmp_path: Path) -> None:
    start(singers, tmp_path / "delta")
    store = copy_to_parquet(tmp_path / "delta", tmp_path / "lake")
    file = tmp_path / "lake" / "Singers" / "_files" / "1-x" / "0.parquet"
    pq.write_table(pq.read_table(file).slice(0, 0), file)
    (table,) = repair(singers, tmp_path / "lake", PARQUET).tables
    assert table.repair is not None
    assert table.repair.missing == 100
    assert store.find_changed(store.read(last_cut(tmp_path / "lake").end)) == []
    assert_equal(singers, tmp_path / "lake")


def test_a_copy_in_parquet_is_repaired(singers: Database, tmp_path: Path) -> None:
    start(singers, tmp_path / "delta")
    store = copy_to_parquet(tmp_path / "delta", tmp_path / "lake")
    file = tmp_path / "lake" / "Singers" / "_files" / "1-x" / "0.parquet"
    rows = pq.read_table(file)
    changed = rows.filter(pc.field("SingerId") != 5)
    pq.write_table(pa.concat_tables([changed, changed.slice(3, 1)]), file)
    end = last_cut(tmp_path / "lake").end
    assert store.find_changed(store.read(end)) == ["_files/1-x/0.parquet"]
    (table,) = repair(singers, tmp_path / "lake", PARQUET).tables
    assert table.repair is not None
    assert (table.repair.missing, table.repair.extra) == (1, 1)
    assert store.find_changed(store.read(end)) == []
    paths = [tmp_path / "lake" / "Singers" / each.path for each in store.read(end).files]
    assert "_files/1-x/1.parquet" in [each.path for each in store.read(end).files]
    read = pa.concat_tables(pq.read_table(path) for path in paths).select(COLUMNS)
    assert sorted(tuple(row.values()) for row in read.to_pylist()) == read_spanner(singers)
    assert_equal(singers, tmp_path / "lake")


@settings(max_examples=8, deadline=None, suppress_health_check=list(HealthCheck))
@given(table=any_tables(key_columns_max=4), merge=st.sampled_from(MERGES), data=st.data())
def test_tables_of_any_shape_are_repaired(
    instance: Instance,
    tmp_path_factory: pytest.TempPathFactory,
    table: AnyTable,
    merge: str,
    data: st.DataObject,
) -> None:
    """In both dialects, with NULL, NaN, and columns that descend: the copy has its old rows again,
    byte by byte."""
    folder = tmp_path_factory.mktemp("lake")
    database = create_in(table.dialect, instance, f"repaired-{next(NUMBERS)}", [table.statement])
    change_schema(database, STREAM)
    table.write(database)
    more = {"capture": "change-stream"} | in_folder(folder, merge)
    try:
        replicate(database, folder, **more)
        before = read_delta(open_table(folder, table.name))
        kept = [data.draw(st.booleans()) for _ in range(before.num_rows)]
        twice = [data.draw(st.booleans()) for _ in range(before.num_rows)]
        delta = open_table(folder, table.name)
        write_deltalake(delta, before.filter(pa.array(kept, pa.bool_())), mode="overwrite")
        append(delta, before.filter(pa.array(twice, pa.bool_())))
        repair(database, folder)
        after = read_delta(open_table(folder, table.name))
        assert show_rows(after) == show_rows(before)
        assert_equal(database, folder)
    finally:
        database.drop()


def show_rows(table: pa.Table) -> list[str]:
    """Rows as texts, in an order of their own: NaN is NaN there."""
    return sorted(repr(row) for row in table.to_pylist())
