"""The ledger of what we rely on, and the probe of it: on a right server, and on wrong ones."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from fixtures.consumers import clear, singers_of, write
from fixtures.server import CreateDatabase
from fixtures.singers import (
    SINGERS,
    address_of,
    await_expiry,
    capture_of,
    is_readable,
    make_watchable,
)
from google.cloud.spanner_v1.database import Database
from reference_pages.assumptions import list_references
from typer.testing import CliRunner

from ddl.migration.apply import read_schema
from emulator.process import ServerProcess
from emulator.wrong import Wrong
from spanner_schema.model.schema import Dialect
from watcher import Change, Watcher
from watcher.captures.change_stream.record_values import ChildPartition
from watcher.captures.change_stream.records import decode_records
from watcher.captures.snapshot import SnapshotCapture
from watcher.captures.statements import read_change_stream
from watcher.cli import app
from watcher.consumers.positions import TABLE
from watcher.model.assumptions.entry import Assumption, Consequence
from watcher.model.assumptions.ledger import LEDGER
from watcher.model.errors import ConfigurationError, UnsafeModeError
from watcher.model.window import BEGINNING, Window
from watcher.overview.probe.registry import PROBES, PROBES_AFTER_CHANGES
from watcher.overview.probe.run import probe_database, remove_probe
from watcher.overview.probe.stored import load_failures, store_failures
from watcher.overview.probe.tables import ProbeNames, create_tables
from watcher.overview.probe.verdicts import Outcome, Verdict
from watcher.runners.spark.resolution import resolve_scan
from watcher.settings.spark_parsing import parse_source_options
from watcher.settings.watcher import parse_watch_config
from watcher.spanner.dialects import find_dialect
from watcher.spanner.queries import QueryClient

MakeWrong = Callable[..., None]
TRIED = {**PROBES, **PROBES_AFTER_CHANGES}
HIDDEN = "stream-hidden-columns"
"""The PostgreSQL dialect has no such columns."""
TRIED_BY_DIALECT = [
    (name, dialect)
    for dialect in Dialect
    for name in TRIED
    if dialect is Dialect.GOOGLESQL or name != HIDDEN
]
SINGERS_STREAM = "CREATE CHANGE STREAM Changes FOR Singers OPTIONS (value_capture_type = 'NEW_ROW')"


@pytest.fixture
def wrong(server: ServerProcess) -> Iterator[MakeWrong]:
    """Makes behaviours of the server wrong for the length of a test."""
    yield server.set_wrong
    server.set_wrong()


def probe(database: Database, prefix: str = "Probe") -> list[Verdict]:
    return probe_database(address_of(database), ProbeNames(prefix), lambda: None)


def list_failed(verdicts: list[Verdict]) -> list[str]:
    return [each.assumption.name for each in verdicts if each.outcome is Outcome.FAILS]


def invoke(*arguments: str) -> tuple[int, str]:
    result = CliRunner().invoke(app, list(arguments))
    return result.exit_code, result.stdout


# The ledger.


def test_every_reference_has_an_entry_and_every_entry_a_reference() -> None:
    assert list_references().keys() == LEDGER.keys()


def test_every_entry_has_a_probe_or_says_why_not() -> None:
    assert TRIED.keys() == {each.name for each in LEDGER.values() if not each.untried}


def test_every_entry_can_be_made_wrong() -> None:
    assert LEDGER.keys() == {entry.value for entry in Wrong}


@pytest.mark.parametrize("entry", LEDGER.values(), ids=LEDGER.keys())
def test_an_entry_is_whole(entry: Assumption) -> None:
    assert entry.sentence.endswith(".")
    assert entry.broken
    assert entry.advice
    assert entry.modes


# The probe.


@pytest.mark.essential
@pytest.mark.both_dialects
def test_a_right_server_is_found_right(database: Database, dialect: Dialect) -> None:
    verdicts = probe(database)
    assert [each.assumption for each in verdicts] == list(LEDGER.values())
    outcomes = {each.assumption.name: (each.outcome, each.seen) for each in verdicts}
    untried = {name for name, (outcome, _) in outcomes.items() if outcome is Outcome.UNTRIED}
    assert not [name for name, (outcome, _) in outcomes.items() if outcome is Outcome.FAILS]
    without = {HIDDEN} if dialect is Dialect.POSTGRESQL else set()
    assert untried == without | LEDGER.keys() - TRIED.keys(), outcomes
    assert all(outcomes[name][1] for name in LEDGER)
    assert not read_schema(database).tables


@pytest.mark.parametrize(("name", "dialect"), TRIED_BY_DIALECT, indirect=["dialect"])
def test_a_wrong_server_is_found_wrong_where_it_is(
    database: Database, wrong: MakeWrong, name: str
) -> None:
    wrong(name)
    assert list_failed(probe(database)) == [name]


def test_a_killed_probe_is_said_and_removed(database: Database) -> None:
    names = ProbeNames("Probe")
    create_tables(database, names, find_dialect(database).dialect)
    with pytest.raises(ConfigurationError, match="check --probe --clean"):
        probe(database)
    assert remove_probe(address_of(database), names) == 8
    assert remove_probe(address_of(database), names) == 0
    assert not read_schema(database).tables


@pytest.mark.ddl("CREATE TABLE MyRows (Id INT64) PRIMARY KEY (Id)")
def test_a_table_of_somebody_else_stays(database: Database) -> None:
    for run in (probe, lambda d, prefix: remove_probe(address_of(d), ProbeNames(prefix))):
        with pytest.raises(ConfigurationError, match="MyRows is not one of a probe's"):
            run(database, "My")
    assert read_schema(database).table("MyRows") is not None


@pytest.mark.parametrize("prefix", ["", "1st", "a b", "x" * 60])
def test_a_prefix_that_no_table_can_have_is_refused(prefix: str) -> None:
    with pytest.raises(ConfigurationError, match="--dataset"):
        ProbeNames(prefix)


# The command.


def test_the_command_says_what_is_affected_and_stores_it(
    database: Database, wrong: MakeWrong
) -> None:
    wrong("on-update-mutation")
    address = str(address_of(database))
    code, output = invoke("check", "--probe", "-d", address)
    assert code == 1
    assert "an update by mutation is never polled; let applications write" in output
    assert list(load_failures(database, TABLE, address_of(database))) == ["on-update-mutation"]
    wrong()
    code, output = invoke("check", "--probe", "-d", address, "--dataset", "Other", "--json")
    assert code == 0
    verdicts = json.loads(output)
    assert [each["name"] for each in verdicts] == list(LEDGER)
    assert not load_failures(database, TABLE, address_of(database))


def test_the_command_only_cleans(database: Database) -> None:
    names = ProbeNames()
    create_tables(database, names, find_dialect(database).dialect)
    address = str(address_of(database))
    assert invoke("check", "--probe", "--clean", "-d", address) == (
        0,
        "removed 8 objects that begin with SpannerWatcherProbe\n",
    )
    assert invoke("check", "--clean", "-d", address)[0] == 2


# What a stored probe refuses.


@pytest.fixture
def failed(create_database: CreateDatabase) -> Database:
    """A database of which a probe has found that a mutation is not polled."""
    database = create_database(SINGERS, SINGERS_STREAM)
    make_watchable(database, "Singers")
    entry = LEDGER["on-update-mutation"]
    address = address_of(database)
    verdict = Verdict(entry, Outcome.FAILS, "seen")
    store_failures(database, TABLE, address, [verdict])
    return database


def run_watcher(database: Database, **options: object) -> list[Change]:
    changes: list[Change] = []
    given: dict[str, Any] = {"database": str(address_of(database)), "tables": ["Singers"]}
    watcher = Watcher(**given | {"consumer": "c"} | options)
    watcher.on_change(changes.append)
    watcher.run_once()
    return changes


def test_a_watcher_refuses_the_mode_and_runs_in_another(failed: Database) -> None:
    write(failed, 1)
    for consumer in ("c", None):
        with pytest.raises(UnsafeModeError, match="'on-update-mutation' does not hold"):
            run_watcher(failed, consumer=consumer)
    assert run_watcher(failed, capture="change-stream", consumer="s") == []
    accepted = ["on-update-mutation"]
    assert len(run_watcher(failed, start="earliest", accept_failed_probes=accepted)) == 1


def test_spark_refuses_the_mode(failed: Database) -> None:
    address = address_of(failed)
    options = {
        "project": address.project,
        "instance": address.instance,
        "database": address.database,
        "table": "Singers",
    }
    with pytest.raises(UnsafeModeError, match="acceptFailedProbes"):
        resolve_scan(parse_source_options(options))
    accepted = {"acceptFailedProbes": "on-update-mutation"}
    assert resolve_scan(parse_source_options(options | accepted)).captures


def test_the_check_says_what_a_probe_found(failed: Database) -> None:
    code, output = invoke("check", "-d", str(address_of(failed)), "-t", "Singers", "--json")
    assert code == 1
    found = [each for each in json.loads(output) if "assumption" in each["name"]]
    assert [(each["name"], each["ok"]) for each in found] == [
        ("assumption on-update-mutation", False)
    ]


def test_an_unknown_name_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="did you mean 'on-update-mutation'"):
        parse_watch_config({"database": "D", "accept_failed_probes": ["on-update-mutations"]})


def test_only_what_nobody_would_notice_is_unsafe() -> None:
    unsafe = {each for each in Consequence if each.unsafe}
    assert unsafe == {Consequence.LOST, Consequence.DOUBLED, Consequence.WRONG}


# What a wrong server costs.


UPDATE = "UPDATE Singers SET LastName = 'second' WHERE SingerId = 1"
COLUMNS, ROWS = ("SingerId", "LastName"), [(1, "second")]


def run_batch(kind: str) -> Callable[[Database], None]:
    def run(database: Database) -> None:
        with database.batch() as batch:
            getattr(batch, kind)("Singers", COLUMNS, ROWS)

    return run


def run_dml(database: Database) -> None:
    database.run_in_transaction(lambda transaction: transaction.execute_update(UPDATE))


WRITERS: dict[str, Callable[[Database], object]] = {
    "on-update-dml": run_dml,
    "on-update-mutation": run_batch("update"),
    "on-update-upsert": run_batch("insert_or_update"),
    "on-update-replace": run_batch("replace"),
    "on-update-partitioned": lambda database: database.execute_partitioned_dml(UPDATE),
}


@pytest.mark.parametrize("name", WRITERS)
def test_a_poller_loses_what_on_update_leaves(music: Database, wrong: MakeWrong, name: str) -> None:
    write(music, 1)
    assert len(run_watcher(music, start="earliest")) == 1
    wrong(name)
    WRITERS[name](music)
    assert singers_of(music) == {1: "second"}
    assert run_watcher(music) == []
    wrong()
    WRITERS[name](music)
    assert len(run_watcher(music)) == 1


def test_a_poller_loses_new_rows_without_a_timestamp(music: Database, wrong: MakeWrong) -> None:
    run_watcher(music)
    wrong("default-on-insert")
    with music.batch() as batch:
        batch.insert("Singers", COLUMNS, ROWS)
    assert run_watcher(music) == []
    wrong()
    with music.batch() as batch:
        batch.insert("Singers", COLUMNS, [(2, "seen")])
    assert [dict(change.key) for change in run_watcher(music)] == [{"SingerId": 2}]


@pytest.mark.parametrize(("names", "again"), [((), 0), (("explicit-null-wins",), 1)])
def test_clearing_doubles_rows_that_get_a_timestamp_by_it(
    music: Database, wrong: MakeWrong, names: tuple[str, ...], again: int
) -> None:
    write(music, 1)
    assert len(run_watcher(music, start="earliest")) == 1
    wrong(*names)
    clear(music)
    assert len(run_watcher(music)) == again


@pytest.mark.parametrize("names", [(), ("partitions-cover-rows",)])
def test_a_whole_table_lacks_a_partition_that_is_not_named(
    music: Database, wrong: MakeWrong, names: tuple[str, ...]
) -> None:
    at = write(music, *range(100))
    wrong(*names)
    capture = SnapshotCapture(capture_of(music))
    parts = capture.plan(Window(BEGINNING, at))
    count = sum(rows.batch.num_rows for part in parts for rows in capture.read(part))
    assert (count == 100) is not bool(names)


def test_a_poller_loses_what_commits_below_its_window(music: Database, wrong: MakeWrong) -> None:
    run_watcher(music)
    wrong("strong-read-bound")
    write(music, 1)
    watcher = Watcher(database=str(address_of(music)), tables=["Singers"], consumer="c")
    ends: list[int] = []
    watcher.on_change(lambda change: ends.extend((change.window.end, write(music, 2))))
    watcher.run_once()
    wrong()
    end, committed = ends
    assert committed <= end
    delivered: list[Change] = []
    while not delivered:  # until the commit timestamps are above the position
        write(music, 3)
        delivered = run_watcher(music)
    assert singers_of(music).keys() == {1, 2, 3}
    assert [dict(change.key) for change in delivered] == [{"SingerId": 3}]


@pytest.mark.ddl(SINGERS, SINGERS_STREAM)
def test_a_reader_of_a_stream_loses_partitions_that_are_not_named(
    database: Database, wrong: MakeWrong
) -> None:
    streamed = {"capture": "change-stream"}
    run_watcher(database, **streamed)
    write(database, *range(40))
    wrong("stream-names-partitions")
    lost = 40 - len(run_watcher(database, **streamed))
    assert 0 < lost < 40
    wrong()
    write(database, *range(40), name="again")
    assert len(run_watcher(database, **streamed)) == 40


@pytest.mark.ddl(SINGERS, SINGERS_STREAM)
@pytest.mark.parametrize("names", [(), ("stream-end-inside",)])
def test_a_reader_of_a_stream_loses_the_end_of_a_window(
    database: Database, wrong: MakeWrong, names: tuple[str, ...]
) -> None:
    streamed = {"capture": "change-stream", "max_rows": 5}
    run_watcher(database, **streamed)
    for key in range(20):
        write(database, key)
    wrong(*names)
    delivered = {change.key["SingerId"] for change in run_watcher(database, **streamed)}
    assert (delivered == set(range(20))) is not bool(names)
    wrong()
    assert run_watcher(database, **streamed) == []


# What no probe can try.


def test_versions_that_come_back_are_not_all_there(
    music: Database, wrong: MakeWrong, faults: Callable[..., None]
) -> None:
    stream = QueryClient(address_of(music)).stream
    at = write(music, 1)
    write(music, 1, name="second")
    faults(versions_kept_seconds=0.2)
    await_expiry(music, "Singers", at)
    faults()
    assert not is_readable(stream, "Singers", at)
    wrong("retention-not-back")
    assert is_readable(stream, "Singers", at)


@pytest.mark.ddl(SINGERS, SINGERS_STREAM)
@pytest.mark.parametrize("names", [(), ("stream-key-in-one-partition",)])
def test_a_reader_of_a_stream_doubles_a_key_of_two_partitions(
    database: Database, wrong: MakeWrong, names: tuple[str, ...]
) -> None:
    streamed = {"capture": "change-stream"}
    run_watcher(database, **streamed)
    wrong(*names)
    write(database, *range(10))
    wrong()
    write(database, 10)
    assert len(run_watcher(database, **streamed)) == 11 + 10 * bool(names)


def list_tokens(database: Database, at: int) -> set[str]:
    """The partitions of the stream of Singers at a timestamp."""
    stream = QueryClient(address_of(database)).stream
    statement = read_change_stream("Changes", at, at, None, 1_000, stream.sql, False)
    records = decode_records(stream.query(statement, None, with_stats=False))
    return {record.token for record in records if isinstance(record, ChildPartition)}


@pytest.mark.ddl(SINGERS, SINGERS_STREAM)
@pytest.mark.parametrize("names", [(), ("stream-children-last",)])
def test_a_reader_of_a_stream_loses_children_that_nobody_names(
    database: Database, wrong: MakeWrong, faults: Callable[..., None], names: tuple[str, ...]
) -> None:
    streamed = {"capture": "change-stream"}
    run_watcher(database, **streamed)
    wrong(*names)
    first = list_tokens(database, write(database, 0))
    faults(change_stream_churn_seconds=0.05)
    key = 1
    while first & list_tokens(database, write(database, key)):
        key += 1
    faults()
    write(database, *range(key + 1, key + 20))
    delivered = {change.key["SingerId"] for change in run_watcher(database, **streamed)}
    assert (delivered == set(range(key + 20))) is not bool(names)
