"""The statements for a bare Singers, word for word: what the article writes by hand, in one command
each. ``python tests/ddl/test_golden.py`` writes the files again: review the difference."""

from __future__ import annotations

from pathlib import Path

import pytest

from ddl.migration.plan import make_plan
from ddl.rules.evolve import parse_schema
from spanner_schema.model.options import WatchOptions
from spanner_schema.model.schema import Dialect, Schema
from spanner_schema.model.strategies import Modulo, Strategy
from watcher.consumers.clearing import clearing_statement
from watcher.tables.discovery import find_watched_table

GOLDEN = Path(__file__).parent / "golden"
SINGERS = (
    "CREATE TABLE Singers (SingerId INT64 NOT NULL, FirstName STRING(200), LastName STRING(200)"
    " NOT NULL, BirthDate DATE, Picture BYTES(MAX)) PRIMARY KEY (SingerId)"
)
STAMPED = SINGERS.replace(
    "Picture BYTES(MAX)",
    "Picture BYTES(MAX), LastModified TIMESTAMP OPTIONS (allow_commit_timestamp = true)",
)
CASES = {
    "automatic": (SINGERS, WatchOptions()),
    "processed_as_in_the_article": (
        SINGERS,
        WatchOptions(
            strategy=Strategy.PROCESSED,
            shards=19,
            shard_key=("FirstName", "LastName"),
            modulo=Modulo.SIGNED,
        ),
    ),
    "manual": (STAMPED, WatchOptions(strategy=Strategy.MANUAL, shards=19)),
    "change_set": (SINGERS, WatchOptions(strategy=Strategy.CHANGE_SET)),
    "change_stream": (SINGERS, WatchOptions(strategy=Strategy.CHANGE_STREAM)),
}


POSTGRES = """create table singers (singerid bigint not null primary key, firstname varchar(200),
    lastname varchar(200) not null, birthdate date, picture bytea)"""
STAMPED_POSTGRES = POSTGRES.replace("bytea", "bytea, last_modified spanner.commit_timestamp")
CASES |= {
    f"postgresql_{case}": (
        STAMPED_POSTGRES if before is STAMPED else POSTGRES,
        options.model_copy(
            update={"shard_key": ("firstname", "lastname")} if options.shard_key else {}
        ),
    )
    for case, (before, options) in list(CASES.items())
}


def text(case: str) -> str:
    """Up, down and, where polls read an index, the clearing."""
    before, options = CASES[case]
    if case.startswith("postgresql"):
        return postgres_text(before, options)
    schema = parse_schema(before)
    plan = make_plan(schema, ["Singers"], options)
    up = [s.sql for s in plan.statements]
    parts = ["-- up", *(f"{sql};" for sql in up), "-- down", *(f"{sql};" for sql in plan.down)]
    after = parse_schema(before + ";" + ";".join(up))
    if options.strategy in (Strategy.AUTOMATIC, Strategy.PROCESSED, Strategy.MANUAL):
        parts += ["-- clearing, by partitioned DML", write_clearing(after) + ";"]
    return "\n".join(parts) + "\n"


def postgres_text(before: str, options: WatchOptions) -> str:
    """Up and down; what was planned is read back and leaves nothing to do."""
    schema = parse_schema(before, Dialect.POSTGRESQL)
    plan = make_plan(schema, ["singers"], options)
    up = [s.sql for s in plan.statements]
    after = parse_schema(before + ";" + ";".join(up), Dialect.POSTGRESQL)
    assert make_plan(after, ["singers"], options).empty
    undone = parse_schema(before + ";" + ";".join([*up, *plan.down]), Dialect.POSTGRESQL)
    assert undone == schema
    return (
        "\n".join(["-- up", *(f"{sql};" for sql in up), "-- down", *(f"{q};" for q in plan.down)])
        + "\n"
    )


def write_clearing(schema: Schema) -> str:
    return clearing_statement(find_watched_table(schema, "Singers", "d"))


@pytest.mark.parametrize("case", CASES)
def test_the_statements_are_those_that_were_agreed(case: str) -> None:
    assert text(case) == (GOLDEN / f"{case}.sql").read_text()


if __name__ == "__main__":
    for name in CASES:
        (GOLDEN / f"{name}.sql").write_text(text(name))
