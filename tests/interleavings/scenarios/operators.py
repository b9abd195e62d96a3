"""What operators do to a database and its consumers while they run."""

from __future__ import annotations

from datetime import UTC, datetime

from interleavings.actors import Run
from interleavings.judges import Expectation
from interleavings.scenarios.base import (
    Variant,
    begin_with_rows,
    catch_up,
    deliver_and_clear,
    watch_once,
    write_rows,
)
from interleavings.scenarios.schema import INDEX_GONE, STAMP, alter, index
from interleavings.scenarios.spark import drain_query, query
from interleavings.scenarios.watching import pause_and_resume, start_latest


def begin_with_known(run: Run) -> None:
    """A has run before, so that operators know it; then rows come."""
    run.register("a", ["Rows"])
    watch_once("a")(run)
    run.write(*(("Rows", key, f"{key}.0") for key in (1, 2, 3)))


PAUSED = Variant(
    "paused",
    {"W": write_rows, "A": lambda run: deliver_and_clear(run, lease=4.0), "O": pause_and_resume},
    (Expectation("a"),),
    prelude=begin_with_known,
    finale=catch_up("a"),
)
BY_INDEX = Variant(
    "clearing-by-index",
    {
        "W": write_rows,
        "A": lambda run: deliver_and_clear(run, clearing={"every": 0.001, "method": "index"}),
        "B": start_latest,
    },
    (Expectation("a"), Expectation("b", from_registration=True)),
    prelude=begin_with_rows,
    finale=catch_up("a", "b"),
    crashes={"A": 1},
)


def make_index_again(run: Run) -> None:
    """The index is dropped and made again, while applications write."""
    alter(run, "DROP INDEX RowsByShardAndTime")
    run.write(("Rows", 1, "1.1"), ("Rows", 4, "4.0"))
    alter(run, index("Rows"))
    run.write(("Rows", 2, "2.1"))


INDEX_AGAIN = Variant(
    "index-again",
    {"D": make_index_again, "A": deliver_and_clear},
    (Expectation("a"),),
    prelude=begin_with_rows,
    finale=catch_up("a"),
    schema_changes=True,
    quiet=(),
    allowed=INDEX_GONE,
)


def begin_with_column(run: Run) -> None:
    """A is registered; rows are there of before and of after a column came."""
    begin_with_rows(run)
    alter(run, "ALTER TABLE `Rows` ADD COLUMN Extra STRING(MAX)")
    run.write(("Rows", 2, "2.1"), columns={"Extra": "2"})


def drop_and_add(run: Run) -> None:
    """That column goes, and another one comes."""
    alter(run, "ALTER TABLE `Rows` DROP COLUMN Extra")
    run.record.drop_column("Extra")
    run.write(("Rows", 1, "1.1"))
    alter(run, "ALTER TABLE `Rows` ADD COLUMN More STRING(MAX)")
    run.write(("Rows", 4, "4.0"), columns={"More": "4"})


COLUMNS = Variant(
    "columns",
    {"D": drop_and_add, "A": deliver_and_clear},
    (Expectation("a"),),
    prelude=begin_with_column,
    finale=catch_up("a"),
    schema_changes=True,
    quiet=(),
)
SPARK_COLUMNS = Variant(
    "spark-columns",
    {"D": drop_and_add, "Q": query(3, 2, startingTimestamp="earliest")},
    (Expectation("q", exactly=True),),
    prelude=begin_with_column,
    finale=drain_query(startingTimestamp="earliest"),
    crashes={"Q": 1},
    schema_changes=True,
    quiet=(),
)
TIMED = (
    f"CREATE TABLE `Rows` (Id INT64, Version STRING(MAX), Minute STRING(20), {STAMP})"
    " PRIMARY KEY (Id)",
    "CREATE NULL_FILTERED INDEX RowsByTime ON `Rows`(Minute, LastModified)",
)
BY_TIME = {
    "table": {"Rows": {"shard": "time", "shard_column": "Minute", "shard_interval": "minute"}}
}
LATE_SECONDS = 200.0


def write_late(run: Run) -> None:
    """Rows with the minute of the writer's clock, which are committed when they are."""
    for key in (1, 2, 3):
        minute = datetime.fromtimestamp(run.now() / 1_000_000, UTC).strftime("%Y-%m-%dT%H:%M")
        run.write(("Rows", key, f"{key}.0"), columns={"Minute": minute})


def follow_minutes(run: Run) -> None:
    """Consumer A polls now and then; time passes."""
    run.watcher("a", tables=["*"], start="earliest", interval=0.001, **BY_TIME).run()


TIME_SHARDS = Variant(
    "time-shards",
    {"W": write_late, "A": follow_minutes, "T": lambda run: run.pass_time(LATE_SECONDS)},
    (Expectation("a"),),
    statements=TIMED,
    watchable=(),
    finale=catch_up("a", **BY_TIME),
)
