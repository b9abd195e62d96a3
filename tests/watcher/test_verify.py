"""A comparison with Spanner finds whatever differs, of every type, and nothing else."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import fixtures.everything as every_type
import pyarrow as pa
import pytest
from deltalake import write_deltalake
from fixtures.replicas import (
    SMALL,
    adopt_newest,
    last_cut,
    make_replicator,
    open_table,
    read_delta,
    replicate,
    verify_folder,
)
from fixtures.server import VARIABLE, CreateDatabase, connect, spawn
from fixtures.singers import make_watchable, write_singers
from google.cloud.spanner_v1.database import Database

from benchmarks.query_costs import query_costs
from spanner_schema.model.schema import Dialect
from watcher.model.errors import TableNotFoundError
from watcher.replica.verification.report import DifferenceKind, Report

ROWS = 200


@pytest.fixture
def copied(singers: Database, tmp_path: Path) -> Database:
    """Singers, some of them changed since the load, and their copy in tmp_path."""
    columns = ("SingerId", "FirstName", "LastName", "Picture")
    with singers.batch() as batch:
        rows = [(key, f"f{key}", f"l{key}", b"AAECAwQ=") for key in range(ROWS)]
        batch.insert_or_update("Singers", columns, rows)
    replicate(singers, tmp_path)
    write_singers(singers, range(50, 60), "newer")
    replicate(singers, tmp_path)
    return singers


def differences(report: Report) -> dict[str, list[object]]:
    """The keys that differ, by kind."""
    (table,) = report.tables
    kinds: dict[str, list[object]] = {}
    for each in table.differences:
        kinds.setdefault(each.kind.value, []).append(each.key["SingerId"])
    return kinds


def flip_byte(folder: Path) -> None:
    table = open_table(folder, "Singers")
    table.update({"Picture": "X'0001020305'"}, predicate='"SingerId" = 77')


def remove_row(folder: Path) -> None:
    open_table(folder, "Singers").delete('"SingerId" = 123')


def add_row(folder: Path) -> None:
    table = open_table(folder, "Singers")
    schema = pa.schema(table.schema().to_arrow())
    write_deltalake(
        table, pa.Table.from_pylist([{"SingerId": 5_000}], schema=schema), mode="append"
    )


def repeat_row(folder: Path) -> None:
    table = open_table(folder, "Singers")
    rows = read_delta(table)
    write_deltalake(table, rows.filter(pa.compute.field("SingerId") == 9), mode="append")


def restore_old_version(folder: Path) -> None:
    open_table(folder, "Singers").update({"LastName": "'l55'"}, predicate='"SingerId" = 55')


def swap_values(folder: Path) -> None:
    """The same bytes in two rows of one range: a sum of columns would not see it."""
    table = open_table(folder, "Singers")
    table.update({"FirstName": "'f11'"}, predicate='"SingerId" = 10')
    table.update({"FirstName": "'f10'"}, predicate='"SingerId" = 11')


def move_boundary(folder: Path) -> None:
    """The same text over two columns, divided elsewhere."""
    table = open_table(folder, "Singers")
    table.update({"FirstName": "'f1l'", "LastName": "'1'"}, predicate='"SingerId" = 1')


def empty_for_null(folder: Path) -> None:
    open_table(folder, "Singers").update({"LastName": "NULL"}, predicate='"SingerId" = 3')


DAMAGES: list[tuple[Callable[[Path], None], dict[str, list[object]]]] = [
    (flip_byte, {"changed": [77]}),
    (remove_row, {"missing": [123]}),
    (add_row, {"extra": [5_000]}),
    (repeat_row, {"extra": [9]}),
    (restore_old_version, {"changed": [55]}),
    (swap_values, {"changed": [10, 11]}),
    (move_boundary, {"changed": [1]}),
    (empty_for_null, {"changed": [3]}),
]


@pytest.mark.parametrize(("damage", "expected"), DAMAGES)
def test_every_damage_is_found_by_its_key(
    copied: Database,
    tmp_path: Path,
    damage: Callable[[Path], None],
    expected: dict[str, list[object]],
) -> None:
    assert verify_folder(copied, tmp_path).equal
    damage(tmp_path)
    assert verify_folder(copied, tmp_path).equal, "a cut names a version: later ones do not count"
    adopt_newest(tmp_path, "Singers")
    report = verify_folder(copied, tmp_path)
    assert differences(report) == expected
    assert not report.equal
    assert differences(verify_folder(copied, tmp_path, data_boost=True)) == expected


def test_all_damages_together_are_found(copied: Database, tmp_path: Path) -> None:
    for damage in (flip_byte, remove_row, add_row, restore_old_version):
        damage(tmp_path)
    adopt_newest(tmp_path, "Singers")
    expected = {"changed": [55, 77], "missing": [123], "extra": [5_000]}
    assert differences(verify_folder(copied, tmp_path)) == expected


def test_differences_are_counted_beyond_those_that_are_shown(
    copied: Database, tmp_path: Path
) -> None:
    open_table(tmp_path, "Singers").update({"LastName": "'x'"})
    adopt_newest(tmp_path, "Singers")
    few = SMALL.__class__(rows=40, parts=4, leaf_rows=10, ranges_max=3, shown_max=5)
    (table,) = verify_folder(copied, tmp_path, depth=few).tables
    assert (len(table.differences), table.complete) == (5, False)
    assert table.found > 5


def test_an_old_cut_equals_spanner_at_its_own_time(copied: Database, tmp_path: Path) -> None:
    old = last_cut(tmp_path)
    write_singers(copied, range(ROWS), "after")
    replicate(copied, tmp_path)
    assert last_cut(tmp_path).end > old.end
    assert verify_folder(copied, tmp_path, old).equal
    assert verify_folder(copied, tmp_path).equal


@pytest.mark.both_dialects
def test_every_type_has_the_same_hash_on_both_sides(
    everything: Database, dialect: Dialect, tmp_path: Path
) -> None:
    rows = every_type.rows(dialect)
    every_type.write(everything, rows[:25])
    replicate(everything, tmp_path)
    assert verify_folder(everything, tmp_path).equal, "loaded"
    every_type.write(everything, rows)
    every_type.write_nanoseconds(everything, 999)
    with everything.batch() as batch:
        batch.insert(
            "Everything", ("Id", "Fl", "Fls", "Fs"), [(1_000, -0.0, [-0.0, math.nan], -0.0)]
        )
    replicate(everything, tmp_path)
    (table,) = verify_folder(everything, tmp_path).tables
    assert table.equal, table.to_json()
    assert table.rows == every_type.ROWS + 2
    assert [name in every_type.ADDED for name in table.uncompared] == [True]


@pytest.mark.parametrize("name", every_type.COLUMNS[1:])
def test_a_change_in_a_column_of_any_type_is_found(
    everything: Database, tmp_path: Path, name: str
) -> None:
    rows = every_type.rows()
    every_type.write(everything, rows)
    replicate(everything, tmp_path)
    other = next(row for row in rows[1:] if row[name] is not None and row[name] != rows[0][name])
    table = open_table(tmp_path, "Everything")
    content = read_delta(table)
    source = content.column("Id").to_pylist().index(other["Id"])
    cells = content.to_pylist()
    place = content.column("Id").to_pylist().index(0)
    cells[place][name] = cells[source][name]
    write_deltalake(table, pa.Table.from_pylist(cells, schema=content.schema), mode="overwrite")
    adopt_newest(tmp_path, "Everything")
    (report,) = verify_folder(everything, tmp_path).tables
    assert [(d.kind, d.key) for d in report.differences] == [(DifferenceKind.CHANGED, {"Id": 0})]


@pytest.mark.parametrize("nanoseconds", ["truncate", "string"])
def test_nanoseconds_are_compared_where_the_copy_keeps_them(
    everything: Database, tmp_path: Path, nanoseconds: str
) -> None:
    every_type.write_nanoseconds(everything, 1)
    replicate(everything, tmp_path, nanoseconds=nanoseconds)
    (table,) = verify_folder(everything, tmp_path).tables
    assert table.equal, table.to_json()
    if nanoseconds == "string":
        finer = "arrow_cast('2026-01-02T03:04:05.123456788Z', 'Utf8')"
        open_table(tmp_path, "Everything").update({"Ti": finer})
        adopt_newest(tmp_path, "Everything")
        assert not verify_folder(everything, tmp_path).equal


KEYS: list[tuple[str, list[Any]]] = [
    ("INT64", [None, -(2**63), -1, 0, 5, 2**63 - 1]),
    ("STRING(MAX)", [None, "", "A", "a", "ä", "𝄞", "zz"]),
    ("BYTES(MAX)", [None, b"", b"AA==", b"/w=="]),
    ("BOOL", [None, False, True]),
    ("FLOAT64", [None, math.nan, -math.inf, -1.5, 0.0, math.inf]),
    ("NUMERIC", [None, "-1.5", "0", "99999999999999999999999999999.999999999"]),
    ("DATE", [None, "0001-01-01", "2026-01-01", "9999-12-31"]),
    (
        "TIMESTAMP",
        [
            None,
            "0001-01-01T00:00:00Z",
            "2026-01-01T00:00:00.123456789Z",
            "2026-01-01T00:00:00.1234567Z",
        ],
    ),
]


@pytest.mark.parametrize("null", ["", " NOT NULL"])
@pytest.mark.parametrize("order", ["", " DESC"])
@pytest.mark.parametrize(("type_", "values"), KEYS, ids=[type_ for type_, _ in KEYS])
def test_ranges_follow_keys_of_every_type(
    create_database: CreateDatabase,
    tmp_path: Path,
    type_: str,
    values: list[Any],
    order: str,
    null: str,
) -> None:
    database = create_database(
        f"CREATE TABLE Keyed (A {type_}{null}, B INT64, V STRING(MAX))"
        f" PRIMARY KEY (A{order}, B DESC)"
    )
    values = [value for value in values if value is not None or not null]
    make_watchable(database, "Keyed", shards=2)
    with database.batch() as batch:
        rows = [(value, b, "v") for value in values for b in (None, 1, 2)]
        batch.insert("Keyed", ("A", "B", "V"), rows)
    replicate(database, tmp_path)
    tiny = SMALL.__class__(rows=4, parts=2, leaf_rows=1)
    (table,) = verify_folder(database, tmp_path, depth=tiny).tables
    assert table.equal, table.to_json()
    assert (table.rows, table.ranges) == (len(rows), -(-len(rows) // 4))
    open_table(tmp_path, "Keyed").update({"V": "'x'"}, predicate='"B" = 2')
    adopt_newest(tmp_path, "Keyed")
    (table,) = verify_folder(database, tmp_path, depth=tiny).tables
    assert {each.kind for each in table.differences} == {DifferenceKind.CHANGED}
    assert table.found == len(values)


@pytest.mark.parametrize("null", ["", " NOT NULL"])
@pytest.mark.parametrize(("key", "most"), [("A, B", 5), ("A DESC, B DESC", 5), ("B, A", 3)])
def test_a_range_costs_its_own_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, key: str, null: str, most: int
) -> None:
    with spawn(count_scans=True) as server:
        monkeypatch.setenv(VARIABLE, server.address)
        ddl = f"CREATE TABLE Keyed (A INT64{null}, B INT64{null}) PRIMARY KEY ({key})"
        database: Database = connect(server.address).database("ranges", ddl_statements=[ddl])
        database.create().result(60)
        make_watchable(database, "Keyed", shards=2)
        rows = [(number // 200, number) for number in range(400)]
        with database.batch() as batch:
            batch.insert("Keyed", ("A", "B"), rows)
        replicate(database, tmp_path)
        before = query_costs(database)
        (table,) = verify_folder(database, tmp_path, depth=SMALL.__class__(rows=10)).tables
        assert (table.equal, table.ranges) == (True, 40)
        # Once for the bounds and once for the sums; bounds in the middle of A = 1 are looked for
        # from its beginning.
        assert query_costs(database).subtract(before).rows_scanned < most * len(rows)


def test_a_table_without_rows_and_one_that_is_unknown(
    create_database: CreateDatabase, tmp_path: Path
) -> None:
    database = create_database(
        "CREATE TABLE Singers (SingerId INT64, LastName STRING(MAX)) PRIMARY KEY (SingerId)"
    )
    make_watchable(database)
    replicate(database, tmp_path)
    (table,) = verify_folder(database, tmp_path).tables
    assert (table.equal, table.rows, table.copy_rows) == (True, 0, 0)
    with pytest.raises(TableNotFoundError, match="it has: Singers"):
        verify_folder(database, tmp_path, tables=("Nothing",))
    assert make_replicator(database, tmp_path).consumer == "copier"
