"""Databases with equal schemas share what was compiled for one of them, and nothing else."""

from __future__ import annotations

from contextlib import ExitStack

import pytest
from fixtures.engine_world import INSERT, open_database, query, write

from emulator.engine import state
from emulator.sql.compile import compile_statement

TABLE = "CREATE TABLE T (K INT64, V STRING(9)) PRIMARY KEY (K)"
ALL = "SELECT * FROM T ORDER BY K"


def test_a_statement_is_compiled_once_for_all_databases_with_one_schema(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(state, "SCHEMAS", state.KnownSchemas())
    compiled: list[str] = []

    def record(text: str, *arguments: object) -> object:
        compiled.append(text)
        return compile_statement(text, *arguments)  # type: ignore[arg-type]

    monkeypatch.setattr("emulator.engine.state.compile_statement", record)
    with ExitStack() as databases:
        one, two, other = (
            databases.enter_context(open_database(table))
            for table in (TABLE, TABLE, TABLE.replace("V STRING(9)", "V STRING(9), W INT64"))
        )
        for number, database in enumerate((one, two, other)):
            write(database, INSERT, "T", "K V", (number, f"v{number}"))
        assert query(one, ALL) == [(0, "v0")]
        variants = len(compiled)
        assert query(two, ALL) == [(1, "v1")]
        assert len(compiled) == variants
        assert query(other, ALL) == [(2, "v2", None)]
        assert len(compiled) == 2 * variants


def test_a_change_of_one_database_is_none_of_another_with_the_same_schema() -> None:
    with open_database(TABLE) as one, open_database(TABLE) as two:
        for database in (one, two):
            write(database, INSERT, "T", "K V", (1, "a"))
            assert query(database, ALL) == [(1, "a")]
        one.update_ddl(["ALTER TABLE T ADD COLUMN W INT64 DEFAULT (7)"])
        write(one, INSERT, "T", "K V", (2, "b"))
        write(two, INSERT, "T", "K V", (2, "b"))
        assert query(one, ALL) == [(1, "a", 7), (2, "b", 7)]
        assert query(two, ALL) == [(1, "a"), (2, "b")]
        two.update_ddl(["ALTER TABLE T ADD COLUMN W INT64 DEFAULT (8)"])
        assert query(two, ALL) == [(1, "a", 8), (2, "b", 8)]
        assert query(one, ALL) == [(1, "a", 7), (2, "b", 7)]
