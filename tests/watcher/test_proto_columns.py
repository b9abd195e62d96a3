"""Tables with columns of messages and enums, watched: left out of polls, as sent by a stream."""

from __future__ import annotations

import logging
from typing import Any

import pytest
from fixtures.music import BUNDLE, DESCRIPTORS, GENRE, SINGER, SingerInfo
from fixtures.singers import address_of, make_watchable
from google.cloud.spanner_v1.database import Database

from ddl.errors import PlanError
from ddl.parse import parse_schema
from watcher import Change, Watcher
from watcher.errors import ConfigurationError

TABLE = f"""CREATE TABLE Singers (
  Id INT64, Name STRING(MAX), Info {SINGER}, Genre {GENRE}, Moods ARRAY<Mood>
) PRIMARY KEY (Id)"""
pytestmark = pytest.mark.ddl(BUNDLE, TABLE, proto_descriptors=DESCRIPTORS)
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


def test_a_poll_leaves_them_out_with_one_line(
    database: Database, caplog: pytest.LogCaptureFixture
) -> None:
    make_watchable(database, "Singers")
    write(database)
    with caplog.at_level(logging.WARNING, "watcher.columns"):
        (change,) = deliver(database, start="earliest")
    assert change.new_values is not None
    assert change.new_values["Name"] == "Ann"
    assert not {"Info", "Genre", "Moods"} & change.new_values.keys()
    (line,) = [each.getMessage() for each in caplog.records if each.name == "watcher.columns"]
    assert f"PROTO<{SINGER}>, ENUM<{GENRE}>, ARRAY<ENUM<Mood>> that cannot be read" in line
    with pytest.raises(ConfigurationError, match=f"Genre has type ENUM<{GENRE}>"):
        deliver(database, table={"Singers": {"columns": ["Name", "Genre"]}})


def test_a_stream_delivers_bytes_and_numbers(database: Database) -> None:
    database.update_ddl(["CREATE CHANGE STREAM S FOR ALL"]).result(60)
    options = {"capture": "change-stream", "stream": {"name": "S"}}
    assert deliver(database, **options) == []
    write(database)
    (change,) = deliver(database, **options)
    assert change.new_values is not None
    assert change.new_values["Info"] == FRENCH.SerializeToString()
    assert (change.new_values["Genre"], change.new_values["Moods"]) == (3, [1])


def test_an_enum_in_the_key_cannot_be_made_watchable(database: Database) -> None:
    keyed = f"CREATE TABLE Keyed (G {GENRE}, `At` TIMESTAMP) PRIMARY KEY (G)"
    database.update_ddl([keyed, "CREATE INDEX ByGenre ON Singers (Genre)"]).result(60)
    database.reload()
    assert parse_schema(database.ddl_statements).index("ByGenre") is not None
    with pytest.raises(PlanError, match=r"key column Keyed\.G has type .* cannot be hashed"):
        make_watchable(database, "Keyed")
