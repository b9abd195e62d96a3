"""How the rows of copies lie in their files, through the life of a replica, and who reads by it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import date
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, QueryBuilder
from fixtures.changing_schemas import change_schema
from fixtures.commands import run_command
from fixtures.iceberg_histories import open_table as open_iceberg
from fixtures.iceberg_histories import read_opened
from fixtures.named_rows import KEY, SCHEMA, content, make_rows
from fixtures.replicas import assert_equal, read_delta, replicate, verify_folder
from fixtures.singers import address_of
from google.cloud.spanner_v1 import KeySet
from google.cloud.spanner_v1.database import Database

from watcher.model.errors import ConfigurationError, ReplicaError
from watcher.replica.copies import COPY_ON_WRITE, DELETED_COLUMN
from watcher.replica.delta.copy import DeltaCopy
from watcher.replica.layout import Layout, PartitionField
from watcher.settings.watcher import parse_watch_config

COLUMNS = ("SingerId", "FirstName", "LastName", "BirthDate")
DIFFERS = 10
DATABASE = "spanner://projects/p/instances/i/databases/d"
PARTITIONS: Mapping[str, list[str]] = {
    "delta": ["lastname", "BirthDate"],
    "iceberg": ["lastname", "month(BirthDate)", "bucket(3, SingerId)"],
}
ODD = ["a/b=c%20", "é", "..", "null", None]
EASY = ["a", "B-1", "x_y", "null", None]
"""Of partitions with other characters polars does not apply deletion vectors."""


def configure(folder: Path, format_: str, **layout: object) -> dict[str, Any]:
    options = {"layout": {"singers": layout}, "load_rows": 7, "deletes": "compare"}
    return {"replica": {"to": f"{format_}:{folder}"} | options}


def write(database: Database, rows: Sequence[tuple[Any, ...]]) -> None:
    with database.batch() as batch:
        batch.insert_or_update("Singers", COLUMNS, rows)


def read_names(database: Database) -> dict[int, str | None]:
    with database.snapshot() as snapshot:
        return dict(snapshot.execute_sql("SELECT SingerId, LastName FROM Singers"))


def read_by_others(folder: Path, format_: str) -> list[dict[int, str | None]]:
    """The last names by key, as other people's readers have them."""
    if format_ == "delta":
        table = DeltaTable(f"{folder}/Singers")
        tables = [read_delta(table), pl.read_delta(f"{folder}/Singers").to_arrow()]
    else:
        tables = list(read_opened(open_iceberg(folder, "Singers")))
    columns = (each.select(["SingerId", "LastName"]).to_pydict() for each in tables)
    return [dict(zip(each["SingerId"], each["LastName"], strict=True)) for each in columns]


def list_files(folder: Path, format_: str) -> list[tuple[Path, str | None]]:
    """The data files, each with the last name of its partition, by others' readers."""
    if format_ == "iceberg":
        tasks = open_iceberg(folder, "Singers").scan().plan_files()
        return [(Path(each.file.file_path), each.file.partition[0]) for each in tasks]
    actions = pa.table(DeltaTable(f"{folder}/Singers").get_add_actions(flatten=True))
    rows = actions.select(["path", "partition.LastName"]).to_pylist()
    return [(folder / "Singers" / row["path"], row["partition.LastName"]) for row in rows]


@pytest.mark.parametrize(
    ("format_", "names"), [("delta", EASY), ("iceberg", EASY), ("iceberg", ODD)]
)
def test_a_replica_keeps_its_layout_through_everything(
    singers: Database, tmp_path: Path, format_: str, names: list[str | None]
) -> None:
    """Rows that move, NULL, odd texts, deleted rows, and compaction."""
    layout = configure(
        tmp_path, format_, partition_by=PARTITIONS[format_], sort_by=["FirstName", "SingerId"]
    )
    write(singers, [(n, f"f{n % 4}", names[n % 5], date(2026, 1 + n % 2, 1)) for n in range(30)])
    replicate(singers, tmp_path, **layout)
    for turn in range(3):
        write(singers, [(n, None, names[(n + turn) % 5], None) for n in range(turn, 20, 3)])
        replicate(singers, tmp_path, **layout)
    with singers.batch() as batch:
        batch.delete("Singers", KeySet(keys=[[key] for key in range(0, 30, 7)]))
    replicate(singers, tmp_path, **layout)
    assert_equal(singers, tmp_path)
    assert read_by_others(tmp_path, format_) == [read_names(singers)] * 2
    files = list_files(tmp_path, format_)
    assert {name for _, name in files} == set(names)
    for path, name in files:
        rows = pq.ParquetFile(path).read().to_pylist()
        order = [
            (row["FirstName"] is None, row["FirstName"] or "", row["SingerId"]) for row in rows
        ]
        assert order == sorted(order)
        assert {row.get("LastName", name) for row in rows} == {name}


def damage_delta(folder: Path) -> None:
    DeltaTable(f"{folder}/Singers").delete("\"LastName\" = 'B-1'")
    DeltaTable(f"{folder}/Singers").optimize.compact()


def damage_iceberg(folder: Path) -> None:
    open_iceberg(folder, "Singers").delete("LastName = 'B-1'")


@pytest.mark.parametrize(
    ("format_", "damage"), [("delta", damage_delta), ("iceberg", damage_iceberg)]
)
def test_a_damaged_partition_is_repaired(
    singers: Database, tmp_path: Path, format_: str, damage: Callable[[Path], None]
) -> None:
    layout = configure(tmp_path, format_, partition_by=["LastName"])
    write(singers, [(n, "f", EASY[n % 5], None) for n in range(20)])
    replicate(singers, tmp_path, **layout)
    damage(tmp_path)
    write(singers, [(2, "h", EASY[2], None)])
    replicate(singers, tmp_path, **layout)
    source = ("-d", str(address_of(singers)), "-t", "Singers", "--to", f"{format_}:{tmp_path}")
    assert run_command("verify", *source).returncode == DIFFERS
    done = run_command("verify", *source, "--repair")
    assert done.returncode == 0, done.stdout + done.stderr
    assert_equal(singers, tmp_path)
    write(singers, [(n, "g", EASY[n % 3], None) for n in range(10)])
    replicate(singers, tmp_path, **layout)
    assert verify_folder(singers, tmp_path).equal
    assert read_by_others(tmp_path, format_) == [read_names(singers)] * 2


@pytest.mark.parametrize("mode", ["keep-deleted", "history"])
def test_versions_and_the_change_feed_are_partitioned(
    singers: Database, tmp_path: Path, mode: str
) -> None:
    layout = configure(tmp_path, "delta", partition_by=["LastName", "SingerId"])
    layout["replica"]["mode"] = mode
    write(singers, [(n, "f", ODD[n % 5], None) for n in range(10)])
    replicate(singers, tmp_path, **layout)
    write(singers, [(n, "f", ODD[n % 4], None) for n in range(10)])
    replicate(singers, tmp_path, **layout)
    assert_equal(singers, tmp_path)
    rows = read_delta(DeltaTable(f"{tmp_path}/Singers")).to_pylist()
    ends = ("_deleted_at", "_valid_to")
    current = {r["SingerId"]: r["LastName"] for r in rows if not any(map(r.get, ends))}
    assert current == read_names(singers), "of odd texts, too"


def test_a_row_that_moves_is_in_the_feed_of_both_partitions(tmp_path: Path) -> None:
    copy = DeltaCopy(str(tmp_path / "T"), "c", feed=True, layout=Layout(("Name",)))
    copy.read_state()
    rows = make_rows({1: "a", 2: "b", 3: None}, 0).drop_columns([DELETED_COLUMN])
    copy.load(SCHEMA, rows.to_batches(), 100)
    state = copy.merge(
        make_rows({1: "b", 3: "é"}, 1).set_column(3, DELETED_COLUMN, pa.array([False, False])),
        KEY,
        101,
    )
    feed = pa.table(DeltaTable(str(tmp_path / "T")).load_cdf(state.version).read_all())
    told = feed.select(["Id", "Name", "_change_type"]).to_pylist()
    assert sorted(tuple(row.values()) for row in told if row["Id"] == 1) == [
        (1, "a", "update_preimage"),
        (1, "b", "update_postimage"),
    ]


def test_an_empty_text_that_readers_of_delta_take_for_null_is_refused(tmp_path: Path) -> None:
    copy = DeltaCopy(str(tmp_path / "T"), "c", layout=Layout(("Name",)))
    copy.read_state()
    rows = make_rows({1: "", 2: "b"}, 0).drop_columns([DELETED_COLUMN])
    with pytest.raises(ReplicaError, match="an empty text"):
        copy.load(SCHEMA, rows.to_batches(), 100)


def test_readers_skip_partitions(tmp_path: Path) -> None:
    """Of other partitions the files may be gone."""
    copy = DeltaCopy(str(tmp_path / "T"), "c", layout=Layout(("Name",)))
    copy.read_state()
    rows = make_rows({n: f"n{n % 5}" for n in range(20)}, 0).drop_columns([DELETED_COLUMN])
    copy.load(SCHEMA, rows.to_batches(), 100)
    copy.merge(make_rows({1: "n2"}, 1), KEY, 101)
    table = DeltaTable(str(tmp_path / "T"))
    kept = set(table.file_uris(file_pruning_predicate="\"Name\" = 'n2'"))
    for path in set(table.file_uris()) - kept:
        Path(path.removeprefix("file://")).unlink()
    query = QueryBuilder().register("t", DeltaTable(str(tmp_path / "T")))
    rows = pa.table(query.execute('SELECT "Id" FROM t WHERE "Name" = \'n2\'').read_all())
    assert sorted(rows["Id"].to_pylist()) == [1, 2, 7, 12, 17]


@pytest.mark.parametrize("text", ["", "x" * 250])
def test_a_merge_on_write_refuses_what_no_partition_can_have(tmp_path: Path, text: str) -> None:
    copy = DeltaCopy(str(tmp_path / "T"), "c", COPY_ON_WRITE, layout=Layout(("Name",)))
    rows = make_rows({1: "a", 2: "b"}, 0).drop_columns([DELETED_COLUMN])
    copy.load(SCHEMA, rows.to_batches(), 100)
    assert DeltaTable(str(tmp_path / "T")).metadata().partition_columns == ["Name"]
    with pytest.raises(ReplicaError, match="partitioned by Name"):
        copy.merge(make_rows({3: text}, 1), KEY, 101)
    copy.merge(make_rows({1: "b", 3: "é/%"}, 1), KEY, 101)
    assert content(tmp_path / "T") == {1: "b", 2: "b", 3: "é/%"}


REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"partition_by": ["day(BirthDate)"]}, "is not for Delta without Spark"),
    ({"partition_by": ["Picture"]}, "cannot use column Picture"),
    ({"partition_by": ["Nobody"]}, "names column Nobody"),
    ({"partition_by": ["LastName", "lastname"]}, "names a column twice"),
    ({"partition_by": ["dya(BirthDate)"]}, "invalid partition"),
    ({"sort_by": ["Nobody"]}, "names column Nobody"),
    ({"file_megabytes": 0}, "must be at least 1"),
]
BY_WRITER: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
    ("delta", {"merge": "copy-on-write"}, {"sort_by": ["LastName"]}),
    ("delta", {"engine": "spark"}, {"sort_by": ["LastName"]}),
    ("delta", {"engine": "spark"}, {"file_megabytes": 64}),
    ("delta", {"engine": "spark"}, {"partition_by": ["bucket(2, SingerId)"]}),
    ("parquet", {"engine": "spark"}, {"partition_by": ["LastName"]}),
]


@pytest.mark.parametrize(("format_", "writer", "layout"), BY_WRITER)
def test_what_a_writer_does_not_do_is_refused_by_name(
    format_: str, writer: dict[str, Any], layout: dict[str, Any]
) -> None:
    (option,) = layout
    replica = {"to": f"{format_}:/lake", "layout": {"Singers": layout}} | writer
    with pytest.raises(ConfigurationError, match=rf"\[replica.layout.Singers\] {option}"):
        parse_watch_config({"database": DATABASE, "tables": ["Singers"], "replica": replica})


@pytest.mark.parametrize(("layout", "message"), REFUSED)
def test_what_cannot_be_is_refused_before_anything_is_written(
    singers: Database, tmp_path: Path, layout: dict[str, Any], message: str
) -> None:
    with pytest.raises(ConfigurationError, match=message):
        replicate(singers, tmp_path, **configure(tmp_path / "lake", "delta", **layout))
    assert not (tmp_path / "lake").exists()


@pytest.mark.parametrize("format_", list(PARTITIONS))
def test_other_partitions_of_a_copy_that_is_there_are_refused(
    singers: Database, tmp_path: Path, format_: str
) -> None:
    write(singers, [(1, "f", "x", None)])
    replicate(singers, tmp_path, **configure(tmp_path, format_, partition_by=["LastName"]))
    for other in ({"sort_by": ["FirstName"]}, {"partition_by": ["SingerId"]}):
        with pytest.raises(ConfigurationError, match="was made with partition_by"):
            replicate(singers, tmp_path, **configure(tmp_path, format_, **other))


@pytest.mark.parametrize("format_", list(PARTITIONS))
def test_a_copy_keeps_its_layout_where_none_is_stated(
    singers: Database, tmp_path: Path, format_: str
) -> None:
    """Through merges, and a load of other columns; in Iceberg its order and size of files, too."""
    layout = {"partition_by": ["LastName"], "sort_by": ["FirstName"], "file_megabytes": 64}
    write(singers, [(n, f"f{n % 3}", EASY[n % 5], None) for n in range(20)])
    replicate(singers, tmp_path, **configure(tmp_path, format_, **layout))
    unstated = {"replica": {"to": f"{format_}:{tmp_path}", "compaction": "off"}}
    write(singers, [(n, f"g{n % 2}", EASY[n % 2], None) for n in range(9, -1, -1)])
    replicate(singers, tmp_path, **unstated)
    change_schema(singers, "ALTER TABLE Singers ADD COLUMN IF NOT EXISTS More INT64 DEFAULT (7)")
    write(singers, [(n, f"h{n % 2}", EASY[n % 2], None) for n in range(9, -1, -1)])
    replicate(singers, tmp_path, **unstated)
    assert_equal(singers, tmp_path)
    files = list_files(tmp_path, format_)
    assert {name for _, name in files} == set(EASY)
    if format_ == "iceberg":
        table = open_iceberg(tmp_path, "Singers")
        assert [each.source_id for each in table.sort_order().fields] == [2]
        assert table.properties["write.target-file-size-bytes"] == str(64 << 20)
        for path, _ in files:
            names = pq.ParquetFile(path).read()["FirstName"].to_pylist()
            assert names == sorted(names)


def test_layouts_are_flags(singers: Database, tmp_path: Path) -> None:
    write(singers, [(n, "f", "x", date(2026, 1, 1)) for n in range(3)])
    where = ("-d", str(address_of(singers)), "-t", "Singers", "--to", f"iceberg:{tmp_path}/lake")
    flags = (
        "--partition-by",
        "singers=LastName,bucket(2, SingerId)",
        "--sort-by",
        "Singers=FirstName",
        "--file-megabytes",
        "Singers=64",
    )
    done = run_command("replicate", *where, *flags, "--once")
    assert done.returncode == 0, done.stderr
    table = open_iceberg(tmp_path / "lake", "Singers")
    assert [each.name for each in table.spec().fields] == ["LastName", "SingerId_bucket"]
    assert [each.source_id for each in table.sort_order().fields] == [2]
    assert table.properties["write.target-file-size-bytes"] == str(64 << 20)
    wrong = run_command("replicate", *where, "--partition-by", "Singers", "--once")
    assert wrong.returncode == 2
    assert "write it as --partition-by" in wrong.stderr


def test_partitions_are_read_as_they_are_written() -> None:
    for text in ("a.b", "day(a)", "bucket(16, a`b)", "truncate(4, é)", "hour"):
        assert str(PartitionField.parse(text)) == text
