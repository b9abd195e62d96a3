"""Changes as rows of tables in DuckDB and in a real PostgreSQL, and faults on the way there."""

from __future__ import annotations

from typing import Any

import pytest
from fixtures.singers import address_of, write_singers
from fixtures.table_targets import TableTarget
from google.cloud.spanner_v1.database import Database

from watcher import Watcher
from watcher.runners.delivery.queues import open_queue
from watcher.runners.delivery.sink_check import check_sink


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


@pytest.mark.both_dialects
def test_a_table_has_the_newest_rows(singers: Database, table_target: TableTarget) -> None:
    write_singers(singers, range(3), "first")
    assert make_watcher(singers, table_target).run_once() == 3
    write_singers(singers, [1, 5], "second")
    assert make_watcher(singers, table_target).run_once() == 2
    (name,) = {"Singers", "singers"} & set(table_target.list_tables())
    rows = table_target.read(name)
    found = {tuple(row.values())[0]: tuple(row.values())[2] for row in rows}
    assert found == {0: "first", 1: "second", 2: "first", 5: "second"}


def test_a_sink_of_tables_keeps_the_promises(table_target: TableTarget) -> None:
    def read_ids() -> list[str]:
        rows = table_target.read("Checked")
        versions = {row["Id"]: int(row["Name"].removeprefix("version ")) for row in rows}
        gone = {0: max(versions.values())} if 0 not in versions else {}
        return [f"{key}-{version}" for key, version in (gone | versions).items()]

    check_sink(lambda: table_target.open_sink(), read_ids)
