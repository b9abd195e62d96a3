"""Changes as rows of tables in DuckDB and in a real PostgreSQL, and faults on the way there."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from fixtures.queue_records import write_through_a_kill
from fixtures.singers import address_of, write_singers
from fixtures.table_targets import DATABASE, DuckDbTarget, PostgresTarget, TableTarget
from google.cloud.spanner_v1.database import Database

from spanner_schema.model.column_types import Type, TypeCode
from watcher import Watcher
from watcher.model.change import Change, Operation, Shape, Value, ValueCapture
from watcher.model.errors import (
    ConfigurationError,
    DeliveryError,
    FileInUseError,
    LeaseLostError,
    SinkUnavailableError,
    UnavailableError,
)
from watcher.model.window import Window
from watcher.settings.watcher import parse_watch_config
from watcher.sinks.queues import open_queue
from watcher.sinks.sink_check import AT, check_sink, make_changes
from watcher.sinks.table_sink import STATE_TABLE, TableSink

JSON = Type(TypeCode.JSON)
TIMES = Type(TypeCode.ARRAY, element=Type(TypeCode.TIMESTAMP))


def make_watcher(database: Database, target: TableTarget, **options: Any) -> Watcher:
    watcher = Watcher(
        **{
            "database": str(address_of(database)),
            "tables": ["Singers"],
            "consumer": "to-tables",
            "start": "earliest",
            "interval": "20ms",
            "delivery": {"to": target.address},
        }
        | options
    )
    watcher.deliver_to(open_queue(watcher.config))
    return watcher


@pytest.mark.essential
@pytest.mark.both_dialects
def test_a_table_has_the_newest_rows(singers: Database, table_target: TableTarget) -> None:
    write_singers(singers, range(3), "first")
    assert make_watcher(singers, table_target).run_once() == 3
    write_singers(singers, [1, 5], "second")
    assert make_watcher(singers, table_target).run_once() == 2
    (name,) = {"Singers", "singers"} & set(table_target.list_tables())
    rows = table_target.read(name)
    found = {next(iter(row.values())): tuple(row.values())[2] for row in rows}
    assert found == {0: "first", 1: "second", 2: "first", 5: "second"}


def test_a_sink_of_tables_keeps_the_promises(table_target: TableTarget) -> None:
    def read_ids() -> list[str]:
        rows = table_target.read("Checked")
        versions = {row["Id"]: int(row["Name"].removeprefix("version ")) for row in rows}
        gone = {0: max(versions.values())} if 0 not in versions else {}
        return [f"{key}-{version}" for key, version in (gone | versions).items()]

    check_sink(table_target.open_sink, read_ids)


def write(sink: TableSink, *changes: Change) -> None:
    for change in changes:
        sink.write_change(change)


def versions(*numbers: int) -> list[Change]:
    """Changes of the table Checked, version by version; the last one deletes row 0."""
    return [change for number in numbers for change in make_changes(number, 1)]


def read_names(target: TableTarget) -> dict[int, str]:
    return {row["Id"]: row["Name"] for row in target.read("Checked")}


def change_of(
    shape: Shape, at: int, key: Mapping[str, Value], values: Mapping[str, Value] | None
) -> Change:
    operation = Operation.DELETE if values is None else Operation.UPSERT
    window = Window(AT, AT + 1_000)
    captured = ValueCapture.NEW_ROW
    return Change(
        f"{key}-{at}", DATABASE, shape, operation, AT + at, key, values, None, captured, window
    )


def test_an_older_version_never_replaces_a_newer_one(table_target: TableTarget) -> None:
    with closing(table_target.open_sink("one")) as sink:
        write(sink, *versions(5))
        sink.flush()
    with closing(table_target.open_sink("other")) as sink:
        write(sink, *versions(3))
        sink.flush()
        assert read_names(table_target) == dict.fromkeys(range(1, 5), "version 5")
        old = replace(versions(4)[1], operation=Operation.DELETE, new_values=None)
        write(sink, old)
        sink.flush()
        assert read_names(table_target)[1] == "version 5"


def test_an_instance_that_was_replaced_writes_nothing(table_target: TableTarget) -> None:
    with closing(table_target.open_sink()) as frozen:
        write(frozen, *versions(1))
        frozen.flush()
        other = table_target.open_sink("another consumer")
        write(other, *versions(2))
        other.flush()
        with closing(table_target.open_sink()) as newer:
            write(frozen, *versions(9))
            with pytest.raises(LeaseLostError, match="another instance of consumer 'mine'"):
                frozen.flush()
            frozen.discard()
            write(newer, *versions(3))
            newer.flush()
        other.close()
    assert set(read_names(table_target).values()) == {"version 3"}
    assert {row["consumer"]: row["epoch"] for row in table_target.read_state()} == {
        "mine": 2,
        "another consumer": 1,
    }


def test_the_position_moves_with_the_window(table_target: TableTarget) -> None:
    with closing(table_target.open_sink()) as sink:
        write(sink, *versions(1))
        sink.resolved(AT + 1)
        sink.discard()
        sink.flush()
        assert table_target.read_state()[0]["position"] is None
        write(sink, *versions(1))
        sink.resolved(AT + 1)
        sink.flush()
    (state,) = table_target.read_state()
    assert state["position"].timestamp() * 1_000_000 == AT + 1
    assert (state["source"], state["epoch"]) == (DATABASE, 1)


def test_keys_may_be_null_and_have_several_columns(table_target: TableTarget) -> None:
    columns = [(name, Type(TypeCode.INT64)) for name in ("A", "B", "V")]
    shape = Shape("Keyed", tuple(columns), ("A", "B"))
    keys = [(1, 1), (1, None), (None, 1), (None, None), (2, None)]
    with closing(table_target.open_sink()) as sink:
        for at in (1, 2):
            write(sink, *(change_of(shape, at, {"A": a, "B": b}, {"V": at}) for a, b in keys))
            sink.flush()
            rows = table_target.read("Keyed")
            assert {(row["A"], row["B"], row["V"]) for row in rows} == {(*key, at) for key in keys}
            assert len(rows) == len(keys)
        gone = [(1, 1), (1, None), (None, None), (7, None)]
        write(sink, *(change_of(shape, 3, {"A": a, "B": b}, None) for a, b in gone))
        sink.flush()
        rows = table_target.read("Keyed")
        assert {(row["A"], row["B"]) for row in rows} == {(None, 1), (2, None)}


def test_a_table_without_a_key_has_one_row(table_target: TableTarget) -> None:
    shape = Shape("Single", (("V", Type(TypeCode.INT64)),), ())
    with closing(table_target.open_sink()) as sink:
        for at in (1, 2):
            write(sink, change_of(shape, at, {}, {"V": at}))
            sink.flush()
            assert [row["V"] for row in table_target.read("Single")] == [at]
        write(sink, change_of(shape, 3, {}, None))
        sink.flush()
        assert table_target.read("Single") == []


def test_a_column_that_is_added_is_added_there_within_a_window(table_target: TableTarget) -> None:
    id_, old, new = (("Id", Type(TypeCode.INT64)), ("Old", JSON), ("Añadido", TIMES))
    before = Shape("Growing", (id_, old), ("Id",))
    after = Shape("Growing", (id_, new, old), ("Id",))
    with closing(table_target.open_sink()) as sink:
        write(sink, change_of(before, 1, {"Id": 1}, {"Old": "[1]"}))
        sink.flush()
        write(
            sink,
            change_of(before, 2, {"Id": 2}, {"Old": "2"}),
            change_of(after, 3, {"Id": 3}, {"Old": None, "Añadido": ["2026-01-01T00:00:00Z"]}),
        )
        sink.flush()
        rows = {row["Id"]: (row["Old"], row["Añadido"]) for row in table_target.read("Growing")}
    moment = datetime(2026, 1, 1, tzinfo=UTC)
    assert rows == {1: ("[1]", None), 2: ("2", None), 3: (None, [moment])}


@pytest.mark.parametrize("codes", [("STRING", "BYTES"), ("BYTES", "STRING")])
def test_a_column_that_becomes_bytes_is_refused(
    table_target: TableTarget, codes: tuple[str, str]
) -> None:
    values: dict[str, Value] = {"STRING": "a\\b", "BYTES": b"a\\\xff"}

    def write_as(code: str, at: int) -> None:
        types = (("Id", Type(TypeCode.INT64)), ("V", Type(TypeCode[code])))
        change = change_of(Shape("Turned", types, ("Id",)), at, {"Id": 1}, {"V": values[code]})
        with closing(table_target.open_sink()) as sink:
            write(sink, change)
            sink.flush()

    before, after = codes
    write_as(before, 1)
    with pytest.raises(DeliveryError, match=r"column V of .*\.Turned has the type"):
        write_as(after, 2)
    table_target.query(f'ALTER TABLE {table_target.name("Turned")} DROP COLUMN "V"')
    write_as(after, 2)
    (row,) = table_target.read("Turned")
    assert row["V"] == values[after]


def test_rows_of_two_tables_never_share_one(table_target: TableTarget) -> None:
    def write_as(table: str, tables: list[str]) -> None:
        with closing(table_target.open_sink(table, tables=tables)) as sink:
            for change in versions(1):
                write(sink, replace(change, shape=replace(change.shape, table=table)))
            sink.flush()

    named = f"{table_target.schema}.Checked"
    with pytest.raises(DeliveryError, match=r"in one table with those .* another schema than"):
        write_as(named, ["*"])
    assert table_target.list_tables() == []
    write_as(named, [f"{table_target.schema}.*"])
    assert set(read_names(table_target).values()) == {"version 1"}
    with pytest.raises(DeliveryError, match="is where the positions of consumers are"):
        write_as(STATE_TABLE, ["*"])


def test_names_are_mapped_and_named_schemas_stay(table_target: TableTarget) -> None:
    destination = replace(table_target.destination, topic="copy_{table}")
    assert destination.name_target("Singers") == (table_target.schema, "copy_Singers")
    assert destination.name_target("music.Singers") == ("music", "copy_Singers")
    shape = Shape(f"own_{table_target.schema}.T", (("Id", Type(TypeCode.INT64)),), ("Id",))
    with closing(table_target.open_sink()) as sink:
        write(sink, change_of(shape, 1, {"Id": 1}, {}))
        sink.flush()
    assert len(table_target.read("T", f"own_{table_target.schema}")) == 1


def test_a_table_of_the_users_own_keeps_its_types(table_target: TableTarget) -> None:
    table_target.make_schema()
    table_target.query(
        f'CREATE TABLE {table_target.name("Checked")} ("Id" numeric(9, 0) UNIQUE,'
        ' "Name" varchar(200), own integer DEFAULT 7)'
    )
    with closing(table_target.open_sink()) as sink:
        write(sink, *versions(1))
        sink.flush()
        write(sink, *versions(2))
        sink.flush()
    rows = {row["Id"]: (row["Name"], row["own"]) for row in table_target.read("Checked")}
    assert rows == dict.fromkeys(range(1, 5), ("version 2", 7))


def test_what_a_table_refuses_ends_the_watcher_without_a_value(table_target: TableTarget) -> None:
    table_target.make_schema()
    table_target.query(
        f'CREATE TABLE {table_target.name("Checked")} ("Id" integer UNIQUE, "Name" integer)'
    )
    with closing(table_target.open_sink()) as sink:
        write(sink, *versions(1))
        with pytest.raises(DeliveryError, match="refused a window") as caught:
            sink.flush()
    assert "version 1" not in str(caught.value)
    assert table_target.read("Checked") == []


def test_a_window_whose_answer_is_lost_changes_nothing_when_it_comes_again(
    table_target: TableTarget, monkeypatch: pytest.MonkeyPatch
) -> None:
    sink = table_target.open_sink()
    store = sink.store
    transaction = store.transaction

    @contextmanager
    def lose_answer() -> Iterator[None]:
        with transaction():
            yield
        raise SinkUnavailableError("the answer is lost")

    monkeypatch.setattr(store, "transaction", lose_answer)
    write(sink, *versions(1, 2))
    with pytest.raises(SinkUnavailableError):
        sink.flush()
    sink.discard()
    before = table_target.read("Checked")
    monkeypatch.undo()
    write(sink, *versions(1, 2))
    sink.flush()
    sink.close()
    assert table_target.read("Checked") == before
    assert len(before) == 4


@pytest.mark.parametrize(
    "place", ["before-tables-commit", "after-tables-commit", "after-delivery-before-position"]
)
def test_a_kill_loses_and_doubles_nothing(
    singers: Database, table_target: TableTarget, place: str
) -> None:
    write_through_a_kill(singers, table_target.address, place, range(10, 30))
    rows = table_target.read("Singers")
    names = {row["SingerId"]: row["LastName"] for row in rows}
    assert names == {key: "first" if key < 10 else "second" for key in range(30)}
    assert len(rows) == 30


def test_a_connection_that_is_cut_is_made_anew(postgres_target: PostgresTarget) -> None:
    with closing(postgres_target.open_sink()) as sink:
        write(sink, *versions(1))
        sink.flush()
        postgres_target.query(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
            " WHERE application_name = 'spanner-watcher'"
        )
        write(sink, *versions(2))
        with pytest.raises(SinkUnavailableError, match="did not take a window"):
            sink.flush()
        sink.discard()
        write(sink, *versions(2))
        sink.flush()
    assert set(read_names(postgres_target).values()) == {"version 2"}


def test_a_text_that_postgresql_does_not_store_is_refused_alone(
    singers: Database, postgres_target: PostgresTarget, tmp_path: Path
) -> None:
    write_singers(singers, range(3), "plain")
    write_singers(singers, [1], "nul \0")
    letters = tmp_path / "dead.jsonl"
    delivery = {"to": postgres_target.address, "then": "skip", "dead_letters": letters}
    make_watcher(singers, postgres_target, delivery=delivery).run_once()
    assert {row["SingerId"] for row in postgres_target.read("Singers")} == {0, 2}
    (letter,) = letters.read_text().splitlines()
    assert "column LastName has a NUL character" in letter


def test_a_file_that_another_process_has_is_named(duckdb_target: DuckDbTarget) -> None:
    program = f"import duckdb; c = duckdb.connect({str(duckdb_target.path)!r}); print(1); input()"
    with subprocess.Popen(
        [sys.executable, "-uc", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as other:
        assert other.stdout is not None
        assert other.stdout.readline()
        with pytest.raises(FileInUseError, match="is open in another process"):
            duckdb_target.open_sink()
        other.communicate(b"\n")
    duckdb_target.open_sink().close()


def test_a_name_that_postgresql_would_cut_off_is_refused(postgres_target: PostgresTarget) -> None:
    shape = Shape("T", (("Id", Type(TypeCode.INT64)), ("x" * 64, JSON)), ("Id",))
    with closing(postgres_target.open_sink()) as sink:
        write(sink, change_of(shape, 1, {"Id": 1}, {"x" * 64: "1"}))
        with pytest.raises(DeliveryError, match=r"longer name than PostgreSQL allows \(63 bytes\)"):
            sink.flush()
    with pytest.raises(ConfigurationError, match="does not allow the name"):
        postgres_target.destination.name_target("x" * 64)


def test_a_server_that_does_not_answer_is_named_with_exit_code_3() -> None:
    config = parse_watch_config(
        {
            "database": DATABASE,
            "consumer": "mine",
            "delivery": {
                "to": "postgresql://me@127.0.0.1:1/db?connect_timeout=2",
                "postgresql": {"password": "s3cret"},
            },
        }
    )
    with pytest.raises(UnavailableError, match=r"postgresql://127\.0\.0\.1:1/db") as caught:
        open_queue(config)
    assert caught.value.exit_code == 3
    assert "s3cret" not in str(caught.value)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"consumer": None}, "needs 'consumer'"),
        ({"delivery": {"envelope": "debezium"}}, "takes columns, not messages"),
        ({"parts": 2}, "has one writer for each consumer"),
        ({"capture": "change-stream", "stream": {"push": True}}, "is written window by window"),
        ({"delivery": {"to": "postgresql://me:pw@h/d"}}, "has a password, which everybody"),
        ({"delivery": {"to": "postgresql://h/d?password=pw"}}, "unknown parameter 'password'"),
        ({"delivery": {"to": "postgresql://h/d?table=x"}}, "would put the rows of all tables"),
        ({"delivery": {"to": "duckdb::memory:"}}, "write duckdb:FILE"),
        ({"delivery": {"to": "duckdb:"}}, "write duckdb:FILE"),
        ({"delivery": {"to": "postgres://me:p/w@h/d"}}, "did you mean 'postgresql'"),
    ],
)
def test_what_does_not_work_with_tables_is_refused(options: dict[str, Any], words: str) -> None:
    values: dict[str, Any] = {"database": DATABASE, "consumer": "mine", **options}
    values["delivery"] = {"to": "duckdb:a.db"} | options.get("delivery", {})
    with pytest.raises(ConfigurationError, match=words) as caught:
        parse_watch_config(values)
    assert "pw" not in str(caught.value)
    assert "p/w" not in str(caught.value)


def test_a_delete_whose_columns_are_described_in_another_way_is_a_delete(
    table_target: TableTarget,
) -> None:
    """A change stream describes as numeric what is read as text where rows are whole."""
    key = ("Id", Type(TypeCode.INT64))
    read = Shape("Numbers", (key, ("N", Type(TypeCode.STRING))), ("Id",))
    streamed = Shape("Numbers", (key, ("N", Type(TypeCode.PG_NUMERIC))), ("Id",))
    with closing(table_target.open_sink()) as sink:
        write(sink, change_of(streamed, 1, {"Id": 7}, None))
        sink.flush()
        write(
            sink,
            change_of(streamed, 2, {"Id": 1}, None),
            change_of(read, 3, {"Id": 1}, {"N": "1e400"}),
            change_of(read, 3, {"Id": 2}, {"N": "2"}),
            change_of(streamed, 4, {"Id": 2}, None),
        )
        sink.flush()
        assert [(row["Id"], row["N"]) for row in table_target.read("Numbers")] == [(1, "1e400")]
        write(
            sink,
            change_of(read, 5, {"Id": 1}, {"N": "1"}),
            change_of(streamed, 6, {"Id": 1}, {"N": Decimal(1)}),
        )
        with pytest.raises(DeliveryError, match="a column of Numbers has changed its type"):
            sink.flush()
