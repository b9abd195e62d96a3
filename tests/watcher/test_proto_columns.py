"""Tables with columns of messages and enums, watched: bytes and numbers, however they are read."""

from __future__ import annotations

import json
import logging
import re
from base64 import b64encode
from pathlib import Path
from typing import Any

import pytest
from fixtures.commands import run_command
from fixtures.music import BUNDLE, DESCRIPTORS, GENRE, GENRES, SINGER, SingerInfo
from fixtures.replicas import (
    adopt_newest,
    assert_equal,
    open_table,
    read_rows,
    replicate,
    verify_folder,
)
from fixtures.singers import address_of, fetch_now, make_watchable
from google.cloud.spanner_v1.database import Database
from google.protobuf.descriptor_pb2 import FileDescriptorProto, FileDescriptorSet

from ddl.migration.apply import roll_back
from ddl.rules.evolve import parse_schema
from spanner_schema.model.errors import PlanError
from watcher import Change, Watcher
from watcher.model.errors import ConfigurationError, EnvelopeError
from watcher.runners.spark.resolution import resolve_scan
from watcher.runners.spark.spark_versions import ReadAllAvailable
from watcher.runners.spark.streaming import ChangesReader
from watcher.settings.spark_parsing import parse_source_options
from watcher.spanner.timestamps import format_timestamp

TABLE = f"""CREATE TABLE Singers (
  Id INT64, Name STRING(MAX), Info {SINGER}, Genre {GENRE}, Moods ARRAY<Mood>
) PRIMARY KEY (Id)"""
pytestmark = pytest.mark.ddl(BUNDLE, TABLE, proto_descriptors=DESCRIPTORS)
MOODS = ("CALM", "WILD")
FRENCH = SingerInfo(nationality="FR")


def deliver(database: Database, **more: object) -> list[Change]:
    """What one run of a watcher delivers."""
    changes: list[Change] = []
    options: dict[str, Any] = {"database": str(address_of(database)), "tables": ["Singers"]}
    watcher = Watcher(**options | {"consumer": "c", "interval": "20ms"} | more)
    watcher.on_change(changes.append)
    watcher.run_once()
    return changes


def write(database: Database) -> None:
    """One singer of whom all is known."""
    columns = ("Id", "Name", "Info", "Genre", "Moods")
    with database.batch() as batch:
        batch.insert("Singers", columns, [(1, "Ann", FRENCH, 3, [1])])


INFO = FRENCH.SerializeToString()


def check_delivered(change: Change) -> None:
    assert change.new_values is not None
    values = change.new_values
    assert (values["Info"], values["Genre"], values["Moods"]) == (INFO, 3, [1])


def read_descriptors(database: Database) -> bytes:
    """The descriptors of the messages and enums that the database has."""
    api = database._instance._client.database_admin_api
    stored: bytes = api.get_database_ddl(database=database.name).proto_descriptors
    return stored


def test_a_migration_keeps_the_descriptors(database: Database) -> None:
    before = read_descriptors(database)
    assert b"SingerInfo" in before
    make_watchable(database, "Singers")
    assert read_descriptors(database) == before


def test_a_poll_delivers_bytes_and_numbers(
    database: Database, caplog: pytest.LogCaptureFixture
) -> None:
    make_watchable(database, "Singers")
    write(database)
    with database.batch() as batch:
        batch.insert("Singers", ("Id", "Moods"), [(2, None), (3, [None, 1])])
    with caplog.at_level(logging.WARNING, "watcher.columns"):
        changes = {c.key["Id"]: c for c in deliver(database, start="earliest")}
    check_delivered(changes[1])
    assert [(changes[n].new_values or {})["Moods"] for n in (2, 3)] == [None, [None, 1]]
    assert {(changes[n].new_values or {})["Info"] for n in (2, 3)} == {None}
    assert not [each for each in caplog.records if each.name == "watcher.columns"]
    backfilled = deliver(database, consumer="b", backfill=["Singers"], start="latest")
    check_delivered(next(each for each in backfilled if each.key["Id"] == 1))


def test_a_stream_delivers_bytes_and_numbers(database: Database) -> None:
    database.update_ddl(["CREATE CHANGE STREAM S FOR ALL"]).result(60)
    options = {"capture": "change-stream", "stream": {"name": "S"}}
    assert deliver(database, **options) == []
    write(database)
    (change,) = deliver(database, **options)
    check_delivered(change)


def test_lines_have_base64_and_numbers(database: Database, tmp_path: Path) -> None:
    make_watchable(database, "Singers")
    write(database)
    for envelope in ("plain", "debezium", "datastream", "ydb"):
        file = tmp_path / envelope
        result = run_command(
            *("watch", "-d", str(address_of(database)), "-t", "Singers", "--from", "earliest"),
            *("--once", "--consumer", envelope, "--to", str(file), "--envelope", envelope),
        )
        assert result.returncode == 0, result.stderr
        text = file.read_text()
        assert b64encode(INFO).decode() in text, envelope
        assert re.search(r'"Genre": ?"?3', text), text


@pytest.mark.parametrize("stream", [False, True], ids=["polled", "by a stream"])
def test_copies_have_them_and_are_verified(
    database: Database, tmp_path: Path, stream: bool
) -> None:
    if stream:
        database.update_ddl(["CREATE CHANGE STREAM S FOR ALL"]).result(60)
    else:
        make_watchable(database, "Singers")
    more = {"capture": "change-stream", "stream": {"name": "S"}} if stream else {}
    options: dict[str, Any] = {"tables": ["Singers"]} | more
    replicate(database, tmp_path, **options)
    write(database)
    with database.batch() as batch:
        batch.insert("Singers", ("Id", "Genre"), [(2, None)])
    (report,) = replicate(database, tmp_path, **options)
    assert report.merged == {"Singers": 2}
    rows = {row["Id"]: row for row in read_rows(tmp_path, "Singers")}
    assert (rows[1]["Info"], rows[1]["Genre"], rows[1]["Moods"]) == (INFO, 3, [1])
    assert_equal(database, tmp_path)
    open_table(tmp_path, "Singers").update({"Genre": "2"}, predicate='"Id" = 1')
    adopt_newest(tmp_path, "Singers")
    assert not verify_folder(database, tmp_path).equal


@pytest.mark.parametrize("stream", [False, True], ids=["polled", "by a stream"])
def test_spark_gets_bytes_and_numbers(database: Database, stream: bool) -> None:
    make_watchable(database, "Singers")
    more: dict[str, str] = {}
    if stream:
        database.update_ddl(["CREATE CHANGE STREAM S FOR ALL"]).result(60)
        more = {"capture": "change-stream", "stream": "S", "wholeRows": "true"}
    start = format_timestamp(fetch_now(database))
    write(database)
    address = address_of(database)
    named = {"project": address.project, "instance": address.instance}
    source = named | {"database": address.database, "table": "Singers", "idleSeconds": "0"}
    options = parse_source_options(source | {"startingTimestamp": start} | more)
    reader = ChangesReader(resolve_scan(options))
    begin = reader.initialOffset()
    end = reader.latestOffset(begin, ReadAllAvailable())
    parts = reader.partitions(begin, end)
    (row,) = [r for part in parts for batch in reader.read(part) for r in batch.to_pylist()]
    assert (row["Info"], row["Genre"], row["Moods"]) == (INFO, 3, [1])
    reader.stop()


def test_an_enum_in_the_key_is_watched(database: Database, tmp_path: Path) -> None:
    keyed = f"CREATE TABLE Keyed (G {GENRE}, A INT64, V STRING(MAX)) PRIMARY KEY (G DESC, A)"
    database.update_ddl([keyed, "CREATE INDEX ByGenre ON Singers (Genre)"]).result(60)
    database.reload()
    assert parse_schema(database.ddl_statements).index("ByGenre") is not None
    make_watchable(database, "Keyed")
    keys = [(genre, number) for genre in (None, 0, 1, 2, 3) for number in range(30)]
    with database.batch() as batch:
        batch.insert("Keyed", ("G", "A", "V"), [(g, a, "first") for g, a in keys])
    options = {"tables": ["Keyed"], "backfill": ["Keyed"], "backfill_rows": 7, "start": "latest"}
    backfilled = deliver(database, **options)
    assert sorted((repr(c.key["G"]), c.key["A"]) for c in backfilled) == sorted(
        (repr(g), a) for g, a in keys
    )
    replicate(database, tmp_path, tables=["Keyed"])
    with database.batch() as batch:
        batch.update("Keyed", ("G", "A", "V"), [(3, 1, "second"), (None, 2, "second")])
    assert {(c.key["G"], c.key["A"]) for c in deliver(database, tables=["Keyed"])} == {
        (3, 1),
        (None, 2),
    }
    replicate(database, tmp_path, tables=["Keyed"])
    assert_equal(database, tmp_path)


def test_a_message_is_not_hashed_into_a_shard(database: Database) -> None:
    with pytest.raises(PlanError, match="cannot be hashed"):
        make_watchable(database, "Singers", shard_key=["Info"])


@pytest.fixture
def descriptors(tmp_path: Path) -> Path:
    file = tmp_path / "music.pb"
    file.write_bytes(DESCRIPTORS)
    return file


@pytest.mark.parametrize("stream", [False, True], ids=["polled", "by a stream"])
def test_descriptors_make_them_json_and_names(
    database: Database, descriptors: Path, stream: bool
) -> None:
    make_watchable(database, "Singers")
    more: dict[str, Any] = {"delivery": {"proto_descriptors": descriptors}}
    if stream:
        database.update_ddl(["CREATE CHANGE STREAM S FOR ALL"]).result(60)
        more |= {"capture": "change-stream", "stream": {"name": "S"}}
    assert deliver(database, **more) == []
    write(database)
    columns = ("Id", "Genre", "Info", "Moods")
    with database.batch() as batch:
        batch.insert("Singers", columns, [(2, None, None, [None, 0]), (3, 1, SingerInfo(), None)])
    rows = {c.key["Id"]: c.new_values or {} for c in deliver(database, **more)}
    assert json.loads(str(rows[1]["Info"])) == {"nationality": "FR"}
    assert rows[1]["Genre"] == GENRES[3]
    assert rows[1]["Moods"] == [MOODS[1]]
    assert (rows[2]["Info"], rows[2]["Genre"], rows[2]["Moods"]) == (None, None, [None, MOODS[0]])
    assert (rows[3]["Info"], rows[3]["Genre"], rows[3]["Moods"]) == ("{}", GENRES[1], None)


@pytest.mark.parametrize("envelope", ["plain", "debezium", "datastream", "ydb"])
def test_lines_have_json_and_names(
    database: Database, descriptors: Path, tmp_path: Path, envelope: str
) -> None:
    make_watchable(database, "Singers")
    write(database)
    result = run_command(
        *("watch", "-d", str(address_of(database)), "-t", "Singers", "--from", "earliest"),
        *("--once", "--proto-descriptors", str(descriptors), "--envelope", envelope),
    )
    assert result.returncode == 0, result.stderr
    assert "nationality" in result.stdout
    assert f'"{GENRES[3]}"' in result.stdout
    assert b64encode(INFO).decode() not in result.stdout


def test_descriptors_that_do_not_fit_are_refused(
    database: Database, descriptors: Path, tmp_path: Path
) -> None:
    make_watchable(database, "Singers")
    write(database)
    for name, content, message in (
        ("missing", None, "cannot read"),
        ("text", b"message Singer {}", "is not a FileDescriptorSet"),
        ("empty", b"", "describes no types"),
    ):
        file = tmp_path / name
        if content is not None:
            file.write_bytes(content)
        with pytest.raises(ConfigurationError, match=message):
            deliver(database, delivery={"proto_descriptors": file})
    other = tmp_path / "other.pb"
    other.write_bytes(describe_other().SerializeToString())
    with pytest.raises(EnvelopeError, match=f"does not have {SINGER}, the type of column Singers"):
        deliver(database, start="earliest", delivery={"proto_descriptors": other})


def describe_other() -> FileDescriptorSet:
    return FileDescriptorSet(file=[FileDescriptorProto(name="other.proto", package="other")])


def test_a_migration_and_its_rollback_keep_the_descriptors(database: Database) -> None:
    def read_descriptors() -> bytes:
        api = database._instance._client.database_admin_api
        return bytes(api.get_database_ddl(database=database.name).proto_descriptors)

    before = read_descriptors()
    assert before
    make_watchable(database)
    write(database)
    assert len(deliver(database, start="earliest")) == 1
    assert read_descriptors() == before
    roll_back(database)
    assert read_descriptors() == before
