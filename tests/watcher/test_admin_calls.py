"""A running watcher spends nothing of the admin API's quota."""

from __future__ import annotations

import pytest
from fixtures.singers import SINGERS, make_watchable
from google.cloud.spanner_v1 import Client
from google.cloud.spanner_v1.database import Database

from watcher import Change, Watcher

pytestmark = pytest.mark.ddl(SINGERS)


class AdminCallError(AssertionError):
    """Somebody asked for the client of the admin API."""


def write_singer(database: Database, key: int) -> None:
    with database.batch() as batch:
        batch.insert("Singers", ("SingerId", "LastName"), [(key, f"name {key}")])


def deliver(database: Database) -> list[Change]:
    delivered: list[Change] = []
    watcher = Watcher(database=database.name, tables=["*"], consumer="quiet", refresh=0)
    watcher.on_change(delivered.append)
    watcher.run_once()
    return delivered


def test_a_watcher_whose_tables_are_there_makes_no_admin_call(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_watchable(database)
    assert deliver(database) == []
    write_singer(database, 1)

    def refuse(_client: Client) -> None:
        raise AdminCallError

    monkeypatch.setattr(Client, "database_admin_api", property(refuse))
    monkeypatch.setattr(Client, "instance_admin_api", property(refuse))
    assert [change.key for change in deliver(database)] == [{"SingerId": 1}]
