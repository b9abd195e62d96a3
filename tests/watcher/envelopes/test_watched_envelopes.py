"""A watcher writes the records of other formats; what it cannot fill is refused."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest
from fixtures.documented import account_change
from fixtures.singers import address_of
from google.cloud.spanner_v1.database import Database

from watcher.envelopes import make_envelope
from watcher.envelopes.lines import JsonLines
from watcher.model.change import ValueCapture
from watcher.model.errors import ConfigurationError, EnvelopeError
from watcher.runners.watcher import Watcher
from watcher.settings.watcher import WatchConfig, parse_watch_config
from watcher.sinks.dead_letters import read_dead_letters
from watcher.sinks.lines import Lines, RotatingFile
from watcher.sinks.retries import DeliveryPolicy, RetryingSink

NAMES = ("SingerId", "FirstName", "LastName", "BirthDate", "Picture")


def config_of(database: Database, name: str, options: dict[str, object]) -> WatchConfig:
    return parse_watch_config(
        {
            "database": str(address_of(database)),
            "tables": ["Singers"],
            "start": "earliest",
            "positions": {"keep": "memory"},
            "delivery": {"envelope": name, "envelope_options": options},
        }
    )


def records(database: Database, name_of: str, **options: object) -> list[Any]:
    config = config_of(database, name_of, options)
    file = io.StringIO()
    watcher = Watcher(config)
    watcher.deliver_to(Lines(file, JsonLines(config.format)))
    watcher.run_once()
    return [json.loads(line) for line in file.getvalue().splitlines()]


def write(database: Database) -> None:
    with database.batch() as batch:
        batch.insert("Singers", NAMES, [(1, None, "Richards", "1970-09-24", b"cGlj")])


def test_debezium_lines_have_the_key_beside_the_event(singers: Database) -> None:
    write(singers)
    (line,) = records(singers, "debezium", name="c")
    assert line["key"] == {"SingerId": 1}
    event = line["value"]
    assert (event["op"], event["before"]) == ("u", None)
    assert {name: event["after"][name] for name in NAMES} == {
        "SingerId": 1,
        "FirstName": None,
        "LastName": "Richards",
        "BirthDate": "1970-09-24",
        "Picture": "cGlj",
    }
    source = event["source"]
    assert (source["name"], source["table"]) == ("c", "Singers")
    assert source["ts_us"] // 1000 == source["ts_ms"]
    assert source["ts_us"] <= event["ts_us"]


def test_datastream_lines_carry_the_whole_row(singers: Database) -> None:
    write(singers)
    (event,) = records(singers, "datastream")
    assert event["object"] == "Singers"
    assert event["source_metadata"]["primary_keys"] == ["SingerId"]
    assert event["source_metadata"]["change_type"] == "UPSERT"
    assert event["payload"]["SingerId"] == "1"
    assert event["payload"]["LastName"] == "Richards"


def test_ydb_lines_end_with_a_barrier_above_them(singers: Database) -> None:
    write(singers)
    lines = records(singers, "ydb", virtual_timestamps=True, barriers=True)
    assert lines[0]["key"] == [1]
    assert lines[0]["newImage"]["LastName"] == "Richards"
    assert lines[0]["ts"] < lines[-1]["resolved"]
    assert [set(record) for record in lines[1:]] == [{"resolved"}] * (len(lines) - 1)


def test_a_file_takes_the_records_of_an_envelope(singers: Database, tmp_path: Path) -> None:
    write(singers)
    config = config_of(singers, "ydb-debezium", {})
    watcher = Watcher(config)
    lines = JsonLines(config.format)
    watcher.deliver_to(RotatingFile(tmp_path / "changes.jsonl", None, lines))
    assert watcher.run_once() == 1
    (line,) = (tmp_path / "changes.jsonl").read_text().splitlines()
    assert json.loads(line)["key"] == {"payload": {"SingerId": 1}}
    assert json.loads(line)["value"]["payload"]["after"]["LastName"] == "Richards"


@pytest.mark.parametrize(
    ("name", "options", "words"),
    [
        ("ydb", {"mode": "OLD_IMAGE"}, "polling does not know it: use a change stream"),
        ("ydb", {"mode": "UPDATES"}, "polling does not know which did: use NEW_IMAGE"),
        ("ydb", {"mod": "UPDATES"}, "did you mean 'mode'"),
        ("ydb-debezium", {"mode": "UPDATES"}, "has no mode UPDATES: use NEW_IMAGE"),
        ("debezium", {"before": "required"}, "polling does not know the row before a change"),
        ("debezium", {"with_schema": True, "partial": "omit"}, "use partial = 'refuse'"),
        ("change-stream", {}, "capture with a change stream"),
        ("debezium", {"with_schema": "perhaps"}, "option 'with_schema' of envelope 'debezium'"),
        ("plain", {"pretty": True}, "its options: bytes_as, int64, json_columns"),
    ],
)
def test_what_polling_cannot_fill_is_refused_before_anything_is_read(
    name: str, options: dict[str, object], words: str
) -> None:
    with pytest.raises(ConfigurationError) as raised:
        parse_watch_config(
            {
                "database": "projects/p1/instances/i1/databases/nowhere",
                "tables": ["Singers"],
                "delivery": {"envelope": name, "envelope_options": options},
            }
        )
    assert words in str(raised.value)


@pytest.mark.usefixtures("server")
def test_a_callback_and_an_envelope_are_not_both_obeyed() -> None:
    config = parse_watch_config(
        {
            "database": "projects/p1/instances/i1/databases/nowhere",
            "delivery": {"envelope": "debezium"},
        }
    )
    with pytest.raises(ConfigurationError, match=r"watcher\.envelopes\.encode"):
        Watcher(config).on_change(print)


@pytest.mark.parametrize("skip", [False, True])
def test_a_change_that_lacks_something_is_not_tried_again(tmp_path: Path, skip: bool) -> None:
    """It is the end, or goes to the dead letters; in no case a part of it is written."""
    lacking = account_change("Id1", {"Balance": 1}, None, ValueCapture.NEW_VALUES)
    whole = account_change("Id2", {"Balance": 1}, {}, ValueCapture.NEW_ROW_AND_OLD_VALUES)
    file, letters = io.StringIO(), tmp_path / "dead.jsonl"
    lines = Lines(file, JsonLines(make_envelope("debezium")))
    pauses: list[float] = []
    policy = DeliveryPolicy(dead_letters=letters if skip else None)
    retrying = RetryingSink(lines, policy, pauses.append)
    if skip:
        retrying.write_change(lacking)
        assert [letter["id"] for letter in read_dead_letters(letters)] == [lacking.id]
    else:
        with pytest.raises(EnvelopeError, match="has only some of the row's values"):
            retrying.write_change(lacking)
    retrying.write_change(whole)
    (line,) = file.getvalue().splitlines()
    assert json.loads(line)["key"] == {"AccountId": "Id2"}
    assert pauses == []
