"""The PostgreSQL dialect lets columns have any name: they are prepared, polled and cleared."""

from __future__ import annotations

from fixtures.postgres_databases import CreatePostgres
from fixtures.singers import address_of, make_watchable

from spanner_schema.syntax.postgres.spelling import quote_part
from watcher import Change, Watcher
from watcher.consumers.clearing import Clearing
from watcher.consumers.positions import SpannerPositions
from watcher.spanner.dialects import GOOGLESQL, POSTGRESQL
from watcher.tables.discovery import discover_table

KEY = ("first name", "5th")
OTHERS = ("a.b", 'quo"te', "tick`", "at@end", "ORDER", "it's", "per%cent", "back\\slash")


def test_columns_with_any_name_are_polled_and_cleared(create_postgres: CreatePostgres) -> None:
    names = [*KEY, *OTHERS]
    columns = ", ".join(f"{quote_part(name)} varchar" for name in names)
    key = ", ".join(map(quote_part, KEY))
    database = create_postgres(f"CREATE TABLE t ({columns}, PRIMARY KEY ({key}))")
    make_watchable(database, "t", storing=OTHERS[:2])
    with database.batch() as batch:
        batch.insert("t", names, [names])
    seen: list[Change] = []
    address = str(address_of(database))
    watcher = Watcher(database=address, tables=["*"], start="earliest", consumer="c")
    watcher.on_change(seen.append)
    watcher.run_once()
    (change,) = seen
    values = dict(change.key) | dict(change.new_values or {})
    assert [values[name] for name in names] == names
    positions = SpannerPositions(database)
    clearing = Clearing(database, discover_table(database, "t"), positions, 0, method="index")
    assert (clearing.clear().rows, clearing.count().rows) == (1, 0)


def test_a_name_in_quotes_is_no_parameter() -> None:
    text = 'SELECT "at@end", "a""@b" FROM t WHERE x = @value AND y = @value'
    expected = 'SELECT "at@end", "a""@b" FROM t WHERE x = $1 AND y = $1'
    assert POSTGRESQL.place_parameters(text) == (expected, {"value": "p1"})
    assert GOOGLESQL.place_parameters(r"SELECT `at\`@end` WHERE x = @value")[1] == {
        "value": "value"
    }
