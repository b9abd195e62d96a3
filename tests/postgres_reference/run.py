"""Random expressions, here and in PostgreSQL: ``python -m postgres_reference.run``."""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from fixtures.server import connect
from google.api_core.exceptions import GoogleAPICallError
from google.cloud.spanner_admin_database_v1 import DatabaseDialect
from google.cloud.spanner_v1.database import Database

from emulator.process import spawn
from postgres_reference.expressions import Generator
from postgres_reference.operands import list_operands
from postgres_reference.server import NULL, Postgres, find_programs, run_postgres

ERROR = "ERROR"
BATCH = 2_000
PRECISE = 12
NO_TIME = "PT0S"
"""PostgreSQL's ISO 8601 of an interval of nothing; Spanner's is P0Y."""
UNDERFLOW = "value out of range: underflow"
"""What is too small for double precision is 0 in Spanner."""
NO_INFINITY = "cannot convert infinity to numeric"
"""Spanner's numeric has NaN, but no infinities; PostgreSQL's has both."""
LAZY = ("CASE", "coalesce", " AND ", " OR ", " BETWEEN ", " IN ", " ANY")
"""PostgreSQL computes constants while it plans, those that are never reached too, and SQLite before
it reads a row: one may refuse where the other answers."""


@dataclass(frozen=True, slots=True)
class Difference:
    """An expression that has two answers."""

    expression: str
    ours: str
    theirs: str
    skipped: bool = False
    """Whether PostgreSQL refuses an operand that it has not computed here, beside a NULL."""


def evaluate(database: Database, expression: str) -> str:
    """The value of an expression in the embedded server, as text."""
    try:
        with database.snapshot() as snapshot:
            ((value,),) = snapshot.execute_sql(f"SELECT ({expression})::text")
    except GoogleAPICallError as error:
        code = error.grpc_status_code
        return f"{ERROR} {code.name if code else 'UNKNOWN'} {error.message}"
    return NULL if value is None else str(value).replace("\n", "\x1f")


def agree(ours: str, theirs: str) -> bool:
    """Equal values, or two refusals; doubles may differ in their last digit."""
    if ours.startswith(ERROR) or theirs.startswith(ERROR):
        return ours.startswith(ERROR) and theirs.startswith(ERROR)
    if ours == theirs.replace(NO_TIME, "P0Y"):
        return True
    try:
        first, second = float(ours), float(theirs)
    except ValueError:
        return False
    inexact = "e" in ours + theirs or len(ours.replace(".", "")) >= PRECISE
    return inexact and abs(first - second) <= 1e-14 * max(abs(first), abs(second))


def compare(
    database: Database, postgres: Postgres, expressions: Sequence[str]
) -> Iterator[Difference | None]:
    """For each expression what differs, or None."""
    theirs = postgres.evaluate(expressions)
    for expression, answer in zip(expressions, theirs, strict=True):
        ours = evaluate(database, expression)
        if agree(ours, answer):
            yield None
            continue
        skipped = answer == NULL and ours.startswith(ERROR) and skips_operand(postgres, expression)
        yield Difference(expression, ours, answer, skipped)


def skips_operand(postgres: Postgres, expression: str) -> bool:
    """Whether somewhere in an expression that is NULL in PostgreSQL an operand is NULL, and another
    one of the same function or operator, which is strict, is refused by PostgreSQL itself."""
    operands = list_operands(expression)
    answers = postgres.evaluate(operands) if operands else []
    if NULL in answers and any(answer.startswith(ERROR) for answer in answers):
        return True
    return any(skips_operand(postgres, operand) for operand in operands)


def classify(found: Difference | None) -> str:
    """What a difference is counted as."""
    if found is None:
        return "equal"
    if "UNIMPLEMENTED" in found.ours:
        return "UNIMPLEMENTED"
    refused = found.theirs.startswith(ERROR) or found.ours.startswith(ERROR)
    folded = refused and any(word in found.expression for word in LAZY)
    known = NO_INFINITY in found.ours or UNDERFLOW in found.theirs or found.skipped
    return "known" if known or folded else "different"


def main() -> int:
    """Counts what agrees; 1 if something differs."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--expressions", type=int, default=2_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--list", type=int, default=20, help="how many differences are shown")
    options = parser.parse_args()
    programs = find_programs()
    if programs is None:
        print("no PostgreSQL is installed under /usr/lib/postgresql", file=sys.stderr)
        return 2
    generator = Generator(options.seed)
    totals: Counter[str] = Counter()
    shown: list[Difference] = []
    with spawn() as server, run_postgres(programs) as postgres:
        instance = connect(server.address)
        dialect = DatabaseDialect.POSTGRESQL
        database = instance.database("expressions", database_dialect=dialect)
        database.create().result(60)
        for start in range(0, options.expressions, BATCH):
            count = min(BATCH, options.expressions - start)
            expressions = [generator.expression() for _ in range(count)]
            for found in compare(database, postgres, expressions):
                kind = classify(found)
                totals[kind] += 1
                if found is not None and kind == "different":
                    shown.append(found)
    for each in shown[: options.list]:
        print(f"{each.expression}\n    ours   {each.ours[:200]}\n    theirs {each.theirs[:200]}")
    print(f"seed {options.seed}: {dict(totals)}")
    return 1 if totals["different"] else 0


if __name__ == "__main__":
    sys.exit(main())
