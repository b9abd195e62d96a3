"""A running watcher spends nothing of the admin API's quota; one that starts asks once."""

from __future__ import annotations

from typing import Any

import pytest
from fixtures.singers import SINGERS, make_watchable
from google.api_core.exceptions import Forbidden
from google.cloud.spanner_v1.database import Database

from watcher import Change, Watcher
from watcher.spanner.bounded_client import BoundedSpanner

pytestmark = pytest.mark.ddl(SINGERS)


class CountingApi:
    """The client of the database admin API, whose methods are noted when they are asked for."""

    def __init__(self, api: object, asked: list[str]) -> None:
        self._api = api
        self._asked = asked

    def __getattr__(self, name: str) -> object:
        self._asked.append(name)
        return getattr(self._api, name)


def write_singer(database: Database, key: int) -> None:
    with database.batch() as batch:
        batch.insert("Singers", ("SingerId", "LastName"), [(key, f"name {key}")])


def deliver(database: Database) -> list[Change]:
    delivered: list[Change] = []
    watcher = Watcher(database=database.name, tables=["*"], consumer="quiet", refresh=0)
    watcher.on_change(delivered.append)
    watcher.run_once()
    return delivered


def test_a_watcher_whose_tables_are_there_asks_once_what_has_changed_the_schema(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_watchable(database)
    assert deliver(database) == []
    write_singer(database, 1)
    asked: list[str] = []
    real: Any = vars(BoundedSpanner)["database_admin_api"]
    counted = property(lambda client: CountingApi(real.__get__(client), asked))
    monkeypatch.setattr(BoundedSpanner, "database_admin_api", counted)
    monkeypatch.setattr(
        BoundedSpanner, "instance_admin_api", property(lambda _: CountingApi(None, asked))
    )
    assert [change.key for change in deliver(database)] == [{"SingerId": 1}]
    assert asked == ["list_database_operations"]


def test_who_may_not_list_operations_watches_all_the_same(
    database: Database, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    make_watchable(database)
    assert deliver(database) == []
    write_singer(database, 1)

    class Refusing:
        def list_database_operations(self, **_: object) -> None:
            raise Forbidden("no permission")

    monkeypatch.setattr(BoundedSpanner, "database_admin_api", property(lambda _: Refusing()))
    assert [change.key for change in deliver(database)] == [{"SingerId": 1}]
    assert "grant spanner.databaseOperations.list" in caplog.text
