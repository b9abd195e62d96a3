"""A copy by a change stream that leaves changes out is refused, or says so."""

from __future__ import annotations

from pathlib import Path

import pytest
from fixtures.changing_schemas import change_schema
from fixtures.commands import run_command
from fixtures.replicas import make_replicator, read_rows, replicate, verify_folder
from fixtures.server import CreateDatabase
from fixtures.singers import address_of
from google.cloud.spanner_v1 import KeySet
from google.cloud.spanner_v1.database import Database

from watcher.model.errors import NotWatchableError
from watcher.replica.cuts.cut import Cause, Cut
from watcher.replica.replica_window import CutReport

TABLE = (
    "CREATE TABLE A (Id INT64 NOT NULL, V STRING(MAX), W STRING(MAX),"
    " G STRING(MAX) AS (CONCAT(W, '!')) STORED) PRIMARY KEY (Id)"
)
STREAM = "CREATE CHANGE STREAM S FOR {}"
CUTS_MAX = 1_000
BY_STREAM: dict[str, object] = {"capture": "change-stream", "tables": ["A"]}


def write(database: Database, *rows: tuple[int, str, str]) -> None:
    with database.batch() as batch:
        batch.insert_or_update("A", ("Id", "V", "W"), rows)


GAPS = [
    ("A(V)", "does not watch column W, G"),
    ("A()", "does not watch column V, W, G"),
    ("A OPTIONS (exclude_insert = true)", r"leaves out inserts \(exclude_insert\)"),
    ("A OPTIONS (exclude_update = true)", r"leaves out updates \(exclude_update\)"),
    ("A OPTIONS (exclude_delete = true)", r"leaves out deletes \(exclude_delete\)"),
    ("A OPTIONS (exclude_ttl_deletes = true)", r"\(exclude_ttl_deletes\)"),
]


@pytest.mark.parametrize(("scope", "message"), GAPS)
def test_a_stream_that_leaves_changes_out_is_refused_before_anything_is_written(
    create_database: CreateDatabase, tmp_path: Path, scope: str, message: str
) -> None:
    database = create_database(TABLE, STREAM.format(scope))
    for start in (replicate, lambda *args, **more: list(make_replicator(*args, **more).plan())):
        with pytest.raises(NotWatchableError, match=message):
            start(database, tmp_path, **BY_STREAM)
    assert list(tmp_path.iterdir()) == []


def test_columns_that_the_stream_does_not_watch_may_be_excluded(
    create_database: CreateDatabase, tmp_path: Path
) -> None:
    database = create_database(TABLE, STREAM.format("A(V)"))
    more = BY_STREAM | {"table": {"A": {"exclude_columns": ["W", "G"]}}}
    for rows in ([(1, "v", "w"), (2, "v", "w")], [(1, "v", "changed"), (2, "newer", "w")]):
        write(database, *rows)
        assert replicate(database, tmp_path, **more)[-1].cut.exact
    (table,) = verify_folder(database, tmp_path).tables
    assert (table.equal, table.left_out) == (True, ("W", "G"))
    assert {row["Id"]: row["V"] for row in read_rows(tmp_path, "A")} == {1: "v", 2: "newer"}


def test_a_stream_that_begins_to_leave_changes_out_marks_the_cuts(
    create_database: CreateDatabase, tmp_path: Path
) -> None:
    database = create_database(TABLE, STREAM.format("A"))
    write(database, (1, "v", "w"))
    cuts: list[Cut] = []

    def alter_then_stop(report: CutReport) -> None:
        cuts.append(report.cut)
        if len(cuts) == 1:
            change_schema(database, "ALTER CHANGE STREAM S SET OPTIONS (exclude_delete = true)")
        if not report.cut.exact or len(cuts) > CUTS_MAX:
            replicator.stop()

    replicator = make_replicator(database, tmp_path, alter_then_stop, **BY_STREAM)
    replicator.run()
    assert cuts[0].exact
    (reason,) = cuts[-1].tables["A"].reasons
    assert (reason.cause, reason.cause.stays) == (Cause.PARTIAL_STREAM, True)
    assert "leaves out deletes" in reason.detail
    with pytest.raises(NotWatchableError, match="exclude_delete"):
        replicate(database, tmp_path, **BY_STREAM)


def test_a_table_that_is_left_out_for_a_while_is_still_marked(
    create_database: CreateDatabase, tmp_path: Path
) -> None:
    """By runs of their own, after which the stream leaves nothing out any more."""
    database = create_database(TABLE, TABLE.replace("TABLE A", "TABLE B"), STREAM.format("A, B"))
    write(database, (1, "v", "w"), (2, "v", "w"))
    cuts: list[Cut] = []

    def alter_then_stop(report: CutReport) -> None:
        cuts.append(report.cut)
        if len(cuts) == 1:
            change_schema(database, "ALTER CHANGE STREAM S SET OPTIONS (exclude_delete = true)")
            write(database, (3, "v", "w"))  # its copy is as new as its position
        if not report.cut.exact or len(cuts) > CUTS_MAX:
            replicator.stop()

    both = BY_STREAM | {"tables": ["A", "B"]}
    replicator = make_replicator(database, tmp_path, alter_then_stop, **both)
    replicator.run()
    with database.batch() as batch:
        batch.delete("A", KeySet(keys=[[1]]))
    change_schema(database, "ALTER CHANGE STREAM S SET OPTIONS (exclude_delete = false)")
    for _ in range(2):
        replicate(database, tmp_path, **both | {"tables": ["B"]})
    (report,) = replicate(database, tmp_path, **both)
    assert report.loaded == {}
    (reason,) = report.cut.tables["A"].reasons
    assert (reason.cause, report.cut.absent) == (Cause.PARTIAL_STREAM, {})
    assert not verify_folder(database, tmp_path, report.cut).equal


def test_transactions_that_exclude_themselves_are_a_caveat_of_cut_and_report(
    create_database: CreateDatabase, tmp_path: Path
) -> None:
    options = "A OPTIONS (allow_txn_exclusion = true)"
    database = create_database(TABLE, STREAM.format(options))
    write(database, (1, "v", "w"))
    report = replicate(database, tmp_path, **BY_STREAM)[-1]
    (caveat,) = report.cut.tables["A"].caveats
    assert "S has allow_txn_exclusion" in caveat
    assert report.cut.exact
    database.run_in_transaction(
        lambda transaction: transaction.update("A", ("Id", "V"), [(1, "unseen")]),
        exclude_txn_from_change_streams=True,
    )
    replicate(database, tmp_path, **BY_STREAM)
    (table,) = verify_folder(database, tmp_path).tables
    assert (table.equal, table.caveats) == (False, (caveat,))
    target = ("verify", "--to", f"delta:{tmp_path}", "-d", str(address_of(database)))
    result = run_command(*target, COLUMNS="250")
    assert (result.returncode, caveat in result.stdout) == (10, True)
