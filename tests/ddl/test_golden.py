"""The statements for a bare Singers, word for word: what the article writes by hand, in one command
each. ``python tests/ddl/test_golden.py`` writes the files anew: look at the difference."""

from __future__ import annotations

from pathlib import Path

import pytest

from ddl.options import Modulo, Strategy, WatchOptions
from ddl.parse import parse_schema
from ddl.plan import make_plan
from ddl.schema import Schema
from watcher.clearing import statement
from watcher.table import watched_table

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


def text(case: str) -> str:
    """Up, down and, where polls read an index, the clearing."""
    before, options = CASES[case]
    schema = parse_schema(before)
    plan = make_plan(schema, ["Singers"], options)
    up = [s.sql for s in plan.statements]
    parts = ["-- up", *(f"{sql};" for sql in up), "-- down", *(f"{sql};" for sql in plan.down)]
    after = parse_schema(before + ";" + ";".join(up))
    if options.strategy in (Strategy.AUTOMATIC, Strategy.PROCESSED, Strategy.MANUAL):
        parts += ["-- clearing, by partitioned DML", clearing(after) + ";"]
    return "\n".join(parts) + "\n"


def clearing(schema: Schema) -> str:
    return statement(watched_table(schema, "Singers", "d"))


@pytest.mark.parametrize("case", CASES)
def test_the_statements_are_those_that_were_agreed(case: str) -> None:
    assert text(case) == (GOLDEN / f"{case}.sql").read_text()


if __name__ == "__main__":
    for name in CASES:
        (GOLDEN / f"{name}.sql").write_text(text(name))
