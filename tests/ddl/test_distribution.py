"""Shards of realistic keys are as even as chance: a chi-square test over the embedded server."""

from __future__ import annotations

import random
import uuid
from collections import Counter
from collections.abc import Callable

import pytest
from google.cloud.spanner_v1.database import Database

from ddl.migration.apply import apply_plan, read_schema
from ddl.migration.plan import make_plan
from spanner_schema.model.options import WatchOptions
from spanner_schema.model.schema import Dialect
from spanner_schema.syntax.render import quote_name

ROWS, SHARDS = 4_000, 16
CRITICAL = 44.3
"""The chi-square of 15 degrees of freedom that chance passes once in 10,000 times."""

RANDOM = random.Random(7)


def words() -> list[str]:
    """Skewed strings: a few stems, many endings."""
    stems = ["user", "user", "user", "customer-with-a-long-name", "x"]
    return [f"{stems[n % len(stems)]}{n}" for n in range(ROWS)]


KEYS: dict[str, tuple[str, list[tuple[object, ...]]]] = {
    "sequential": ("k0 INT64", [(n,) for n in range(ROWS)]),
    "sequential in steps": ("k0 INT64", [(n * 1_024,) for n in range(ROWS)]),
    "uuid": (
        "k0 STRING(36)",
        [(str(uuid.UUID(int=RANDOM.getrandbits(128))),) for _ in range(ROWS)],
    ),
    "skewed strings": ("k0 STRING(MAX)", [(word,) for word in words()]),
    "composite": ("k0 INT64, k1 STRING(9)", [(n // 50, f"e{n % 50}") for n in range(ROWS)]),
    "dates": (
        "k0 DATE, k1 INT64",
        [(f"20{n % 30:02}-0{n % 9 + 1}-1{n % 10}", n) for n in range(ROWS)],
    ),
}


@pytest.mark.both_dialects
@pytest.mark.parametrize("kind", KEYS)
def test_shards_are_even(
    create_database: Callable[..., Database], dialect: Dialect, kind: str
) -> None:
    columns, keys = KEYS[kind]
    names = [part.split()[0] for part in columns.split(", ")]
    database = create_database(f"CREATE TABLE T ({columns}) PRIMARY KEY ({', '.join(names)})")
    plan = make_plan(read_schema(database), ["T"], WatchOptions(shards=SHARDS))
    apply_plan(database, plan)
    with database.batch() as batch:
        batch.insert("T", names, keys)
    with database.snapshot() as snapshot:
        column = WatchOptions().for_dialect(dialect).shard_column
        table = quote_name("T", dialect)
        query = f"SELECT {column}, COUNT(*) FROM {table} GROUP BY {column}"
        counts = Counter({row[0]: row[1] for row in snapshot.execute_sql(query)})
    assert set(counts) == set(range(SHARDS))
    share = ROWS / SHARDS
    assert sum((counts[shard] - share) ** 2 / share for shard in range(SHARDS)) < CRITICAL
