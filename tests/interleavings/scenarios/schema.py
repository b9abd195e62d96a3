"""The schema changes while consumers run."""

from __future__ import annotations

from google.api_core.exceptions import InvalidArgument

from interleavings.actors import Run
from interleavings.judges import Expectation
from interleavings.scenarios.base import (
    Variant,
    begin_with_rows,
    catch_up,
    deliver_and_clear,
    watch_once,
)
from interleavings.scenarios.spark import drain_query, query
from watcher.model.errors import IndexMissingError, NotWatchableError

INDEX_GONE = (NotWatchableError, IndexMissingError, InvalidArgument)
"""How a consumer may end whose index is dropped while it runs: it is started again after that."""
STAMP = (
    "LastModified TIMESTAMP DEFAULT (PENDING_COMMIT_TIMESTAMP())"
    " ON UPDATE (PENDING_COMMIT_TIMESTAMP()) OPTIONS (allow_commit_timestamp = true)"
)


def shard(count: int) -> str:
    """The shard column that ``ddl`` makes."""
    text = "FARM_FINGERPRINT(COALESCE(CAST(Id AS STRING), ''))"
    return f"ShardId INT64 AS (MOD(MOD({text}, {count}) + {count}, {count}))"


def index(table: str) -> str:
    """The index that ``ddl`` makes."""
    return f"CREATE NULL_FILTERED INDEX {table}ByShardAndTime ON `{table}`(ShardId, LastModified)"


FRESH = (
    f"CREATE TABLE Fresh (Id INT64, Version STRING(MAX), {STAMP}, {shard(2)}) PRIMARY KEY (Id)",
    index("Fresh"),
)


def alter(run: Run, *statements: str) -> None:
    """Schema changes, one operation each."""
    for statement in statements:
        run.database.update_ddl([statement]).result(60)


def add_table(run: Run) -> None:
    """A table is made and written to, and watchable a little later."""
    alter(run, FRESH[0])
    run.write(("Fresh", 1, "1.0"))
    run.write(("Rows", 1, "1.1"))
    alter(run, FRESH[1])
    run.write(("Fresh", 2, "2.0"))


def follow(run: Run) -> None:
    """Consumer B: watches the same tables."""
    run.watcher("b", tables=["*"], start="earliest", refresh=0, interval=0.001).run()


def both_follow(run: Run) -> None:
    """Both consumers have run before, so that it is known what they watch; then rows come."""
    watch_once("a", "b")(run)
    run.write(*(("Rows", key, f"{key}.0") for key in (1, 2, 3)))


NEW_TABLE = Variant(
    "new-table",
    {"D": add_table, "A": lambda run: deliver_and_clear(run, refresh=0), "B": follow},
    (Expectation("a"), Expectation("b")),
    prelude=both_follow,
    finale=catch_up("a", "b"),
    schema_changes=True,
    quiet=(),
)


def add_table_between_runs(run: Run) -> None:
    """As ``add_table``; consumer B runs by a schedule: once while the new table has rows and is not
    watchable, and not again."""
    alter(run, FRESH[0])
    run.write(("Fresh", 1, "1.0"))
    run.write(("Rows", 1, "1.1"))
    watch_once("b")(run)
    alter(run, FRESH[1])
    run.write(("Fresh", 2, "2.0"))


NEW_TABLE_BETWEEN_RUNS = Variant(
    "new-table-between-runs",
    {
        "D": add_table_between_runs,
        "A": lambda run: deliver_and_clear(run, refresh=0),
    },
    (Expectation("a"), Expectation("b")),
    prelude=both_follow,
    finale=catch_up("a", "b"),
    schema_changes=True,
    quiet=(),
)


def add_column(run: Run) -> None:
    """A column is added and written to at once."""
    alter(run, "ALTER TABLE `Rows` ADD COLUMN Extra STRING(MAX)")
    run.write(("Rows", 1, "1.1"), columns={"Extra": "1"})
    run.write(("Rows", 4, "4.0"), columns={"Extra": "4"})


ADD_COLUMN = Variant(
    "add-column",
    {"D": add_column, "A": deliver_and_clear},
    (Expectation("a"),),
    prelude=begin_with_rows,
    finale=catch_up("a"),
    schema_changes=True,
    quiet=(),
)


def reshard(run: Run) -> None:
    """Two shards become eight, while applications write."""
    alter(run, "DROP INDEX RowsByShardAndTime", "ALTER TABLE `Rows` DROP COLUMN ShardId")
    run.write(*(("Rows", key, f"{key}.0") for key in range(4, 10)))
    alter(run, f"ALTER TABLE `Rows` ADD COLUMN {shard(8)}", index("Rows"))
    run.write(("Rows", 1, "1.1"), ("Rows", 10, "10.0"))


RESHARD = Variant(
    "reshard",
    {"D": reshard, "A": deliver_and_clear},
    (Expectation("a"),),
    prelude=begin_with_rows,
    finale=catch_up("a"),
    schema_changes=True,
    quiet=(),
    allowed=INDEX_GONE,
)
SPARK_RESHARD = Variant(
    "spark-reshard",
    {"D": reshard, "Q": query(3, 2, startingTimestamp="earliest")},
    (Expectation("q", exactly=True),),
    prelude=begin_with_rows,
    finale=drain_query(startingTimestamp="earliest"),
    schema_changes=True,
    quiet=(),
    allowed=INDEX_GONE,
)
SPARK_NEW_TABLE = Variant(
    "spark-new-table",
    {"D": add_table, "Q": query(3, 2, startingTimestamp="earliest")},
    (Expectation("q", exactly=True),),
    prelude=begin_with_rows,
    finale=drain_query(startingTimestamp="earliest"),
    crashes={"Q": 1},
    schema_changes=True,
    quiet=(),
)
