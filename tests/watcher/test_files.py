"""Changes in files by table and time: each of them once, whatever happens to those who write."""

from __future__ import annotations

import gzip
import json
import re
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

import duckdb
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from fixtures import everything as table_of_everything
from fixtures.broken_network import BrokenNetwork, Fault
from fixtures.commands import run_watch_to
from fixtures.documented import change_of
from fixtures.queue_records import assert_in_order, assert_tells_the_truth
from fixtures.server import CreateDatabase
from fixtures.singers import address_of, write_singers
from fixtures.writing import SingersWriter, run_beside
from google.cloud.spanner_v1 import COMMIT_TIMESTAMP
from google.cloud.spanner_v1.database import Database
from google.cloud.spanner_v1.transaction import Transaction
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyarrow.fs import FileSelector

from spanner_schema.model.column_types import Type, TypeCode
from watcher import Watcher
from watcher.model.change import Change, Operation, Shape
from watcher.model.errors import ConfigurationError, DeliveryError, SinkUnavailableError
from watcher.process.failpoints import VARIABLE
from watcher.process.gzip_texts import GzipText, read_name
from watcher.replica.stores.stored_files import create_new, open_file_system
from watcher.settings.destination_grammar import parse_changes_destination
from watcher.settings.watcher import parse_watch_config
from watcher.sinks import timed_files as module
from watcher.sinks import whole_batches
from watcher.sinks.line_files import LineFiles
from watcher.sinks.parquet_files import OWN_FIELDS, ParquetFiles
from watcher.sinks.queues import open_queue
from watcher.sinks.sink_check import check_sink
from watcher.spanner.timestamps import format_timestamp, to_micros

SINKS = Path(__file__).parents[2] / "docs/sinks.md"
HOUR = 3_600_000_000
NOON = 1_700_000_000_000_000 // (24 * HOUR) * 24 * HOUR + 12 * HOUR
INT64 = Type(TypeCode.INT64)
DATABASE = "projects/my-project/instances/my-instance/databases/my-database"
KNOWN = {"database": f"spanner://{DATABASE}", "tables": ["Singers"], "consumer": "mine"}


@pytest.fixture(params=["lines", "parquet"])
def file_format(request: pytest.FixtureRequest) -> str:
    chosen: str = request.param
    return chosen


def make_sink(folder: str, consumer: str = "mine", **options: str) -> LineFiles | ParquetFiles:
    """The sink of an instance that has its lease."""
    delivery = {"to": f"files:{folder}", "files": options}
    config = parse_watch_config(KNOWN | {"consumer": consumer, "delivery": delivery})
    sink = open_queue(config)
    assert isinstance(sink, LineFiles | ParquetFiles)
    sink.open()
    return sink


def read_files(folder: str) -> dict[str, list[dict[str, Any]]]:
    """The changes in each file, by its path in the folder: of Parquet with the fields of lines."""
    files, base = open_file_system(folder)
    found = {}
    for info in files.get_file_info(FileSelector(base, recursive=True, allow_not_found=True)):
        path = info.path.removeprefix(base).strip("/")
        if path.endswith(".gz"):
            with files.open_input_stream(info.path, compression=None) as stream:
                lines = gzip.decompress(stream.read()).splitlines()
            found[path] = [json.loads(line) for line in lines]
        elif path.endswith(".parquet"):
            with files.open_input_file(info.path) as file:
                found[path] = [as_line(path, row) for row in pq.read_table(file).to_pylist()]
    return dict(sorted(found.items()))


def as_line(path: str, row: dict[str, Any]) -> dict[str, Any]:
    """A row of Singers, or of a table of ``make_change``, as a line says it."""
    names = (field.name for field in OWN_FIELDS)
    kind, commit, id_, *_ = (row.pop(name) for name in names)
    at = format_timestamp(to_micros(commit))
    key = {next(iter(row)): next(iter(row.values()))}
    common = {
        "id": id_,
        "commit_timestamp": at,
        "kind": kind,
        "table": path.split("/", maxsplit=1)[0],
    }
    return common | {"key": key, "values": row}


def read_ids(folder: str) -> list[str]:
    """The ids of all changes, as a reader of all files finds them."""
    return [change["id"] for changes in read_files(folder).values() for change in changes]


def make_change(number: int, at: int, table: str = "Singers") -> Change:
    shape = Shape(table, (("Id", INT64), ("N", INT64)), ("Id",))
    made: Change = change_of(shape, Operation.UPDATE, at, {"Id": number % 3}, {"N": number}, {})
    return replace(made, id=f"{table}-{number}", origin=None)


def write(sink: LineFiles | ParquetFiles, changes: list[Change]) -> None:
    for change in changes:
        sink.write_change(change)


# Files.


@given(st.lists(st.binary()), st.integers(0))
def test_pieces_of_text_are_one_gzip_file_with_a_name(pieces: list[bytes], number: int) -> None:
    text = GzipText()
    for piece in pieces:
        text.append(piece)
    content = text.finish_as(f"{number}.jsonl")
    assert gzip.decompress(content) == b"".join(pieces)
    assert read_name(content) == f"{number}.jsonl"
    assert text.is_empty == (not b"".join(pieces))


def test_files_of_others_have_no_name() -> None:
    assert read_name(gzip.compress(b"x")) is None
    assert read_name(b"") is None
    assert read_name(GzipText().finish_as("abc")[:12]) is None


def test_changes_are_in_the_folder_of_their_table_and_hour(tmp_path: Path) -> None:
    sink = make_sink(str(tmp_path))
    moments = [NOON, NOON + HOUR - 1, NOON + HOUR]
    write(sink, [make_change(number, at) for number, at in enumerate(moments)])
    write(sink, [make_change(9, NOON, "Sales.Odd Name~/%")])
    sink.flush()
    write(sink, [make_change(5, NOON + 2 * HOUR - 1)])
    sink.resolved(NOON + 2 * HOUR)
    sink.flush()
    ids = {
        path: [each["id"] for each in found] for path, found in read_files(str(tmp_path)).items()
    }
    assert ids == {
        "Sales.Odd~20Name~7E~2F~25/hour=2023-11-14-12/00000000.jsonl.gz": ["Sales.Odd Name~/%-9"],
        "Singers/hour=2023-11-14-12/00000000.jsonl.gz": ["Singers-0", "Singers-1"],
        "Singers/hour=2023-11-14-13/00000000.jsonl.gz": ["Singers-2"],
        "Singers/hour=2023-11-14-13/00000001.jsonl.gz": ["Singers-5"],
    }
    watermark = json.loads((tmp_path / "_watermark.json").read_text())
    assert watermark == {"resolved": "2023-11-14T14:00:00.000000Z"}


def test_a_day_is_a_folder_where_that_is_chosen(tmp_path: Path) -> None:
    sink = make_sink(str(tmp_path), partition_by="day")
    write(sink, [make_change(1, NOON), make_change(2, NOON + 9 * HOUR)])
    sink.flush()
    assert list(read_files(str(tmp_path))) == ["Singers/day=2023-11-14/00000000.jsonl.gz"]


def test_the_sink_keeps_what_every_sink_promises(lake: str, file_format: str) -> None:
    check_sink(lambda: make_sink(lake, format=file_format), lambda: read_ids(lake))


# Once.


def test_an_instance_that_was_replaced_repeats_nothing(lake: str) -> None:
    """It was frozen in the middle of a window, which its successor has delivered."""
    frozen, successor = make_sink(lake), make_sink(lake)
    changes = [make_change(number, NOON + number) for number in range(6)]
    write(frozen, changes[:4])
    write(successor, changes)
    successor.flush()
    with pytest.raises(SinkUnavailableError, match=r"Singers/hour=2023-11-14-12/00000000.jsonl.gz"):
        frozen.flush()
    frozen.discard()
    write(frozen, changes[:4])
    frozen.flush()
    assert read_ids(lake) == [change.id for change in changes]


def test_what_a_replaced_instance_could_still_write_is_not_written_again(tmp_path: Path) -> None:
    frozen, successor = make_sink(str(tmp_path)), make_sink(str(tmp_path))
    changes = [make_change(number, NOON + number) for number in range(6)]
    write(successor, changes[:2])
    successor.flush()
    frozen.discard()
    write(frozen, changes[:4])
    frozen.flush()
    write(successor, changes[2:])
    with pytest.raises(SinkUnavailableError):
        successor.flush()
    successor.discard()
    write(successor, changes[2:])
    successor.flush()
    assert read_ids(str(tmp_path)) == [change.id for change in changes]


class CrashError(Exception):
    """The process ends here."""


def crash_at(place: int, answered: bool) -> Any:
    """A ``create_new`` that fails at its n-th call, before or after it was done."""
    left = [place]

    def create(folder: str, name: str, content: bytes) -> bool:
        left[0] -= 1
        if left[0] == 0 and not answered:
            raise CrashError
        done = create_new(folder, name, content)
        if left[0] == 0:
            raise CrashError
        return done

    return create


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60)
@given(st.data())
def test_every_change_is_there_once_whatever_happens(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    """Windows over several tables and hours; any of them fails anywhere and comes again, with the
    same end or a later one, from this instance, another one, or both by turns."""
    folder = str(tmp_path_factory.mktemp("files"))
    file_format = data.draw(st.sampled_from(["lines", "parquet"]))
    gaps = data.draw(st.lists(st.sampled_from([0, 1, HOUR // 2]), min_size=1, max_size=25))
    moments = [NOON + sum(gaps[: place + 1]) for place in range(len(gaps))]
    tables = data.draw(st.lists(st.sampled_from("AB"), min_size=len(gaps), max_size=len(gaps)))
    changes = [
        make_change(number, at, table)
        for number, (at, table) in enumerate(zip(moments, tables, strict=True))
    ]
    sinks, start = [make_sink(folder, format=file_format) for _ in range(2)], 0
    last = moments[-1]
    while start < last:
        end = data.draw(st.sampled_from([at for at in moments if at > start]))
        sink = data.draw(st.sampled_from(sinks))
        write(sink, [change for change in changes if start < change.commit_timestamp <= end])
        place = data.draw(st.integers(0, 4))
        try:
            with patch.object(module, "create_new", crash_at(place, data.draw(st.booleans()))):
                sink.flush()
        except (CrashError, SinkUnavailableError) as error:
            sink.discard()
            if isinstance(error, CrashError) and data.draw(st.booleans()):
                sinks[sinks.index(sink)] = make_sink(folder, format=file_format)
            continue
        start = end
    assert Counter(read_ids(folder)) == Counter(change.id for change in changes)
    for found in read_files(folder).values():
        assert_in_order(json.dumps(each, default=str).encode() for each in found)


@pytest.fixture(params=[True, False], ids=["by column", "by change"])
def by_column(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(whole_batches, "ROWS_BY_COLUMN", 0 if request.param else sys.maxsize)


def make_watcher(
    database: Database, folder: str, file_format: str = "lines", **more: Any
) -> Watcher:
    watcher = Watcher(
        **{
            "database": str(address_of(database)),
            "tables": ["Singers"],
            "consumer": "to-files",
            "start": "earliest",
            "interval": "20ms",
            "delivery": {"to": f"files:{folder}", "files": {"format": file_format}},
        }
        | more
    )
    watcher.deliver_to(open_queue(watcher.config))
    return watcher


@pytest.mark.usefixtures("by_column")
def test_files_tell_the_truth_while_others_write(
    singers: Database, tmp_path: Path, file_format: str
) -> None:
    writer = SingersWriter(singers, 7, 12)
    watcher = make_watcher(singers, str(tmp_path), file_format)

    def poll() -> Iterator[None]:
        for _ in range(5):
            watcher.run_once()
            yield

    with run_beside(writer.write, 0.001) as begun:
        begun.wait()
        for _ in poll():
            pass
    watcher.run_once()
    changes = [change for found in read_files(str(tmp_path)).values() for change in found]
    assert_tells_the_truth((json.dumps(each, default=str).encode() for each in changes), writer)
    assert_in_order(json.dumps(each, default=str).encode() for each in changes)
    assert max(Counter(each["id"] for each in changes).values()) == 1


@pytest.mark.parametrize("place", ["after-file", "after-delivery-before-position"])
def test_a_kill_repeats_nothing(singers: Database, tmp_path: Path, place: str) -> None:
    write_singers(singers, range(5), "a")
    killed = run_watch_to(f"files:{tmp_path}", singers, **{VARIABLE: place})
    assert killed.returncode != 0
    assert len(read_ids(str(tmp_path))) == 5
    write_singers(singers, range(4, 7), "b")
    done = run_watch_to(f"files:{tmp_path}", singers)
    assert done.returncode == 0, done.stderr
    names = Counter(
        (change["key"]["SingerId"], change["values"]["LastName"])
        for found in read_files(str(tmp_path)).values()
        for change in found
    )
    expected = [(key, "a") for key in range(5)] + [(key, "b") for key in range(4, 7)]
    assert names == Counter(expected)


def test_a_lost_answer_of_the_store_repeats_nothing(
    singers: Database, bucket: str, broken_network: BrokenNetwork
) -> None:
    folder = f"{bucket}/changes"
    watcher = make_watcher(singers, folder)
    write_singers(singers, range(3), "a")
    watcher.run_once()
    write_singers(singers, range(2, 5), "b")
    broken_network.strike("PUT", Fault.LOST)
    watcher.run_once()
    assert not broken_network.next_faults["PUT"]
    assert len(set(read_ids(folder))) == len(read_ids(folder)) == 6


@pytest.mark.usefixtures("by_column")
def test_a_backfill_is_beside_the_hours(
    singers: Database, tmp_path: Path, file_format: str
) -> None:
    write_singers(singers, range(7), "before")
    settings_ = {"start": "latest", "backfill": ["*"], "backfill_rows": 3}
    watcher = make_watcher(singers, str(tmp_path), file_format, **settings_)
    watcher.run_once()
    assert len(read_ids(str(tmp_path))) == 7
    assert {path.split("/")[1] for path in read_files(str(tmp_path))} == {"hour=backfill"}


def test_deleted_rows_of_a_backfill_are_beside_the_hours_too(
    create_database: CreateDatabase, tmp_path: Path, file_format: str
) -> None:
    database = create_database(
        "CREATE TABLE Kept (Id INT64, Gone BOOL, Stamped TIMESTAMP OPTIONS"
        " (allow_commit_timestamp = true)) PRIMARY KEY (Id)"
    )
    for number in reversed(range(5)):  # the keys that are read first are the newest rows
        with database.batch() as batch:
            columns = ("Id", "Gone", "Stamped")
            batch.insert("Kept", columns, [(number, number != 3, COMMIT_TIMESTAMP)])
    make_watcher(
        database,
        str(tmp_path),
        file_format,
        tables=["Kept"],
        start="latest",
        backfill=["*"],
        backfill_rows=2,
        table={"Kept": {"shard": "none", "deleted": "Gone"}},
    ).run_once()
    assert len(set(read_ids(str(tmp_path)))) == len(read_ids(str(tmp_path))) == 5
    assert {path.split("/")[1] for path in read_files(str(tmp_path))} == {"hour=backfill"}


def test_a_column_that_readers_would_take_from_the_folder_is_refused(tmp_path: Path) -> None:
    shape = Shape("Singers", (("Id", INT64), ("Hour", INT64)), ("Id",))
    change = change_of(shape, Operation.UPDATE, NOON, {"Id": 1}, {"Hour": 7}, {})
    with pytest.raises(DeliveryError, match="has a column Hour, which in files of Parquet"):
        make_sink(str(tmp_path), format="parquet").write_change(change)
    by_day = make_sink(str(tmp_path / "days"), format="parquet", partition_by="day")
    by_day.write_change(change)
    by_day.flush()
    assert len(read_files(str(tmp_path / "days"))) == 1


# Who may write where.


def test_a_folder_belongs_to_one_consumer(lake: str) -> None:
    make_sink(lake)
    with pytest.raises(ConfigurationError, match=r"belongs to .*'mine'.* not to .*'other'"):
        make_sink(lake, "other")


def test_a_file_of_somebody_else_is_named(tmp_path: Path) -> None:
    place = tmp_path / "Singers/hour=2023-11-14-12"
    place.mkdir(parents=True)
    (place / "00000003.jsonl.gz").write_bytes(gzip.compress(b"{}"))
    with pytest.raises(ConfigurationError, match=r"00000003.jsonl.gz is no file that spanner-wat"):
        make_sink(str(tmp_path)).write_change(make_change(1, NOON))


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"consumer": None}, "needs 'consumer'"),
        ({"parts": 2}, "remove 'parts'"),
        ({"delivery": {"to": "files:x", "envelope": "datastream-avro"}}, "binary"),
        (
            {"capture": "change-stream", "stream": {"name": "S", "push": True}},
            "remove stream.push",
        ),
        (
            {
                "delivery": {
                    "to": "files:x",
                    "envelope": "debezium",
                    "files": {"format": "parquet"},
                }
            },
            "takes columns, not messages",
        ),
        ({"delivery": {"to": "files:x", "files": {"partition_by": "week"}}}, "'hour' or 'day'"),
    ],
)
def test_what_does_not_work_with_files_is_refused(more: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigurationError, match=words):
        parse_watch_config(KNOWN | {"delivery": {"to": "files:x"}} | more)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("files:", "write files:FOLDER"),
        ("files: ", "write files:FOLDER"),
        ("files", "write files:FOLDER"),
        ("files:s3:bucket/a", "does not name a bucket: write files:s3://BUCKET/PREFIX"),
        ("files:s3://bucket/a?region=b", "has one of"),
        ("files:https://bucket/a", "is a web address"),
        ("files://host/a", "has two slashes"),
        ("files:delta:x", "names two destinations"),
    ],
)
def test_what_is_nearly_a_folder_is_refused(text: str, words: str) -> None:
    with pytest.raises(ConfigurationError, match=words):
        parse_changes_destination(text)


def test_a_folder_in_one_that_is_missing_is_not_made(singers: Database, tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"no folder .*: make it, or use --create"):
        make_watcher(singers, str(tmp_path / "mistyped/changes")).run_once()
    assert not (tmp_path / "mistyped").exists()


def test_a_folder_has_one_format(tmp_path: Path) -> None:
    make_sink(str(tmp_path), format="lines")
    with pytest.raises(ConfigurationError, match=r"changes.jsonl.gz, not to .* changes.parquet"):
        make_sink(str(tmp_path), format="parquet")


def test_a_column_with_the_name_of_one_of_ours_is_refused(tmp_path: Path) -> None:
    change = make_change(1, NOON)
    shape = Shape("T", (("Id", INT64), ("_change_id", INT64)), ("Id",))
    with pytest.raises(DeliveryError, match="T has a column _change_id"):
        make_sink(str(tmp_path), format="parquet").write_change(replace(change, shape=shape))


def test_a_type_that_changes_within_a_window_is_one_of_both_or_said(tmp_path: Path) -> None:
    def write_types(*types: tuple[TypeCode, Any]) -> None:
        sink = make_sink(str(tmp_path), format="parquet")
        for number, (code, value) in enumerate(types):
            shape = Shape("T", (("Id", INT64), ("V", Type(code))), ("Id",))
            at = NOON + len(list(tmp_path.rglob("*.parquet"))) * 10 + number
            change = change_of(shape, Operation.UPDATE, at, {"Id": 1}, {"V": value}, {})
            sink.write_change(change)
        sink.flush()

    write_types((TypeCode.STRING, "a"), (TypeCode.BYTES, b"\xff"))
    (path,) = tmp_path.rglob("*.parquet")
    assert pq.read_table(path)["V"].to_pylist() == [b"a", b"\xff"]
    with pytest.raises(DeliveryError, match="deliver it with --max-rows 1"):
        write_types((TypeCode.STRING, "a"), (TypeCode.STRING, "b"), (TypeCode.BOOL, True))


# Readers of other people's.


def test_readers_find_the_changes_and_their_hours(tmp_path: Path) -> None:
    sink = make_sink(str(tmp_path))
    write(sink, [make_change(number, NOON + number * HOUR // 2) for number in range(6)])
    sink.flush()
    sink.resolved(NOON + 3 * HOUR)
    write(sink, [make_change(6, NOON + 3 * HOUR)])
    sink.flush()
    expected = [(f"Singers-{n}", f"2023-11-14-{12 + n // 2}") for n in range(7)]
    rows = duckdb.connect().execute(
        f"SELECT id, hour FROM read_json('{tmp_path}/*/*/*.jsonl.gz', hive_partitioning = true)"
        " ORDER BY id"
    )
    assert rows.fetchall() == expected
    partitioning = ds.partitioning(pa.schema([("hour", pa.string())]), flavor="hive")
    table = ds.dataset(tmp_path / "Singers", format="json", partitioning=partitioning).to_table()
    assert sorted(zip(table["id"].to_pylist(), table["hour"].to_pylist(), strict=True)) == expected


@pytest.mark.parametrize("capture", ["poll", "change-stream"])
def test_parquet_has_the_columns_of_its_table(
    tmp_path: Path, everything: Database, capture: str
) -> None:
    """Cell by cell, whatever the type and the way a change came; and others read as many."""
    more: dict[str, Any] = {"tables": ["Everything"]}
    if capture == "change-stream":
        stream = "CREATE CHANGE STREAM S FOR Everything OPTIONS (value_capture_type = 'NEW_ROW')"
        everything.update_ddl([stream]).result()
        more |= {"capture": capture, "stream": {"name": "S"}, "start": "latest"}
    watcher = make_watcher(everything, str(tmp_path), "parquet", **more)
    watcher.run_once()
    table_of_everything.write(everything, table_of_everything.rows())
    watcher.run_once()
    written = {row["Id"]: row for row in table_of_everything.rows()}
    (path,) = tmp_path.rglob("*.parquet")
    found = pq.read_table(path).to_pylist()
    assert len(found) == len(written)
    for row in found:
        assert row["_change_type"] == ("upsert" if capture == "poll" else "insert")
        for name, value in as_arrow(written[row["Id"]]).items():
            assert repr(row[name]) == repr(value), name
    count = f"SELECT count(*), count(DISTINCT _change_id) FROM read_parquet('{path}')"
    assert duckdb.connect().execute(count).fetchall() == [(len(written), len(written))]


def as_arrow(row: dict[str, Any]) -> dict[str, Any]:
    """A row with its cells in the form of Arrow: FLOAT32 and times."""
    arrow = {"Ti": pa.timestamp("us", "UTC"), "Fs": pa.float32(), "Nu": pa.decimal128(38, 9)}
    cells = dict(row)
    for name, type_ in arrow.items():
        cells[name] = pa.scalar(row[name], type_).as_py()
        cells[f"{name}s"] = pa.scalar(row[f"{name}s"], pa.list_(type_)).as_py()
    return cells


def test_the_queries_of_the_documentation_give_rows_and_their_history(
    tmp_path: Path, singers: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a change stream, with rows that one transaction changes more than once."""
    everything = "CREATE CHANGE STREAM S FOR ALL OPTIONS (value_capture_type = 'NEW_ROW')"
    singers.update_ddl([everything]).result()
    more = {"capture": "change-stream", "stream": {"name": "S"}, "start": "latest"}
    watcher = make_watcher(singers, str(tmp_path / "changes"), "parquet", **more)
    watcher.run_once()
    write_singers(singers, range(6), "first")
    watcher.run_once()

    def change(transaction: Transaction) -> None:
        transaction.execute_update("UPDATE Singers SET LastName = 'second' WHERE SingerId < 3")
        transaction.execute_update("UPDATE Singers SET LastName = 'third' WHERE SingerId = 1")
        transaction.execute_update("DELETE FROM Singers WHERE SingerId IN (2, 5)")

    singers.run_in_transaction(change)
    watcher.run_once()
    monkeypatch.chdir(tmp_path)
    newest, history = re.findall(r"```sql\n(.*?read_parquet.*?)```", SINKS.read_text(), re.DOTALL)
    assert {row["SingerId"]: row["LastName"] for row in query(newest)} == {
        0: "second",
        1: "third",
        3: "first",
        4: "first",
    }
    versions = sorted(
        (row["SingerId"], row["LastName"], row["valid_to"] is None) for row in query(history)
    )
    assert versions == [
        *((0, "first", False), (0, "second", True), (1, "first", False), (1, "third", True)),
        *((2, "first", False), (3, "first", True), (4, "first", True), (5, "first", False)),
    ]


def query(sql: str) -> list[dict[str, Any]]:
    """What DuckDB answers."""
    found = duckdb.connect().execute(sql)
    names = [column[0] for column in found.description or ()]
    return [dict(zip(names, row, strict=True)) for row in found.fetchall()]
